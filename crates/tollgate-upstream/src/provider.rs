//! Traits and types of providers of images, videos and speech: one trait per capability, and [`Queue`] for polling.
//!
//! A provider either completes the work within the call ([`Started::Completed`]) or accepts it into a queue of its own ([`Started::Accepted`]), which
//! [`Queue`] polls later: in this process or another, also after a restart.

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

/// Settings for opening providers, in addition to the channel itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The duration of an image task in the sandbox (`sandbox.image_ms`).
    pub sandbox_image: Duration,
    /// The duration of a video task in the sandbox (`sandbox.video_ms`).
    pub sandbox_video: Duration,
    /// The duration of a speech task in the sandbox (`sandbox.speech_ms`).
    pub sandbox_speech: Duration,
    /// The time until the first byte of a chat in the sandbox (`sandbox.chat_ms`).
    pub sandbox_chat: Duration,
}

/// The entry of a channel kind in the registry of providers.
pub struct ProviderEntry {
    /// The channel kind in the configuration.
    pub kind: &'static str,
    /// The provider's names in OpenTelemetry's conventions for generative models: the values of `gen_ai.system` and `gen_ai.provider.name`.
    pub trace_names: [&'static str; 2],
    /// How `tollgate init` finds the operator's account at the provider; `None` if the provider needs none.
    pub environment: Option<&'static EnvironmentChannel>,
    /// Checks the options of a channel and of its models. The error is a sentence that names the invalid option.
    pub check: fn(&Channel) -> Result<(), String>,
    /// The base URL of a channel's requests; `None` if they do not leave the process.
    pub base_url: fn(&Channel) -> Option<String>,
    /// Which fields of each family that it serves the provider supports, for its page in docs/providers.
    pub field_support: &'static [FieldSupport],
    /// Opens the provider for one channel.
    pub open: fn(&Arc<Channel>, &Settings, &egress::Client) -> Provider,
}

/// The channel that `tollgate init` creates from environment variables.
pub struct EnvironmentChannel {
    /// Environment variables that may contain a key; the first that is set is used.
    pub keys: &'static [&'static str],
    /// The environment variable that sets another server for the provider's SDKs, if its value has the form of a channel's `base_url`.
    pub base_url: Option<&'static str>,
    /// Models of the catalogue whose ids at the provider are built in, the cheapest first.
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
    /// Polls the provider's queue; `Some` if one of the above accepts work into a queue.
    pub queue: Option<Arc<dyn Queue>>,
    /// Responds to chats.
    pub chat: Option<Arc<dyn ChatProvider>>,
    /// Moderates prompts before submission.
    pub moderation: Option<Arc<dyn Moderation>>,
    /// Reports the tokens that the provider has counted. `None` also if the channel has no admin key.
    pub usage: Option<Arc<dyn UsageReport>>,
}

/// How a provider processes work for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Within the call. Work that the gateway interrupted is simply repeated.
    Direct,
    /// In the provider's own queue: a call that was interrupted may have been accepted and is never repeated blindly.
    Queued,
}

/// Reports the tokens of chats that the provider has counted.
#[async_trait]
pub trait UsageReport: Send + Sync {
    /// The tokens by model and day, of everything that the account used in those days, through this channel or not.
    async fn report(&self, period: UsagePeriod) -> Result<Vec<ReportedUsage>, ProviderError>;
}

/// Generates images.
#[async_trait]
pub trait ImageProvider: Send + Sync {
    /// How the provider processes work for that model.
    fn execution_mode(&self, model: &ChannelModel) -> ExecutionMode {
        let _ = model;
        ExecutionMode::Direct
    }

    /// Starts the images of `call.job`; a direct provider delivers each image when it is complete. Dropping the future, or `attempt.cancel`, ends the
    /// work.
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError>;
}

/// Generates videos.
#[async_trait]
pub trait VideoProvider: Send + Sync {
    /// How the provider processes work for that model.
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
    /// How the provider processes work for that model.
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
    /// The interval for polling work of that kind.
    fn poll_interval(&self, kind: TaskKind) -> PollInterval;

    /// Polls once. All results of finished work are delivered before this returns [`Polled::Completed`]. After `Err`, the next poll retries.
    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError>;

    /// Cancels the work at the provider, if it has such a request. Delivers nothing.
    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let _ = call;
        Ok(())
    }

    /// Finds work that may have been accepted although the response was lost, by `external_id`, the gateway's id of the attempt.
    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let _ = call;
        Ok(Found::Unknown)
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
    /// The gateway's id of this attempt, for providers with a field for it: unique, 1 to 60 characters of `[A-Za-z0-9_-]`.
    pub external_id: &'a str,
    /// The channel's entry for the model: the provider's model id, and options.
    pub model: &'a ChannelModel,
    /// The key to use. `None` if the channel has no keys.
    pub key: Option<&'a Secret>,
    /// How many attempts at this task have failed before this one. Interruptions do not count.
    pub failed_attempts: u32,
    /// The trace context that the provider's server receives with the requests that create something. `None` if the channel forwards none or the task is not traced.
    pub trace: Option<&'a TraceHeaders>,
    /// Receives the results and the progress.
    pub sink: &'a dyn ResultSink,
    /// Cancelled when the task is cancelled, times out or loses its lease.
    pub cancel: CancellationToken,
}

