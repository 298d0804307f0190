//! Quotes (docs/pricing.md): what a request would be held for, found by the functions that a submission goes through. A quote
//! moves no money, stores nothing, and calls no provider.

mod chat;
mod endpoint;
mod result;
mod task;

use http::HeaderMap;
use serde_json::Value;

pub use endpoint::QuotedEndpoint;
pub use result::{Quote, QuoteError};
pub use task::unit_name;

use crate::auth::caller::Caller;
use crate::state::App;

/// What a quote is made for.
pub struct QuoteRequest<'a> {
    /// The path that the request would be sent to, as the client wrote it.
    pub path: &'a str,
    /// The request's body.
    pub request: &'a Value,
    /// The size of the text that the body came in, in bytes.
    pub body_bytes: usize,
    /// The headers of the request for the quote; those that change a submission count.
    pub headers: &'a HeaderMap,
    /// Who would send it. `None` for an admin, who may use every model.
    pub caller: Option<&'a Caller>,
}

/// Makes a quote.
///
/// # Errors
/// Those of the endpoint for an invalid request; 400 for a path that is no endpoint with a price.
pub async fn quote(app: &App, request: &QuoteRequest<'_>) -> Result<Quote, QuoteError> {
    match QuotedEndpoint::from_path(request.path)? {
        QuotedEndpoint::Task(endpoint) => task::quote(&app.tasks, endpoint, request)
            .await
            .map_err(QuoteError::Task),
        QuotedEndpoint::Chat(endpoint, model_in_path) => {
            let quoted = chat::quote(&app.chat, endpoint, model_in_path.as_deref(), request);
            quoted
                .await
                .map_err(|error| QuoteError::Chat(Box::new(error), endpoint))
        }
    }
}
