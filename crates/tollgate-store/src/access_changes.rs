//! The feed of changes of users and keys (table `access_changes`), with which a cache of keys removes only those that changed. Movements of money are
//! not in the feed.

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::batch::Batch;

/// Changes that are kept. A cache that has missed more must be emptied.
const KEPT: i64 = 10_000;
/// Changes that one read returns at most.
const MAX_READ: i64 = 1_000;

pub(crate) const ACCESS_VERSION: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'access_version'");
// The row is locked until the commit, so that versions are committed in their order.
const RAISE_ACCESS_VERSION: Sql =
    Sql::both("UPDATE meta SET value = value + 1 WHERE name = 'access_version'");
const INSERT_CHANGE: Sql = Sql::both(
    "INSERT INTO access_changes (version, user_id, key_id) SELECT value, $1, $2 FROM meta WHERE name = 'access_version'",
);
pub(crate) const CHANGES_AFTER: Sql = Sql::both(
    "SELECT version, user_id, key_id FROM access_changes WHERE version > $1 ORDER BY version LIMIT $2",
);
pub(crate) const DELETE_OLD_CHANGES: Sql = Sql::both(
    "DELETE FROM access_changes WHERE version <= (SELECT value - $1 FROM meta WHERE name = 'access_version')",
);

/// An object that was created, changed, disabled or revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessChange {
    /// The user with that id: all keys of the user must be read again.
    User(String),
    /// The key with that id.
    Key(String),
}

/// The changes since a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessChanges {
    /// The version after these changes.
    pub version: i64,
    /// The changes, oldest first. `None` if some are unknown: then everything may have changed.
    pub changes: Option<Vec<AccessChange>>,
}

/// Changes of users and keys.
impl Store {
    /// A number that each change of a user or key raises by one.
    ///
    /// # Errors
    /// The database's.
    pub async fn access_version(&self) -> Result<i64, StoreError> {
        let version = self.first(&ACCESS_VERSION, &[], |row| row.int(0)).await?;
        version.ok_or_else(|| StoreError::Broken("meta has no access_version".to_owned()))
    }

    /// Reads the changes since `version`.
    ///
    /// # Errors
    /// The database's.
    pub async fn access_changes_since(&self, version: i64) -> Result<AccessChanges, StoreError> {
        let newest = self.access_version().await?;
        if newest == version {
            let changes = Some(Vec::new());
            return Ok(AccessChanges { version, changes });
        }
        let mut rows = self.query(&CHANGES_AFTER, args![version, MAX_READ]).await?;
        let mut changes = Vec::with_capacity(rows.len());
        let mut reached = version;
        for row in &mut rows {
            let (at, change) = read_change(row)?;
            if at != reached + 1 {
                // Some changes were purged, or are of a node of a version before this feed.
                let changes = None;
                return Ok(AccessChanges {
                    version: newest,
                    changes,
                });
            }
            reached = at;
            changes.push(change);
        }
        let is_complete = reached >= newest;
        Ok(AccessChanges {
            version: reached.max(newest),
            changes: is_complete.then_some(changes),
        })
    }
}

fn read_change(row: &mut Row) -> Result<(i64, AccessChange), DbError> {
    let version = row.int(0)?;
    let change = match (row.opt_text(1)?, row.opt_text(2)?) {
        (_, Some(key_id)) => AccessChange::Key(key_id),
        (Some(user_id), None) => AccessChange::User(user_id),
        (None, None) => {
            let what = format!("access change {version} names nothing");
            return Err(DbError::UnexpectedData(what));
        }
    };
    Ok((version, change))
}

/// Records a change of a user in the transaction that makes it.
pub(crate) fn record_user_change(batch: &mut Batch<'_, '_>, user_id: &str) -> Result<(), DbError> {
    batch.queue(&RAISE_ACCESS_VERSION, &[])?;
    batch.queue(&INSERT_CHANGE, args![user_id, None::<&str>])
}

/// Records a change of a key in the transaction that makes it.
pub(crate) fn record_key_change(batch: &mut Batch<'_, '_>, key_id: &str) -> Result<(), DbError> {
    batch.queue(&RAISE_ACCESS_VERSION, &[])?;
    batch.queue(&INSERT_CHANGE, args![None::<&str>, key_id])
}

/// Deletes all but the newest changes.
pub(crate) async fn purge(batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
    batch.execute(&DELETE_OLD_CHANGES, args![KEPT]).await?;
    Ok(())
}
