//! `GET /files/NAME`: results and uploads for everybody who knows the name, whole or in part, until they expire.

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

use crate::app::App;
use crate::blobs::{Blobs, Naming, Shelf, media_type, naming};
use crate::http::reply::Failure;

/// What is read at once: one trip to the disk per piece, and no more of a file in memory.
const PIECE: usize = 128 * 1024;

/// The same on every answer that has a file: a browser shows it and does nothing else with it.
const HARMLESS: [(HeaderName, HeaderValue); 4] = [
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
) -> Result<Response, Failure> {
    // A path that is no UTF-8 names no file.
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let asked = Asked {
        name: &name,
        is_get: method == Method::GET,
        headers: &headers,
    };
    serve(&app.blobs, &asked, app.clock.now()).await
}

/// Sends the file of that name, as [`get`] does.
///
/// # Errors
/// 404, 410 or 416.
pub async fn send(
    app: &App,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let asked = Asked {
        name,
        is_get: *method == Method::GET,
        headers,
    };
    serve(&app.blobs, &asked, app.clock.now()).await
}

/// What a client wants of a file.
struct Asked<'a> {
    name: &'a str,
    is_get: bool,
    headers: &'a HeaderMap,
}

async fn serve(blobs: &Blobs, asked: &Asked<'_>, now: Millis) -> Result<Response, Failure> {
    let name = asked.name;
    let missing = || Failure::from(ApiError::not_found("there is no such file"));
    let expires_at = match naming(name, now) {
        Naming::Foreign => return Err(missing()),
        Naming::Expired => {
            return Err(ApiError::new(ErrorKind::Gone, "this link has expired").into());
        }
        Naming::Until(expires_at) => expires_at,
    };
    let path = blobs.path(Shelf::Public, name, now).ok_or_else(missing)?;
    let (file, len) = match open(path).await {
        Ok(opened) => opened,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(missing()),
        Err(e) => {
            tracing::error!(error = %e, "cannot read a stored file");
            return Err(ApiError::internal().into());
        }
    };
    let tag = format!("\"{name}\"");
    let part = part(asked, &tag, len);
    let mut response = if is_known(asked.headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match part {
            Part::Whole => content(file, 0, len).await?,
            Part::Bytes { first, last } => {
                let mut response = content(file, first, last - first + 1).await?;
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                let range = format!("bytes {first}-{last}/{len}");
                insert(&mut response, header::CONTENT_RANGE, &range);
                response
            }
            Part::Outside => return Ok(outside(len)),
        }
    };
    describe(&mut response, name, &tag, expires_at - now / 1000);
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
async fn content(mut file: File, first: u64, len: u64) -> Result<Response, Failure> {
    if first > 0 {
        let sought = file.seek(SeekFrom::Start(first)).await;
        sought.map_err(|e| {
            tracing::error!(error = %e, "cannot read a stored file");
            ApiError::internal()
        })?;
    }
    let piece = usize::try_from(len).unwrap_or(PIECE).clamp(1, PIECE);
    let body = Body::from_stream(ReaderStream::with_capacity(file.take(len), piece));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, len.into());
    Ok(response)
}

/// 416 says how long the file is.
fn outside(len: u64) -> Response {
    let message = format!("the range is outside of the file, which has {len} bytes");
    let failure = Failure::from(ApiError::new(ErrorKind::RangeNotSatisfiable, message));
    let mut response = failure.into_response();
    insert(
        &mut response,
        header::CONTENT_RANGE,
        &format!("bytes */{len}"),
    );
    response
}

/// What caches and browsers should know. A file never changes under its name.
fn describe(response: &mut Response, name: &str, tag: &str, seconds_left: i64) {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let cache = format!("private, max-age={}, immutable", seconds_left.max(0));
    insert(response, header::CACHE_CONTROL, &cache);
    insert(response, header::ETAG, tag);
    if response.status() != StatusCode::NOT_MODIFIED {
        let media_type = media_type(extension).unwrap_or("application/octet-stream");
        insert(response, header::CONTENT_TYPE, media_type);
        let disposition = format!("inline; filename=\"{name}\"");
        insert(response, header::CONTENT_DISPOSITION, &disposition);
    }
    response.headers_mut().extend(HARMLESS);
}

/// Everything that goes through here is made of checked names and numbers.
fn insert(response: &mut Response, header: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(header, value);
    }
}

/// Whether the client has the file already (`If-None-Match`).
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let mut lists = headers.get_all(header::IF_NONE_MATCH).iter();
    lists.any(|list| {
        let mut tags = list.to_str().unwrap_or_default().split(',').map(str::trim);
        tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    })
}

/// Which part of a file.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// Both ends count.
    Bytes {
        first: u64,
        last: u64,
    },
    Outside,
}

/// The part that is asked for. An `If-Range` that does not name this file asks for the whole.
fn part(asked: &Asked<'_>, tag: &str, len: u64) -> Part {
    let range = asked
        .headers
        .get(header::RANGE)
        .and_then(|v| v.to_str().ok());
    let condition = asked.headers.get(header::IF_RANGE);
    let holds = condition.is_none_or(|condition| condition.as_bytes() == tag.as_bytes());
    match range {
        Some(range) if asked.is_get && holds => parse_range(range, len),
        _ => Part::Whole,
    }
}

