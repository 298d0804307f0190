//! The account that pays for a charge, and the reasons why a movement of money is rejected.

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
    /// The user's balance, minus held and reserved amounts, does not cover it.
    InsufficientBalance {
        /// The available amount.
        available: Amount,
    },
    /// The key's quota, minus used, held and reserved amounts, does not cover it.
    InsufficientQuota {
        /// The available amount.
        available: Amount,
    },
    /// A hard budget of the user or key does not cover it.
    BudgetExceeded(ExceededBudget),
    /// The user or key does not exist, or is disabled or revoked.
    AccountInactive,
}
