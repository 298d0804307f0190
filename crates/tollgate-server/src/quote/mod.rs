//! Quotes (docs/pricing.md): the amount that a request would hold, computed by the functions that a submission uses. A quote moves no money, stores
//! nothing, and calls no provider.

mod chat;
mod endpoint;
mod request;
mod result;
mod task;

pub use endpoint::QuotedEndpoint;
pub use request::QuoteRequest;
pub use result::{Quote, QuoteError};
pub use task::unit_name;

use crate::chat::context::ChatContext;
use crate::tasks::context::TaskContext;

/// Returns the quote of a request.
///
/// # Errors
/// Those of the endpoint for an invalid request; 400 if the path is not one of an endpoint with a price.
pub async fn quote(
    tasks: &TaskContext,
    chat: &ChatContext,
    request: &QuoteRequest<'_>,
) -> Result<Quote, QuoteError> {
    match QuotedEndpoint::from_path(request.path)? {
        QuotedEndpoint::Task(endpoint) => task::quote(tasks, endpoint, request)
            .await
            .map_err(QuoteError::Task),
        QuotedEndpoint::Chat(endpoint, model_in_path) => {
            let quoted = chat::quote(chat, endpoint, model_in_path.as_deref(), request);
            quoted
                .await
                .map_err(|error| QuoteError::Chat(Box::new(error), endpoint))
        }
    }
}
