//! What a provider can do: one small trait per capability.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::chat::ChatProvider;
use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tollgate_media::image::{ImageFormat, ImageJob, PixelSize};

/// Settings that providers are opened with, beyond the channel itself.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How long the sandbox takes for a picture task (`sandbox.image_ms`).
    pub sandbox_image: Duration,
    /// How long the sandbox takes until a chat's first byte (`sandbox.chat_ms`).
    pub sandbox_chat: Duration,
}

/// A provider's capabilities for one channel; none where it lacks one.
#[derive(Clone, Default)]
pub struct Provider {
    /// Makes pictures.
    pub image: Option<Arc<dyn ImageProvider>>,
    /// Answers chats.
    pub chat: Option<Arc<dyn ChatProvider>>,
    /// Reviews prompts before submission.
    pub review: Option<Arc<dyn Review>>,
}

/// Makes pictures in one call that lasts until they are there.
#[async_trait]
pub trait ImageProvider: Send + Sync {
    /// Makes the pictures of `call.job` and hands each to `call.delivery` as soon as it is there.
    ///
    /// `Ok` means the provider is done, with any number of pictures delivered from 0 to `n` and the
    /// reason for the missing ones in [`ImageDone`]. Dropping the future, or `call.cancel`, ends the work.
    async fn generate(&self, call: ImageCall<'_>) -> Result<ImageDone, ProviderError>;
}

/// Judges a prompt before a submission is taken.
#[async_trait]
pub trait Review: Send + Sync {
    /// `Err` with kind [`ProviderErrorKind::Moderated`] refuses the prompt; other errors mean that no
    /// verdict could be had.
    async fn review(&self, prompt: &str) -> Result<(), ProviderError>;
}

/// One attempt at one task.
pub struct ImageCall<'a> {
    /// The task, for logs and for the provider's own-id field where it has one.
    pub task_id: &'a str,
    /// What to make. `job.size.pixels` is always known here.
    pub job: &'a ImageJob,
    /// The provider's id of the model.
    pub upstream_model: &'a str,
    /// The reference images, in `job.references`' order, fetched and checked.
    pub references: &'a [InputFile],
    /// The mask, fetched and checked.
    pub mask: Option<&'a InputFile>,
    /// How many attempts at this task have failed before this one. Interruptions do not count.
    pub failed_attempts: u32,
    /// Takes the pictures and the progress.
    pub delivery: &'a dyn Delivery,
    /// Fires when the task was cancelled, timed out or lost.
    pub cancel: CancellationToken,
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
    /// Stores one picture. An error means our storage failed, and the attempt with it.
    async fn picture(&self, picture: Picture) -> Result<(), ProviderError>;
    /// Percent done, 0 to 100. Cheap: call it as often as there is news.
    fn progress(&self, percent: u8);
}

/// One finished picture.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The encoded file.
    pub bytes: Bytes,
    /// Its format.
    pub format: ImageFormat,
}

/// How a call ended that did not fail as a whole.
#[derive(Debug, Clone, Default)]
pub struct ImageDone {
    /// Why pictures are missing, one per missing picture that the provider spoke of.
    pub refused: Vec<ProviderError>,
}

/// What kind of failure a provider's error is; decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// May go better: try again, here or on another channel (5xx, 408, 409, 429, connect errors).
    Retryable,
    /// The provider says the request itself is wrong: no other channel will think otherwise.
    Rejected,
    /// The provider tried and could not, for good: another try would end the same.
    Failed,
    /// The provider's safety system refused: no retry, no other channel, no charge.
    Moderated,
    /// This channel cannot serve it (key refused, quota used up, model not found): another may.
    ChannelUnfit,
    /// The request went out and no answer came back: it may have been taken and must not be resent blindly.
    Unknown,
    /// The call was told to stop.
    Interrupted,
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
}

impl ProviderError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
        }
    }
}
