//! The author of an admin write.

use tollgate_core::Millis;

/// The author of an admin write, and the request that caused it.
#[derive(Debug, Clone)]
pub struct AdminRequest {
    /// `owner`, `cli`, or the name of the admin or token.
    pub actor: String,
    /// The id of the token, if the caller used one.
    pub token_id: Option<String>,
    /// The address of the client.
    pub address: Option<String>,
    /// The request's id.
    pub request_id: Option<String>,
    /// The caller's reason.
    pub reason: Option<String>,
    /// The idempotency key, if the request has an `Idempotency-Key`.
    pub idempotency: Option<AdminIdempotency>,
    /// The time of the request, in Unix milliseconds.
    pub now: Millis,
}

impl AdminRequest {
    /// A command that is run on the gateway's machine.
    pub fn cli(now: Millis) -> Self {
        Self {
            actor: "cli".to_owned(),
            token_id: None,
            address: None,
            request_id: None,
            reason: None,
            idempotency: None,
            now,
        }
    }
}

/// An idempotency key; it applies to one caller and path.
#[derive(Debug, Clone)]
pub struct AdminIdempotency {
    /// Identifies the caller: an id, because names can be reused.
    pub caller: String,
    /// The request's path.
    pub path: String,
    /// The key, 1 to 255 characters.
    pub key: String,
    /// A hash of the request's body.
    pub fingerprint: String,
}
