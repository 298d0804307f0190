//! OpenAI and servers with the same API: Chat Completions and Responses, images, videos and speech.
//! <https://platform.openai.com/docs/api-reference>

mod chat;
mod chat_models;
mod client;
mod errors;
mod field_support;
mod images;
mod models;
mod options;
mod sizes;
mod speech;
mod usage;
mod videos;

use std::sync::Arc;

use crate::channel::Channel;
use crate::egress;
use crate::provider::{EnvironmentChannel, Provider, Settings, UsageReport};
use chat::OpenAi;
use client::Client;

pub(crate) use client::BASE_URL;
pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["OPENAI_API_KEY"],
    base_url: Some("OPENAI_BASE_URL"),
    models: &[
        "gpt-5-nano",
        "gpt-5-mini",
        "gpt-5",
        "gpt-5-pro",
        "gpt-5-chat-latest",
        "gpt-4o",
        "gpt-image-2-official",
        "gpt-image-1.5-official",
        "sora-2",
    ],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let client = Arc::new(Client::new(channel, egress));
    let videos = Arc::new(videos::Videos(Arc::clone(&client)));
    let usage = channel.admin_key.clone().map(|admin_key| {
        let client = Arc::clone(&client);
        Arc::new(usage::OpenAiUsage { client, admin_key }) as Arc<dyn UsageReport>
    });
    Provider {
        usage,
        image: Some(Arc::new(images::Images(Arc::clone(&client)))),
        video: Some(videos.clone()),
        queue: Some(videos),
        speech: Some(Arc::new(speech::Speech(client))),
        chat: Some(Arc::new(OpenAi::new(channel, egress))),
        ..Provider::default()
    }
}
