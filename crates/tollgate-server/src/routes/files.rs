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

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
enum FilePart {
    All,
    /// Both ends inclusive.
    Bytes {
        first: u64,
        last: u64,
    },
    OutOfRange,
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

/// Parses a `Range`. An invalid one, and several ranges at once, mean the complete file (RFC 9110, 14.2).
fn parse_range(range: &str, len: u64) -> FilePart {
    let Some((unit, range)) = range.split_once('=') else {
        return FilePart::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return FilePart::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return FilePart::All;
    }
    let end = len.saturating_sub(1);
    match (parse_position(first), parse_position(last)) {
        (Some(first), Some(last)) if first > last => FilePart::All,
        (Some(first), _) if first >= len && is_range_end(last) => FilePart::OutOfRange,
        (Some(first), Some(last)) => FilePart::Bytes {
            first,
            last: last.min(end),
        },
        (Some(first), None) if last.is_empty() => FilePart::Bytes { first, last: end },
        (None, Some(count)) if first.is_empty() => match count.min(len) {
            0 => FilePart::OutOfRange,
            count => FilePart::Bytes {
                first: len - count,
                last: end,
            },
        },
        _ => FilePart::All,
    }
}

fn is_range_end(text: &str) -> bool {
    text.is_empty() || parse_position(text).is_some()
}

/// A number that consists of digits only; a number that is too large becomes the largest.
fn parse_position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use tollgate_core::id;

    const NOW: Millis = 1_700_000_000_000;

    #[test]
    fn ranges_are_parsed_as_in_rfc_9110() {
        let bytes = |first, last| FilePart::Bytes { first, last };
        for (range, part) in [
            ("bytes=0-0", bytes(0, 0)),
            ("bytes=2-5", bytes(2, 5)),
            ("Bytes = 2-5", bytes(2, 5)),
            ("bytes=2-", bytes(2, 9)),
            ("bytes=2-99999999999999999999999", bytes(2, 9)),
            ("bytes=-3", bytes(7, 9)),
            ("bytes=-30", bytes(0, 9)),
            ("bytes=9-9", bytes(9, 9)),
            ("bytes=10-", FilePart::OutOfRange),
            ("bytes=10-20", FilePart::OutOfRange),
            ("bytes=99999999999999999999999-", FilePart::OutOfRange),
            ("bytes=-0", FilePart::OutOfRange),
            ("bytes=5-2", FilePart::All),
            ("bytes=0-1,3-4", FilePart::All),
            ("bytes=-", FilePart::All),
            ("bytes=a-b", FilePart::All),
            ("bytes=+1-2", FilePart::All),
            ("bytes=20-x", FilePart::All),
            ("bytes", FilePart::All),
            ("lines=1-2", FilePart::All),
            ("", FilePart::All),
        ] {
            assert_eq!(parse_range(range, 10), part, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), FilePart::OutOfRange);
        assert_eq!(parse_range("bytes=-1", 0), FilePart::OutOfRange);
    }

    struct Fixture {
        storage: FileStorage,
        root: PathBuf,
        name: String,
    }

    impl Fixture {
        /// A storage with one file of ten bytes that expires an hour after [`NOW`].
        async fn new() -> Self {
            let root = std::env::temp_dir().join(id::short_id("tollgate-files-"));
            let storage = FileStorage::open(&root, "https://gate.example").unwrap();
            let expires_at = NOW / 1000 + 3600;
            let mut file = storage
                .create(Visibility::Public, expires_at, "png")
                .await
                .unwrap();
            file.write(b"0123456789").await.unwrap();
            let name = file.finish().await.unwrap();
            Self {
                storage,
                root,
                name,
            }
        }

        /// Status, headers and body of the response at `now`.
        async fn get(
            &self,
            name: &str,
            headers: &[(HeaderName, &str)],
            now: Millis,
        ) -> (u16, HeaderMap, String) {
            let own = |(name, value): &(HeaderName, &str)| (name.clone(), value.parse().unwrap());
            let headers = headers.iter().map(own).collect();
            let request = FileRequest {
                name,
                is_get: true,
                headers: &headers,
            };
            let response = serve(&self.storage, &request, now).await;
            let (head, body) = response
                .unwrap_or_else(ErrorResponse::into_response)
                .into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            (head.status.as_u16(), head.headers, body)
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[tokio::test]
    async fn a_file_is_sent_completely_or_in_ranges() {
        let fixture = Fixture::new().await;
        let tag = format!("\"{}\"", fixture.name);
        let (status, headers, body) = fixture.get(&fixture.name, &[], NOW).await;
        assert_eq!((status, body.as_str()), (200, "0123456789"));
        for (header, value) in [
            ("content-type", "image/png"),
            ("content-length", "10"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "private, max-age=3600, immutable"),
            ("accept-ranges", "bytes"),
            ("etag", &tag),
        ] {
            assert_eq!(headers[header], value, "{header}");
        }

        let part = (header::RANGE, "bytes=2-4");
        let (status, headers, body) = fixture
            .get(&fixture.name, std::slice::from_ref(&part), NOW)
            .await;
        assert_eq!((status, body.as_str()), (206, "234"));
        assert_eq!(headers["content-range"], "bytes 2-4/10");
        assert_eq!(headers["content-length"], "3");

        let same = (header::IF_RANGE, tag.as_str());
        let other = (header::IF_RANGE, "\"other\"");
        assert_eq!(
            fixture
                .get(&fixture.name, &[part.clone(), same], NOW)
                .await
                .0,
            206
        );
        assert_eq!(
            fixture.get(&fixture.name, &[part, other], NOW).await.2,
            "0123456789"
        );

        let far = (header::RANGE, "bytes=10-");
        let (status, headers, body) = fixture.get(&fixture.name, &[far], NOW).await;
        assert_eq!(
            (status, &headers["content-range"]),
            (416, &HeaderValue::from_static("bytes */10"))
        );
        assert!(body.contains("invalid_request_error"), "{body}");

        let known = format!("\"x\", W/{tag}");
        let known = (header::IF_NONE_MATCH, known.as_str());
        let (status, headers, body) = fixture.get(&fixture.name, &[known], NOW).await;
        assert_eq!((status, body.as_str()), (304, ""));
        assert!(headers.contains_key("etag") && !headers.contains_key("content-type"));
    }

    #[tokio::test]
    async fn an_invalid_or_missing_name_is_404_and_an_expired_one_410() {
        let fixture = Fixture::new().await;
        std::fs::write(fixture.root.join("secret.png"), "secret").unwrap();
        for name in [
            "",
            "x.png",
            "../secret.png",
            "..%2fsecret.png",
            "/etc/passwd",
            "a\0.png",
        ] {
            assert_eq!(fixture.get(name, &[], NOW).await.0, 404, "{name}");
        }
        let (status, _, body) = fixture.get(&fixture.name, &[], NOW + 3_600_000).await;
        assert_eq!(status, 410, "though the file is still there");
        assert!(body.contains("\"code\":410"), "{body}");
        fixture
            .storage
            .delete(Visibility::Public, &fixture.name)
            .await;
        assert_eq!(fixture.get(&fixture.name, &[], NOW).await.0, 404);
    }
}
