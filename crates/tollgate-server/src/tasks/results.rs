//! Storing the files that a provider delivers for a task, until the end of the task makes them part of its record.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tollgate_core::{Adjustment, Millis, TaskKind, crash};
use tollgate_media::LinkTtl;
use tollgate_store::{LeasedTask, Store};
use tollgate_upstream::egress::{EgressError, FetchLimits};
use tollgate_upstream::{Link, ProviderError, ResultData, ResultSink, UpstreamErrorKind};

use crate::storage::files::{FileWriter, Visibility};
use crate::storage::types;
use crate::tasks::context::TaskContext;

/// Shortest time between two writes of a task's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// How long fetching one result may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(1_800);
const MAX_REDIRECTS: u32 = 5;
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
    /// What the provider was asked for instead of what the job says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
}

/// The progress of a task in percent, written to the store at intervals.
pub struct Progress {
    store: Store,
    task_id: String,
    fence: i64,
    percent: AtomicU8,
    last_write: Mutex<Instant>,
}

impl Progress {
    /// The progress of a task under that lease.
    pub fn new(store: &Store, leased: &LeasedTask) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            task_id: leased.task.id.clone(),
            fence: leased.fence,
            percent: AtomicU8::new(u8::try_from(leased.task.progress.clamp(0, 99)).unwrap_or(0)),
            last_write: Mutex::new(Instant::now()),
        })
    }

    /// Reports progress. It never decreases, and only a completed task is at 100.
    pub fn report(&self, percent: u8) {
        let percent = percent.min(99);
        if self.percent.fetch_max(percent, Ordering::Relaxed) >= percent {
            return;
        }
        {
            let mut last_write = self
                .last_write
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if last_write.elapsed() < PROGRESS_INTERVAL {
                return;
            }
            *last_write = Instant::now();
        }
        let (store, task_id, fence) = (self.store.clone(), self.task_id.clone(), self.fence);
        // Not awaited: a lost write is corrected by the next report or by the end of the task.
        tokio::spawn(async move { store.set_progress(&task_id, fence, percent).await });
    }
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
}

/// The sink of a call whose results nobody wants: rejects every result.
pub struct RejectResults;

#[async_trait]
impl ResultSink for RejectResults {
    async fn deliver(&self, _: ResultData) -> Result<(), ProviderError> {
        let message = "results are not wanted any more";
        Err(ProviderError::new(UpstreamErrorKind::Interrupted, message))
    }

    fn progress(&self, _: u8) {}

    fn record_adjustment(&self, _: Adjustment) {}
}

impl ResultStorage {
    /// An empty storage for a call that makes up to `max_files` files.
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
        }
    }

    /// The number of delivered files, and the result with them as JSON text. `None` if there are none. Files beyond the
    /// requested number are neither shown nor charged.
    pub fn result(&self) -> Option<(u64, String)> {
        let mut stored = self.lock().clone();
        stored.files.truncate(self.max_files);
        let files = stored.files.len() as u64;
        let result = serde_json::to_string(&stored).ok()?;
        (files > 0).then_some((files, result))
    }

    /// What the provider was asked for instead of what the job says, so far.
    pub fn adjustments(&self) -> Vec<Adjustment> {
        self.lock().adjustments.clone()
    }

    /// Whether a delivery was tried.
    pub fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, StoredResult> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes what was delivered: the call failed, and the next one delivers everything again.
    pub async fn discard(self) {
        let stored = self.stored.into_inner();
        let stored = stored.unwrap_or_else(PoisonError::into_inner);
        for file in stored.files {
            let files = &self.context.files;
            files.delete(Visibility::Public, &file.name).await;
        }
    }

    /// The largest file, in bytes.
    fn max_bytes(&self) -> u64 {
        match self.kind {
            TaskKind::Image => 128 * MIB,
            TaskKind::Video => 4_096 * MIB,
            TaskKind::Speech => 512 * MIB,
        }
    }

    async fn write(&self, file: &mut FileWriter, data: ResultData) -> Result<(), ProviderError> {
        match data {
            ResultData::Bytes(bytes) if bytes.len() as u64 > self.max_bytes() => {
                Err(self.too_large())
            }
            ResultData::Bytes(bytes) => {
                let written = file.write(&bytes).await;
                written.map_err(|e| self.storage_error(&e))
            }
            ResultData::Stream(mut parts) => {
                let mut bytes = 0;
                while let Some(part) = parts.next().await {
                    let part = part?;
                    bytes += part.len() as u64;
                    if bytes > self.max_bytes() {
                        return Err(self.too_large());
                    }
                    let written = file.write(&part).await;
                    written.map_err(|e| self.storage_error(&e))?;
                }
                Ok(())
            }
            ResultData::Link(link) => {
                let permit = self.context.downloads.acquire().await;
                let fetched = self.fetch(file, &link).await;
                drop(permit);
                fetched
            }
        }
    }

    async fn fetch(&self, file: &mut FileWriter, link: &Link) -> Result<(), ProviderError> {
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
            tracing::warn!(task = self.progress.task_id, error = %e, "cannot fetch a result");
            let kind = match e {
                EgressError::TooLarge { .. }
                | EgressError::InvalidUrl(_)
                | EgressError::InvalidRedirect(_)
                | EgressError::TooManyRedirects(_)
                | EgressError::NotPublic
                | EgressError::Compressed => UpstreamErrorKind::Failed,
                _ => UpstreamErrorKind::Unavailable,
            };
            // The client must not see the provider's URL.
            ProviderError::new(kind, "the upstream's result could not be fetched")
        })
    }

    fn too_large(&self) -> ProviderError {
        let max = self.max_bytes() / MIB;
        let message = format!("the upstream's result is larger than {max} MB");
        ProviderError::new(UpstreamErrorKind::Failed, message)
    }

    fn storage_error(&self, error: &std::io::Error) -> ProviderError {
        tracing::error!(task = self.progress.task_id, %error, "cannot store a result");
        let message = "the result could not be stored";
        ProviderError::new(UpstreamErrorKind::Unavailable, message)
    }
}

#[async_trait]
impl ResultSink for ResultStorage {
    async fn deliver(&self, data: ResultData) -> Result<(), ProviderError> {
        let context = &self.context;
        self.used.store(true, Ordering::Relaxed);
        let expires_at = (context.clock.now() + self.ttl) / 1000;
        let storage_error = |e: std::io::Error| self.storage_error(&e);
        let created = context
            .files
            .create(Visibility::Public, expires_at, "bin")
            .await;
        let mut file = created.map_err(storage_error)?;
        self.write(&mut file, data).await?;
        let (path, kind) = (
            file.flush_to_path().await.map_err(storage_error)?,
            self.kind,
        );
        let bytes = tokio::fs::metadata(&path)
            .await
            .map_err(storage_error)?
            .len();
        let earlier_results = self.lock().files.len();
        let checking = move || types::check_result(&path, kind, earlier_results);
        let checked = tokio::task::spawn_blocking(checking).await;
        let checked = checked.map_err(|e| storage_error(std::io::Error::other(e)))?;
        let file_type = checked.map_err(|why| {
            tracing::warn!(task = self.progress.task_id, why, "a result is rejected");
            let message = format!("the upstream's result {why}");
            ProviderError::new(UpstreamErrorKind::Unavailable, message)
        })?;
        file.set_extension(file_type.extension);
        let name = file.finish().await.map_err(storage_error)?;
        crash::point("run.result_stored");
        self.lock().files.push(StoredFile {
            name,
            expires_at,
            bytes,
        });
        Ok(())
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
