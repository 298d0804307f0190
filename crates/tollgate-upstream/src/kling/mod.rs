//! Kling: speech, returned in the response, and videos, as tasks in its queue.

mod auth;
mod client;
mod errors;
mod field_support;
mod models;
mod mp3;
mod new_api;
mod old_api;
mod options;
mod provider_job_id;
mod speech;
mod task;
mod text_parts;
mod video_plan;
mod videos;

use std::sync::Arc;

use crate::channel::Channel;
use crate::egress;
use crate::provider::{EnvironmentChannel, Provider, Settings};
use client::Kling;
use options::Voices;

pub(crate) use client::BASE_URL;
pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["KLING_API_KEY"],
    base_url: None,
    models: &["native-v3"],
};

/// Opens the provider for one channel; without capabilities if [`check`] rejects its options.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let Ok(voices) = Voices::for_channel(channel) else {
        return Provider::default();
    };
    let kling = Arc::new(Kling::new(channel, egress, voices));
    Provider {
        video: Some(kling.clone()),
        speech: Some(kling.clone()),
        queue: Some(kling),
        ..Provider::default()
    }
}
