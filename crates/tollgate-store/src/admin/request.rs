//! Who makes an admin write.

use tollgate_core::Millis;

/// Who makes an admin write, and for which request.
#[derive(Debug, Clone)]
pub struct AdminRequest {
    /// `owner`, `cli`, or the name of the admin or token.
    pub actor: String,
    /// The token's id, if a token makes it.
    pub token_id: Option<String>,
    /// The address that the request came from.
    pub address: Option<String>,
    /// The request's id.
    pub request_id: Option<String>,
    /// Why, in the caller's words.
    pub reason: Option<String>,
    /// Of a request with an `Idempotency-Key`.
    pub idempotency: Option<AdminIdempotency>,
    /// Now.
    pub now: Millis,
}

impl AdminRequest {
    /// A command on the machine of the gateway.
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

/// An idempotency key; it belongs to one caller and path.
#[derive(Debug, Clone)]
pub struct AdminIdempotency {
    /// Identifies the caller: an id, not a name that another may get.
    pub caller: String,
    /// The request's path.
    pub path: String,
    /// The key, 1 to 255 characters.
    pub key: String,
    /// A hash of the request's body.
    pub fingerprint: String,
}
