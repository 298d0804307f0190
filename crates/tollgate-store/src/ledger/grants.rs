//! Grants: if nodes share a database, the money of a user and key that one of them holds for the chats that it serves.
//!
//! A grant is a row of the table `grants`. What is left of it (`amount`) is part of `held` of its user and key, so no other node can spend it. Every
//! movement of a grant is made while the user's row is locked, and guarded by the grant's id: a grant that was released is never restored. If a chat
//! is settled against such a grant, the guard of its update fails, and it is charged to what the account still has. The division of grants among
//! chats is in `grants`.

use tollgate_core::{Amount, Millis};

use super::account::{Account, Rejection};
use crate::db::{DbError, Sql, args};
use crate::writer::batch::Batch;

/// One grant may take the available amount divided by this: so several nodes can get a grant, and some money is left for a submission or a large
/// chat.
const SHARE: i64 = 4;
/// How many amounts between the largest and the smallest useful one are tried: each is half of the one before.
const HALVINGS: u32 = 4;

const SELECT_GRANT: Sql = Sql::both("SELECT amount FROM grants WHERE id = $1");
const INSERT_GRANT: Sql = Sql::both(
    "INSERT INTO grants (id, node, user_id, key_id, amount, granted, opened_at) VALUES ($1, $2, $3, $4, $5, $5, $6)",
);
pub(crate) const RAISE_GRANT: Sql = Sql::both(
    "UPDATE grants SET amount = amount + CAST($1 AS BIGINT), granted = granted + CAST($1 AS BIGINT)
     WHERE id = $2 AND granted = $3",
);
pub(crate) const LOWER_GRANT: Sql = Sql::both(
    "UPDATE grants SET amount = amount - CAST($1 AS BIGINT), released = released + CAST($1 AS BIGINT)
     WHERE id = $2 AND released = $3 AND amount >= CAST($1 AS BIGINT)",
);
pub(crate) const DELETE_GRANT: Sql = Sql::both("DELETE FROM grants WHERE id = $1 RETURNING amount");
pub(crate) const DELETE_GRANT_OF_DEAD_NODE: Sql = Sql::both(
    "DELETE FROM grants WHERE id = $1
     AND COALESCE((SELECT alive_until FROM nodes WHERE nodes.id = grants.node), 0) <= $2 RETURNING amount",
);

/// A grant that a node wants to open.
#[derive(Debug, Clone)]
pub(crate) struct NewGrant {
    /// A new id that was never used before.
    pub(crate) id: String,
    /// The node that will serve chats from it.
    pub(crate) node: String,
    /// A smaller grant is of no use.
    pub(crate) min: Amount,
    /// The most that the node could use.
    pub(crate) max: Amount,
    pub(crate) at: Millis,
}

/// Opens a grant of `min` to `max`, but no more than a quarter of what is available. Returns its amount.
pub(crate) async fn open_grant(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    new: &NewGrant,
) -> Result<Result<Amount, Rejection>, DbError> {
    if batch.commit_in_doubt
        && let Some(row) = batch.first(&SELECT_GRANT, args![&new.id]).await?
    {
        return Ok(Ok(row.amount(0)?));
    }
    let amount = match hold_share(batch, account, new.min, new.max, new.at)? {
        Ok(amount) => amount,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let Account { user_id, key_id } = account;
    batch.queue_one(
        &INSERT_GRANT,
        args![&new.id, &new.node, user_id, key_id, amount, new.at],
    )?;
    Ok(Ok(amount))
}

/// A request to raise a grant that was granted `granted` in total so far.
#[derive(Debug, Clone)]
pub(crate) struct GrantRaise {
    pub(crate) id: String,
    pub(crate) granted: Amount,
    /// A smaller raise is of no use.
    pub(crate) min: Amount,
    /// The most that the node could use.
    pub(crate) max: Amount,
    pub(crate) at: Millis,
}

/// Raises a grant by `min` to `max`, but by no more than a quarter of what is available. Returns by how much; `None` if the grant was released, or is
/// not as its node expects.
pub(crate) async fn raise_grant(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    raise: &GrantRaise,
) -> Result<Result<Option<Amount>, Rejection>, DbError> {
    let amount = match hold_share(batch, account, raise.min, raise.max, raise.at)? {
        Ok(amount) => amount,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let args = args![amount, &raise.id, raise.granted];
    if batch.execute(&RAISE_GRANT, args).await? == 1 {
        return Ok(Ok(Some(amount)));
    }
    release(batch, account, amount, raise.at)?;
    Ok(Ok(None))
}

/// Releases `amount` of a grant of which `released` has been released in total so far. Returns false if the grant was released completely, or is not
/// as its node expects.
pub(crate) async fn lower_grant(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    (id, released): (&str, Amount),
    amount: Amount,
    at: Millis,
) -> Result<bool, DbError> {
    let args = args![amount, id, released];
    let is_lowered = batch.execute(&LOWER_GRANT, args).await? == 1;
    if is_lowered {
        release(batch, account, amount, at)?;
    }
    Ok(is_lowered)
}

/// Closes a grant: what is left of it is available again. `dead_at` is set for a grant of another node, which must not have been alive at that time.
/// Returns false if there is no such grant.
pub(crate) async fn close_grant(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    id: &str,
    dead_at: Option<Millis>,
    at: Millis,
) -> Result<bool, DbError> {
    let row = match dead_at {
        None => batch.first(&DELETE_GRANT, args![id]).await?,
        Some(dead_at) => {
            let args = args![id, dead_at];
            batch.first(&DELETE_GRANT_OF_DEAD_NODE, args).await?
        }
    };
    let Some(row) = row else {
        return Ok(false);
    };
    release(batch, account, row.amount(0)?, at)?;
    Ok(true)
}

/// Holds an amount between `min` and `max`: the largest of some for which [`SHARE`] times as much is available.
fn hold_share(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    min: Amount,
    max: Amount,
    at: Millis,
) -> Result<Result<Amount, Rejection>, DbError> {
    for halving in 0..=HALVINGS {
        let amount = Amount::from_nanos(max.nanos() >> halving).max(min);
        let needed = Amount::from_nanos(amount.nanos().saturating_mul(SHARE));
        match batch.balances.hold_out_of(account, amount, needed, at)? {
            Ok(()) => return Ok(Ok(amount)),
            Err(rejection) if amount == min || halving == HALVINGS => return Ok(Err(rejection)),
            Err(_) => {}
        }
    }
    unreachable!("the last amount is granted or rejected")
}

fn release(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    amount: Amount,
    at: Millis,
) -> Result<(), DbError> {
    batch.balances.close_hold(account, amount, Amount::ZERO, at)
}
