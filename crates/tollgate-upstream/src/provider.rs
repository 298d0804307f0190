//! Traits and types of providers of images, videos and speech: one trait per capability, and [`Queue`] for polling.
//!
//! A provider either does the work within the call ([`Started::Completed`]) or accepts it into a queue of its own
//! ([`Started::Accepted`]), which [`Queue`] polls later: in this process or another, also after a restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Secret, TaskKind};
use tollgate_media::Job;
use tollgate_media::image::{ImageFormat, ImageJob, PixelSize};
use tollgate_media::speech::SpeechJob;
use tollgate_media::video::VideoJob;

use crate::channel::{Channel, ChannelModel};
use crate::chat::ChatProvider;
use crate::egress;
use crate::error::ProviderError;
use crate::reported_usage::{ReportedUsage, UsagePeriod};
use crate::trace_headers::TraceHeaders;

/// Settings that providers are opened with, beyond the channel itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How long the sandbox takes for an image task (`sandbox.image_ms`).
    pub sandbox_image: Duration,
    /// How long the sandbox takes for a video (`sandbox.video_ms`).
    pub sandbox_video: Duration,
    /// How long the sandbox takes for speech (`sandbox.speech_ms`).
    pub sandbox_speech: Duration,
    /// How long the sandbox takes until the first byte of a chat (`sandbox.chat_ms`).
    pub sandbox_chat: Duration,
}

/// The entry of a channel kind in the registry of providers.
pub struct ProviderEntry {
    /// The channel kind in the configuration.
    pub kind: &'static str,
    /// Its name in OpenTelemetry's conventions for generative models: as `gen_ai.system`, and as `gen_ai.provider.name`.
    pub trace_names: [&'static str; 2],
    /// How `tollgate init` finds an account with it; `None` if it needs none.
    pub environment: Option<&'static EnvironmentChannel>,
    /// Checks the options of a channel and of its models. The error is a sentence that names the wrong one.
    pub check: fn(&Channel) -> Result<(), String>,
    /// The base URL of a channel's requests; `None` if they do not leave the process.
    pub base_url: fn(&Channel) -> Option<String>,
    /// Which fields of the families that it serves it supports, for its page in docs/providers.
    pub field_support: &'static [FieldSupport],
    /// Opens the provider for one channel.
    pub open: fn(&Arc<Channel>, &Settings, &egress::Client) -> Provider,
}

/// A channel as it can be made of what an environment usually holds.
pub struct EnvironmentChannel {
    /// Variables that hold a key; the first that is set counts.
    pub keys: &'static [&'static str],
    /// The variable with which the provider's SDKs are pointed at another server, if `base_url` of a channel has the same form.
    pub base_url: Option<&'static str>,
    /// Models of the catalogue that the provider has under the ids that are built in, the cheapest first.
    pub models: &'static [&'static str],
}

/// Which of one family's fields a provider supports.
pub struct FieldSupport {
    /// The family's name.
    pub family: &'static str,
    /// Every field of the family with the upstream's field for it, or `not supported: …`.
    pub fields: &'static [(&'static str, &'static str)],
}

/// A provider's capabilities for one channel; `None` for those that it lacks.
#[derive(Clone, Default)]
pub struct Provider {
    /// Generates images.
    pub image: Option<Arc<dyn ImageProvider>>,
    /// Generates videos.
    pub video: Option<Arc<dyn VideoProvider>>,
    /// Generates speech.
    pub speech: Option<Arc<dyn SpeechProvider>>,
    /// Polls its queue; `Some` if one of the above accepts work into a queue.
    pub queue: Option<Arc<dyn Queue>>,
    /// Answers chats.
    pub chat: Option<Arc<dyn ChatProvider>>,
    /// Moderates prompts before submission.
    pub moderation: Option<Arc<dyn Moderation>>,
    /// Reports what it has counted. `None` also if the channel has no admin key.
    pub usage: Option<Arc<dyn UsageReport>>,
}

/// How a provider works on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Within the call. Work that was interrupted on our side is simply repeated.
    Direct,
    /// In its own queue: a call that was interrupted may have been accepted and is never repeated blindly.
    Queued,
}

/// Reports the tokens of chats that it has counted.
#[async_trait]
pub trait UsageReport: Send + Sync {
    /// The tokens by model and day, of everything that the account used in those days, on this channel or not.
    async fn report(&self, period: UsagePeriod) -> Result<Vec<ReportedUsage>, ProviderError>;
}

