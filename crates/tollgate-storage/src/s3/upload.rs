//! Uploads a file: a small one with one request, a large one in parts. Each request has the MD5 of its bytes, so that the server rejects bytes that
//! were damaged in transit; a part that fails is retried alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, Method};
use md5::{Digest as _, Md5};
use rusty_s3::S3Action as _;
use rusty_s3::actions::CreateMultipartUpload;
use tokio::runtime::Handle;
use tollgate_core::id;
use tollgate_upstream::egress::{BodyParts, RequestBody, body};

use super::client::{RESPONSE_TIMEOUT, S3Client, S3Request, SIGNATURE_TTL, with_retry};
use super::error::{S3Error, element};

/// Bytes of a part. Files up to this size are uploaded with one request. With 10,000 parts, the maximum of S3, every result fits.
const PART_BYTES: u64 = 16 * 1024 * 1024;
/// Parts of one file that are uploaded at a time.
const PARALLEL_PARTS: usize = 3;
/// Bytes of a file that are read at once to compute its MD5.
const HASH_CHUNK: usize = 256 * 1024;
/// Bytes that a probe uploads.
const PROBE_BYTES: usize = 1024;
/// The lowest rate, in bytes a second, that an upload may have; its timeout is [`RESPONSE_TIMEOUT`] plus the time at this rate.
const MIN_RATE: u64 = 256 * 1024;
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// Uploads the file at `path`, which has `bytes` bytes, as the object `key`. After an error, an object that may exist under `key` is never read.
pub(super) async fn upload_file(
    client: &Arc<S3Client>,
    key: &str,
    path: &Path,
    bytes: u64,
    media_type: &str,
) -> Result<(), S3Error> {
    if bytes > PART_BYTES {
        return upload_parts(client, key, path, bytes, media_type).await;
    }
    let piece = Piece {
        path: path.to_owned(),
        first: 0,
        bytes,
    };
    let md5 = piece.md5().await?;
    let _permit = client.transfers.acquire().await;
    with_retry(|| put_object(client, key, media_type, &md5, bytes, || piece.body())).await
}

/// Uploads a small object once, without retries.
pub(super) async fn put_probe(
    client: &S3Client,
    key: &str,
    timeout: Duration,
) -> Result<(), S3Error> {
    let bytes = [0; PROBE_BYTES];
    let md5 = Md5::digest(bytes).into();
    let probing = put_object(client, key, "application/octet-stream", &md5, 0, || {
        body(bytes.to_vec())
    });
    match tokio::time::timeout(timeout, probing).await {
        Ok(outcome) => outcome,
        Err(_) => Err(S3Error::Connection {
            operation: "PutObject",
            source: tollgate_upstream::egress::EgressError::TimedOut(timeout),
        }),
    }
}

async fn put_object(
    client: &S3Client,
    key: &str,
    media_type: &str,
    md5: &[u8; 16],
    bytes: u64,
    content: impl Fn() -> RequestBody,
) -> Result<(), S3Error> {
    const OPERATION: &str = "PutObject";
    let credentials = client.credentials()?;
    let md5_header = STANDARD.encode(md5);
    let mut action = client.bucket.put_object(Some(&credentials), key);
    let signed = action.headers_mut();
    signed.insert("content-md5", md5_header.as_str());
    signed.insert("content-type", media_type);
    let request = S3Request::new(Method::PUT, action.sign(SIGNATURE_TTL))
        .header(CONTENT_MD5, &md5_header)
        .header(CONTENT_TYPE, media_type)
        .body(content())
        .timeout(upload_timeout(bytes));
    let response = client.send(OPERATION, request).await?;
    check_etag(OPERATION, response.headers(), md5).map(drop)
}

fn upload_timeout(bytes: u64) -> Duration {
    RESPONSE_TIMEOUT + Duration::from_secs(bytes / MIN_RATE)
}

