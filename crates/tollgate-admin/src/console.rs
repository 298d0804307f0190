//! Serves `/console/` and `/portal/`: one HTML page for both, and the files that it loads.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tollgate_console::{CONTENT_SECURITY_POLICY, PAGE, find_asset};
use tollgate_server::http::request_id::RequestId;
use tollgate_server::listener_role::ListenerRole;
use tollgate_server::routes::erased_handler::{erase, get};
use tollgate_server::routes::fallback::unknown_path;
use tollgate_server::state::App;

/// A year in seconds. A file may be cached this long because its name changes with its contents.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const CONSOLE: &str = "/console/";
const PORTAL: &str = "/portal/";

/// The routes of the files that the pages of console and portal load, on every listener.
pub(super) fn assets() -> Router<Arc<App>> {
    Router::new().route("/console/assets/{name}", get(asset))
}

/// The routes of the console, on a gateway whose public URL for clients is `public_url`.
pub(super) fn console_pages(role: ListenerRole, public_url: &str) -> Router<Arc<App>> {
    let text = page_text(role, public_url);
    let page = move || page(text.clone());
    Router::new()
        .route("/", get(root).fallback(erase(unknown_path)))
        .route("/console", get(|| redirect(CONSOLE)))
        .route(CONSOLE, get(page.clone()))
        .route("/console/{*page}", get(page))
}

/// The routes of the portal.
pub(super) fn portal_pages(role: ListenerRole, public_url: &str) -> Router<Arc<App>> {
    let text = page_text(role, public_url);
    let page = move || page(text.clone());
    Router::new()
        .route("/portal", get(|| redirect(PORTAL)))
        .route(PORTAL, get(page.clone()))
        .route("/portal/{*page}", get(page))
}

/// Returns the HTML page of a listener. Its `<meta>` tag states where the pages are that this listener does not serve.
fn page_text(role: ListenerRole, public_url: &str) -> Bytes {
    let meta = match role {
        ListenerRole::Everybody => return Bytes::from_static(PAGE.as_bytes()),
        ListenerRole::Clients => {
            "<meta name=\"tollgate-console\" content=\"elsewhere\">".to_owned()
        }
        ListenerRole::Operators => {
            let url = public_url.replace('&', "&amp;").replace('"', "&quot;");
            format!("<meta name=\"tollgate-clients\" content=\"{url}\">")
        }
    };
    PAGE.replacen("<head>", &format!("<head>\n  {meta}"), 1)
        .into()
}

/// `GET /`: redirects browsers to the console; other clients get the error for an unknown path.
async fn root(uri: Uri, request_id: Extension<RequestId>, headers: HeaderMap) -> Response {
    if header_contains(&headers, &header::ACCEPT, "text/html") {
        redirect(CONSOLE).await
    } else {
        unknown_path(uri, request_id).await
    }
}

async fn redirect(to: &'static str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// Headers of every page: what the page may load and which sites may show it in a frame.
pub(super) const PAGE_HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::CACHE_CONTROL, "no-cache"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Headers of a file that a page loads, whose name changes with its contents.
pub(super) fn asset_headers(content_type: &'static str) -> [(HeaderName, &'static str); 4] {
    [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, IMMUTABLE),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::VARY, "accept-encoding"),
    ]
}

async fn page(text: Bytes) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (PAGE_HEADERS, content_type, text).into_response()
}

/// `GET /console/assets/{name}`.
async fn asset(
    uri: Uri,
    request_id: Extension<RequestId>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = find_asset(&name) else {
        return unknown_path(uri, request_id).await;
    };
    let common = asset_headers(asset.content_type);
    if header_contains(&headers, &header::ACCEPT_ENCODING, "gzip") {
        let encoding = [(header::CONTENT_ENCODING, "gzip")];
        (common, encoding, asset.gzip).into_response()
    } else {
        (common, asset.bytes).into_response()
    }
}

/// Whether the value of the header `name` contains `part`.
pub(super) fn header_contains(headers: &HeaderMap, name: &HeaderName, part: &str) -> bool {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.contains(part))
}
