//! Stores the files that a provider delivers for a task. They become a part of the task's record when the task ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tollgate_core::{Adjustment, Millis, TaskKind, crash};
use tollgate_media::LinkTtl;
use tollgate_storage::availability::StorageBackoff;
use tollgate_storage::files::{FileWriter, Visibility};
use tollgate_storage::types::{self, FileType};
use tollgate_upstream::egress::{EgressError, FetchLimits};
use tollgate_upstream::{Link, ProviderError, ResultData, ResultSink, UpstreamErrorKind};

use crate::tasks::context::TaskContext;
use crate::tasks::progress::Progress;

/// Timeout of fetching one result.
const FETCH_TIMEOUT: Duration = Duration::from_secs(1_800);
const MAX_REDIRECTS: u32 = 5;
/// Bytes of a streamed result that are written at a time.
const WRITE_BYTES: usize = 128 * 1024;
/// How often the results of one generation are downloaded before the task fails.
pub(super) const MAX_DOWNLOADS: u32 = 7;
/// Pause after the first failed download of a link in a provider's response; doubled with each further one.
const INITIAL_PAUSE: Duration = Duration::from_millis(250);
const MIB: u64 = 1024 * 1024;

/// A result file as the task's record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// The file's name under `/files`.
    pub name: String,
    /// Until when it is served, in Unix seconds.
    pub expires_at: i64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The result of a completed task, as its record keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// One entry per delivered file, in the order of delivery.
    pub files: Vec<StoredFile>,
    /// Differences between what was requested from the provider and the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
}

/// Receives and stores the results of one call to a provider.
pub struct ResultStorage {
    context: Arc<TaskContext>,
    progress: Arc<Progress>,
    kind: TaskKind,
    max_files: usize,
    /// How long result links are valid.
    ttl: Millis,
    stored: Mutex<StoredResult>,
    used: AtomicBool,
    /// How often a link is downloaded before its delivery fails.
    link_downloads: u32,
}

/// Why the result of a link could not be downloaded to storage.
enum FetchError {
    Provider(ProviderError),
    /// The gateway's own storage did not accept it.
    Storage(std::io::Error),
}

/// A sink for a call whose results are not needed: rejects every result.
pub struct RejectResults;

#[async_trait]
impl ResultSink for RejectResults {
    async fn deliver(&self, _: ResultData) -> Result<(), ProviderError> {
        let message = "the results are no longer needed";
        Err(ProviderError::new(UpstreamErrorKind::Interrupted, message))
    }

    fn progress(&self, _: u8) {}

    fn record_adjustment(&self, _: Adjustment) {}
}

impl ResultStorage {
    /// An empty storage for a call that generates up to `max_files` files.
    pub fn new(
        context: &Arc<TaskContext>,
        progress: &Arc<Progress>,
        kind: TaskKind,
        max_files: u32,
        ttl: LinkTtl,
    ) -> Self {
        let expiry = &context.settings.expiry;
        Self {
            context: Arc::clone(context),
            progress: Arc::clone(progress),
            kind,
            max_files: usize::try_from(max_files).unwrap_or(usize::MAX),
            ttl: match ttl {
                LinkTtl::Standard => expiry.images_ms(),
                LinkTtl::Long => expiry.long_ms(),
            },
            stored: Mutex::default(),
            used: AtomicBool::new(false),
            link_downloads: 1,
        }
    }

    /// The same storage, for a provider that returns the links of its results only once: a link is downloaded up to `MAX_DOWNLOADS` times. Then the
    /// task fails, because another attempt would generate everything, and cost, again.
    #[must_use]
    pub fn with_repeated_downloads(mut self) -> Self {
        self.link_downloads = MAX_DOWNLOADS;
        self
    }

    /// The number of delivered files, and the result with them as JSON text. `None` if there are none. Files beyond the requested number are neither
    /// shown nor charged.
    pub fn result(&self) -> Option<(u64, String)> {
        let mut stored = self.lock().clone();
        stored.files.truncate(self.max_files);
        let files = stored.files.len() as u64;
        if self.kind == TaskKind::Image && stored.files.len() < self.max_files {
            let why = "the provider delivered fewer images; only these are charged";
            let fewer = Adjustment::new("n", self.max_files, files, why);
            stored.adjustments.push(fewer);
        }
        let result = serde_json::to_string(&stored).ok()?;
        (files > 0).then_some((files, result))
    }

    /// Differences, so far, between what was requested from the provider and the job.
    pub fn adjustments(&self) -> Vec<Adjustment> {
        self.lock().adjustments.clone()
    }