/// Checks that the server stored the bytes that were sent. That is possible if the entity tag is their MD5, which it is not for encrypted objects.
/// Returns the tag.
fn check_etag(
    operation: &'static str,
    headers: &HeaderMap,
    md5: &[u8; 16],
) -> Result<String, S3Error> {
    let tag = headers.get(ETAG).and_then(|value| value.to_str().ok());
    let tag = tag.unwrap_or_default();
    let plain = tag.trim_matches('"');
    let is_md5 = plain.len() == 32 && plain.bytes().all(|b| b.is_ascii_hexdigit());
    let expected = id::hex(md5);
    if is_md5 && !headers.contains_key(ENCRYPTION) && !plain.eq_ignore_ascii_case(&expected) {
        return Err(S3Error::Mismatch {
            operation,
            what: format!("the server stored other bytes: their MD5 is {plain}, not {expected}"),
        });
    }
    Ok(tag.to_owned())
}

/// A part of a file.
struct Piece {
    path: PathBuf,
    first: u64,
    bytes: u64,
}

impl Piece {
    async fn md5(&self) -> Result<[u8; 16], S3Error> {
        let (path, first, bytes) = (self.path.clone(), self.first, self.bytes);
        let hashing = tokio::task::spawn_blocking(move || hash_file(&path, first, bytes));
        Ok(hashing.await.map_err(io::Error::other)??)
    }

    fn body(&self) -> RequestBody {
        let mut parts = BodyParts::new();
        parts.file_part(&self.path, self.first, self.bytes);
        parts.into()
    }
}

fn hash_file(path: &Path, first: u64, bytes: u64) -> io::Result<[u8; 16]> {
    let file = File::open(path)?;
    let mut hash = Md5::new();
    let mut buffer = vec![0; HASH_CHUNK];
    let end = first + bytes;
    let mut at = first;
    while at < end {
        let wanted = usize::try_from(end - at).map_or(HASH_CHUNK, |left| left.min(HASH_CHUNK));
        file.read_exact_at(&mut buffer[..wanted], at)?;
        hash.update(&buffer[..wanted]);
        at += wanted as u64;
    }
    Ok(hash.finalize().into())
}

async fn upload_parts(
    client: &Arc<S3Client>,
    key: &str,
    path: &Path,
    bytes: u64,
    media_type: &str,
) -> Result<(), S3Error> {
    let mut upload = MultipartUpload::create(client, key, media_type).await?;
    let pieces = (0..bytes.div_ceil(PART_BYTES)).map(|index| Piece {
        path: path.to_owned(),
        first: index * PART_BYTES,
        bytes: PART_BYTES.min(bytes - index * PART_BYTES),
    });
    let sending = (1..).zip(pieces).map(|(number, piece)| {
        let upload = &upload;
        async move { upload.send_part(number, &piece).await }
    });
    let tags: Vec<String> = stream::iter(sending)
        .buffered(PARALLEL_PARTS)
        .try_collect()
        .await?;
    upload.complete(&tags, bytes).await
}

/// A multipart upload. If it is dropped before it is complete, it is aborted, so that the server deletes its parts.
struct MultipartUpload {
    client: Arc<S3Client>,
    key: String,
    id: String,
    is_complete: bool,
}

impl MultipartUpload {
    async fn create(client: &Arc<S3Client>, key: &str, media_type: &str) -> Result<Self, S3Error> {
        const OPERATION: &str = "CreateMultipartUpload";
        let creating = || async {
            let credentials = client.credentials()?;
            let mut action = client
                .bucket
                .create_multipart_upload(Some(&credentials), key);
            action.headers_mut().insert("content-type", media_type);
            let request = S3Request::new(Method::POST, action.sign(SIGNATURE_TTL))
                .header(CONTENT_TYPE, media_type);
            let text = client.send_for_text(OPERATION, request).await?;
            let created = CreateMultipartUpload::parse_response(&text);
            created.map_err(|e| S3Error::Mismatch {
                operation: OPERATION,
                what: format!("the response cannot be parsed: {e}"),
            })
        };
        Ok(Self {
            client: Arc::clone(client),
            key: key.to_owned(),
            id: with_retry(creating).await?.upload_id().to_owned(),
            is_complete: false,
        })
    }