/// Generates images.
#[async_trait]
pub trait ImageProvider: Send + Sync {
    /// How it works on that model.
    fn execution_mode(&self, model: &ChannelModel) -> ExecutionMode {
        let _ = model;
        ExecutionMode::Direct
    }

    /// Starts the images of `call.job`; a direct provider delivers each as soon as it has it. Dropping the future, or
    /// `attempt.cancel`, ends the work.
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError>;
}

/// Generates videos.
#[async_trait]
pub trait VideoProvider: Send + Sync {
    /// How it works on that model.
    fn execution_mode(&self, model: &ChannelModel) -> ExecutionMode {
        let _ = model;
        ExecutionMode::Queued
    }

    /// Starts the video of `call.job`.
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError>;
}

/// Generates speech.
#[async_trait]
pub trait SpeechProvider: Send + Sync {
    /// How it works on that model.
    fn execution_mode(&self, model: &ChannelModel) -> ExecutionMode {
        let _ = model;
        ExecutionMode::Direct
    }

    /// Starts the speech of `call.job`.
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError>;
}

/// Polls, cancels and finds work that a provider has accepted into its queue.
#[async_trait]
pub trait Queue: Send + Sync {
    /// How often to poll work of that kind.
    fn poll_interval(&self, kind: TaskKind) -> PollInterval;

    /// Polls once. All results of finished work are delivered before this returns [`Polled::Completed`]. After `Err` the next
    /// poll tries again.
    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError>;

    /// Cancels the work at the provider, if it has such a request. Delivers nothing.
    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let _ = call;
        Ok(())
    }

    /// Finds work that may have been accepted although the response was lost, by `external_id`, our own id of the attempt.
    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let _ = call;
        Ok(Found::CannotTell)
    }
}

/// Moderates a prompt before a submission is accepted.
#[async_trait]
pub trait Moderation: Send + Sync {
    /// `Err` with kind [`crate::UpstreamErrorKind::Moderated`] rejects the prompt; after any other error it is unknown whether
    /// the prompt is acceptable.
    async fn check_prompt(&self, prompt: &str) -> Result<(), ProviderError>;
}

/// One attempt at one task of any kind.
#[derive(Clone)]
pub struct Attempt<'a> {
    /// The task, for logs.
    pub task_id: &'a str,
    /// Our own id of this attempt, for providers with a field for it: unique, 1 to 60 characters of `[A-Za-z0-9_-]`.
    pub external_id: &'a str,
    /// The channel's entry for the model: the provider's model id, and options.
    pub model: &'a ChannelModel,
    /// The key to use. `None` if the channel has no keys.
    pub key: Option<&'a Secret>,
    /// How many attempts at this task have failed before this one. Interruptions do not count.
    pub failed_attempts: u32,
    /// The place in a trace that the provider's server gets with the requests that create something. `None` for none.
    pub trace: Option<&'a TraceHeaders>,
    /// Receives the results and the progress.
    pub sink: &'a dyn ResultSink,
    /// Fires when the task was cancelled, timed out or lost its lease.
    pub cancel: CancellationToken,
}

/// One attempt at images.
pub struct ImageCall<'a> {
    /// What all kinds of attempts share.
    pub attempt: Attempt<'a>,
    /// The job. `job.size.pixels` is always `Some` here.
    pub job: &'a ImageJob,
    /// The reference images, in `job.references`' order, fetched and checked.
    pub references: &'a [InputFile],
    /// The mask, fetched and checked.
    pub mask: Option<&'a InputFile>,
}

/// One attempt at a video.
pub struct VideoCall<'a> {
    /// What all kinds of attempts share.
    pub attempt: Attempt<'a>,
    /// The job. `job.size.pixels` is always `Some` here.
    pub job: &'a VideoJob,
    /// The reference images, in `job.images`' order, fetched and checked.
    pub images: &'a [InputFile],
}

/// One attempt at speech.
pub struct SpeechCall<'a> {
    /// What all kinds of attempts share.
    pub attempt: Attempt<'a>,
    /// The job.
    pub job: &'a SpeechJob,
}

