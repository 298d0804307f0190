//! xAI: Grok Imagine images and videos, and speech. <https://docs.x.ai/docs/api-reference>

mod client;
mod errors;
mod field_support;
mod images;
mod models;
mod options;
mod speech;
mod videos;

use std::sync::Arc;

use crate::channel::Channel;
use crate::egress;
use crate::provider::{EnvironmentChannel, Provider, Settings};
use client::Client;

pub(crate) use client::BASE_URL;
pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// The key's usual variables, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["XAI_API_KEY"],
    base_url: None,
    models: &[
        "grok-imagine-1.0-partner",
        "grok-imagine-1.0-edit-partner",
        "grok-imagine-video-1.5",
    ],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let client = Arc::new(Client::new(channel, egress));
    let videos = Arc::new(videos::Videos(Arc::clone(&client)));
    Provider {
        image: Some(Arc::new(images::Images(Arc::clone(&client)))),
        video: Some(videos.clone()),
        queue: Some(videos),
        speech: Some(Arc::new(speech::Speech(client))),
        ..Provider::default()
    }
}
