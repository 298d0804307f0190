//! A quote, and why there is none.

use serde_json::{Value, json};
use tollgate_config::Currency;
use tollgate_core::{Amount, ApiError};

use crate::chat::endpoint::Endpoint as ChatEndpoint;
use crate::chat::error::ChatErrorResponse;

/// What a request would be held for.
pub struct Quote {
    /// The model as the request names it.
    pub model: String,
    /// The request as it is understood, with every default.
    pub job: Value,
    /// Request values that would be changed or ignored.
    pub adjustments: Value,
    /// What is counted: `image`, `second`, `video`, `character` or `token`.
    pub unit: &'static str,
    /// How many of them.
    pub units: u64,
    /// The price of one unit. `None` if units have several prices, or none that can be written with nine decimals.
    pub price: Option<Amount>,
    /// What would be held.
    pub total: Amount,
    /// Whether a complete result costs exactly this; else it costs at most this.
    pub exact: bool,
    /// The channels that serve the model.
    pub channels: Vec<String>,
    /// Whether one of them takes requests now.
    pub available: bool,
}

impl Quote {
    /// The quote of a request to `path`, without what only one of the two APIs has.
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

/// Why there is no quote.
pub enum QuoteError {
    /// A member of the body is not possible.
    Field {
        /// The member.
        field: &'static str,
        /// What it must be.
        message: String,
    },
    /// The error of a task's endpoint.
    Task(ApiError),
    /// The error of a chat's endpoint.
    Chat(Box<ChatErrorResponse>, ChatEndpoint),
}
