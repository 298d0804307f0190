//! Store errors as clients see them: 502 while the database is unavailable, 503 when it is overloaded, 402 for a
//! balance or quota that does not cover a request, else 500.

use tollgate_core::{ApiError, ErrorKind};
use tollgate_store::{Rejection, StoreError};

use crate::config::Currency;

/// The client's error for an error of the store. The details go to the log.
pub fn from_store(error: StoreError) -> ApiError {
    match error {
        StoreError::Unavailable(why) => {
            tracing::error!(error = %why, "the database is unavailable");
            ApiError::new(
                ErrorKind::BadGateway,
                "the gateway's database is unavailable: try again shortly",
            )
        }
        StoreError::Overloaded => ApiError {
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

/// The client's error for a hold that the store rejected.
pub fn from_rejection(rejection: Rejection, currency: Currency) -> ApiError {
    match rejection {
        Rejection::InsufficientBalance { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient account balance: {available} {currency} is available, and this request needs more"
            ),
        ),
        Rejection::InsufficientQuota { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient quota of this API key: {available} {currency} is left, and this request needs more"
            ),
        ),
        Rejection::AccountInactive => ApiError::new(
            ErrorKind::Authentication,
            "this API key was revoked or its account disabled",
        ),
    }
}
