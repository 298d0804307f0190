//! Counts the bytes of uploads that users have in storage (table `upload_bytes`), so that one user cannot use up all of it.

use async_trait::async_trait;
use tollgate_core::Millis;

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

const HOUR: Millis = 3_600_000;
/// The name in the table for the sums over all users.
const EVERYBODY: &str = "";

pub(crate) const UPLOADED_BYTES: Sql = Sql::both(
    "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM upload_bytes WHERE user_id = $1 AND expires_hour >= $2",
);
pub(crate) const ADD_BYTES: Sql = Sql::both(
    "INSERT INTO upload_bytes (user_id, expires_hour, bytes) VALUES ($1, $2, $3)
     ON CONFLICT (user_id, expires_hour) DO UPDATE SET bytes = upload_bytes.bytes + excluded.bytes",
);
const DELETE_EXPIRED: Sql = Sql::both("DELETE FROM upload_bytes WHERE expires_hour < $1");

/// The most bytes of uploads that have not expired. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    /// The limit of each user.
    pub of_user: Option<u64>,
    /// The limit of all users together.
    pub of_all: Option<u64>,
}

/// The limit that an upload would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadRejection {
    /// The user's limit, in bytes.
    OfUser(u64),
    /// The limit of all users, in bytes.
    OfAll(u64),
}

/// A new upload.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// The user who uploads.
    pub user_id: String,
    /// Its size.
    pub bytes: u64,
    /// When it expires.
    pub expires_at: Millis,
}

/// Uploads.
impl Store {
    /// Counts an upload against the limits, unless it would exceed one. Concurrent uploads cannot exceed a limit together, also on several nodes, as
    /// long as they expire in the same hour.
    pub async fn count_upload(
        &self,
        upload: NewUpload,
        limits: UploadLimits,
        now: Millis,
    ) -> Result<Result<(), UploadRejection>, StoreError> {
        let count = CountUpload {
            upload,
            limits,
            now,
        };
        self.write(count).await
    }
}

struct CountUpload {
    upload: NewUpload,
    limits: UploadLimits,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for CountUpload {
    type Out = Result<(), UploadRejection>;

    /// If the reply to a commit is lost, the upload may be counted twice, until it expires.
    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        let UploadLimits { of_user, of_all } = self.limits;
        let user = self.upload.user_id.as_str();
        let bytes = i64::try_from(self.upload.bytes).unwrap_or(i64::MAX);
        let hour = self.upload.expires_at / HOUR;
        // The bytes are added first: on PostgreSQL this locks the rows of the hour, so that the sums include what other nodes add.
        batch
            .execute(&ADD_BYTES, args![EVERYBODY, hour, bytes])
            .await?;
        batch.execute(&ADD_BYTES, args![user, hour, bytes]).await?;
        let rejection = match (
            is_exceeded(batch, user, of_user, self.now).await?,
            is_exceeded(batch, EVERYBODY, of_all, self.now).await?,
        ) {
            (Some(limit), _) => UploadRejection::OfUser(limit),
            (None, Some(limit)) => UploadRejection::OfAll(limit),
            (None, None) => return Ok(Ok(())),
        };
        batch
            .execute(&ADD_BYTES, args![EVERYBODY, hour, -bytes])
            .await?;
        batch.execute(&ADD_BYTES, args![user, hour, -bytes]).await?;
        Ok(Err(rejection))
    }
}

/// The limit, if the uploads of `user` exceed it.
async fn is_exceeded(
    batch: &mut Batch<'_, '_>,
    user: &str,
    limit: Option<u64>,
    now: Millis,
) -> Result<Option<u64>, DbError> {
    let Some(limit) = limit else { return Ok(None) };
    let row = batch
        .first(&UPLOADED_BYTES, args![user, now / HOUR])
        .await?;
    let bytes = row.map_or(Ok(0), |row: Row| row.int(0))?;
    Ok((u64::try_from(bytes).unwrap_or(0) > limit).then_some(limit))
}

/// Deletes the counts of uploads that have expired.
pub(crate) async fn purge(batch: &mut Batch<'_, '_>, now: Millis) -> Result<(), DbError> {
    batch.execute(&DELETE_EXPIRED, args![now / HOUR]).await?;
    Ok(())
}
