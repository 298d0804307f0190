//! Lists of chat models: one JSON object that the SDKs of OpenAI, Anthropic and Google can all read.

use axum::response::Response;
use http::Method;
use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::chat::context::ChatContext;
use crate::chat::error::ChatErrorResponse;
use crate::chat::request::{ChatRequest, authenticate};
use crate::http::reply;
use crate::reloadable::Reloadable;

/// The creation time of every model: the actual times are not known, and no SDK checks them.
const CREATED_AT: &str = "2025-01-01T00:00:00Z";
const CREATED: i64 = 1_735_689_600;

/// Every chat model that some channel serves and the key may use, by name.
pub async fn list(context: &ChatContext, request: ChatRequest) -> Response {
    let endpoint = request.endpoint;
    let reloadable = context.reloadable.current();
    let names = usable_models(context, &reloadable, request).await;
    names.map_or_else(
        |error| error.into_response(endpoint),
        |names| reply::json(&list_response(&names)),
    )
}

/// One chat model.
pub async fn get(context: &ChatContext, request: ChatRequest, name: &str) -> Response {
    let endpoint = request.endpoint;
    let reloadable = context.reloadable.current();
    let known_as = reloadable.catalogue.names(name).first;
    let entry = usable_models(context, &reloadable, request)
        .await
        .and_then(|names| find(&names, known_as, name));
    entry.map_or_else(
        |error| error.into_response(endpoint),
        |entry| reply::json(&entry),
    )
}

fn list_response(names: &[&str]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| model_entry(name)).collect();
    json!({
        "object": "list",
        "first_id": names.first(),
        "last_id": names.last(),
        "has_more": false,
        "models": data,
        "data": data,
    })
}

/// The entry of `name`, or of a model that `name` is an alias of.
fn find(names: &[&str], known_as: &str, name: &str) -> Result<Value, ChatErrorResponse> {
    if names.contains(&name) || names.contains(&known_as) {
        return Ok(model_entry(name));
    }
    let shown: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
    let message = format!("model {shown:?} does not exist, or this API key may not use it");
    Err(ChatErrorResponse::invalid_model(ApiError::not_found(
        message,
    )))
}

/// The chat models that the caller may use, by name.
async fn usable_models<'a>(
    context: &ChatContext,
    reloadable: &'a Reloadable,
    request: ChatRequest,
) -> Result<Vec<&'a str>, ChatErrorResponse> {
    let query_key = request.query_key.as_deref();
    let (headers, notes) = (&request.headers, &request.notes);
    let caller = authenticate(context, headers, query_key, notes, &Method::GET).await?;
    let (catalogue, routing) = (&reloadable.catalogue, &reloadable.routing);
    let is_usable = |name: &&str| {
        let names = catalogue.names(name);
        caller.check_may_use(names).is_ok() && routing.serves_chat(routing.name_of(names))
    };
    let mut names: Vec<&str> = catalogue.chat_models().filter(is_usable).collect();
    names.sort_unstable();
    Ok(names)
}

/// A model as a JSON object with the fields of all three vendors.
pub fn model_entry(name: &str) -> Value {
    json!({
        "id": name,
        "object": "model",
        "created": CREATED,
        "owned_by": "tollgate",
        "type": "model",
        "display_name": name,
        "created_at": CREATED_AT,
        "name": format!("models/{name}"),
        "displayName": name,
        // The gateway does not know the limits of every model: all have these.
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}