/// A poll or cancellation of accepted work.
#[derive(Clone)]
pub struct QueueCall<'a> {
    /// The task, for logs.
    pub task_id: &'a str,
    /// The kind of the task.
    pub kind: TaskKind,
    /// The id from [`Started::Accepted`].
    pub provider_job_id: &'a str,
    /// How many results were requested.
    pub requested: u32,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key that the work was submitted with, if the channel still has it; otherwise one that it has now.
    pub key: Option<&'a Secret>,
    /// Receives the results and the progress.
    pub sink: &'a dyn ResultSink,
}

/// A search for work whose acceptance was lost.
#[derive(Clone)]
pub struct FindCall<'a> {
    /// The job that was submitted.
    pub job: &'a Job,
    /// [`Attempt::external_id`].
    pub external_id: &'a str,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key that it was submitted with.
    pub key: Option<&'a Secret>,
    /// Receives the adjustments of the work that is found, as its start reported them.
    pub sink: &'a dyn ResultSink,
}

/// The outcome of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// Done; the results have been delivered.
    Completed(Completed),
    /// The provider has it in its queue. The provider job id is the provider's own id, or whatever else its adapter needs to
    /// find it again: without secrets, up to 8 KiB.
    Accepted(String),
}

/// Work that ended without failing altogether: anything from none to all of the requested results was delivered.
#[derive(Debug, Clone, Default)]
pub struct Completed {
    /// Why results are missing: one error per missing result that the provider reported.
    pub failures: Vec<ProviderError>,
}

/// The outcome of a poll.
#[derive(Debug, Clone)]
pub enum Polled {
    /// Not finished. The progress in percent, 0 to 100, if the provider reports it.
    Pending(Option<u8>),
    /// Done; the results have been delivered.
    Completed(Completed),
    /// Ended without a result; the error's kind decides whether another attempt is made.
    Failed(ProviderError),
}

/// The outcome of a search by our own id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It was accepted and has this provider job id.
    Accepted(String),
    /// The provider never accepted it: it may be sent again.
    Nothing,
    /// The provider has no such search.
    CannotTell,
}

/// When to poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollInterval {
    /// Time from the acceptance to the first poll.
    pub first: Duration,
    /// Time from one poll to the next.
    pub every: Duration,
}

impl PollInterval {
    /// The same interval before every poll, including the first.
    pub const fn every(seconds: u64) -> Self {
        let every = Duration::from_secs(seconds);
        Self {
            first: every,
            every,
        }
    }
}

/// A reference image on disk, already checked against the family's limits.
#[derive(Debug, Clone)]
pub struct InputFile {
    /// The request field that it came in, for error messages.
    pub field: String,
    /// The path of the file, which exists for as long as the call lasts.
    pub path: PathBuf,
    /// The format of its bytes.
    pub format: ImageFormat,
    /// Its size in pixels.
    pub size: PixelSize,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Receives the results of one attempt, its progress and its adjustments.
#[async_trait]
pub trait ResultSink: Send + Sync {
    /// Stores one result: fetches it if it is a link, and checks that it is a file of the task's kind.
    ///
    /// # Errors
    ///
    /// If it cannot be fetched or is no such file; the provider passes the error on.
    async fn deliver(&self, result: ResultData) -> Result<(), ProviderError>;
    /// Reports the progress in percent, 0 to 100. Cheap enough for every change.
    fn progress(&self, percent: u8);
    /// Records that the provider is sent another value than the job has, such as the nearest size that it supports. Called
    /// before the request is sent; the task shows it (docs/tasks.md). Recording the same one twice counts once.
    fn record_adjustment(&self, adjustment: Adjustment);
}

/// One result: a complete file, however it arrives. Its format is read from its bytes.
pub enum ResultData {
    /// The complete file.
    Bytes(Bytes),
    /// The file chunk by chunk.
    Stream(BoxStream<'static, Result<Bytes, ProviderError>>),
    /// A link to fetch it from.
    Link(Link),
}

/// A link to a result.
#[derive(Debug, Clone)]
pub struct Link {
    /// An http or https URL, as the provider gave it.
    pub url: String,
    /// Headers for the URL's own origin only: they are dropped on a redirect elsewhere.
    pub headers: HeaderMap,
    /// Whether the URL has the channel's own, configured origin. Any other URL is fetched through the SSRF guard.
    pub is_own: bool,
}

impl From<Bytes> for ResultData {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}
