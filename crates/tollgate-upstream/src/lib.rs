//! Providers, and the one HTTP client that may leave the machine.
//!
//! A provider is one folder and one line in [`PROVIDERS`]; it implements the trait of each
//! capability it has. Nothing outside a provider's folder asks which provider it is.

mod anthropic;
mod ark;
pub mod channel;
pub mod chat;
mod dashscope;
pub mod egress;
mod fal;
mod gemini;
mod kling;
mod mapped;
mod openai;
pub mod provider;
mod raster;
mod replicate;
pub mod sandbox;
mod wire;
mod xai;

pub use channel::Channel;
pub use chat::{
    ChatBody, ChatCall, ChatError, ChatErrorKind, ChatModel, ChatProvider, ChatTimeouts,
};
pub use provider::{
    Attempt, Delivery, Done, FindCall, Found, ImageCall, ImageProvider, InputFile, Link, Made,
    Polled, ProviderError, ProviderErrorKind, Queue, QueueCall, Review, Rhythm, SpeechCall,
    SpeechProvider, Started, Style, VideoCall, VideoProvider,
};

use std::sync::Arc;

/// How a channel kind becomes a provider: the line that a provider adds.
pub struct ProviderEntry {
    /// The `kind` of the configuration.
    pub kind: &'static str,
    /// Whether the options of a channel and of its models are such as this provider knows: a sentence that names the wrong
    /// one otherwise.
    pub check: fn(&Channel) -> Result<(), String>,
    /// What becomes of the fields of the families that it serves, for its page in docs/providers.
    pub carries: &'static [Carries],
    /// Makes the provider for one channel.
    pub open: fn(&Arc<Channel>, &provider::Settings, &egress::Client) -> provider::Provider,
}

/// What a provider makes of one family's fields.
pub struct Carries {
    /// The family's name.
    pub family: &'static str,
    /// Every field of the family, and in words what becomes of it: the upstream's field, or `not carried: …`.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Every channel kind this build has.
pub static PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        kind: "anthropic",
        check: channel::no_options,
        carries: &[],
        open: anthropic::open,
    },
    ProviderEntry {
        kind: "ark",
        check: channel::no_options,
        carries: ark::CARRIES,
        open: ark::open,
    },
    ProviderEntry {
        kind: "dashscope",
        check: dashscope::check,
        carries: dashscope::CARRIES,
        open: dashscope::open,
    },
    ProviderEntry {
        kind: "fal",
        check: fal::check,
        // What is carried is configured.
        carries: &[],
        open: fal::open,
    },
    ProviderEntry {
        kind: "gemini",
        check: gemini::check,
        carries: gemini::CARRIES,
        open: gemini::open,
    },
    ProviderEntry {
        kind: "kling",
        check: kling::check,
        carries: kling::CARRIES,
        open: kling::open,
    },
    ProviderEntry {
        kind: "openai",
        check: openai::check,
        carries: openai::CARRIES,
        open: openai::open,
    },
    ProviderEntry {
        kind: "replicate",
        check: replicate::check,
        // What is carried is configured.
        carries: &[],
        open: replicate::open,
    },
    ProviderEntry {
        kind: "sandbox",
        check: channel::no_options,
        carries: &[],
        open: sandbox::open,
    },
    ProviderEntry {
        kind: "xai",
        check: xai::check,
        carries: xai::CARRIES,
        open: xai::open,
    },
];
