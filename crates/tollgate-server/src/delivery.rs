//! Where a worker puts the pictures that a provider makes, until the task's end shows them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tollgate_core::{Millis, crash};
use tollgate_media::image::LinkLife;
use tollgate_store::Leased;
use tollgate_upstream::{Delivery, Picture, ProviderError, ProviderErrorKind};

use crate::app::App;
use crate::blobs::Shelf as Visibility;

/// How often progress is written down at most.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);

/// A result file as the task's record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPicture {
    /// The file's name under `/files`.
    pub name: String,
    /// Until when it is served, in Unix seconds.
    pub expires_at: i64,
}

/// What a completed image task keeps as its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// One entry per delivered picture, in the order of delivery.
    pub images: Vec<StoredPicture>,
}

/// Takes the pictures and the progress of one attempt.
pub struct Shelf {
    app: Arc<App>,
    task_id: String,
    fence: i64,
    asked: u64,
    life: Millis,
    stored: Mutex<StoredResult>,
    percent: AtomicU8,
    last_progress: Mutex<Instant>,
}

impl Shelf {
    /// An empty shelf for an attempt under that lease.
    pub fn new(app: &Arc<App>, leased: &Leased, asked: u32, links: LinkLife) -> Self {
        let life = match links {
            LinkLife::Usual => app.config.expiry.images_ms(),
            LinkLife::Long => app.config.expiry.long_ms(),
        };
        Self {
            app: Arc::clone(app),
            task_id: leased.task.id.clone(),
            fence: leased.fence,
            asked: asked.into(),
            life,
            stored: Mutex::default(),
            percent: AtomicU8::new(0),
            last_progress: Mutex::new(Instant::now()),
        }
    }

    /// How many pictures were delivered, and the result that shows them; none when there are none. More than were
    /// asked for are not shown and not charged.
    pub fn result(self) -> Option<(u64, String)> {
        let mut stored = self
            .stored
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        stored
            .images
            .truncate(usize::try_from(self.asked).unwrap_or(usize::MAX));
        let units = stored.images.len() as u64;
        let result = serde_json::to_string(&stored).ok()?;
        (units > 0).then_some((units, result))
    }
}

#[async_trait]
impl Delivery for Shelf {
    async fn picture(&self, picture: Picture) -> Result<(), ProviderError> {
        let expires_at = (self.app.clock.now() + self.life) / 1000;
        let stored = async {
            let mut file = self
                .app
                .blobs
                .create(Visibility::Public, expires_at, picture.format.extension())
                .await?;
            file.write(&picture.bytes).await?;
            file.finish().await
        };
        let name = stored.await.map_err(|e| {
            tracing::error!(task = self.task_id, error = %e, "cannot store a picture");
            ProviderError::new(
                ProviderErrorKind::Retryable,
                "the result could not be stored",
            )
        })?;
        crash::point("run.picture_stored");
        let mut shelf = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.images.push(StoredPicture { name, expires_at });
        Ok(())
    }

    fn progress(&self, percent: u8) {
        let percent = percent.min(99);
        if self.percent.fetch_max(percent, Ordering::Relaxed) >= percent {
            return;
        }
        {
            let mut last = self
                .last_progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
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
