//! [`ApiError`]: an error for the client, which each endpoint writes in its own JSON envelope. See docs/errors.md.

use std::fmt;

/// The kinds of errors, each with an HTTP status and the `type` of the standard envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400 `invalid_request_error`.
    InvalidRequest,
    /// 401 `authentication_error`.
    Authentication,
    /// 402 `payment_required`.
    PaymentRequired,
    /// 403 `permission_error`.
    Permission,
    /// 404 `not_found_error`.
    NotFound,
    /// 405 `invalid_request_error`.
    MethodNotAllowed,
    /// 409 `invalid_request_error`: an idempotency key reused, a finished task cancelled.
    Conflict,
    /// 410 `not_found_error`: an expired link.
    Gone,
    /// 413 `invalid_request_error`.
    TooLarge,
    /// 416 `invalid_request_error`: a range outside the file.
    RangeNotSatisfiable,
    /// 429 `rate_limit_error`.
    RateLimit,
    /// 500 `server_error`.
    Internal,
    /// 502 `bad_gateway`.
    BadGateway,
    /// 504 `bad_gateway`: the upstream timed out.
    GatewayTimeout,
    /// 503 `unavailable`: the server is overloaded.
    Unavailable,
}

impl ErrorKind {
    /// Every kind, by status.
    pub const ALL: [Self; 15] = [
        Self::InvalidRequest,
        Self::Authentication,
        Self::PaymentRequired,
        Self::Permission,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::Gone,
        Self::TooLarge,
        Self::RangeNotSatisfiable,
        Self::RateLimit,
        Self::Internal,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeout,
    ];

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::PaymentRequired => 402,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::TooLarge => 413,
            Self::RangeNotSatisfiable => 416,
            Self::RateLimit => 429,
            Self::Internal => 500,
            Self::BadGateway => 502,
            Self::GatewayTimeout => 504,
            Self::Unavailable => 503,
        }
    }

    /// The `type` of the standard envelope.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::InvalidRequest
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::TooLarge
            | Self::RangeNotSatisfiable => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::PaymentRequired => "payment_required",
            Self::Permission => "permission_error",
            Self::NotFound | Self::Gone => "not_found_error",
            Self::RateLimit => "rate_limit_error",
            Self::Internal => "server_error",
            Self::BadGateway | Self::GatewayTimeout => "bad_gateway",
            Self::Unavailable => "unavailable",
        }
    }
}

/// An error for the client. The message names the field, the value received and the values allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Determines the HTTP status and `type`.
    pub kind: ErrorKind,
    /// One sentence for a person; must not contain secrets or internals.
    pub message: String,
    /// Seconds after which to retry, for the header `retry-after`.
    pub retry_after: Option<u32>,
}

impl ApiError {
    /// An error of `kind` with `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// 400: the request is invalid; `message` names the field and the allowed values.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    /// 404. The message must be the same whether the object does not exist or belongs to another user.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// 500. The cause belongs in the log, not in the response.
    #[cold]
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "internal error")
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the tables of docs/errors.md, each as its cells.
    fn documented_rows() -> impl Iterator<Item = Vec<&'static str>> {
        let page = include_str!("../../../docs/errors.md");
        let section = page
            .split("\n## ")
            .find(|part| part.starts_with("Client API\n"));
        let rows = section.unwrap_or_default().lines();
        let rows = rows.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        rows.map(|row| row.split(" | ").collect())
    }

    #[test]
    fn every_kind_is_documented_with_cause_and_cure() {
        for kind in ErrorKind::ALL {
            let (status, name) = (kind.status().to_string(), format!("`{}`", kind.type_name()));
            let row = documented_rows().find(|row| row[..2] == [&status, &name]);
            let row = row.unwrap_or_else(|| panic!("{status} {name} is not in docs/errors.md"));
            assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()));
        }
        for row in documented_rows().filter(|row| row[0].parse::<u16>().is_ok()) {
            let kinds = ErrorKind::ALL.iter();
            let mut kinds = kinds.map(|k| (k.status().to_string(), format!("`{}`", k.type_name())));
            assert!(
                kinds.any(|(s, n)| row[..2] == [s, n]),
                "{row:?} does not exist"
            );
        }
    }
}
