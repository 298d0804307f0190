//! Alibaba DashScope (Model Studio): wan2.7 images, as tasks in its queue.

mod client;
mod errors;
mod field_support;
mod images;
mod options;
mod request;
mod response;

use std::sync::Arc;

use crate::channel::Channel;
use crate::egress;
use crate::provider::{Provider, Settings};
use client::DashScope;

pub(crate) use client::BASE_URL;
pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let provider = Arc::new(DashScope::new(channel, egress));
    Provider {
        image: Some(provider.clone()),
        queue: Some(provider),
        ..Provider::default()
    }
}
