//! JSON request bodies: limited in size, nesting depth, time and memory before they are parsed.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tollgate_core::{ApiError, ErrorKind};

use super::body_memory::{BodyMemory, UserBudget};
use super::body_pace::BodyPace;
use super::{json_size, large_work};
use crate::spawn::spawn_detached;

/// Largest JSON body, in bytes, of endpoints that accept no data URIs: 1 MB.
pub const MAX_SMALL_BODY: usize = 1_048_576;
/// The first bytes of gzip.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// Bodies up to this many bytes do not count against the memory budget: even thousands of them need little memory.
const UNCOUNTED: usize = 64 * 1024;
/// Bodies whose parsed form is up to this many bytes do not count either.
const UNCOUNTED_TREE: usize = 256 * 1024;
/// How much of a rejected body is still read, and for how long, so that a client which sends everything before it reads receives the response. The
/// bytes are dropped at once and need no memory.
const MAX_DRAINED: usize = 128 * 1_048_576;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A parsed JSON body, with its share of the memory budget.
pub struct JsonBody {
    /// The parsed body.
    pub value: Value,
    /// Size in bytes of the body that was read.
    pub bytes: usize,
    _memory: BodyMemory,
}

impl JsonBody {
    /// A body that was converted to JSON, with its size and its share of the memory budget.
    pub(super) fn new(value: Value, bytes: usize, memory: BodyMemory) -> Self {
        Self {
            value,
            bytes,
            _memory: memory,
        }
    }
}

/// The bytes of a JSON body, not parsed, with their share of the memory budget.
pub struct JsonBytes {
    /// UTF-8 text nested no deeper than allowed; not yet known to be valid JSON.
    pub bytes: Bytes,
    memory: BodyMemory,
}

/// Reads and parses a JSON body of at most `limit` bytes. A missing content type means JSON.
///
/// # Errors
/// 400 for another content type, invalid UTF-8 or JSON, nesting that is too deep, too many values, or a body that is sent too slowly; 413 over the
/// limit; 503 if the memory budget is used up.
pub async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: UserBudget<'_>,
) -> Result<JsonBody, ApiError> {
    let JsonBytes { bytes, memory } = read_bytes(headers, body, limit, budget).await?;
    let size = bytes.len();
    let value = large_work::run(size, move || serde_json::from_slice(&bytes)).await?;
    let value = value.map_err(|e| ApiError::invalid(format!("the body must be JSON: {e}")))?;
    Ok(JsonBody::new(value, size, memory))
}

/// Reads the bytes of a JSON body without parsing them.
///
/// # Errors
/// Those of [`read_json`], except for invalid JSON.
pub async fn read_bytes(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: UserBudget<'_>,
) -> Result<JsonBytes, ApiError> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    let size_check = if declared.is_some_and(|n| n > limit) {
        Err(too_large(limit))
    } else {
        Ok(())
    };
    let checked = check_content_encoding(headers).and(check_content_type(headers));
    if let Err(error) = checked.and(size_check) {
        drain_unread(headers, body);
        return Err(error);
    }
    let mut memory = BodyMemory::default();
    let bytes = collect_body(body, limit, declared, &mut memory, budget).await?;
    let text = bytes.clone();
    let size = large_work::run(bytes.len(), move || check_text(&text)).await??;
    let needed = bytes.len() + size.tree_bytes();
    if needed > UNCOUNTED_TREE {
        memory.grow_to(needed, budget).await?;
    }
    Ok(JsonBytes { bytes, memory })
}

/// Checks that a body is text, and that its parsed form is within the limits.
fn check_text(bytes: &[u8]) -> Result<json_size::JsonSize, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        if bytes.starts_with(GZIP_MAGIC) {
            return ApiError::invalid("the body must be JSON text, got gzip: send it uncompressed");
        }
        ApiError::invalid(format!(
            "the body must be UTF-8: it is not at byte {}",
            e.valid_up_to()
        ))
    })?;
    json_size::count_values(text)
}

