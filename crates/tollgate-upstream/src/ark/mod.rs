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
use crate::provider::{EnvironmentChannel, Provider, Settings};

pub(crate) use self::client::BASE_URL;
pub(crate) use self::field_support::FIELD_SUPPORT;

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["ARK_API_KEY"],
    base_url: None,
    models: &[
        "doubao-seedream-4-5",
        "doubao-seedream-5-0-lite",
        "seedance-1.0-pro",
        "seedance-1.5-pro",
        "seedance-2.0",
    ],
};

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
