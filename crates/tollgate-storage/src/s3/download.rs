//! Reads an object: returns all bytes that the response announces, or an error. If the connection breaks, the remaining bytes are requested again.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::header::{CONTENT_RANGE, HeaderMap, RANGE};
use http::{Method, StatusCode};
use rusty_s3::S3Action as _;
use tollgate_upstream::egress::ResponseBody;

use super::client::{S3Client, S3Request, SIGNATURE_TTL, content_length, pause_before, with_retry};
use super::error::S3Error;

const OPERATION: &str = "GetObject";
/// How often in a row the remaining bytes are requested without receiving any.
const MAX_RESUMES: u32 = 3;

/// Reads an object, or a part of one.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    client: Arc<S3Client>,
    key: String,
    /// The size of the object in bytes.
    bytes: u64,
    /// The position of the next byte to return.
    next: u64,
    /// The position after the last byte to return.
    end: u64,
    /// `None` until the next byte is requested.
    body: Option<ResponseBody>,
    /// How often in a row the connection broke without delivering a byte.
    failures: u32,
}

impl ObjectReader {
    /// Opens the object. With `is_complete` the complete object is requested at once, else only its size.
    pub(super) async fn open(
        client: Arc<S3Client>,
        key: String,
        is_complete: bool,
    ) -> Result<Self, S3Error> {
        let (bytes, body) = if is_complete {
            let (bytes, body) = with_retry(|| get_object(&client, &key)).await?;
            (bytes, Some(body))
        } else {
            (client.object_bytes(&key).await?, None)
        };
        Ok(Self {
            client,
            key,
            bytes,
            next: 0,
            end: bytes,
            body,
            failures: 0,
        })
    }

    /// The size of the object in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests only the `len` bytes from `first` on, which are then read.
    pub(crate) fn start(&mut self, first: u64, len: u64) -> BoxFuture<'_, io::Result<()>> {
        let is_all = first == 0 && len == self.bytes;
        (self.next, self.end) = (first, first.saturating_add(len).min(self.bytes));
        if !is_all {
            self.body = None;
        }
        Box::pin(async move {
            if self.body.is_none() && self.next < self.end {
                self.request_rest().await?;
            }
            Ok(())
        })
    }

    /// Returns the bytes as a stream.
    pub(crate) fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        let chunks = stream::try_unfold(self, async |mut object| {
            let chunk = object.chunk().await?;
            Ok(chunk.map(|chunk| (chunk, object)))
        });
        chunks.boxed()
    }

    /// Returns the next bytes. `None` at the end.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        while self.next < self.end {
            let Some(body) = &mut self.body else {
                self.request_rest().await?;
                continue;
            };
            let failure = match body.chunk().await {
                Ok(Some(chunk)) => {
                    let bytes = chunk.len() as u64;
                    if bytes > self.end - self.next {
                        let what = "more bytes came than were announced".to_owned();
                        return Err(mismatch(what).into());
                    }
                    self.next += bytes;
                    self.failures = 0;
                    return Ok(Some(chunk));
                }
                Ok(None) => mismatch(format!(
                    "the response ended {} bytes early",
                    self.end - self.next
                )),
                Err(source) => S3Error::Connection {
                    operation: OPERATION,
                    source,
                },
            };
            self.body = None;
            self.failures += 1;
            if self.failures > MAX_RESUMES {
                tracing::error!(error = %failure, "a download of an object failed");
                return Err(failure.into());
            }
            tracing::warn!(error = %failure, "a download of an object failed: the remaining bytes are requested");
            pause_before(self.failures).await;
        }
        Ok(None)
    }

    async fn request_rest(&mut self) -> Result<(), S3Error> {
        let (first, last) = (self.next, self.end - 1);
        let requesting = || get_range(&self.client, &self.key, first, last, self.bytes);
        self.body = Some(with_retry(requesting).await?);
        Ok(())
    }
}

/// Requests a complete object. Returns its size and its content.
async fn get_object(client: &S3Client, key: &str) -> Result<(u64, ResponseBody), S3Error> {
    let credentials = client.credentials()?;
    let action = client.bucket.get_object(Some(&credentials), key);
    let request = S3Request::new(Method::GET, action.sign(SIGNATURE_TTL));
    let response = client.send(OPERATION, request).await?;
    let bytes = content_length(OPERATION, response.headers())?;
    Ok((bytes, response.into_body()))
}

/// Requests the bytes from `first` to `last` of an object of `bytes` bytes.
async fn get_range(
    client: &S3Client,
    key: &str,
    first: u64,
    last: u64,
    bytes: u64,
) -> Result<ResponseBody, S3Error> {
    let credentials = client.credentials()?;
    let action = client.bucket.get_object(Some(&credentials), key);
    let request = S3Request::new(Method::GET, action.sign(SIGNATURE_TTL))
        .header(RANGE, &format!("bytes={first}-{last}"));
    let response = client.send(OPERATION, request).await?;
    let is_all = first == 0 && last + 1 == bytes;
    match response.status() {
        StatusCode::PARTIAL_CONTENT => check_content_range(response.headers(), first, last, bytes)?,
        StatusCode::OK if is_all => {}
        status => {
            let what = format!("the response to a range has status {}", status.as_u16());
            return Err(mismatch(what));
        }
    }
    Ok(response.into_body())
}

fn check_content_range(
    headers: &HeaderMap,
    first: u64,
    last: u64,
    bytes: u64,
) -> Result<(), S3Error> {
    let range = headers.get(CONTENT_RANGE).and_then(|v| v.to_str().ok());
    let expected = format!("bytes {first}-{last}/{bytes}");
    match range {
        Some(range) if range == expected => Ok(()),
        other => {
            let other = other.unwrap_or("nothing");
            let what = format!("the response holds {other}, not {expected}");
            Err(mismatch(what))
        }
    }
}

fn mismatch(what: String) -> S3Error {
    S3Error::Mismatch {
        operation: OPERATION,
        what,
    }
}