    /// Sends the part with that number, counted from 1; returns its entity tag.
    async fn send_part(&self, number: u16, piece: &Piece) -> Result<String, S3Error> {
        const OPERATION: &str = "UploadPart";
        let _permit = self.client.transfers.acquire().await;
        let md5 = piece.md5().await?;
        let md5_header = STANDARD.encode(md5);
        let (bucket, md5_header) = (&self.client.bucket, md5_header.as_str());
        with_retry(|| async {
            let credentials = self.client.credentials()?;
            let mut action = bucket.upload_part(Some(&credentials), &self.key, number, &self.id);
            action.headers_mut().insert("content-md5", md5_header);
            let request = S3Request::new(Method::PUT, action.sign(SIGNATURE_TTL))
                .header(CONTENT_MD5, md5_header)
                .body(piece.body())
                .timeout(upload_timeout(piece.bytes));
            let response = self.client.send(OPERATION, request).await?;
            let tag = check_etag(OPERATION, response.headers(), &md5)?;
            match tag.is_empty() {
                false => Ok(tag),
                true => Err(S3Error::Mismatch {
                    operation: OPERATION,
                    what: "the response has no ETag".to_owned(),
                }),
            }
        })
        .await
    }

    /// Combines the parts to one object, and checks that it has `bytes` bytes.
    async fn complete(&mut self, tags: &[String], bytes: u64) -> Result<(), S3Error> {
        const OPERATION: &str = "CompleteMultipartUpload";
        let completing = || async {
            let credentials = self.client.credentials()?;
            let tags = || tags.iter().map(String::as_str);
            let (bucket, key, id) = (&self.client.bucket, &self.key, &self.id);
            let action = || bucket.complete_multipart_upload(Some(&credentials), key, id, tags());
            let request = S3Request::new(Method::POST, action().sign(SIGNATURE_TTL))
                .body(body(action().body()))
                .timeout(upload_timeout(bytes));
            let text = self.client.send_for_text(OPERATION, request).await?;
            // The server sends the status before it has combined the parts: the body may contain an error.
            match element(&text, "Code") {
                None => Ok(()),
                Some(code) => Err(S3Error::Status {
                    operation: OPERATION,
                    status: http::StatusCode::INTERNAL_SERVER_ERROR,
                    code: code.to_owned(),
                    message: element(&text, "Message").unwrap_or_default().to_owned(),
                }),
            }
        };
        match with_retry(completing).await {
            Ok(()) => {}
            // An earlier attempt may have succeeded although its response was lost: the object's size shows whether it did.
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        let stored = self.client.object_bytes(&self.key).await?;
        if stored != bytes {
            return Err(S3Error::Mismatch {
                operation: OPERATION,
                what: format!("the object has {stored} bytes, not {bytes}"),
            });
        }
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for MultipartUpload {
    fn drop(&mut self) {
        if self.is_complete {
            return;
        }
        let (client, key) = (Arc::clone(&self.client), std::mem::take(&mut self.key));
        let id = std::mem::take(&mut self.id);
        // Outside a runtime the process is ending, and nothing can be sent.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = abort_upload(&client, &key, &id).await {
                tracing::warn!(%error, "cannot abort a multipart upload: it is aborted a day later");
            }
        });
    }
}

/// Aborts a multipart upload. It is no error if the upload does not exist any more.
pub(super) async fn abort_upload(client: &S3Client, key: &str, id: &str) -> Result<(), S3Error> {
    let aborting = || async {
        let credentials = client.credentials()?;
        let action = client
            .bucket
            .abort_multipart_upload(Some(&credentials), key, id);
        let request = S3Request::new(Method::DELETE, action.sign(SIGNATURE_TTL));
        client.send("AbortMultipartUpload", request).await.map(drop)
    };
    match with_retry(aborting).await {
        Err(error) if error.is_missing() => Ok(()),
        outcome => outcome,
    }
}