    /// Whether the provider adapter tried to deliver a file, with or without success.
    pub fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, StoredResult> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the delivered files: the call failed, and the next one delivers everything again.
    pub async fn discard(self) {
        let stored = self.stored.into_inner();
        let stored = stored.unwrap_or_else(PoisonError::into_inner);
        for file in stored.files {
            let files = &self.context.files;
            files.delete(Visibility::Public, &file.name).await;
        }
    }

    /// The maximum size of a file of this kind, in bytes.
    fn max_bytes(&self) -> u64 {
        match self.kind {
            TaskKind::Image => 128 * MIB,
            TaskKind::Video => 4_096 * MIB,
            TaskKind::Speech => 512 * MIB,
        }
    }

    /// Writes `data` to a new file. If the gateway's own storage does not accept a write, it is retried until it does, because the provider's work is
    /// done and paid for.
    async fn write(&self, expires_at: i64, data: ResultData) -> Result<FileWriter, ProviderError> {
        match data {
            ResultData::Bytes(bytes) if bytes.len() as u64 > self.max_bytes() => {
                Err(self.too_large())
            }
            ResultData::Bytes(bytes) => {
                let mut file = self.create(expires_at).await;
                self.append(&mut file, &bytes).await;
                Ok(file)
            }
            ResultData::Stream(mut parts) => {
                let mut file = self.create(expires_at).await;
                let (mut bytes, mut unwritten) = (0, Vec::with_capacity(WRITE_BYTES));
                while let Some(part) = parts.next().await {
                    let part = part?;
                    bytes += part.len() as u64;
                    if bytes > self.max_bytes() {
                        return Err(self.too_large());
                    }
                    unwritten.extend_from_slice(&part);
                    if unwritten.len() >= WRITE_BYTES {
                        self.append(&mut file, &unwritten).await;
                        unwritten.clear();
                    }
                }
                self.append(&mut file, &unwritten).await;
                Ok(file)
            }
            ResultData::Link(link) => {
                let host = url::Url::parse(&link.url)
                    .ok()
                    .and_then(|url| url.host_str().map(str::to_owned));
                let _permit = self
                    .context
                    .downloads
                    .acquire(&host.unwrap_or_default())
                    .await;
                let mut backoff = StorageBackoff::default();
                loop {
                    let mut file = self.create(expires_at).await;
                    match self.fetch(&mut file, &link).await {
                        Ok(()) => return Ok(file),
                        Err(FetchError::Provider(error)) => return Err(error),
                        // The link is downloaded again.
                        Err(FetchError::Storage(error)) => {
                            drop(file);
                            self.wait_for_storage(&error, &mut backoff).await;
                        }
                    }
                }
            }
        }
    }

    async fn create(&self, expires_at: i64) -> FileWriter {
        let files = &self.context.files;
        let mut backoff = StorageBackoff::default();
        loop {
            match files.create(Visibility::Public, expires_at, "bin").await {
                Ok(file) => return file,
                Err(error) => self.wait_for_storage(&error, &mut backoff).await,
            }
        }
    }

    async fn append(&self, file: &mut FileWriter, bytes: &[u8]) {
        let mut backoff = StorageBackoff::default();
        while let Err(error) = file.append(bytes).await {
            self.wait_for_storage(&error, &mut backoff).await;
        }
    }

    /// Checks that the file has a type that a task of this kind generates, syncs it to disk and makes it visible under its name.
    async fn check_and_publish(
        &self,
        file: &mut FileWriter,
    ) -> Result<(String, u64), ProviderError> {
        let mut backoff = StorageBackoff::default();
        loop {
            match self.inspect(file).await {
                Ok(Ok((file_type, bytes))) => {
                    file.set_extension(file_type.extension);
                    match file.finish().await {
                        Ok(name) => return Ok((name, bytes)),
                        Err(error) => self.wait_for_storage(&error, &mut backoff).await,
                    }
                }
                Ok(Err(why)) => {
                    tracing::warn!(task = self.progress.task_id(), why, "a result is rejected");
                    let message = format!("the upstream's result {why}");
                    return Err(ProviderError::new(UpstreamErrorKind::Unavailable, message));
                }
                Err(error) => self.wait_for_storage(&error, &mut backoff).await,
            }
        }
    }

    /// The type and the size of the file, or the reason why it is invalid.
    async fn inspect(
        &self,
        file: &mut FileWriter,
    ) -> std::io::Result<Result<(FileType, u64), String>> {
        let (path, kind) = (file.flush_to_path().await?, self.kind);
        let bytes = tokio::fs::metadata(&path).await?.len();
        let earlier_results = self.lock().files.len();
        let check = move || types::check_result(&path, kind, earlier_results);
        let checked = check_in_background(check).await;
        Ok(checked.map(|file_type| (file_type, bytes)))
    }

