//! Callbacks, as their sender sees them.

use tollgate_core::{Millis, Secret};

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{CallbackLog, DueCallback, Tried};
use crate::ops::callback;

/// Callbacks, as their sender sees them.
impl Store {
    /// Takes up to `limit` due callbacks, the longest due first; nobody else gets them before `until`.
    pub async fn claim_callbacks(
        &self,
        limit: usize,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<DueCallback>, StoreError> {
        let claim = callback::ClaimCallbacks {
            limit: limit as i64,
            until,
            now,
        };
        self.write(claim).await
    }

    /// When the next callback is due, those that are being tried included; none when none waits.
    pub async fn next_callback_due(&self) -> Result<Option<Millis>, StoreError> {
        let rows = self.query(&callback::NEXT_CALLBACK_DUE, &[]).await?;
        Ok(rows
            .first()
            .map(|row| row.opt_int(0))
            .transpose()?
            .flatten())
    }

    /// Writes a try of a callback down and what comes after it; may be repeated. Of a try whose lease ended and whose
    /// callback somebody else has claimed since, only a delivery counts. A delivered callback stays delivered.
    pub async fn callback_tried(&self, tried: Tried) -> Result<(), StoreError> {
        self.write(callback::WriteTried(tried)).await
    }

    /// What became of a task's callback; none where nobody wants one or the task has not ended.
    pub async fn callback_log(&self, task_id: &str) -> Result<Option<CallbackLog>, StoreError> {
        let mut rows = self.query(&callback::CALLBACK_LOG, args![task_id]).await?;
        Ok(callback::log(&mut rows)?)
    }

    /// The secret that signs a key's callbacks: the one it has, on every node the same, or else what `new` makes, kept
    /// from now on.
    pub async fn webhook_secret(
        &self,
        key_id: &str,
        now: Millis,
        new: impl FnOnce() -> Secret + Send,
    ) -> Result<Secret, StoreError> {
        let of_key = args![key_id];
        let known = self.first(&callback::WEBHOOK_SECRET, of_key, callback::secret);
        if let Some(secret) = known.await? {
            return Ok(secret);
        }
        let keep = callback::KeepSecret {
            key_id: key_id.to_owned(),
            secret: new(),
            now,
        };
        self.write(keep).await
    }
}
