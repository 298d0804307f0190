//! What a provider of pictures, films and speech can do: one small trait per capability, one for what it queues.
//!
//! A provider either does the work within the call ([`Started::Done`]) or takes it into a queue of its own
//! ([`Started::Accepted`]), from which [`Queue`] gets it later: in this process or another, after a restart too.

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

use crate::channel::ChannelModel;
use crate::chat::ChatProvider;

/// Settings that providers are opened with, beyond the channel itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How long the sandbox takes for a picture task (`sandbox.image_ms`).
    pub sandbox_image: Duration,
    /// How long the sandbox takes for a film (`sandbox.video_ms`).
    pub sandbox_video: Duration,
    /// How long the sandbox takes for speech (`sandbox.speech_ms`).
    pub sandbox_speech: Duration,
    /// How long the sandbox takes until a chat's first byte (`sandbox.chat_ms`).
    pub sandbox_chat: Duration,
}

/// A provider's capabilities for one channel; none where it lacks one.
#[derive(Clone, Default)]
pub struct Provider {
    /// Makes pictures.
    pub image: Option<Arc<dyn ImageProvider>>,
    /// Makes films.
    pub video: Option<Arc<dyn VideoProvider>>,
    /// Speaks.
    pub speech: Option<Arc<dyn SpeechProvider>>,
    /// Follows what it has accepted into its queue; there whenever one of the above accepts anything.
    pub queue: Option<Arc<dyn Queue>>,
    /// Answers chats.
    pub chat: Option<Arc<dyn ChatProvider>>,
    /// Reviews prompts before submission.
    pub review: Option<Arc<dyn Review>>,
}

/// How a provider works on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Within the call. Work that our own end cut off is simply done again.
    Direct,
    /// In its own queue: a call that was cut off may have been accepted, and is never repeated blindly.
    Queued,
}

/// Makes pictures.
#[async_trait]
pub trait ImageProvider: Send + Sync {
    /// How it works on that model.
    fn style(&self, model: &ChannelModel) -> Style {
        let _ = model;
        Style::Direct
    }

    /// Begins the pictures of `call.job`; of a direct one each is delivered as soon as it is there. Dropping the future,
    /// or `attempt.cancel`, ends the work.
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError>;
}

/// Makes films.
#[async_trait]
pub trait VideoProvider: Send + Sync {
    /// How it works on that model.
    fn style(&self, model: &ChannelModel) -> Style {
        let _ = model;
        Style::Queued
    }

    /// Begins the film of `call.job`.
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError>;
}

/// Speaks.
#[async_trait]
pub trait SpeechProvider: Send + Sync {
    /// How it works on that model.
    fn style(&self, model: &ChannelModel) -> Style {
        let _ = model;
        Style::Direct
    }

    /// Begins the speech of `call.job`.
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError>;
}

/// Follows what a provider has accepted into its queue, whatever it makes.
#[async_trait]
pub trait Queue: Send + Sync {
    /// How often to ask for work of that kind.
    fn rhythm(&self, kind: TaskKind) -> Rhythm;

    /// Asks once how far it is; of finished work everything is delivered before this returns [`Polled::Done`]. `Err` means
    /// that no answer could be had: the next poll asks again.
    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError>;

    /// Tells the provider that the work is not wanted any more, as far as it can be told. Nothing is delivered.
    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let _ = call;
        Ok(())
    }

    /// Looks for work that may have been accepted without our hearing of it, by `external_id`, our own id for the attempt.
    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let _ = call;
        Ok(Found::CannotTell)
    }
}

/// Judges a prompt before a submission is taken.
#[async_trait]
pub trait Review: Send + Sync {
    /// `Err` with kind [`ProviderErrorKind::Moderated`] refuses the prompt; other errors mean that no
    /// verdict could be had.
    async fn review(&self, prompt: &str) -> Result<(), ProviderError>;
}

/// One attempt at one task, whatever it makes.
#[derive(Clone)]
pub struct Attempt<'a> {
    /// The task, for logs.
    pub task_id: &'a str,
    /// Our own id for this attempt, for the provider's own-id field where it has one: unique, 1 to 60 characters of
    /// `[A-Za-z0-9_-]`.
    pub external_id: &'a str,
    /// The channel's entry for the model: the provider's id of it, and options.
    pub model: &'a ChannelModel,
    /// The key to use; none where the channel has none.
    pub key: Option<&'a Secret>,
    /// How many attempts at this task have failed before this one. Interruptions do not count.
    pub failed_attempts: u32,
    /// Takes the results and the progress.
    pub delivery: &'a dyn Delivery,
    /// Fires when the task was cancelled, timed out or lost.
    pub cancel: CancellationToken,
}

/// One attempt at pictures.
pub struct ImageCall<'a> {
    /// What it shares with all others.
    pub attempt: Attempt<'a>,
    /// What to make. `job.size.pixels` is always known here.
    pub job: &'a ImageJob,
    /// The reference images, in `job.references`' order, fetched and checked.
    pub references: &'a [InputFile],
    /// The mask, fetched and checked.
    pub mask: Option<&'a InputFile>,
}

/// One attempt at a film.
pub struct VideoCall<'a> {
    /// What it shares with all others.
    pub attempt: Attempt<'a>,
    /// What to make. `job.size.pixels` is always known here.
    pub job: &'a VideoJob,
    /// The reference images, in `job.images`' order, fetched and checked.
    pub images: &'a [InputFile],
}

/// One attempt at speech.
pub struct SpeechCall<'a> {
    /// What it shares with all others.
    pub attempt: Attempt<'a>,
    /// What to say.
    pub job: &'a SpeechJob,
}

