//! Who pays for a charge, and why a movement of money is rejected.

use tollgate_core::Amount;

use super::budgets::ExceededBudget;

/// The user and the key that pay for a charge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) key_id: &'a str,
}

/// Why the ledger rejected a hold or a debit. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The user's balance, less what is held and reserved, does not cover it.
    InsufficientBalance {
        /// What is available.
        available: Amount,
    },
    /// The key's quota, less what is used, held and reserved, does not cover it.
    InsufficientQuota {
        /// What is available.
        available: Amount,
    },
    /// A hard budget of the user or key does not cover it.
    BudgetExceeded(ExceededBudget),
    /// The user or key does not exist, or is disabled or revoked.
    AccountInactive,
}