/// One attempt at images.
pub struct ImageCall<'a> {
    /// The properties that all kinds of attempts share.
    pub attempt: Attempt<'a>,
    /// The job. `job.size.pixels` is always `Some` here.
    pub job: &'a ImageJob,
    /// The reference images, in the order of `job.references`, fetched and checked.
    pub references: &'a [InputFile],
    /// The mask, fetched and checked.
    pub mask: Option<&'a InputFile>,
}

/// One attempt at a video.
pub struct VideoCall<'a> {
    /// The properties that all kinds of attempts share.
    pub attempt: Attempt<'a>,
    /// The job. `job.size.pixels` is always `Some` here.
    pub job: &'a VideoJob,
    /// The reference images, in the order of `job.images`, fetched and checked.
    pub images: &'a [InputFile],
}

/// One attempt at speech.
pub struct SpeechCall<'a> {
    /// The properties that all kinds of attempts share.
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
    /// The number of requested results.
    pub requested: u32,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key with which the work was submitted, if the channel still has it; otherwise one of its current keys.
    pub key: Option<&'a Secret>,
    /// Receives the results and the progress.
    pub sink: &'a dyn ResultSink,
}

/// A search for work that may have been accepted although the response was lost.
#[derive(Clone)]
pub struct FindCall<'a> {
    /// The job that was submitted.
    pub job: &'a Job,
    /// [`Attempt::external_id`].
    pub external_id: &'a str,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key with which the job was submitted.
    pub key: Option<&'a Secret>,
    /// Receives the adjustments of the work that is found, the same as reported when it was started.
    pub sink: &'a dyn ResultSink,
}

/// The outcome of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// The work is complete; the results have been delivered.
    Completed(Completed),
    /// The provider has accepted the work into its queue. The provider job id is the provider's own id, or whatever else the adapter needs to find
    /// the work again: without secrets, up to 8 KiB.
    Accepted(String),
}

/// Work that did not fail completely: anything from none to all of the requested results was delivered.
#[derive(Debug, Clone, Default)]
pub struct Completed {
    /// The errors of missing results: one per missing result that the provider reported.
    pub failures: Vec<ProviderError>,
}

/// The outcome of a poll.
#[derive(Debug, Clone)]
pub enum Polled {
    /// Not finished. The progress in percent, 0 to 100, if the provider reports it.
    Pending(Option<u8>),
    /// The work is complete; the results have been delivered.
    Completed(Completed),
    /// The work ended without a result; the error's kind decides whether another attempt is made.
    Failed(ProviderError),
}

/// The outcome of a search by the gateway's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The provider accepted the work under this provider job id.
    Accepted(String),
    /// The provider never accepted the work: it may be sent again.
    Nothing,
    /// The provider does not offer such a search.
    Unknown,
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
    /// The request field that contained the image, for error messages.
    pub field: String,
    /// The path of the file, which exists for as long as the call lasts.
    pub path: PathBuf,
    /// The format of the file's bytes.
    pub format: ImageFormat,
    /// The image's size in pixels.
    pub size: PixelSize,
    /// The file's size in bytes.
    pub bytes: u64,
}

/// Receives the results of one attempt, its progress and its adjustments.
#[async_trait]
pub trait ResultSink: Send + Sync {
    /// Stores one result: fetches it if it is a link, and checks that it is a file of the task's kind.
    ///
    /// # Errors
    ///
    /// If the result cannot be fetched or is not such a file; the provider returns the error.
    async fn deliver(&self, result: ResultData) -> Result<(), ProviderError>;
    /// Reports the progress in percent, 0 to 100. Cheap enough to be called for every change.
    fn progress(&self, percent: u8);
    /// Records that the provider receives another value than the job's, such as the nearest size that it supports. Called before the request is sent;
    /// the task lists the adjustment (docs/tasks.md). A repeated adjustment is recorded once.
    fn record_adjustment(&self, adjustment: Adjustment);
}

/// One result: a complete file in one of several forms. Its format is recognised from its bytes.
pub enum ResultData {
    /// The complete file.
    Bytes(Bytes),
    /// The file chunk by chunk.
    Stream(BoxStream<'static, Result<Bytes, ProviderError>>),
    /// A link to the file.
    Link(Link),
}

/// A link to a result.
#[derive(Debug, Clone)]
pub struct Link {
    /// An http or https URL, as the provider returned it.
    pub url: String,
    /// Headers for the URL's own origin only: a redirect to another origin is requested without them.
    pub headers: HeaderMap,
    /// Whether the URL has the channel's own, configured origin. Any other URL is fetched through the SSRF guard.
    pub is_own: bool,
}

impl From<Bytes> for ResultData {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}
