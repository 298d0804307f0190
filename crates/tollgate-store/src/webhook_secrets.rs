//! The secrets that sign webhooks (table `webhook_secrets`), one for each key.

use async_trait::async_trait;
use tollgate_core::{Millis, Secret};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

pub(crate) const WEBHOOK_SECRET: Sql =
    Sql::both("SELECT secret FROM webhook_secrets WHERE key_id = $1");
const INSERT_SECRET: Sql = Sql::both(
    "INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES ($1, $2, $3) ON CONFLICT (key_id) DO NOTHING",
);

/// Webhook secrets.
impl Store {
    /// The secret that signs a key's webhooks, the same on every node: the stored one; if there is none, `fresh` is stored and returned.
    pub async fn webhook_secret(
        &self,
        key_id: &str,
        fresh: Secret,
        now: Millis,
    ) -> Result<Secret, StoreError> {
        let args = args![key_id];
        if let Some(secret) = self.first(&WEBHOOK_SECRET, args, read_secret).await? {
            return Ok(secret);
        }
        let store = StoreSecret {
            key_id: key_id.to_owned(),
            secret: fresh,
            now,
        };
        self.write(store).await
    }
}

/// Stores a secret for a key, unless it has one. Returns the stored one.
struct StoreSecret {
    key_id: String,
    secret: Secret,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for StoreSecret {
    type Out = Secret;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Secret, DbError> {
        let args = args![&self.key_id, self.secret.expose(), self.now];
        batch.queue(&INSERT_SECRET, args)?;
        let row = batch.first(&WEBHOOK_SECRET, args![&self.key_id]).await?;
        let mut row =
            row.ok_or_else(|| DbError::UnexpectedData("a secret was not stored".to_owned()))?;
        read_secret(&mut row)
    }
}

fn read_secret(row: &mut Row) -> Result<Secret, DbError> {
    row.text(0).map(Secret::new)
}
