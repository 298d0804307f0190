//! A quote, and the errors of quoting.

use serde_json::{Value, json};
use tollgate_config::Currency;
use tollgate_core::{Amount, ApiError};

use crate::chat::endpoint::Endpoint as ChatEndpoint;
use crate::chat::error::ChatErrorResponse;

/// The amount that a request would hold.
pub struct Quote {
    /// The model as the request names it.
    pub model: String,
    /// The parsed request, with every default.
    pub job: Value,
    /// Request values that would be changed or ignored.
    pub adjustments: Value,
    /// The unit: `image`, `second`, `video`, `character` or `token`.
    pub unit: &'static str,
    /// The number of units.
    pub units: u64,
    /// The price of one unit. `None` if units have several prices, or one with more than nine decimals.
    pub price: Option<Amount>,
    /// The amount that would be held.
    pub total: Amount,
    /// Whether a complete result costs exactly this amount; else it is the highest cost.
    pub exact: bool,
    /// The channels that serve the model.
    pub channels: Vec<String>,
    /// Whether one of these channels accepts requests now.
    pub available: bool,
}

impl Quote {
    /// The quote of a request to `path` as JSON, with the members that both APIs have.
    pub fn to_json(&self, path: &str, currency: Currency) -> Value {
        json!({
            "endpoint": path,
            "model": self.model,
            "job": self.job,
            "adjustments": self.adjustments,
            "unit": self.unit,
            "units": self.units,
            "price": self.price.map(|price| price.to_string()),
            "total": self.total.to_string(),
            "exact": self.exact,
            "currency": currency.to_string(),
        })
    }
}

/// Why a request cannot be quoted.
pub enum QuoteError {
    /// A member of the body is invalid.
    Field {
        /// The name of the member.
        field: &'static str,
        /// What is allowed.
        message: String,
    },
    /// The error of a task's endpoint.
    Task(ApiError),
    /// The error of a chat's endpoint.
    Chat(Box<ChatErrorResponse>, ChatEndpoint),
}