/// Reads and drops the body of a request to an endpoint that needs none, of at most `limit` bytes. A body that breaks off or is sent too slowly is
/// no error.
///
/// # Errors
/// 413 over the limit.
pub async fn skip(headers: &HeaderMap, mut body: Body, limit: usize) -> Result<(), ApiError> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    let mut len = declared.unwrap_or(0);
    if len <= limit {
        len = 0;
        let mut pace = BodyPace::start();
        while let Ok(Some(Ok(frame))) = pace.wait(body.frame()).await {
            let data = frame.data_ref().map_or(0, Bytes::len);
            pace.add(data);
            len += data;
            if len > limit {
                break;
            }
        }
    }
    if len <= limit {
        return Ok(());
    }
    drain_unread(headers, body);
    Err(too_large(limit))
}

/// Rejects a compressed body with 400.
pub(super) fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else {
        return Ok(());
    };
    let encoding = String::from_utf8_lossy(value.as_bytes());
    let encoding = encoding.trim();
    if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let shown: String = encoding.chars().take(80).collect();
    Err(ApiError::invalid(format!(
        "`Content-Encoding` must be absent or identity, got {shown:?}: send the body uncompressed"
    )))
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    if value == "application/json" {
        return Ok(());
    }
    let essence = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let lower = essence.to_ascii_lowercase();
    if lower == "application/json"
        || (lower.starts_with("application/") && lower.ends_with("+json"))
    {
        return Ok(());
    }
    let shown: String = essence.chars().take(80).collect();
    Err(ApiError::invalid(format!(
        "`Content-Type` must be application/json, got {shown:?}"
    )))
}

