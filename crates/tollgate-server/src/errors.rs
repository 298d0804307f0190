//! What clients hear of failures inside: the store's, the storage's. The log hears the rest.

use tollgate_core::{ApiError, ErrorKind};
use tollgate_store::StoreError;

/// An error of the store, as a client may see it (CONTRACT.md › Sharper points: 502 while the database is away,
/// 503 where load is shed).
pub fn store(e: StoreError) -> ApiError {
    match e {
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
