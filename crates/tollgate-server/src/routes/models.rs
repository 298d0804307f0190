//! `GET /v1/models`: the models that the calling key may use, as OpenAI's list object.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::auth::caller::Caller;
use crate::http::reply;
use crate::state::App;

/// Lists the models that some channel serves and the key may use, by name.
pub async fn list(app: State<Arc<App>>, caller: Caller) -> Response {
    let reloadable = app.reloadable.current();
    let mut names = reloadable.served_models(&app.catalogue);
    names.retain(|name| caller.check_may_use(name).is_ok());
    names.sort_unstable();
    let data: Vec<_> = names
        .into_iter()
        .map(|id| json!({ "id": id, "object": "model", "created": 0, "owned_by": "tollgate" }))
        .collect();
    reply::json(&json!({ "object": "list", "data": data }))
}
