//! Ledger entries (table `ledger`): credits and opening balances, and one entry for each movement of a charge.

use tollgate_core::{Amount, Millis};

use super::account::{Account, Rejection};
use crate::db::{DbError, RowsSql, Sql, args};
use crate::writer::batch::Batch;

static INSERT_ENTRY: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
));

/// An entry that concerns a user and none of its keys.
pub(crate) struct UserEntry<'a> {
    /// Unique among the entries of its kind.
    pub(crate) reference: &'a str,
    pub(crate) user_id: &'a str,
    pub(crate) amount: Amount,
    pub(crate) note: Option<&'a str>,
    pub(crate) now: Millis,
}

/// Adds to a user's balance or, if the amount is negative, deducts from it; never deducts what is held or reserved. An amount of 0 creates no entry.
pub(crate) fn credit(
    batch: &mut Batch<'_, '_>,
    entry: &UserEntry<'_>,
) -> Result<Result<(), Rejection>, DbError> {
    if let Err(rejection) = batch.balances.credit(entry.user_id, entry.amount)? {
        return Ok(Err(rejection));
    }
    if entry.amount != Amount::ZERO {
        insert_user_entry(batch, "credit", entry)?;
    }
    Ok(Ok(()))
}

/// Opens the account of a user that this transaction has inserted, with its opening balance.
pub(crate) fn open_account(
    batch: &mut Batch<'_, '_>,
    unlimited: bool,
    opening: &UserEntry<'_>,
) -> Result<Result<(), Rejection>, DbError> {
    batch.balances.add_new_user(opening.user_id, unlimited);
    if unlimited {
        // The flag has an entry, so that the audit detects a change of it.
        let flag = UserEntry {
            reference: opening.user_id,
            amount: Amount::ZERO,
            note: None,
            ..*opening
        };
        insert_user_entry(batch, "unlimited", &flag)?;
    }
    credit(batch, opening)
}

/// Inserts an entry with the quota of a new key, so that the audit detects a change of it.
pub(crate) fn grant_quota(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    quota: Amount,
    now: Millis,
) -> Result<(), DbError> {
    insert(batch, account.key_id, "quota", account, quota, now)
}

/// Inserts an entry that states whether the balance of a user is a limit from its version `version` on.
pub(crate) fn set_unlimited(
    batch: &mut Batch<'_, '_>,
    user_id: &str,
    unlimited: bool,
    version: i64,
    now: Millis,
) -> Result<(), DbError> {
    let entry = UserEntry {
        reference: &versioned(user_id, version),
        user_id,
        amount: Amount::ZERO,
        note: None,
        now,
    };
    let kind = if unlimited { "unlimited" } else { "limited" };
    insert_user_entry(batch, kind, &entry)
}

/// Inserts an entry with the quota of a key from its version `version` on, or without one if it has none.
pub(crate) fn set_quota(
    batch: &mut Batch<'_, '_>,
    account: Account<'_>,
    quota: Option<Amount>,
    version: i64,
    now: Millis,
) -> Result<(), DbError> {
    let reference = versioned(account.key_id, version);
    match quota {
        Some(quota) => insert(batch, &reference, "quota", account, quota, now),
        None => insert(batch, &reference, "no_quota", account, Amount::ZERO, now),
    }
}

/// A reference that sorts after those of earlier versions, so that the last entry is the one in effect.
fn versioned(id: &str, version: i64) -> String {
    format!("{id}:{version:019}")
}

/// Inserts an entry for a movement of the charge `reference`; an amount of 0 creates no entry.
pub(super) fn insert_entry(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    kind: &str,
    account: Account<'_>,
    amount: Amount,
    now: Millis,
) -> Result<(), DbError> {
    if amount == Amount::ZERO {
        return Ok(());
    }
    insert(batch, reference, kind, account, amount, now)
}

/// Inserts an entry for a refund of `amount`; the reference contains the charge's id and the number of the refund.
pub(super) fn insert_refund(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    account: Account<'_>,
    amount: Amount,
    reason: &str,
    now: Millis,
) -> Result<(), DbError> {
    let Account { user_id, key_id } = account;
    let note = Some(reason);
    batch.queue_row(
        &INSERT_ENTRY,
        args![reference, "refund", user_id, key_id, amount, note, now],
    )
}

fn insert_user_entry(
    batch: &mut Batch<'_, '_>,
    kind: &str,
    entry: &UserEntry<'_>,
) -> Result<(), DbError> {
    let &UserEntry {
        reference,
        user_id,
        amount,
        note,
        now,
    } = entry;
    let no_key = None::<&str>;
    batch.queue_row(
        &INSERT_ENTRY,
        args![reference, kind, user_id, no_key, amount, note, now],
    )
}

fn insert(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    kind: &str,
    account: Account<'_>,
    amount: Amount,
    now: Millis,
) -> Result<(), DbError> {
    let Account { user_id, key_id } = account;
    let no_note = None::<&str>;
    batch.queue_row(
        &INSERT_ENTRY,
        args![reference, kind, user_id, key_id, amount, no_note, now],
    )
}
