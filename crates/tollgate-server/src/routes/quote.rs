//! `POST /v1/quote`: the amount that a request of the caller would hold.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde_json::Value;
use tollgate_core::ApiError;

use crate::auth::caller::Caller;
use crate::http::body;
use crate::http::body_memory::MAX_BODY_WITH_FILES;
use crate::http::reply::{self, ErrorResponse};
use crate::quote::{QuoteError, QuoteRequest, quote};
use crate::state::App;

/// `POST /v1/quote`. Errors of the quoted request have the format of its own endpoint.
pub async fn create(
    app: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let budget = app.body_budget.of_user(&caller.key.user_id);
    let body = body::read_json(&headers, body, MAX_BODY_WITH_FILES, budget).await?;
    let (path, request) = parse_body(&body.value)?;
    let request = QuoteRequest {
        path,
        request,
        body_bytes: body.bytes,
        headers: &headers,
        caller: Some(&caller),
    };
    match quote(&app.tasks, &app.chat, &request).await {
        Ok(quote) => {
            let mut value = quote.to_json(path, app.config.currency);
            value["available"] = quote.available.into();
            Ok(reply::json(&value))
        }
        Err(QuoteError::Field { field, message }) => {
            Err(ApiError::invalid(format!("`{field}` {message}")).into())
        }
        Err(QuoteError::Task(error)) => Err(error.into()),
        Err(QuoteError::Chat(error, endpoint)) => Ok(error.into_response(endpoint)),
    }
}

/// Parses the members `endpoint` and `request`.
fn parse_body(body: &Value) -> Result<(&str, &Value), ApiError> {
    let members = body.as_object();
    let members = members.ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    if let Some(name) = members
        .keys()
        .find(|n| !["endpoint", "request"].contains(&n.as_str()))
    {
        let message = format!("`{name}` is not a field of a quote; there are: endpoint, request");
        return Err(ApiError::invalid(message));
    }
    let path = members.get("endpoint").and_then(Value::as_str);
    let path = path.ok_or_else(|| {
        ApiError::invalid("`endpoint` must be a path, such as /v1/images/generations")
    })?;
    let request = members.get("request").filter(|request| request.is_object());
    let request = request.ok_or_else(|| {
        ApiError::invalid("`request` must be an object: the body for the endpoint")
    })?;
    Ok((path, request))
}
