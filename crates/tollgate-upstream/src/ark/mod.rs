//! Volcengine Ark, and BytePlus ModelArk, its international twin: Seedream images, Seedance videos.
//!
//! Sources: <https://www.volcengine.com/docs/82379> 1541523 (images), 1520757 and 1521309 (videos), 1299023 (errors).

mod client;
mod errors;
mod field_support;
mod images;
mod models;
mod prompt;
mod videos;

use std::sync::Arc;

use self::client::Ark;
use crate::channel::Channel;
use crate::egress;
use crate::provider::{Provider, Settings};

pub(crate) use self::client::BASE_URL;
pub(crate) use self::field_support::FIELD_SUPPORT;

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let ark = Arc::new(Ark::new(channel, egress));
    Provider {
        image: Some(ark.clone()),
        video: Some(ark.clone()),
        queue: Some(ark),
        ..Provider::default()
    }
}