/// Reads a `Range`. What is none, and several ranges at once, mean the whole file (RFC 9110, 14.2).
fn parse_range(range: &str, len: u64) -> Part {
    let Some((unit, range)) = range.split_once('=') else {
        return Part::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Part::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Part::Whole;
    }
    let end = len.saturating_sub(1);
    match (position(first), position(last)) {
        (Some(first), Some(last)) if first > last => Part::Whole,
        (Some(first), _) if first >= len && is_end(last) => Part::Outside,
        (Some(first), Some(last)) => Part::Bytes {
            first,
            last: last.min(end),
        },
        (Some(first), None) if last.is_empty() => Part::Bytes { first, last: end },
        (None, Some(count)) if first.is_empty() => match count.min(len) {
            0 => Part::Outside,
            count => Part::Bytes {
                first: len - count,
                last: end,
            },
        },
        _ => Part::Whole,
    }
}

fn is_end(text: &str) -> bool {
    text.is_empty() || position(text).is_some()
}

/// A number of digits alone; one that is too large is as good as the largest.
fn position(text: &str) -> Option<u64> {
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
    fn ranges_are_read_as_rfc_9110_says() {
        let bytes = |first, last| Part::Bytes { first, last };
        for (range, part) in [
            ("bytes=0-0", bytes(0, 0)),
            ("bytes=2-5", bytes(2, 5)),
            ("Bytes = 2-5", bytes(2, 5)),
            ("bytes=2-", bytes(2, 9)),
            ("bytes=2-99999999999999999999999", bytes(2, 9)),
            ("bytes=-3", bytes(7, 9)),
            ("bytes=-30", bytes(0, 9)),
            ("bytes=9-9", bytes(9, 9)),
            ("bytes=10-", Part::Outside),
            ("bytes=10-20", Part::Outside),
            ("bytes=99999999999999999999999-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=20-x", Part::Whole),
            ("bytes", Part::Whole),
            ("lines=1-2", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(parse_range(range, 10), part, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Part::Outside);
        assert_eq!(parse_range("bytes=-1", 0), Part::Outside);
    }

    struct Site {
        blobs: Blobs,
        root: PathBuf,
        name: String,
    }

    impl Site {
        /// A folder with one file of ten bytes that expires an hour after [`NOW`].
        async fn new() -> Self {
            let root = std::env::temp_dir().join(id::short_id("tollgate-files-"));
            let blobs = Blobs::open(&root).unwrap();
            let expires_at = NOW / 1000 + 3600;
            let mut file = blobs
                .create(Shelf::Public, expires_at, "png")
                .await
                .unwrap();
            file.write(b"0123456789").await.unwrap();
            let name = file.finish().await.unwrap();
            Self { blobs, root, name }
        }

        /// Status, headers and body of an answer at `now`.
        async fn ask(
            &self,
            name: &str,
            headers: &[(HeaderName, &str)],
            now: Millis,
        ) -> (u16, HeaderMap, String) {
            let own = |(name, value): &(HeaderName, &str)| (name.clone(), value.parse().unwrap());
            let headers = headers.iter().map(own).collect();
            let asked = Asked {
                name,
                is_get: true,
                headers: &headers,
            };
            let answer = serve(&self.blobs, &asked, now).await;
            let (head, body) = answer.unwrap_or_else(Failure::into_response).into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            (head.status.as_u16(), head.headers, body)
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[tokio::test]
    async fn a_file_comes_whole_or_in_part() {
        let site = Site::new().await;
        let tag = format!("\"{}\"", site.name);
        let (status, headers, body) = site.ask(&site.name, &[], NOW).await;
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
        let (status, headers, body) = site.ask(&site.name, std::slice::from_ref(&part), NOW).await;
        assert_eq!((status, body.as_str()), (206, "234"));
        assert_eq!(headers["content-range"], "bytes 2-4/10");
        assert_eq!(headers["content-length"], "3");

        let same = (header::IF_RANGE, tag.as_str());
        let other = (header::IF_RANGE, "\"other\"");
        assert_eq!(
            site.ask(&site.name, &[part.clone(), same], NOW).await.0,
            206
        );
        assert_eq!(
            site.ask(&site.name, &[part, other], NOW).await.2,
            "0123456789"
        );

        let far = (header::RANGE, "bytes=10-");
        let (status, headers, body) = site.ask(&site.name, &[far], NOW).await;
        assert_eq!(
            (status, &headers["content-range"]),
            (416, &HeaderValue::from_static("bytes */10"))
        );
        assert!(body.contains("invalid_request_error"), "{body}");

        let known = format!("\"x\", W/{tag}");
        let known = (header::IF_NONE_MATCH, known.as_str());
        let (status, headers, body) = site.ask(&site.name, &[known], NOW).await;
        assert_eq!((status, body.as_str()), (304, ""));
        assert!(headers.contains_key("etag") && !headers.contains_key("content-type"));
    }

    #[tokio::test]
    async fn names_that_are_none_missing_or_expired_are_told_apart() {
        let site = Site::new().await;
        std::fs::write(site.root.join("secret.png"), "secret").unwrap();
        for name in [
            "",
            "x.png",
            "../secret.png",
            "..%2fsecret.png",
            "/etc/passwd",
            "a\0.png",
        ] {
            assert_eq!(site.ask(name, &[], NOW).await.0, 404, "{name}");
        }
        let (status, _, body) = site.ask(&site.name, &[], NOW + 3_600_000).await;
        assert_eq!(status, 410, "though the file is still there");
        assert!(body.contains("\"code\":410"), "{body}");
        site.blobs.delete(Shelf::Public, &site.name).await;
        assert_eq!(site.ask(&site.name, &[], NOW).await.0, 404);
    }
}