/// Reads a body of at most `limit` bytes. Memory of the budget is acquired as bytes are received, up to twice their number. The buffer is allocated
/// with the declared size: pages that were not written to use no memory, and a growing buffer would be copied several times.
async fn collect_body(
    mut body: Body,
    limit: usize,
    declared: Option<usize>,
    memory: &mut BodyMemory,
    budget: UserBudget<'_>,
) -> Result<Bytes, ApiError> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut pace = BodyPace::start();
    let (mut len, mut planned) = (0, UNCOUNTED);
    loop {
        let frame = pace.wait(body.frame()).await;
        let Some(frame) = frame.map_err(|e| ApiError::invalid(e.to_string()))? else {
            break;
        };
        let frame = frame.map_err(|_| ApiError::invalid("the body broke off before its end"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        pace.add(data.len());
        len += data.len();
        if len > limit {
            drain(body);
            return Err(too_large(limit));
        }
        if len > planned {
            planned = (2 * len).min(declared.unwrap_or(limit).max(len));
            memory.grow_to(planned, budget).await?;
        }
        // Most bodies are one frame: no copy.
        match &first {
            None => first = Some(data),
            Some(head) => {
                if rest.is_empty() {
                    rest.extend_from_slice(head);
                }
                if rest.capacity() < len {
                    let capacity = declared.unwrap_or(planned.min(limit)).max(len);
                    rest.reserve(capacity - rest.len());
                }
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(if rest.is_empty() {
        first.unwrap_or_default()
    } else {
        rest.freeze()
    })
}

fn too_large(limit: usize) -> ApiError {
    let message = format!(
        "the body must be at most {limit} bytes ({} MB)",
        limit / 1_048_576
    );
    ApiError::new(ErrorKind::TooLarge, message)
}

/// Reads and drops the rest of a rejected body, up to 128 MB and for at most 10 s: otherwise a client that is still sending would see a reset
/// connection instead of the response.
///
/// The response does not wait for this: it is sent while the client is still sending.
pub fn drain(mut body: Body) {
    let reading = async move {
        let mut left = MAX_DRAINED;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(len) {
                Some(n) => left = n,
                None => return,
            }
        }
    };
    // If the body is too slow or too long, the connection is closed, and the client may or may not receive the response.
    spawn_detached(async move {
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
    });
}

/// Drains a body of which nothing was read, unless the client waits for `100 Continue`: then it has sent nothing yet.
pub fn drain_unread(headers: &HeaderMap, body: Body) {
    let waits = headers
        .get(header::EXPECT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if !waits {
        drain(body);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::super::body_memory::{BodyBudget, MAX_BODY_WITH_FILES};
    use super::*;

    async fn post_body(
        content_type: Option<&str>,
        body: impl Into<Body>,
        limit: usize,
    ) -> Result<Value, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        }
        let budget = BodyBudget::new(1);
        let read = read_json(&headers, body.into(), limit, budget.of_user("ada"));
        read.await.map(|b| b.value)
    }

    #[tokio::test]
    async fn every_json_content_type_is_accepted_and_no_other() {
        for content_type in [
            None,
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
            Some("application/merge+json"),
        ] {
            let value = post_body(content_type, r#"{"a":1}"#, 100).await.unwrap();
            assert_eq!(value["a"], 1);
        }
        for content_type in ["text/plain", "multipart/form-data; boundary=x", "", "json"] {
            let error = post_body(Some(content_type), "{}", 100).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{content_type}");
            assert!(error.message.contains("Content-Type"), "{}", error.message);
        }
    }

    #[tokio::test]
    async fn invalid_json_invalid_utf8_and_deep_nesting_are_rejected() {
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        for (body, message) in [
            (&b"{\"a\":\"\xff\"}"[..], "UTF-8"),
            (b"{", "JSON"),
            (b"", "JSON"),
            (b"{} {}", "JSON"),
            (deep.as_bytes(), "nested"),
        ] {
            let error = post_body(None, body.to_vec(), 1000).await.unwrap_err();
            assert!(error.message.contains(message), "{}", error.message);
        }
    }

    #[tokio::test]
    async fn the_size_limit_is_exact_with_and_without_content_length() {
        for (length, is_accepted) in [(1000, true), (1001, false)] {
            let text = format!("\"{}\"", "x".repeat(length - 2));
            let pieces = text.as_bytes().chunks(7);
            let pieces: Vec<_> = pieces
                .map(|c| Ok::<_, std::io::Error>(c.to_vec()))
                .collect();
            let streamed = Body::from_stream(futures_util::stream::iter(pieces));
            for body in [Body::from(text), streamed] {
                let error = post_body(None, body, 1000).await.err();
                let expected = (!is_accepted).then_some(ErrorKind::TooLarge);
                assert_eq!(error.map(|error| error.kind), expected, "{length}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn memory_follows_the_bytes_that_arrive_not_the_declared_size() {
        let budget = BodyBudget::new(1);
        let ada = budget.of_user("ada");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, MAX_BODY_WITH_FILES.into());
        let stalled = || {
            let piece = Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 100_000]));
            let never = futures_util::stream::pending();
            let pieces = futures_util::stream::iter([piece]).chain(never);
            read_json(
                &headers,
                Body::from_stream(pieces),
                MAX_BODY_WITH_FILES,
                ada,
            )
        };
        // The declared sizes add up to thirty times the budget.
        let waiting = futures_util::future::join_all((0..64).map(|_| stalled()));
        let honest = async {
            tokio::task::yield_now().await;
            let text = format!("\"{}\"", "x".repeat(10_000_000));
            read_json(&HeaderMap::new(), text.into(), MAX_BODY_WITH_FILES, ada).await
        };
        let (waited, honest) = tokio::join!(waiting, honest);
        assert!(honest.is_ok());
        for waited in waited {
            let error = waited.err().unwrap();
            assert!(error.message.contains("30 seconds"), "{}", error.message);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_tree_of_a_body_counts_before_it_is_built() {
        let budget = BodyBudget::new(1);
        let ada = budget.of_user("ada");
        let text = format!("[{}]", vec!["{}"; 80_000].join(","));
        let headers = HeaderMap::new();
        let read = || read_bytes(&headers, Body::from(text.clone()), 1_000_000, ada);
        let held = [read().await.unwrap(), read().await.unwrap()];
        let error = read().await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{}", error.message);
        drop(held);
        assert!(read().await.is_ok());
    }
}
