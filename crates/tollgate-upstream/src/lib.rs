//! Providers, and the one HTTP client that may leave the machine.
//!
//! A provider is one folder and one line in [`PROVIDERS`]; it implements the trait of each
//! capability it has. Nothing outside a provider's folder asks which provider it is.

mod anthropic;
pub mod channel;
pub mod chat;
pub mod egress;
mod gemini;
mod openai;
pub mod provider;
pub mod sandbox;
mod wire;

pub use channel::Channel;
pub use chat::{
    ChatBody, ChatCall, ChatError, ChatErrorKind, ChatModel, ChatProvider, ChatTimeouts,
};
pub use provider::{
    Delivery, ImageCall, ImageProvider, InputFile, Picture, ProviderError, ProviderErrorKind,
    Review,
};

use std::sync::Arc;

/// How a channel kind becomes a provider: the line that a provider adds.
pub struct ProviderEntry {
    /// The `kind` of the configuration.
    pub kind: &'static str,
    /// Makes the provider for one channel.
    pub open: fn(&Arc<Channel>, &provider::Settings, &egress::Client) -> provider::Provider,
}

/// Every channel kind this build has.
pub static PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        kind: "anthropic",
        open: anthropic::open,
    },
    ProviderEntry {
        kind: "gemini",
        open: gemini::open,
    },
    ProviderEntry {
        kind: "openai",
        open: openai::open,
    },
    ProviderEntry {
        kind: "sandbox",
        open: sandbox::open,
    },
];
