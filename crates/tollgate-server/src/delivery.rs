//! Where a worker puts the files that a provider makes, until the task's end shows them.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tollgate_core::{Adjustment, Millis, TaskKind, crash};
use tollgate_media::image::LinkLife;
use tollgate_store::Leased;
use tollgate_upstream::egress::{EgressError, FetchLimits};
use tollgate_upstream::{Delivery, Link, Made, ProviderError, ProviderErrorKind};

use crate::app::App;
use crate::blobs::{BlobWriter, Shelf as Visibility};
use crate::file_type;

/// How often progress is written down at most.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);
/// How long one result may take to come.
const FETCH_TIME: Duration = Duration::from_secs(1_800);
const REDIRECTS: u32 = 5;
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

/// What a completed task keeps as its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// One entry per delivered file, in the order of delivery.
    pub files: Vec<StoredFile>,
    /// What the provider was asked for instead of what the job says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
}

/// How far a task is, written down now and then.
pub struct Progress {
    app: Arc<App>,
    task_id: String,
    fence: i64,
    percent: AtomicU8,
    last: Mutex<Instant>,
}

impl Progress {
    /// Of a task under that lease.
    pub fn new(app: &Arc<App>, leased: &Leased) -> Arc<Self> {
        Arc::new(Self {
            app: Arc::clone(app),
            task_id: leased.task.id.clone(),
            fence: leased.fence,
            percent: AtomicU8::new(u8::try_from(leased.task.progress.clamp(0, 99)).unwrap_or(0)),
            last: Mutex::new(Instant::now()),
        })
    }

    /// It never goes back, and only a task that has ended well is at 100.
    pub fn report(&self, percent: u8) {
        let percent = percent.min(99);
        if self.percent.fetch_max(percent, Ordering::Relaxed) >= percent {
            return;
        }
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() < PROGRESS_PAUSE {
                return;
            }
            *last = Instant::now();
        }
        let (app, task_id, fence) = (Arc::clone(&self.app), self.task_id.clone(), self.fence);
        // Nobody waits for it: the next report, or the end, says more.
        tokio::spawn(async move { app.store.progress(&task_id, fence, percent).await });
    }
}

/// Takes the results of one call.
pub struct Shelf {
    progress: Arc<Progress>,
    kind: TaskKind,
    asked: usize,
    life: Millis,
    stored: Mutex<StoredResult>,
    used: AtomicBool,
}

/// Of a call that delivers nothing.
pub struct Nowhere;

#[async_trait]
impl Delivery for Nowhere {
    async fn deliver(&self, _: Made) -> Result<(), ProviderError> {
        let message = "nothing is wanted any more";
        Err(ProviderError::new(ProviderErrorKind::Interrupted, message))
    }

    fn progress(&self, _: u8) {}

    fn adjusted(&self, _: Adjustment) {}
}

impl Shelf {
    /// An empty shelf for a call that makes up to `asked` files.
    pub fn new(progress: &Arc<Progress>, kind: TaskKind, asked: u32, links: LinkLife) -> Self {
        let expiry = &progress.app.config.expiry;
        Self {
            progress: Arc::clone(progress),
            kind,
            asked: usize::try_from(asked).unwrap_or(usize::MAX),
            life: match links {
                LinkLife::Usual => expiry.images_ms(),
                LinkLife::Long => expiry.long_ms(),
            },
            stored: Mutex::default(),
            used: AtomicBool::new(false),
        }
    }

    /// How many files were delivered, and the result that shows them; none when there are none. More than were
    /// asked for are not shown and not charged.
    pub fn result(&self) -> Option<(u64, String)> {
        let mut stored = self.locked().clone();
        stored.files.truncate(self.asked);
        let files = stored.files.len() as u64;
        let result = serde_json::to_string(&stored).ok()?;
        (files > 0).then_some((files, result))
    }

    /// What the provider was asked for instead of what the job says, so far.
    pub fn adjustments(&self) -> Vec<Adjustment> {
        self.locked().adjustments.clone()
    }

    /// Whether anything was to be delivered here.
    pub fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    fn locked(&self) -> MutexGuard<'_, StoredResult> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes what was delivered: the call failed, and the next one delivers everything again.
    pub async fn discard(self) {
        let stored = self.stored.into_inner();
        let stored = stored.unwrap_or_else(PoisonError::into_inner);
        for file in stored.files {
            let blobs = &self.progress.app.blobs;
            blobs.delete(Visibility::Public, &file.name).await;
        }
    }

