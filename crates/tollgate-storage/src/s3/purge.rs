//! Deletes expired files. A listing of the bucket begins with them, because keys sort by their time of expiry.

use http::{HeaderName, Method};
use rusty_s3::S3Action as _;
use rusty_s3::actions::{DeleteObjectsResponse, ListObjectsV2, ObjectIdentifier};
use tollgate_upstream::egress::body;

use super::client::{Attempts, S3Client, S3Request, SIGNATURE_TTL, with_retry};
use super::error::{S3Error, element};
use super::upload::abort_upload;
use crate::file_name::{self, NameStatus};

/// Keys of one listing and one deletion: the maximum that S3 allows.
const PAGE: usize = 1_000;
/// Pages of one round. With one round a minute, up to 10,000 objects are deleted per minute and folder.
const MAX_PAGES: usize = 10;
/// Seconds after which a multipart upload counts as abandoned.
const UPLOAD_TTL_S: i64 = 24 * 3600;

/// Deletes the objects whose keys begin with `folder` and whose names have expired by `now_s` (Unix seconds). The number per call is limited; the
/// next round continues.
pub(super) async fn delete_expired(
    client: &S3Client,
    folder: &str,
    now_s: i64,
) -> Result<(), S3Error> {
    let mut after = None;
    for _ in 0..MAX_PAGES {
        let keys = with_retry(|| list_keys(client, folder, after.as_deref())).await?;
        let status = |key: &str| {
            let name = key.strip_prefix(folder).unwrap_or_default();
            file_name::parse(name, now_s * 1000)
        };
        let is_last_page = keys.len() < PAGE
            || keys
                .iter()
                .any(|key| matches!(status(key), NameStatus::Valid { .. }));
        after = keys.last().cloned();
        // Objects without a valid name are not the gateway's and are kept.
        let is_expired = |key: &String| status(key) == NameStatus::Expired;
        let expired: Vec<String> = keys.into_iter().filter(is_expired).collect();
        if !expired.is_empty() {
            delete_objects(client, &expired).await?;
            tracing::debug!(objects = expired.len(), "deleted expired objects");
        }
        if is_last_page {
            break;
        }
    }
    Ok(())
}

/// Up to [`PAGE`] keys that begin with `folder`, sorted, after the key `after`.
async fn list_keys(
    client: &S3Client,
    folder: &str,
    after: Option<&str>,
) -> Result<Vec<String>, S3Error> {
    const OPERATION: &str = "ListObjectsV2";
    let credentials = client.credentials()?;
    let mut action = client.bucket.list_objects_v2(Some(&credentials));
    action.with_prefix(folder);
    action.with_max_keys(PAGE);
    if let Some(after) = after {
        action.with_start_after(after);
    }
    let request = S3Request::new(Method::GET, action.sign(SIGNATURE_TTL));
    let text = client.send_for_text(OPERATION, request).await?;
    let listing = ListObjectsV2::parse_response(&text).map_err(|e| S3Error::Mismatch {
        operation: OPERATION,
        what: format!("the response cannot be parsed: {e}"),
    })?;
    Ok(listing
        .contents
        .into_iter()
        .map(|object| object.key)
        .collect())
}

/// Deletes up to [`PAGE`] objects.
async fn delete_objects(client: &S3Client, keys: &[String]) -> Result<(), S3Error> {
    const OPERATION: &str = "DeleteObjects";
    const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
    let objects: Vec<ObjectIdentifier> = keys.iter().cloned().map(ObjectIdentifier::new).collect();
    let deleting = || async {
        let credentials = client.credentials()?;
        let action = || {
            let mut action = client
                .bucket
                .delete_objects(Some(&credentials), objects.iter());
            action.set_quiet(true);
            action
        };
        let (text, md5) = action().body_with_md5();
        let mut action = action();
        action.headers_mut().insert("content-md5", md5.as_str());
        let request = S3Request::new(Method::POST, action.sign(SIGNATURE_TTL))
            .header(CONTENT_MD5, &md5)
            .body(body(text));
        client.send_for_text(OPERATION, request).await
    };
    let response = match with_retry(deleting).await {
        Ok(response) => response,
        // The server does not support this operation.
        Err(S3Error::Status { status, .. }) if matches!(status.as_u16(), 400 | 404 | 405 | 501) => {
            for key in keys {
                client.delete(key, Attempts::Retried).await?;
            }
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let failed = DeleteObjectsResponse::parse(&response).map_or_else(|_| Vec::new(), |r| r.errors);
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(S3Error::Mismatch {
            operation: OPERATION,
            what: format!(
                "{} objects stay: {} ({})",
                failed.len(),
                first.message,
                first.code
            ),
        }),
    }
}

/// Aborts multipart uploads that a crash left a day ago.
pub(super) async fn abort_abandoned_uploads(client: &S3Client, now_s: i64) -> Result<(), S3Error> {
    let listing = with_retry(|| async {
        let credentials = client.credentials()?;
        let mut action = client.bucket.list_objects_v2(Some(&credentials));
        // Multipart uploads are listed by the same request with another parameter.
        let query = action.query_mut();
        query.remove("list-type");
        query.remove("encoding-type");
        query.insert("uploads", "");
        query.insert("prefix", client.prefix.as_str());
        let request = S3Request::new(Method::GET, action.sign(SIGNATURE_TTL));
        client.send_for_text("ListMultipartUploads", request).await
    });
    for upload in listing.await?.split("<Upload>").skip(1) {
        let (key, id) = (element(upload, "Key"), element(upload, "UploadId"));
        let started = element(upload, "Initiated").and_then(|at| at.parse().ok());
        let (Some(key), Some(id), Some(started)) = (key, id, started) else {
            continue;
        };
        let started: jiff::Timestamp = started;
        if started.as_second() + UPLOAD_TTL_S < now_s {
            abort_upload(client, key, id).await?;
        }
    }
    Ok(())
}
