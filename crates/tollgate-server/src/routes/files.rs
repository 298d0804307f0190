//! `GET /files/NAME`: results and uploads, for everybody who knows the name, complete or in ranges, until they expire.

use std::io::{self, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;
use tollgate_core::{ApiError, ErrorKind, Millis};

use crate::http::range::{FilePart, parse_range};
use crate::http::reply::ErrorResponse;
use crate::state::App;
use crate::storage::file_name::{self, NameStatus};
use crate::storage::files::{FileStorage, Visibility};

/// Bytes that are read at once: no more of a file is in memory.
const CHUNK: usize = 128 * 1024;

/// Headers of every file: a browser displays it, and runs no scripts in it.
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

/// The response with the file of that name, as [`get`] gives it.
///
/// # Errors
/// 404, 410 or 416.
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
    let missing = || ErrorResponse::from(ApiError::not_found("there is no such file"));
    let expires_at = match file_name::parse(name, now) {
        NameStatus::Invalid => return Err(missing()),
        NameStatus::Expired => {
            return Err(ApiError::new(ErrorKind::Gone, "this link has expired").into());
        }
        NameStatus::Valid { expires_at } => expires_at,
    };
    let path = storage
        .path(Visibility::Public, name, now)
        .ok_or_else(missing)?;
    let (file, len) = match open(path).await {
        Ok(opened) => opened,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(missing()),
        Err(e) => {
            tracing::error!(error = %e, "cannot read a stored file");
            return Err(ApiError::internal().into());
        }
    };
    let tag = format!("\"{name}\"");
    let part = requested_part(request, &tag, len);
    let mut response = if is_not_modified(request.headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
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
    add_headers(&mut response, name, &tag, expires_at - now / 1000);
    Ok(response)
}

async fn open(path: PathBuf) -> io::Result<(File, u64)> {
    let opened = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path)?;
        let len = file.metadata()?.len();
        Ok::<_, io::Error>((file, len))
    });
    let (file, len) = opened.await.map_err(io::Error::other)??;
    Ok((File::from_std(file), len))
}

/// 200 with `len` bytes from `first` on.
async fn content(mut file: File, first: u64, len: u64) -> Result<Response, ErrorResponse> {
    if first > 0 {
        let sought = file.seek(SeekFrom::Start(first)).await;
        sought.map_err(|e| {
            tracing::error!(error = %e, "cannot read a stored file");
            ApiError::internal()
        })?;
    }
    let piece = usize::try_from(len).unwrap_or(CHUNK).clamp(1, CHUNK);
    let body = Body::from_stream(ReaderStream::with_capacity(file.take(len), piece));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, len.into());
    Ok(response)
}

/// 416 with the file's length.
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

/// Adds the headers for caches and browsers. A file never changes under its name.
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

/// Whether the client has the file already (`If-None-Match`).
fn is_not_modified(headers: &HeaderMap, tag: &str) -> bool {
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
