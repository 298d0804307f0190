//! Nonces of sign-ins by an OpenID provider: each can be used once.

use tollgate_core::Millis;

use super::write::AdminRejection;
use crate::db::{DbError, Sql, args};
use crate::writer::batch::Batch;

const INSERT_SIGN_IN: Sql =
    Sql::both("INSERT INTO oidc_sign_ins (nonce_hash, at) VALUES ($1, $2) ON CONFLICT DO NOTHING");

/// Records that the sign-in with this nonce has succeeded. Using a nonce again is an error.
pub(super) async fn use_nonce(
    batch: &mut Batch<'_, '_>,
    nonce_hash: &str,
    now: Millis,
) -> Result<Result<(), AdminRejection>, DbError> {
    let inserted = batch
        .execute(&INSERT_SIGN_IN, args![nonce_hash, now])
        .await?;
    Ok(match inserted {
        0 => Err(AdminRejection::conflict(
            "replayed",
            None,
            "this sign-in has succeeded before",
        )),
        _ => Ok(()),
    })
}
