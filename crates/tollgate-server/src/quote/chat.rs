//! The quote of a chat: its highest cost, which is held if the account has a limit.

use bytes::Bytes;
use serde_json::json;

use super::request::QuoteRequest;
use super::result::Quote;
use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::priced_request::{PricedRequest, UnpricedRequest};
use crate::http::large_work;

/// Runs steps 2 to 4 of a chat, as for an account with a limit. The size of the body is that of JSON without spaces between its tokens.
pub(super) async fn quote(
    context: &ChatContext,
    endpoint: Endpoint,
    model_in_path: Option<&str>,
    request: &QuoteRequest<'_>,
) -> Result<Quote, ChatErrorResponse> {
    let size = request.body_bytes;
    let body = large_work::run_in_place(size, || Bytes::from(request.request.to_string()));
    let summarize = || endpoint.format.summarize_request(&body);
    let summary = large_work::run_in_place(size, summarize)?;
    let named = summary.model.clone().unwrap_or_default();
    let model = model_in_path.map_or(named, str::to_owned);
    if let Some(caller) = request.caller {
        let user_id = &caller.key.user_id;
        context.fetch_stored(user_id, &summary).await?;
    }
    let reloadable = context.reloadable.current();
    let unpriced = UnpricedRequest {
        endpoint,
        headers: request.headers,
        body: &body,
        model: &model,
        caller: request.caller,
        has_limit: true,
    };
    let priced = PricedRequest::new(context, &reloadable, &unpriced, summary)?;
    let (tokens, total) = priced.held()?;
    let output = priced.bounds.held_output();
    let user_id = request.caller.map_or("", |caller| &caller.key.user_id);
    let routing = &reloadable.routing;
    Ok(Quote {
        job: json!({
            "model": model,
            "estimated_input_tokens": priced.bounds.estimated_prompt,
            "max_input_tokens": tokens.total().saturating_sub(output),
            "max_output_tokens": output,
        }),
        model,
        adjustments: json!([]),
        unit: "token",
        units: tokens.total(),
        price: None,
        total,
        exact: false,
        channels: routing.names_of_chat_channels(&priced.channel_model),
        available: routing.is_ready_for_chat(&priced.channel_model, user_id),
    })
}