    /// Waits until the storage accepts writes. The task's deadline or the stop of its worker ends the wait, because they drop the turn.
    async fn wait_for_storage(&self, error: &std::io::Error, backoff: &mut StorageBackoff) {
        tracing::error!(task = self.progress.task_id(), %error, "cannot store a result: the task waits until the storage is available");
        self.context
            .files
            .wait_until_available(error, backoff)
            .await;
    }

    async fn fetch(&self, file: &mut FileWriter, link: &Link) -> Result<(), FetchError> {
        let limits = FetchLimits {
            max_bytes: self.max_bytes(),
            total_time: FETCH_TIMEOUT,
            max_redirects: MAX_REDIRECTS,
        };
        let egress = &self.context.egress;
        let fetched = if link.is_own {
            let fetching = egress.fetch_own(&link.url, &link.headers, &limits, file.writer());
            fetching.await
        } else {
            let fetching = egress.fetch_guarded(&link.url, &limits, file.writer());
            fetching.await
        };
        fetched.map(drop).map_err(|e| {
            let e = match e {
                EgressError::Sink(error) => return FetchError::Storage(error),
                other => other,
            };
            tracing::warn!(task = self.progress.task_id(), error = %e, "cannot fetch a result");
            let kind = match e {
                EgressError::TooLarge { .. }
                | EgressError::InvalidUrl(_)
                | EgressError::InvalidRedirect(_)
                | EgressError::TooManyRedirects(_)
                | EgressError::NotPublic
                | EgressError::Compressed => UpstreamErrorKind::Failed,
                _ => UpstreamErrorKind::Unavailable,
            };
            let status = match e {
                EgressError::Status(status) => Some(status),
                _ => None,
            };
            // The client must not receive the provider's URL.
            FetchError::Provider(ProviderError {
                status,
                ..ProviderError::new(kind, "the upstream's result could not be fetched")
            })
        })
    }

    fn too_large(&self) -> ProviderError {
        let max = self.max_bytes() / MIB;
        let message = format!("the upstream's result is larger than {max} MB");
        ProviderError::new(UpstreamErrorKind::Failed, message)
    }
}

/// Runs the check of a file on a thread of its own. A check that panics rejects the file: the file, not the storage, is the cause.
async fn check_in_background<T: Send + 'static>(
    check: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|_| Err("cannot be checked".to_owned()))
}

/// The error for results that were generated but cannot be obtained: whatever the reason, nothing is generated again.
pub(super) fn as_final_failure(error: ProviderError) -> ProviderError {
    if error.kind.is_retryable() {
        return ProviderError {
            kind: UpstreamErrorKind::Failed,
            ..error
        };
    }
    error
}

impl ResultStorage {
    /// Stores one file.
    async fn store(&self, data: ResultData) -> Result<(), ProviderError> {
        let context = &self.context;
        let expires_at = (context.clock.now() + self.ttl) / 1000;
        let mut file = self.write(expires_at, data).await?;
        let (name, bytes) = self.check_and_publish(&mut file).await?;
        crash::point("run.result_stored");
        self.lock().files.push(StoredFile {
            name,
            expires_at,
            bytes,
        });
        Ok(())
    }
}

#[async_trait]
impl ResultSink for ResultStorage {
    async fn deliver(&self, data: ResultData) -> Result<(), ProviderError> {
        self.used.store(true, Ordering::Relaxed);
        let link = match data {
            ResultData::Link(link) if self.link_downloads > 1 => link,
            data => return self.store(data).await,
        };
        let mut pause = INITIAL_PAUSE;
        for _ in 1..self.link_downloads {
            match self.store(ResultData::Link(link.clone())).await {
                Err(error) if error.kind.is_retryable() => tokio::time::sleep(pause).await,
                outcome => return outcome,
            }
            pause *= 2;
        }
        let last = self.store(ResultData::Link(link)).await;
        last.map_err(as_final_failure)
    }

    fn progress(&self, percent: u8) {
        self.progress.report(percent);
    }

    fn record_adjustment(&self, adjustment: Adjustment) {
        let mut stored = self.lock();
        if !stored.adjustments.contains(&adjustment) {
            stored.adjustments.push(adjustment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_panics_rejects_the_file() {
        let panics = || -> Result<(), String> { std::panic::resume_unwind(Box::new("a defect")) };
        let checked = check_in_background(panics).await;
        assert_eq!(checked, Err("cannot be checked".to_owned()));
    }
}
