//! Serves `/docs`: the documentation as a web site.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tollgate_core::ApiError;
use tollgate_docs::{decompress, find_asset, find_page};
use tollgate_server::http::reply::ErrorResponse;
use tollgate_server::http::request_id::RequestId;
use tollgate_server::routes::erased_handler::get;
use tollgate_server::routes::fallback::unknown_path;
use tollgate_server::routes::files::is_not_modified;
use tollgate_server::state::App;

use crate::console::{PAGE_HEADERS, asset_headers, header_contains};

const HOME: &str = "";
const API: &str = "api";

/// The routes of the pages that are not in the OpenAPI document, and of the files that the pages load.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/docs/", get(|| redirect("/docs".to_owned())))
        .route("/docs/{*page}", get(page))
        .route("/docs/assets/{name}", get(asset))
}

/// `GET /docs`: the start page.
pub(super) async fn home(
    uri: Uri,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
) -> Response {
    write_page(HOME, uri, request_id, &headers).await
}

/// `GET /docs/api`: the page of the API reference.
pub(super) async fn api(
    uri: Uri,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
) -> Response {
    write_page(API, uri, request_id, &headers).await
}

/// `GET /docs/{*page}`. A path with the file name of the page's source (`tasks.md`) or with a slash at its end redirects to the page.
async fn page(
    uri: Uri,
    request_id: Extension<RequestId>,
    Path(page): Path<String>,
    headers: HeaderMap,
) -> Response {
    let address = page.trim_end_matches('/');
    let address = address.strip_suffix(".md").unwrap_or(address);
    let address = address.strip_suffix("/README").unwrap_or(address);
    if address != page && find_page(address).is_some() {
        return redirect(format!("/docs/{address}")).await;
    }
    write_page(&page, uri, request_id, &headers).await
}

async fn redirect(to: String) -> Response {
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response()
}

async fn write_page(
    address: &str,
    uri: Uri,
    request_id: Extension<RequestId>,
    headers: &HeaderMap,
) -> Response {
    let Some(page) = find_page(address) else {
        return unknown_path(uri, request_id).await;
    };
    let version = [(header::ETAG, page.etag), (header::VARY, "accept-encoding")];
    if is_not_modified(headers, page.etag) {
        return (StatusCode::NOT_MODIFIED, PAGE_HEADERS, version).into_response();
    }
    let content_type = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let body = write_body(page.gzip, headers);
    (PAGE_HEADERS, version, content_type, body).into_response()
}

/// `GET /docs/assets/{name}`: a file that the pages load.
async fn asset(
    uri: Uri,
    request_id: Extension<RequestId>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = find_asset(&name) else {
        return unknown_path(uri, request_id).await;
    };
    let body = write_body(asset.gzip, &headers);
    (asset_headers(asset.content_type), body).into_response()
}

/// Returns the gzip text unchanged to clients that accept gzip, decompressed to others.
fn write_body(gzip: &'static [u8], headers: &HeaderMap) -> Response {
    if header_contains(headers, &header::ACCEPT_ENCODING, "gzip") {
        let encoding: [(HeaderName, &str); 1] = [(header::CONTENT_ENCODING, "gzip")];
        return (encoding, gzip).into_response();
    }
    match decompress(gzip) {
        Ok(text) => text.into_response(),
        Err(error) => {
            tracing::error!(%error, "an embedded page of the documentation is damaged");
            ErrorResponse::from(ApiError::internal()).into_response()
        }
    }
}
