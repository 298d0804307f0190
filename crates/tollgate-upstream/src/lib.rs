//! Upstream providers behind one set of traits, and the HTTP client that sends every outgoing request.
//!
//! A provider is one folder and one entry in [`PROVIDERS`]; it implements the trait of each capability it has ([`provider`], [`chat`]). Code outside
//! a provider's folder never depends on which provider it uses.

mod adapter;
mod anthropic;
mod ark;
pub mod channel;
pub mod chat;
mod dashscope;
pub mod egress;
pub mod error;
mod fal;
mod gemini;
mod kling;
mod mapped;
mod openai;
pub mod provider;
pub mod raster;
mod registry;
mod replicate;
mod reported_usage;
#[cfg(test)]
mod test_tables;
mod trace_headers;
mod usage_report;
mod xai;

pub use channel::Channel;
pub use chat::{ChatBody, ChatCall, ChatModel, ChatProvider, ChatTimeouts};
pub use error::{ChannelEffect, ErrorPolicy, ProviderError, UpstreamErrorKind};
pub use provider::{
    Attempt, Completed, ExecutionMode, FieldSupport, FindCall, Found, ImageCall, ImageProvider,
    InputFile, Link, Moderation, PollInterval, Polled, ProviderEntry, Queue, QueueCall, ResultData,
    ResultSink, SpeechCall, SpeechProvider, Started, UsageReport, VideoCall, VideoProvider,
};
pub use registry::PROVIDERS;
pub use reported_usage::{ReportedUsage, UsagePeriod};
pub use trace_headers::TraceHeaders;
