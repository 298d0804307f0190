//! The sandbox: a provider inside the gateway that makes real files and answers chats without any key.

mod chat;
pub mod directives;
pub mod film;
mod image;
mod picture;
mod speech;
mod video;
pub mod voice;
mod work;

use std::sync::Arc;

use crate::channel::Channel;
use crate::egress;
use crate::provider::{Provider, Settings};

/// Opens the sandbox for one channel.
pub fn open(channel: &Arc<Channel>, settings: &Settings, _egress: &egress::Client) -> Provider {
    let sandbox = Arc::new(image::SandboxImages::new(settings.sandbox_image));
    Provider {
        image: Some(sandbox.clone()),
        video: Some(Arc::new(video::SandboxVideos::new(settings.sandbox_video))),
        speech: Some(Arc::new(speech::SandboxSpeech::new(
            settings.sandbox_speech,
        ))),
        chat: Some(Arc::new(chat::SandboxChat::new(
            channel,
            settings.sandbox_chat,
        ))),
        review: Some(sandbox),
        ..Provider::default()
    }
}
