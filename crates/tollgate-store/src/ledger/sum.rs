//! Adds amounts of money whose sum may be out of range.

use tollgate_core::Amount;

use crate::db::DbError;

/// `a + b`.
///
/// # Errors
/// [`DbError::Failed`] if the sum is out of range.
pub(super) fn sum(a: Amount, b: Amount) -> Result<Amount, DbError> {
    a.checked_add(b)
        .ok_or_else(|| DbError::Failed(format!("the sum of {a} and {b} is out of range")))
}
