//! The chat endpoints: which format, which place, which model the path names. The rest is the relay's.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request};
use percent_encoding::percent_decode_str;
use tollgate_chat::generate_content::path::{self, Call, Method};
use tollgate_core::ApiError;

use crate::app::App;
use crate::chat::mount::{self, Mount};
use crate::chat::refused::Refused;
use crate::chat::{count, models};
use crate::http::reply::Failure;
use crate::http::trace::{RequestId, RequestNotes};
use crate::relay::{Request, relay};

/// What every handler here gets of a request.
pub struct Parts {
    app: Arc<App>,
    request_id: RequestId,
    notes: RequestNotes,
    uri: Uri,
    headers: HeaderMap,
}

impl FromRequestParts<Arc<App>> for Parts {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut request::Parts,
        app: &Arc<App>,
    ) -> Result<Self, Failure> {
        let request_id = parts.extensions.get().cloned();
        Ok(Self {
            app: Arc::clone(app),
            request_id: request_id.ok_or_else(ApiError::internal)?,
            notes: parts.extensions.get().cloned().unwrap_or_default(),
            uri: parts.uri.clone(),
            headers: std::mem::take(&mut parts.headers),
        })
    }
}

/// `POST /v1/messages/count_tokens`.
pub async fn count_messages(parts: Parts, body: Body) -> Response {
    count::messages(request(mount::SPEC_MESSAGES, parts, body)).await
}

/// `POST /anthropic/v1/messages/count_tokens`.
pub async fn bare_count_messages(parts: Parts, body: Body) -> Response {
    count::messages(request(mount::BARE_MESSAGES, parts, body)).await
}

/// `POST /v1beta/models/<model>:<method>`.
pub async fn generate(parts: Parts, body: Body) -> Response {
    in_path(mount::SPEC_GENERATE, parts, body).await
}

/// `POST /gemini/v1beta/models/<model>:<method>`, `/gemini/v1/models/<model>:<method>`.
pub async fn bare_generate(parts: Parts, body: Body) -> Response {
    in_path(mount::BARE_GENERATE, parts, body).await
}

/// `GET …/models` of the mounts and `/v1beta/models`.
pub async fn list_models(parts: Parts) -> Response {
    let mount = mount::of_path(parts.uri.path()).unwrap_or(mount::BARE_CHAT);
    models::list(request(mount, parts, Body::empty())).await
}

/// `GET …/models/<model>` of the mounts and `/v1beta/models/<model>`.
pub async fn get_model(parts: Parts) -> Response {
    let mount = mount::of_path(parts.uri.path()).unwrap_or(mount::BARE_CHAT);
    let name = parts.uri.path().split_once("/models/");
    let name = name.map_or("", |(_, name)| name);
    let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
    models::get(request(mount, parts, Body::empty()), &name).await
}

/// `OPTIONS` on a chat path: the preflight of a browser, without a key.
pub async fn preflight(headers: HeaderMap) -> Response {
    // The SDKs send a dozen headers of their own: what is asked for is allowed.
    let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let asked = asked.unwrap_or(HeaderValue::from_static("authorization, content-type"));
    let allowed = [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, OPTIONS"),
        ),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, asked),
        (
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("86400"),
        ),
    ];
    (StatusCode::NO_CONTENT, allowed).into_response()
}

/// A chat whose body names the model.
pub async fn in_body(mount: Mount, parts: Parts, body: Body) -> Response {
    let (app, request) = request(mount, parts, body);
    relay(app, request).await
}

async fn in_path(mount: Mount, parts: Parts, body: Body) -> Response {
    let uri = parts.uri.clone();
    let (app, mut request) = request(mount, parts, body);
    let named = uri
        .path()
        .split_once("/models/")
        .map_or("", |(_, named)| named);
    let Call { model, method } = match path::parse(named) {
        Ok(call) => call,
        Err(no) => {
            let refused = Refused::from(ApiError::not_found(no.to_string()));
            return refused.into_response(mount);
        }
    };
    let stream = match method {
        Method::Generate => false,
        Method::Stream => true,
        Method::Count => return count::contents((app, request), &model).await,
    };
    // SPEC.md's path streams events in any case; the vendor's own API sends a JSON array unless asked for events.
    let sse = mount::query(&uri, "alt").is_some_and(|alt| alt == "sse");
    request.json_array = stream && mount.gemini && !sse;
    request.path = Some((model, stream));
    relay(app, request).await
}

fn request(mount: Mount, parts: Parts, body: Body) -> (Arc<App>, Request) {
    let Parts {
        app,
        request_id,
        notes,
        uri,
        headers,
    } = parts;
    let query_key = mount.gemini.then(|| mount::query(&uri, "key")).flatten();
    let request = Request {
        mount,
        path: None,
        json_array: false,
        query_key: query_key.map(std::borrow::Cow::into_owned),
        headers,
        request_id,
        notes,
        body,
    };
    (app, request)
}
