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
use crate::provider::{EnvironmentChannel, Provider, Settings};
use client::DashScope;

pub(crate) use client::BASE_URL;
pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["DASHSCOPE_API_KEY"],
    base_url: None,
    models: &["wan2.7-image-pro", "wan2.7-image"],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let provider = Arc::new(DashScope::new(channel, egress));
    Provider {
        image: Some(provider.clone()),
        queue: Some(provider),
        ..Provider::default()
    }
}
