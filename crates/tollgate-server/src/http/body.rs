//! JSON request bodies: bounded in size, nesting depth, time and memory before they are parsed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollgate_core::{ApiError, ErrorKind};

/// Largest JSON body, in bytes, of endpoints that accept data URIs: 64 MB.
pub const MAX_BODY_WITH_FILES: usize = 64 * 1_048_576;
/// Largest JSON body, in bytes, of all other endpoints: 1 MB.
pub const MAX_SMALL_BODY: usize = 1_048_576;
/// The first bytes of gzip.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// Deepest nesting of arrays and objects.
const MAX_DEPTH: usize = 64;
/// How long a body may deliver no byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Bodies up to this many bytes do not count against the memory budget: even thousands of them are little.
const UNCOUNTED: usize = 64 * 1024;
/// Bytes that one permit of the memory budget stands for.
const BYTES_PER_PERMIT: usize = 64 * 1024;
/// How long a large body waits for its share of the memory budget.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of a rejected body is still read, and for how long, so that a client that sends everything before it reads
/// sees the response. The bytes are dropped at once: this costs no memory.
const MAX_DRAINED: usize = 128 * 1_048_576;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The memory budget of large bodies in flight, shared by the process.
#[derive(Clone)]
pub struct BodyBudget {
    permits: Arc<Semaphore>,
}

impl BodyBudget {
    /// A budget of `megabytes` (of 1048576 bytes), at least one body of [`MAX_BODY_WITH_FILES`].
    pub fn new(megabytes: usize) -> Self {
        let bytes = (megabytes * 1_048_576).max(MAX_BODY_WITH_FILES);
        Self {
            permits: Arc::new(Semaphore::new(bytes / BYTES_PER_PERMIT)),
        }
    }

    /// Takes that many bytes of the budget, after a wait of up to [`MEMORY_TIMEOUT`].
    ///
    /// # Errors
    /// 503 if the budget is still used up then.
    pub(super) async fn acquire(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let permits = u32::try_from(bytes.div_ceil(BYTES_PER_PERMIT)).unwrap_or(u32::MAX);
        let acquired = tokio::time::timeout(
            MEMORY_TIMEOUT,
            Arc::clone(&self.permits).acquire_many_owned(permits),
        );
        match acquired.await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(ApiError {
                retry_after: Some(5),
                ..ApiError::new(
                    ErrorKind::Unavailable,
                    "too many large requests at once: try again shortly",
                )
            }),
        }
    }
}

/// A parsed JSON body, with its share of the memory budget.
pub struct JsonBody {
    /// The body.
    pub value: Value,
    _memory: Option<OwnedSemaphorePermit>,
}

impl JsonBody {
    /// A body that was not read from JSON, with its share of the memory budget.
    pub(super) fn new(value: Value, memory: OwnedSemaphorePermit) -> Self {
        Self {
            value,
            _memory: Some(memory),
        }
    }
}

/// The bytes of a JSON body, not parsed, with their share of the memory budget.
pub struct JsonBytes {
    /// UTF-8 text nested no deeper than allowed; not yet known to be valid JSON.
    pub bytes: Bytes,
    memory: Option<OwnedSemaphorePermit>,
}

/// Reads and parses a JSON body of at most `limit` bytes. A missing content type means JSON.
///
/// # Errors
/// 400 for another content type, invalid UTF-8 or JSON, or nesting that is too deep; 413 over the limit; 503 if the memory
/// budget is used up.
pub async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: &BodyBudget,
) -> Result<JsonBody, ApiError> {
    let JsonBytes { bytes, memory } = read_bytes(headers, body, limit, budget).await?;
    let value = serde_json::from_slice(&bytes)
        .map_err(|e| ApiError::invalid(format!("the body must be JSON: {e}")))?;
    Ok(JsonBody {
        value,
        _memory: memory,
    })
}

/// Reads the bytes of a JSON body without parsing them.
///
/// # Errors
/// Those of [`read_json`], except for invalid JSON.
pub async fn read_bytes(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: &BodyBudget,
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
        drain_unread(headers, body).await;
        return Err(error);
    }
    // Without a `Content-Length` the body may be as large as the limit.
    let max_size = declared.unwrap_or(limit);
    let memory = if max_size > UNCOUNTED {
        Some(budget.acquire(max_size).await?)
    } else {
        None
    };
    let bytes = collect_body(body, limit, declared).await?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        if bytes.starts_with(GZIP_MAGIC) {
            return ApiError::invalid("the body must be JSON text, got gzip: send it uncompressed");
        }
        ApiError::invalid(format!(
            "the body must be UTF-8: it is not at byte {}",
            e.valid_up_to()
        ))
    })?;
    check_depth(text)?;
    Ok(JsonBytes { bytes, memory })
}

/// Reads and drops the body of an endpoint that has none, of at most `limit` bytes.
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
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(STALL_TIMEOUT, body.frame()).await {
            len += frame.data_ref().map_or(0, Bytes::len);
            if len > limit {
                break;
            }
        }
    }
    if len <= limit {
        return Ok(());
    }
    drain_unread(headers, body).await;
    Err(too_large(limit))
}

