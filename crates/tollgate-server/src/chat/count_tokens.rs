//! Counting the tokens of a prompt without sending it to an upstream: free of charge, by the gateway's own estimate.

use axum::response::Response;
use bytes::Bytes;
use http::Method;
use tollgate_chat::generate_content::{self, GenerateContent};
use tollgate_chat::{Format as _, InvalidRequest, hub, messages, tokens};

use crate::chat::context::ChatContext;
use crate::chat::error::ChatErrorResponse;
use crate::chat::request::{ChatRequest, authenticate};
use crate::http::body_memory::MAX_BODY_WITH_FILES;
use crate::http::{body, large_work, reply};

/// `count_tokens` of Anthropic's messages format.
pub async fn count_messages(context: &ChatContext, request: ChatRequest) -> Response {
    let endpoint = request.endpoint;
    let counted = count(context, request, None, messages::read_count_request).await;
    counted.map_or_else(
        |error| error.into_response(endpoint),
        |tokens| reply::json_text(messages::write_count_response(tokens)),
    )
}

/// `countTokens` of Gemini's generateContent format; the path names the model.
pub async fn count_contents(context: &ChatContext, request: ChatRequest, model: &str) -> Response {
    let endpoint = request.endpoint;
    let counted = count(context, request, Some(model), read_contents).await;
    counted.map_or_else(
        |error| error.into_response(endpoint),
        |tokens| reply::json_text(generate_content::write_count_response(tokens)),
    )
}

async fn count(
    context: &ChatContext,
    request: ChatRequest,
    model_in_path: Option<&str>,
    read: fn(&[u8]) -> Result<hub::Request, InvalidRequest>,
) -> Result<u64, ChatErrorResponse> {
    let (headers, query_key) = (&request.headers, request.query_key.as_deref());
    let caller = authenticate(context, headers, query_key, &request.notes, &Method::POST).await?;
    let budget = context.body_budget.of_user(&caller.key.user_id);
    let body = body::read_bytes(headers, request.body, MAX_BODY_WITH_FILES, budget).await?;
    let (bytes, size) = (&body.bytes, body.bytes.len());
    let conversation = large_work::run_in_place(size, || read(bytes))?;
    let model = model_in_path.unwrap_or(&conversation.model);
    let reloadable = context.reloadable.current();
    let known = reloadable.catalogue.check_chat_model(model);
    known.map_err(ChatErrorResponse::invalid_model)?;
    caller.check_may_use(reloadable.catalogue.names(model))?;
    Ok(large_work::run_in_place(size, || {
        tokens::estimate_request(&conversation)
    }))
}

fn read_contents(body: &[u8]) -> Result<hub::Request, InvalidRequest> {
    let body = generate_content::extract_counted_request(&Bytes::copy_from_slice(body))?;
    GenerateContent.read_request(&body)
}