/// A question about accepted work.
#[derive(Clone)]
pub struct QueueCall<'a> {
    /// The task, for logs.
    pub task_id: &'a str,
    /// What it makes.
    pub kind: TaskKind,
    /// What [`Started::Accepted`] gave.
    pub ticket: &'a str,
    /// How many results were asked for.
    pub asked: u32,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key that the work was submitted with, if the channel still has it; else one that it has now.
    pub key: Option<&'a Secret>,
    /// Takes the results and the progress.
    pub delivery: &'a dyn Delivery,
}

/// A search for work whose answer was lost.
#[derive(Clone)]
pub struct FindCall<'a> {
    /// What was to be made.
    pub job: &'a Job,
    /// [`Attempt::external_id`].
    pub external_id: &'a str,
    /// The channel's entry for the model.
    pub model: &'a ChannelModel,
    /// The key that it was sent with.
    pub key: Option<&'a Secret>,
    /// Takes the adjustments of what is found, as the start told them.
    pub delivery: &'a dyn Delivery,
}

/// What became of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// It is done; what was made has been delivered.
    Done(Done),
    /// The provider has it in its queue. The ticket finds it again: the provider's own id, or whatever else its adapter
    /// needs, without secrets, up to 8 KiB.
    Accepted(String),
}

/// How work ended that did not fail as a whole: anything from 0 to all of what was asked for was delivered.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Why results are missing, one per missing one that the provider spoke of.
    pub refused: Vec<ProviderError>,
}

/// What a provider says of accepted work.
#[derive(Debug, Clone)]
pub enum Polled {
    /// Not yet. Percent done, 0 to 100, where the provider tells.
    Waiting(Option<u8>),
    /// It is done; what was made has been delivered.
    Done(Done),
    /// It ended without a result; the kind decides whether another attempt is made.
    Failed(ProviderError),
}

/// What a search by our own id found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It was accepted: its ticket.
    Accepted(String),
    /// The provider says that it never took it: it may be sent again.
    Nothing,
    /// The provider has no such search.
    CannotTell,
}

/// When to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// From the acceptance to the first poll.
    pub first: Duration,
    /// From one poll to the next.
    pub every: Duration,
}

impl Rhythm {
    /// The same pause before every poll, the first included.
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
    /// The request field it came in, for messages.
    pub field: String,
    /// Where its bytes are; readable for as long as the call lasts.
    pub path: PathBuf,
    /// What its bytes are.
    pub format: ImageFormat,
    /// Its size in pixels.
    pub size: PixelSize,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Where a provider puts what it makes.
#[async_trait]
pub trait Delivery: Send + Sync {
    /// Fetches one result where it is not here yet, checks that it is what the task makes, and stores it. What cannot be
    /// fetched or is no such file is an error, and the provider passes it on.
    async fn deliver(&self, made: Made) -> Result<(), ProviderError>;
    /// Percent done, 0 to 100. Cheap: call it as often as there is news.
    fn progress(&self, percent: u8);
    /// The provider is asked for something else than the job says: the nearest size that it makes, say. Told before the
    /// request is sent; the task's record shows it (DECISIONS.md › Values). The same one twice counts once.
    fn adjusted(&self, adjustment: Adjustment);
}

/// One result: a whole file, however it comes. What it is, its own bytes tell.
pub enum Made {
    /// All of it.
    Bytes(Bytes),
    /// Part by part.
    Stream(BoxStream<'static, Result<Bytes, ProviderError>>),
    /// Somewhere else.
    Link(Link),
}

/// Where a result is to be fetched.
#[derive(Debug, Clone)]
pub struct Link {
    /// An http or https URL, as the provider gave it.
    pub url: String,
    /// Headers that only the URL's own origin may get: a redirect elsewhere loses them.
    pub headers: HeaderMap,
    /// Whether the operator's configuration leads there: the origin is the channel's own. Any other address is fetched
    /// through the egress guard, as a client-given one is.
    pub is_own: bool,
}

impl From<Bytes> for Made {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// What kind of failure a provider's error is; decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// May go better: try again, here or on another channel (5xx, 408, 409, connect errors).
    Retryable,
    /// This key has had enough for now (429, or the provider's concurrency): it rests, another may do.
    RateLimited,
    /// This key is refused: it rests, another may do.
    KeyRefused,
    /// What this key may spend is spent: it rests long, another may do.
    QuotaExhausted,
    /// The channel has no such model, or may not use it: the model rests there, another channel may have it.
    ModelMissing,
    /// The channel cannot do this job for another reason that is not the client's: another channel may.
    ChannelUnfit,
    /// The provider says the request itself is wrong: no other channel will think otherwise.
    Rejected,
    /// The provider tried and could not, for good: another try would end the same.
    Failed,
    /// The provider's safety system refused: no retry, no other channel, no charge.
    Moderated,
    /// The request went out and no answer came back: it may have been taken and must not be resent blindly.
    Unknown,
    /// The call was told to stop.
    Interrupted,
}

impl ProviderErrorKind {
    /// Whether another attempt may be made, as long as there are attempts left.
    pub fn may_be_tried_again(self) -> bool {
        match self {
            Self::Retryable
            | Self::RateLimited
            | Self::KeyRefused
            | Self::QuotaExhausted
            | Self::ModelMissing
            | Self::ChannelUnfit => true,
            Self::Rejected | Self::Failed | Self::Moderated | Self::Unknown | Self::Interrupted => {
                false
            }
        }
    }
}

/// Why a provider did not do it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What to do about it.
    pub kind: ProviderErrorKind,
    /// The provider's words for the client, without secrets.
    pub message: String,
    /// The provider's HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the provider asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
        }
    }
}
