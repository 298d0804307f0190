//! Callbacks, as their sender sees them.

use tollgate_core::{Millis, Secret};

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{CallbackLog, CallbackTried, DueCallback};
use crate::ops::callback;

/// Callbacks, as their sender sees them.
impl Store {
    /// Leases up to `limit` due callbacks to `owner` until `until`, the longest due first.
    pub async fn claim_callbacks(
        &self,
        owner: &str,
        limit: usize,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<DueCallback>, StoreError> {
        let claim = callback::ClaimCallbacks {
            owner: owner.to_owned(),
            limit: limit as i64,
            until,
            now,
        };
        self.write(claim).await
    }

    /// Puts callbacks back until `due_at` that `owner` has claimed and not tried: the claim does not count as a try.
    pub async fn put_back_callbacks(
        &self,
        owner: &str,
        task_ids: Vec<String>,
        due_at: Millis,
    ) -> Result<(), StoreError> {
        let put_back = callback::PutBackCallbacks {
            owner: owner.to_owned(),
            task_ids,
            due_at,
        };
        self.write(put_back).await
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
    pub async fn callback_tried(&self, tried: CallbackTried) -> Result<(), StoreError> {
        self.write(callback::WriteTried(tried)).await
    }

    /// What became of a task's callback; none where nobody wants one or the task has not ended.
    pub async fn callback_log(&self, task_id: &str) -> Result<Option<CallbackLog>, StoreError> {
        let mut rows = self.query(&callback::CALLBACK_LOG, args![task_id]).await?;
        Ok(callback::log(&mut rows)?)
    }

    /// The secret that signs a key's callbacks: the one it has, on every node the same, or else `fresh`, kept from now on.
    pub async fn webhook_secret(
        &self,
        key_id: &str,
        fresh: Secret,
        now: Millis,
    ) -> Result<Secret, StoreError> {
        let of_key = args![key_id];
        let known = self.first(&callback::WEBHOOK_SECRET, of_key, callback::secret);
        if let Some(secret) = known.await? {
            return Ok(secret);
        }
        let keep = callback::KeepSecret {
            key_id: key_id.to_owned(),
            secret: fresh,
            now,
        };
        self.write(keep).await
    }
}
