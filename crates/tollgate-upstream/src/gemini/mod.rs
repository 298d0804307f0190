//! Google's Gemini API, and the same models on the Agent Platform: chat, images of Gemini and Imagen, videos of Veo.

mod chat;
mod chat_models;
mod client;
mod credentials;
mod errors;
mod field_support;
mod imagen;
mod images;
mod models;
mod platform;
mod service_account;
mod videos;

use std::sync::Arc;

use self::client::Gemini;
use self::platform::Endpoint;
use crate::channel::Channel;
use crate::egress;
use crate::provider::{EnvironmentChannel, Provider, Settings};

pub(crate) use self::field_support::FIELD_SUPPORT;
pub(crate) use self::platform::base_url;

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    base_url: None,
    models: &[
        "gemini-2.5-flash-lite",
        "gemini-2.5-flash",
        "gemini-2.5-pro",
        "gemini-2.5-pro-thinking",
        "gemini-2.5-flash-image-preview",
        "gemini-3.1-flash-image-preview",
        "gemini-3-pro-image-preview",
    ],
};

/// Opens the provider for one channel; without capabilities if [`check`] rejects its options.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let Ok(endpoint) = Endpoint::for_channel(channel) else {
        return Provider::default();
    };
    let gemini = Arc::new(Gemini::new(channel, egress, endpoint));
    Provider {
        image: Some(gemini.clone()),
        video: Some(gemini.clone()),
        queue: Some(gemini.clone()),
        chat: Some(gemini),
        ..Provider::default()
    }
}

/// Checks the options and keys of a channel.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    credentials::check(channel, Endpoint::for_channel(channel)?.surface)
}
