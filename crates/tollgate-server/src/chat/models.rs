//! Lists of chat models that the SDKs of all three vendors read: one object satisfies them all.

use std::sync::Arc;

use axum::response::Response;
use http::Method;
use serde_json::{Value, json};
use tollgate_core::ApiError;

use super::refused::Refused;
use crate::access::Caller;
use crate::app::App;
use crate::http::reply;
use crate::relay::{Request, caller};

/// What is said of every model: the time of SPEC.md's own models is not known, and no SDK minds.
const CREATED_AT: &str = "2025-01-01T00:00:00Z";
const CREATED: i64 = 1_735_689_600;

/// Every chat model that some channel serves and the key may use, by name.
pub async fn list((app, request): (Arc<App>, Request)) -> Response {
    let mount = request.mount;
    let list = usable_by(&app, request).await.map(|names| listed(&names));
    list.map_or_else(
        |refused| refused.into_response(mount),
        |list| reply::json(&list),
    )
}

/// One of them.
pub async fn get((app, request): (Arc<App>, Request), name: &str) -> Response {
    let mount = request.mount;
    let entry = usable_by(&app, request)
        .await
        .and_then(|names| found(&names, name));
    entry.map_or_else(
        |refused| refused.into_response(mount),
        |entry| reply::json(&entry),
    )
}

fn listed(names: &[&str]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| entry(name)).collect();
    json!({
        "object": "list",
        "first_id": names.first(),
        "last_id": names.last(),
        "has_more": false,
        "models": data,
        "data": data,
    })
}

fn found(names: &[&str], name: &str) -> Result<Value, Refused> {
    if names.contains(&name) {
        return Ok(entry(name));
    }
    let shown: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
    let message = format!("model {shown:?} does not exist, or this API key may not use it");
    Err(Refused::model(ApiError::not_found(message)))
}

/// The models that whoever asks may use, by name.
async fn usable_by(app: &App, request: Request) -> Result<Vec<&str>, Refused> {
    let Request {
        headers,
        query_key,
        notes,
        ..
    } = request;
    let caller = caller(app, &headers, query_key.as_deref(), &notes, &Method::GET).await?;
    Ok(usable(app, &caller))
}

fn usable<'a>(app: &'a App, caller: &Caller) -> Vec<&'a str> {
    let live = app.routing();
    let may = |name: &&str| caller.may_use(name).is_ok() && live.channels.serves_chat(name);
    let mut names: Vec<&str> = app.catalogue.chat_models().filter(may).collect();
    names.sort_unstable();
    names
}

/// A model in the shapes of all three vendors at once.
pub fn entry(name: &str) -> Value {
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
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}
