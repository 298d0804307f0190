//! The caller of a request: its API key, counted against the rate limits while the request lasts.

use std::sync::Arc;

use http::Method;
use tollgate_core::{ApiError, ErrorKind, Millis};
use tollgate_media::ModelName;
use tollgate_store::Key;

use crate::auth::limits::{RateLimiter, RequestPermit};

/// The caller of a request.
pub struct Caller {
    /// The API key that authenticated the request.
    pub key: Arc<Key>,
    permit: Option<RequestPermit>,
}

impl Caller {
    /// Admits a request of `key` if its rate limits allow it.
    ///
    /// # Errors
    /// 429 that names the limit; 503 if limits cannot be counted and `limits.on_redis_loss` is `closed`.
    pub async fn admit(
        limits: &RateLimiter,
        key: Arc<Key>,
        method: &Method,
        now: Millis,
    ) -> Result<Self, ApiError> {
        let permit = limits.admit(&key, method == Method::POST, now).await?;
        Ok(Self { key, permit })
    }

    /// Takes the permit that counts the request as in flight, for a response that exists longer than this value. `None` if no limit applies to the
    /// key.
    pub fn take_permit(&mut self) -> Option<RequestPermit> {
        self.permit.take()
    }

    /// Checks that the key may use `model`: if it has a list of models, this must contain the model's own name or its first one.
    ///
    /// # Errors
    /// 403 that lists the models that it may use.
    pub fn check_may_use(&self, model: ModelName<'_>) -> Result<(), ApiError> {
        match &self.key.limits.models {
            Some(models) if !models.iter().any(|m| m == model.own || m == model.first) => {
                Err(ApiError::new(
                    ErrorKind::Permission,
                    format!(
                        "this API key may not use the model; it may use: {}",
                        models.join(", ")
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