/// 400 for a compressed body.
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

async fn collect_body(
    mut body: Body,
    limit: usize,
    declared: Option<usize>,
) -> Result<Bytes, ApiError> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut len = 0;
    loop {
        let frame = tokio::time::timeout(STALL_TIMEOUT, body.frame())
            .await
            .map_err(|_| ApiError::invalid("the body did not come: nothing for 30 seconds"))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| ApiError::invalid("the body broke off before its end"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        len += data.len();
        if len > limit {
            drain(body).await;
            return Err(too_large(limit));
        }
        // Most bodies are one frame: no copy.
        match &first {
            None => first = Some(data),
            Some(head) => {
                if rest.is_empty() {
                    rest.reserve(declared.unwrap_or(0).clamp(head.len() + data.len(), limit));
                    rest.extend_from_slice(head);
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

/// Reads and drops the rest of a rejected body: a client that is still sending would otherwise see a reset connection
/// instead of the response.
pub async fn drain(mut body: Body) {
    let reading = async {
        let mut left = MAX_DRAINED;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(len) {
                Some(n) => left = n,
                None => return,
            }
        }
    };
    // Too slow or too long: the connection is closed, and the client may or may not see why.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
}

/// Drains a body of which nothing was read, unless the client waits for `100 Continue`: it has sent nothing yet.
pub async fn drain_unread(headers: &HeaderMap, body: Body) {
    let waits = headers
        .get(header::EXPECT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if !waits {
        drain(body).await;
    }
}

/// Rejects a body that is nested too deep, before a parser recurses into it.
fn check_depth(text: &str) -> Result<(), ApiError> {
    let mut rest = text.as_bytes();
    let mut depth = 0usize;
    // Most of a body is strings: they are skipped in one step.
    while let Some(&byte) = rest.first() {
        rest = &rest[1..];
        match byte {
            b'"' => rest = &rest[string_length(rest)..],
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ApiError::invalid(format!(
                "the body is nested deeper than {MAX_DEPTH} levels"
            )));
        }
    }
    Ok(())
}

/// The length of the rest of a string, its closing quote included; all of `text` if the quote is missing.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // An escaped character does not end the string.
        at = (at + 2).min(text.len());
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(
        content_type: Option<&str>,
        body: impl Into<Body>,
        limit: usize,
    ) -> Result<Value, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        }
        read_json(&headers, body.into(), limit, &BodyBudget::new(1))
            .await
            .map(|b| b.value)
    }

    #[tokio::test]
    async fn every_json_content_type_is_accepted_and_no_other() {
        for content_type in [
            None,
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
            Some("application/merge+json"),
        ] {
            let value = read(content_type, r#"{"a":1}"#, 100).await.unwrap();
            assert_eq!(value["a"], 1);
        }
        for content_type in ["text/plain", "multipart/form-data; boundary=x", "", "json"] {
            let error = read(Some(content_type), "{}", 100).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{content_type}");
            assert!(error.message.contains("Content-Type"), "{}", error.message);
        }
    }

    #[tokio::test]
    async fn invalid_json_invalid_utf8_and_deep_nesting_are_rejected() {
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        for (body, says) in [
            (&b"{\"a\":\"\xff\"}"[..], "UTF-8"),
            (b"{", "JSON"),
            (b"", "JSON"),
            (b"{} {}", "JSON"),
            (deep.as_bytes(), "nested"),
        ] {
            let error = read(None, body.to_vec(), 1000).await.unwrap_err();
            assert!(error.message.contains(says), "{}", error.message);
        }
        let flat = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        assert!(read(None, flat, 1000).await.is_ok());
        // Brackets in strings do not nest, whatever is escaped there.
        let text = |inner: &str| format!("{{\"a\":\"{inner}\"}}");
        for inner in ["[".repeat(100), "\\\"[".repeat(70), "\\\\".repeat(3)] {
            assert!(read(None, text(&inner), 1000).await.is_ok(), "{inner}");
        }
        let behind = format!("[\"\\\\\",{deep}]");
        let error = read(None, behind, 1000).await.unwrap_err();
        assert!(error.message.contains("nested"), "{}", error.message);
        assert_eq!(
            (string_length(b"a\\\"b\"c"), string_length(b"ab\\")),
            (5, 3)
        );
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
                let error = read(None, body, 1000).await.err();
                let expected = (!is_accepted).then_some(ErrorKind::TooLarge);
                assert_eq!(error.map(|error| error.kind), expected, "{length}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_and_an_exhausted_memory_budget_are_errors() {
        let stalled =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert!(
            read(None, stalled, 100)
                .await
                .unwrap_err()
                .message
                .contains("30 seconds")
        );
        let budget = BodyBudget::new(1);
        let _all = budget.acquire(MAX_BODY_WITH_FILES).await.unwrap();
        assert_eq!(
            budget.acquire(1).await.err().unwrap().kind,
            ErrorKind::Unavailable
        );
    }
}
