//! Converts store errors to errors of the client API: 502 while the database is unavailable, 503 if it is overloaded or its disk is full, 402 for a
//! balance, quota or budget that does not cover a request, 401 for an inactive account, else 500.

use tollgate_config::Currency;
use tollgate_core::{Amount, ApiError, ErrorKind};
use tollgate_store::{BudgetOwner, BudgetPeriod, ExceededBudget, Rejection, StoreError};

/// The `retry-after`, in seconds, for a request that needs storage.
pub const STORAGE_RETRY_S: u32 = 5;

/// The error response for an error of the store. The details are logged.
#[cold]
pub fn from_store(error: StoreError) -> ApiError {
    match error {
        StoreError::Unavailable(why) => {
            tracing::error!(error = %why, "the database is unavailable");
            ApiError::new(
                ErrorKind::BadGateway,
                "the gateway's database is unavailable: try again shortly",
            )
        }
        StoreError::DiskFull(why) => {
            tracing::error!(error = %why, "the database cannot write to its disk");
            from_storage()
        }
        StoreError::Overloaded | StoreError::QueryTimeout => ApiError {
            retry_after: Some(1),
            ..ApiError::new(
                ErrorKind::Unavailable,
                "the gateway is overloaded: try again shortly",
            )
        },
        StoreError::Setup(what) | StoreError::Invalid(what) | StoreError::Broken(what) => {
            tracing::error!(error = %what, "a store operation failed");
            ApiError::internal()
        }
    }
}

/// The error response if the gateway's own storage accepts no writes. The details are logged.
pub fn from_storage() -> ApiError {
    ApiError {
        retry_after: Some(STORAGE_RETRY_S),
        ..ApiError::new(
            ErrorKind::Unavailable,
            "the gateway's storage is unavailable: try again shortly",
        )
    }
}

/// The error response for a hold of `needed` that the store rejected. `needed` is `None` if it is out of range for an amount.
pub fn from_rejection(
    rejection: Rejection,
    needed: Option<Amount>,
    currency: Currency,
) -> ApiError {
    let need = match needed {
        Some(needed) => format!("this request needs {needed} {currency}"),
        None => "this request needs more than any account can hold".to_owned(),
    };
    match rejection {
        Rejection::InsufficientBalance { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient account balance: {need}, and {available} {currency} is available"
            ),
        ),
        Rejection::InsufficientQuota { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient quota of this API key: {need}, and {available} {currency} is left"
            ),
        ),
        Rejection::BudgetExceeded(budget) => ApiError::new(
            ErrorKind::PaymentRequired,
            exceeded_budget(&budget, &need, currency),
        ),
        Rejection::AccountInactive => ApiError::new(
            ErrorKind::Authentication,
            "this API key was revoked or its account disabled",
        ),
    }
}

fn exceeded_budget(budget: &ExceededBudget, need: &str, currency: Currency) -> String {
    let period = match budget.period {
        BudgetPeriod::Day => "daily",
        BudgetPeriod::Week => "weekly",
        BudgetPeriod::Month => "monthly",
    };
    let owner = match budget.owner {
        BudgetOwner::User => "this account",
        BudgetOwner::Key => "this API key",
    };
    let resets_at = jiff::Timestamp::from_millisecond(budget.resets_at);
    let resets_at = resets_at.map_or_else(|_| String::new(), |at| format!(" until {at}"));
    let (amount, available) = (budget.amount, budget.available);
    format!(
        "{period} budget of {owner} exceeded: {need}, and {available} {currency} of {amount} {currency} is left{resets_at}"
    )
}
