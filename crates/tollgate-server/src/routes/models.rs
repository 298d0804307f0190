//! `GET /v1/models`: what this key may use, in OpenAI's list shape.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::access::Caller;
use crate::app::App;
use crate::http::reply;

/// Lists the models that some channel serves and the key may use, by name.
pub async fn list(app: State<Arc<App>>, caller: Caller) -> Response {
    let live = app.routing();
    let mut names = live.served(&app.catalogue);
    names.retain(|name| caller.may_use(name).is_ok());
    names.sort_unstable();
    let data: Vec<_> = names
        .into_iter()
        .map(|id| json!({ "id": id, "object": "model", "created": 0, "owned_by": "tollgate" }))
        .collect();
    reply::json(&json!({ "object": "list", "data": data }))
}