    /// The most bytes that one file may have.
    fn most(&self) -> u64 {
        match self.kind {
            TaskKind::Image => 128 * MIB,
            TaskKind::Video => 4_096 * MIB,
            TaskKind::Speech => 512 * MIB,
        }
    }

    async fn write(&self, file: &mut BlobWriter, made: Made) -> Result<(), ProviderError> {
        let app = &self.progress.app;
        match made {
            Made::Bytes(bytes) if bytes.len() as u64 > self.most() => Err(self.too_large()),
            Made::Bytes(bytes) => file.write(&bytes).await.map_err(|e| self.unstored(&e)),
            Made::Stream(mut parts) => {
                let mut bytes = 0;
                while let Some(part) = parts.next().await {
                    let part = part?;
                    bytes += part.len() as u64;
                    if bytes > self.most() {
                        return Err(self.too_large());
                    }
                    file.write(&part).await.map_err(|e| self.unstored(&e))?;
                }
                Ok(())
            }
            Made::Link(link) => {
                let permit = app.downloads.acquire().await;
                let fetched = self.fetch(file, &link).await;
                drop(permit);
                fetched
            }
        }
    }

    async fn fetch(&self, file: &mut BlobWriter, link: &Link) -> Result<(), ProviderError> {
        let limits = FetchLimits {
            max_bytes: self.most(),
            total_time: FETCH_TIME,
            max_redirects: REDIRECTS,
        };
        let egress = &self.progress.app.egress;
        let fetched = if link.is_own {
            let fetching = egress.fetch_own(&link.url, &link.headers, &limits, file.sink());
            fetching.await
        } else {
            egress.fetch_guarded(&link.url, &limits, file.sink()).await
        };
        fetched.map(drop).map_err(|e| {
            tracing::warn!(task = self.progress.task_id, error = %e, "cannot fetch a result");
            let kind = match e {
                EgressError::TooLarge { .. }
                | EgressError::BadUrl(_)
                | EgressError::BadRedirect(_)
                | EgressError::TooManyRedirects(_)
                | EgressError::NotPublic
                | EgressError::Compressed => ProviderErrorKind::Failed,
                _ => ProviderErrorKind::Retryable,
            };
            // Where it was is none of the client's business.
            ProviderError::new(kind, "the upstream's result could not be fetched")
        })
    }

    fn too_large(&self) -> ProviderError {
        let most = self.most() / MIB;
        let message = format!("the upstream's result is larger than {most} MB");
        ProviderError::new(ProviderErrorKind::Failed, message)
    }

    fn unstored(&self, error: &std::io::Error) -> ProviderError {
        tracing::error!(task = self.progress.task_id, %error, "cannot store a result");
        let message = "the result could not be stored";
        ProviderError::new(ProviderErrorKind::Retryable, message)
    }
}

#[async_trait]
impl Delivery for Shelf {
    async fn deliver(&self, made: Made) -> Result<(), ProviderError> {
        let app = &self.progress.app;
        self.used.store(true, Ordering::Relaxed);
        let expires_at = (app.clock.now() + self.life) / 1000;
        let unstored = |e: std::io::Error| self.unstored(&e);
        let created = app
            .blobs
            .create(Visibility::Public, expires_at, "bin")
            .await;
        let mut file = created.map_err(unstored)?;
        self.write(&mut file, made).await?;
        let (path, kind) = (file.so_far().await.map_err(unstored)?, self.kind);
        let bytes = tokio::fs::metadata(&path).await.map_err(unstored)?.len();
        let others = self.locked().files.len();
        let checking = move || file_type::check(&path, kind, others);
        let checked = tokio::task::spawn_blocking(checking).await;
        let checked = checked.map_err(|e| unstored(std::io::Error::other(e)))?;
        let found = checked.map_err(|why| {
            tracing::warn!(task = self.progress.task_id, why, "a result is refused");
            let message = format!("the upstream's result {why}");
            ProviderError::new(ProviderErrorKind::Retryable, message)
        })?;
        file.set_extension(found.extension);
        let name = file.finish().await.map_err(unstored)?;
        crash::point("run.result_stored");
        self.locked().files.push(StoredFile {
            name,
            expires_at,
            bytes,
        });
        Ok(())
    }

    fn progress(&self, percent: u8) {
        self.progress.report(percent);
    }

    fn adjusted(&self, adjustment: Adjustment) {
        let mut stored = self.locked();
        if !stored.adjustments.contains(&adjustment) {
            stored.adjustments.push(adjustment);
        }
    }
}
