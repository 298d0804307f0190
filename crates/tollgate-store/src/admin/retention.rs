//! Purges data that the admin API needs only for a limited time.

use tollgate_core::Millis;
use tollgate_core::clock::DAY;

use super::sessions::MAX_AGE;
use crate::db::{DbError, Sql, args};
use crate::writer::batch::Batch;

/// How long an idempotency key is stored.
const WRITE_TTL: Millis = DAY;

const DELETE_ADMIN_WRITES: Sql = Sql::both("DELETE FROM admin_writes WHERE created_at <= $1");
const DELETE_SIGN_IN_FAILURES: Sql = Sql::both("DELETE FROM admin_sign_in_failures WHERE at <= $1");
const DELETE_OLD_SESSIONS: Sql = Sql::both("DELETE FROM admin_sessions WHERE created_at <= $1");
const DELETE_OLD_PORTAL_SESSIONS: Sql =
    Sql::both("DELETE FROM portal_sessions WHERE created_at <= $1");
const DELETE_OIDC_SIGN_INS: Sql = Sql::both("DELETE FROM oidc_sign_ins WHERE at <= $1");
const DELETE_OLD_LINKS: Sql = Sql::both("DELETE FROM admin_links WHERE expires_at <= $1");

/// Deletes old idempotency records, failed sign-ins, sessions and links.
pub(crate) async fn purge(batch: &mut Batch<'_, '_>, now: Millis) -> Result<(), DbError> {
    for (sql, until) in [
        (&DELETE_ADMIN_WRITES, now - WRITE_TTL),
        (&DELETE_SIGN_IN_FAILURES, now - DAY),
        (&DELETE_OLD_SESSIONS, now - MAX_AGE),
        (&DELETE_OLD_PORTAL_SESSIONS, now - MAX_AGE),
        (&DELETE_OIDC_SIGN_INS, now - DAY),
        (&DELETE_OLD_LINKS, now - DAY),
    ] {
        batch.execute(sql, args![until]).await?;
    }
    Ok(())
}
