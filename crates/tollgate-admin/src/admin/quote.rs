//! `POST /quote`: the amount that a request would hold, and the channels that would serve it.

use http::Method;
use serde_json::Value;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::quote::{self, QuoteError, QuoteRequest};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::POST,
    path: "/quote",
    access: Access::Scope(Scope::PricesRead),
    summary: "The amount that would be held for a request, and the channels that serve it. Nothing is held or charged.",
    query: &[],
    body: Some("quote_request"),
    returns: Returns::Object("quote", 200),
    handler: handler!(create),
}];

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let path = fields.required("endpoint", fields::parse_text)?;
    let request = fields.required("request", object)?;
    fields.finish(&[])?;
    let request = QuoteRequest {
        path: &path,
        request: &request,
        body_bytes: call.body.as_ref().map_or(0, |body| body.len()),
        headers: &call.headers,
        caller: None,
    };
    let app = &call.app;
    let quote = quote::quote(&app.tasks, &app.chat, &request).await;
    let quote = quote.map_err(to_error)?;
    let mut value = quote.to_json(&path, call.app.config.currency);
    value["channels"] = quote.channels.into();
    Ok(Reply::json(value))
}

fn object(name: &str, value: &Value) -> Result<Value, AdminError> {
    match value {
        Value::Object(_) => Ok(value.clone()),
        _ => Err(AdminError::invalid(
            name,
            "must be an object: the body for the endpoint",
        )),
    }
}

fn to_error(error: QuoteError) -> AdminError {
    match error {
        QuoteError::Field { field, message } => AdminError::invalid(field, message),
        QuoteError::Task(error) => {
            AdminError::with_status(error.kind.status(), error.message).at("request")
        }
        QuoteError::Chat(error, endpoint) => {
            let body = error.to_body(endpoint);
            let field = body.param.map(|param| format!("request.{param}"));
            let field = field.unwrap_or_else(|| "request".to_owned());
            AdminError::with_status(body.status, body.message).at(field)
        }
    }
}
