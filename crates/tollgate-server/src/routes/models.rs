//! `GET /v1/models`: the models that the calling key may use, as OpenAI's list object, and one of them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;
use tollgate_core::ApiError;

use crate::auth::caller::Caller;
use crate::chat::models::model_entry;
use crate::http::reply::{self, ErrorResponse};
use crate::state::App;

/// Lists the models that some channel serves and the key may use, by name.
pub async fn list(app: State<Arc<App>>, caller: Caller) -> Response {
    let reloadable = app.reloadable.current();
    let mut names = reloadable.served_models();
    names.retain(|name| {
        caller
            .check_may_use(reloadable.catalogue.names(name))
            .is_ok()
    });
    names.sort_unstable();
    let data: Vec<_> = names
        .into_iter()
        .map(|id| json!({ "id": id, "object": "model", "created": 0, "owned_by": "tollgate" }))
        .collect();
    reply::json(&json!({ "object": "list", "data": data }))
}

/// `GET /v1/models/<id>`: one of these models.
pub async fn get(
    app: State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    let reloadable = app.reloadable.current();
    let names = reloadable.served_models();
    let is_usable = caller
        .check_may_use(reloadable.catalogue.names(&id))
        .is_ok();
    let known_as = reloadable.catalogue.names(&id).first;
    if is_usable && (names.contains(&id.as_str()) || names.contains(&known_as)) {
        return Ok(reply::json(&model_entry(&id)));
    }
    let shown: String = id.chars().filter(|c| !c.is_control()).take(128).collect();
    let message = format!("model {shown:?} does not exist, or this API key may not use it");
    Err(ApiError::not_found(message).into())
}
