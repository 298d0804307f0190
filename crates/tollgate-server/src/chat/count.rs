//! Counting a prompt's tokens without sending it: free, and by our own count.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::Method;
use tollgate_chat::generate_content::{self, GenerateContent};
use tollgate_chat::{Bad, Format as _, hub, tokens};

use super::refused::Refused;
use crate::app::App;
use crate::http::{body, reply};
use crate::relay::{Request, caller};

/// `count_tokens` of the messages format.
pub async fn messages((app, request): (Arc<App>, Request)) -> Response {
    let mount = request.mount;
    let counted = count(&app, request, None, tollgate_chat::messages::read_count).await;
    counted.map_or_else(
        |refused| refused.into_response(mount),
        |tokens| reply::json_text(tollgate_chat::messages::count_reply(tokens)),
    )
}

/// `countTokens` of the generative-content format.
pub async fn contents((app, request): (Arc<App>, Request), model: &str) -> Response {
    let mount = request.mount;
    let counted = count(&app, request, Some(model), read_contents).await;
    counted.map_or_else(
        |refused| refused.into_response(mount),
        |tokens| reply::json_text(generate_content::count_reply(tokens)),
    )
}

async fn count(
    app: &Arc<App>,
    request: Request,
    named: Option<&str>,
    read: fn(&[u8]) -> Result<hub::Request, Bad>,
) -> Result<u64, Refused> {
    let caller = caller(
        app,
        &request.headers,
        request.query_key.as_deref(),
        &request.notes,
        &Method::POST,
    )
    .await?;
    let body = body::read_bytes(
        &request.headers,
        request.body,
        body::DATA_URI_LIMIT,
        &app.body_budget,
    )
    .await?;
    let conversation = read(&body.bytes)?;
    let model = named.unwrap_or(&conversation.model);
    app.catalogue.chat(model).map_err(Refused::model)?;
    caller.may_use(model)?;
    Ok(tokens::of_request(&conversation))
}

fn read_contents(body: &[u8]) -> Result<hub::Request, Bad> {
    let body = generate_content::count_request(&Bytes::copy_from_slice(body))?;
    GenerateContent.read_request(&body)
}
