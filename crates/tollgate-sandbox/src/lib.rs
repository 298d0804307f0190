//! The sandbox: providers of images, videos, speech and chat that require no account and no network.
//!
//! Everything is generated in this process. docs/sandbox.md is the documentation for users.

mod chat;
pub mod directives;
mod image;
mod images;
mod speech;
pub mod synthesis;
mod task;
pub mod video;
mod videos;

use std::sync::Arc;

use tollgate_upstream::channel::{self, Channel};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{ProviderEntry, egress};

/// The channel kind `sandbox`, which the program adds to the providers of tollgate-upstream.
pub static PROVIDERS: &[ProviderEntry] = &[ProviderEntry {
    kind: "sandbox",
    trace_names: ["sandbox"; 2],
    check: channel::no_options,
    base_url: |_| None,
    environment: None,
    field_support: &[],
    open,
}];

/// Opens the sandbox for one channel.
pub fn open(channel: &Arc<Channel>, settings: &Settings, _egress: &egress::Client) -> Provider {
    let images = Arc::new(images::SandboxImages::new(settings.sandbox_image));
    Provider {
        image: Some(images.clone()),
        video: Some(Arc::new(videos::SandboxVideos::new(settings.sandbox_video))),
        speech: Some(Arc::new(speech::SandboxSpeech::new(
            settings.sandbox_speech,
        ))),
        chat: Some(Arc::new(chat::SandboxChat::new(
            channel,
            settings.sandbox_chat,
        ))),
        moderation: Some(images),
        ..Provider::default()
    }
}
