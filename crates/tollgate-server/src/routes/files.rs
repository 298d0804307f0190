//! `GET /files/NAME`: results and uploads, for everybody who knows the name, complete or in ranges, until they expire.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tollgate_core::{ApiError, ErrorKind, Millis};
use tollgate_storage::file_name::{self, NameStatus};
use tollgate_storage::files::{Access, FileStorage, OpenFile, Visibility};

use crate::http::errors;
use crate::http::range::{FilePart, parse_range};
use crate::http::reply::ErrorResponse;
use crate::state::App;

/// Headers of every file: browsers display it, and run no scripts in it.
const SAFETY_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    ),
    (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
];

/// `GET` and `HEAD /files/NAME`.
pub async fn get(
    app: State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    // A path that is not UTF-8 names no file.
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let request = FileRequest {
        name: &name,
        is_get: method == Method::GET,
        headers: &headers,
    };
    serve(&app.files, &request, app.clock.now()).await
}

/// The response with the file of that name, as [`get`] returns it.
///
/// # Errors
/// 404, 410 or 416; 503 if the storage cannot be read.
pub async fn send(
    app: &App,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ErrorResponse> {
    let request = FileRequest {
        name,
        is_get: *method == Method::GET,
        headers,
    };
    serve(&app.files, &request, app.clock.now()).await
}

/// A request for a file.
struct FileRequest<'a> {
    name: &'a str,
    is_get: bool,
    headers: &'a HeaderMap,
}

async fn serve(
    storage: &FileStorage,
    request: &FileRequest<'_>,
    now: Millis,
) -> Result<Response, ErrorResponse> {
    let name = request.name;
    let expires_at = match file_name::parse(name, now) {
        NameStatus::Invalid => return Err(missing()),
        NameStatus::Expired => {
            return Err(ApiError::new(ErrorKind::Gone, "this link has expired").into());
        }
        NameStatus::Valid { expires_at } => expires_at,
    };
    let headers = request.headers;
    let is_complete = request.is_get
        && !storage.redirects()
        && !headers.contains_key(header::RANGE)
        && !headers.contains_key(header::IF_NONE_MATCH);
    let access = match is_complete {
        true => Access::Complete,
        false => Access::Partial,
    };
    let opened = storage
        .open_file(Visibility::Public, name, access, now)
        .await;
    let file = opened.map_err(read_error)?;
    let seconds_left = expires_at - now / 1000;
    let link = storage.redirect_link(name, request.is_get, seconds_left);
    if let Some(link) = link.map_err(read_error)? {
        return Ok(redirect(&link));
    }
    let len = file.bytes();
    let tag = format!("\"{name}\"");
    let part = requested_part(request, &tag, len);
    let mut response = if is_not_modified(request.headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if !request.is_get {
        with_length(Body::empty(), len)
    } else {
        match part {
            FilePart::All => content(file, 0, len).await?,
            FilePart::Bytes { first, last } => {
                let mut response = content(file, first, last - first + 1).await?;
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                let range = format!("bytes {first}-{last}/{len}");
                insert(&mut response, header::CONTENT_RANGE, &range);
                response
            }
            FilePart::OutOfRange => return Ok(range_not_satisfiable(len)),
        }
    };
    add_headers(&mut response, name, &tag, seconds_left);
    Ok(response)
}

/// The response 200 with `len` bytes from `first` on.
async fn content(file: OpenFile, first: u64, len: u64) -> Result<Response, ErrorResponse> {
    let stream = file.into_stream(first, len).await.map_err(read_error)?;
    let body = Body::from_stream(stream);
    Ok(with_length(body, len))
}

/// The response 302 to a link that is valid for minutes.
fn redirect(link: &str) -> Response {
    let mut response = StatusCode::FOUND.into_response();
    insert(&mut response, header::LOCATION, link);
    insert(&mut response, header::CACHE_CONTROL, "no-store");
    response.headers_mut().extend(SAFETY_HEADERS);
    response
}

fn with_length(body: Body, len: u64) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, len.into());
    response
}

/// The error for a file that cannot be read: 404 if it does not exist.
fn read_error(error: io::Error) -> ErrorResponse {
    if error.kind() == io::ErrorKind::NotFound {
        return missing();
    }
    tracing::error!(%error, "cannot read a stored file");
    errors::from_storage().into()
}

fn missing() -> ErrorResponse {
    ApiError::not_found("there is no such file").into()
}

/// The response 416 with the file's length.
fn range_not_satisfiable(len: u64) -> Response {
    let message = format!("the range is outside of the file, which has {len} bytes");
    let error = ErrorResponse::from(ApiError::new(ErrorKind::RangeNotSatisfiable, message));
    let mut response = error.into_response();
    insert(
        &mut response,
        header::CONTENT_RANGE,
        &format!("bytes */{len}"),
    );
    response
}

/// Adds headers for caches and browsers. The content of a file with a given name never changes.
fn add_headers(response: &mut Response, name: &str, tag: &str, seconds_left: i64) {
    let cache = format!("private, max-age={}, immutable", seconds_left.max(0));
    insert(response, header::CACHE_CONTROL, &cache);
    insert(response, header::ETAG, tag);
    if response.status() != StatusCode::NOT_MODIFIED {
        let media_type = file_name::media_type_of(name);
        insert(response, header::CONTENT_TYPE, media_type);
        let disposition = format!("inline; filename=\"{name}\"");
        insert(response, header::CONTENT_DISPOSITION, &disposition);
    }
    response.headers_mut().extend(SAFETY_HEADERS);
}

/// Inserts a header; the values here consist of checked names and numbers and are always valid.
fn insert(response: &mut Response, header: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(header, value);
    }
}

/// Whether the client already has the file (`If-None-Match`).
pub fn is_not_modified(headers: &HeaderMap, tag: &str) -> bool {
    let mut lists = headers.get_all(header::IF_NONE_MATCH).iter();
    lists.any(|list| {
        let mut tags = list.to_str().unwrap_or_default().split(',').map(str::trim);
        tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    })
}

/// The requested part. An `If-Range` with another entity tag requests the complete file.
fn requested_part(request: &FileRequest<'_>, tag: &str, len: u64) -> FilePart {
    let range = request
        .headers
        .get(header::RANGE)
        .and_then(|v| v.to_str().ok());
    let condition = request.headers.get(header::IF_RANGE);
    let is_same_file = condition.is_none_or(|condition| condition.as_bytes() == tag.as_bytes());
    match range {
        Some(range) if request.is_get && is_same_file => parse_range(range, len),
        _ => FilePart::All,
    }
}
