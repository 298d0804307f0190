//! Whether the gateway's own storage accepts writes. A full disk or a lack of file descriptors is not an error of the provider: results wait until
//! the storage accepts them, and no provider is called before a probe succeeds.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::files::FileStorage;

/// First pause before a failed write is retried; doubled each time up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Shortest time between two probes of a storage that does not accept writes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The pauses of one write that is retried until the storage accepts it.
#[derive(Debug)]
pub struct StorageBackoff {
    pause: Duration,
}

impl Default for StorageBackoff {
    fn default() -> Self {
        Self { pause: FIRST_PAUSE }
    }
}

impl FileStorage {
    /// Records that a write failed. [`FileStorage::is_available`] is false until a probe succeeds.
    pub fn record_write_error(&self, error: &io::Error) {
        if !self.availability.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the storage cannot be written: results wait, and no provider is called");
        }
    }

    /// Whether files can be written. Until a write has failed, only the free space of the disk is read, and only if there is a reserve; from then on
    /// the storage is also probed. Each happens at most once a second.
    pub async fn is_available(&self) -> bool {
        if self.is_space_low() {
            return false;
        }
        if !self.availability.is_failing.load(Ordering::Relaxed) {
            return true;
        }
        let Ok(mut last_probe) = self.availability.last_probe.try_lock() else {
            return false;
        };
        if last_probe.is_some_and(|at| at.elapsed() < PROBE_INTERVAL) {
            return false;
        }
        let is_writable = self.check_writable().await.is_ok();
        *last_probe = Some(Instant::now());
        if is_writable {
            self.availability.is_failing.store(false, Ordering::Relaxed);
            tracing::info!("the storage can be written again");
        }
        is_writable
    }

    /// Whether the free space of the disk is below the reserve; the free space is read at most once a second. The reserve is for writes in progress,
    /// and for the database, which is often on the same disk.
    fn is_space_low(&self) -> bool {
        if self.reserve == 0 {
            return false;
        }
        let mut space = self.availability.space.lock();
        let space = space.as_deref_mut();
        let Ok(space) = space else { return false };
        if space
            .checked_at
            .is_none_or(|at| at.elapsed() >= PROBE_INTERVAL)
        {
            space.checked_at = Some(Instant::now());
            let free = self.free_bytes().unwrap_or(u64::MAX);
            let was_low = std::mem::replace(&mut space.is_low, free < self.reserve);
            match (was_low, space.is_low) {
                (false, true) => {
                    tracing::error!(
                        free,
                        reserve = self.reserve,
                        "the disk of the storage is nearly full: results wait, and no provider is called"
                    );
                }
                (true, false) => {
                    tracing::info!(free, "the disk of the storage has enough free space again")
                }
                _ => {}
            }
        }
        space.is_low
    }

    /// Records the `error` of a write and returns when the write can be retried: after a growing pause, and not before a probe succeeds. The caller
    /// limits the total time.
    pub async fn wait_until_available(&self, error: &io::Error, backoff: &mut StorageBackoff) {
        self.record_write_error(error);
        loop {
            tokio::time::sleep(backoff.pause).await;
            backoff.pause = (backoff.pause * 2).min(MAX_PAUSE);
            if self.is_available().await {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::id;

    #[tokio::test]
    async fn a_storage_that_failed_is_available_again_once_a_probe_succeeds() {
        let root = std::env::temp_dir().join(id::short_id("tollgate-availability-"));
        let storage = FileStorage::open(&root, "https://gateway.example").unwrap();
        assert!(storage.is_available().await);
        let (tmp, away) = (root.join("tmp"), root.join("away"));
        std::fs::rename(&tmp, &away).unwrap();
        assert!(
            storage.is_available().await,
            "not known before a write fails"
        );
        storage.record_write_error(&io::ErrorKind::StorageFull.into());
        assert!(!storage.is_available().await);
        std::fs::rename(&away, &tmp).unwrap();
        let full = io::ErrorKind::StorageFull.into();
        let mut backoff = StorageBackoff::default();
        let waited = storage.wait_until_available(&full, &mut backoff);
        tokio::time::timeout(Duration::from_secs(60), waited)
            .await
            .unwrap();
        assert!(storage.is_available().await);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
