//! Stores files in a bucket of an S3-compatible server.
//!
//! A key is `PREFIX/public/NAME` or `PREFIX/private/NAME`. A name begins with the second in which its file expires, in digits that sort numerically,
//! so a listing begins with the files that have expired. The requests and the permissions that they need are documented in docs/storage.md.
//!
//! Futures are boxed, so that they are compiled in this crate and not in the crates that await them.

mod client;
mod credentials;
mod download;
mod error;
mod purge;
mod upload;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusty_s3::S3Action as _;
use tokio::io::AsyncWriteExt as _;
use tollgate_config::S3Location;
use tollgate_core::{crash, id};
use tollgate_upstream::egress::Client;

use crate::file_name;
use crate::pending_file::{PendingFile, Visibility};
use client::{Attempts, S3Client};
pub(super) use download::ObjectReader;

/// How long a link of the bucket is valid.
const LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// Longest time that a probe of the bucket waits for each response, so that `/readyz` responds in time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The bucket with the public and the private files. Cloning is cheap.
#[derive(Debug, Clone)]
pub(super) struct S3Storage {
    client: Arc<S3Client>,
}

impl S3Storage {
    /// The bucket at `location`, with the access keys of the environment. Sends no request.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn open(location: &S3Location, egress: Client) -> Result<Self, String> {
        Ok(Self {
            client: Arc::new(S3Client::open(location, egress)?),
        })
    }

    /// Stores the complete temporary file under its name. After an error the call may be repeated.
    pub(super) fn publish<'a>(&'a self, pending: &'a PendingFile) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async {
            let key = self.key(pending.visibility, &pending.name);
            let bytes = tokio::fs::metadata(&pending.temporary).await?.len();
            let media_type = file_name::media_type_of(&pending.name);
            crash::point("blob.before_rename");
            upload::upload_file(&self.client, &key, &pending.temporary, bytes, media_type).await?;
            crash::point("blob.after_rename");
            let _ = tokio::fs::remove_file(&pending.temporary).await;
            Ok(())
        })
    }

    /// Opens a file for reading. With `is_complete` the complete file is requested at once.
    pub(super) fn open_file(
        &self,
        visibility: Visibility,
        name: &str,
        is_complete: bool,
    ) -> BoxFuture<'static, io::Result<ObjectReader>> {
        let key = self.key(visibility, name);
        let client = Arc::clone(&self.client);
        Box::pin(async move { Ok(ObjectReader::open(client, key, is_complete).await?) })
    }

    /// Downloads the file of that name to the new file `path`, which is deleted after an error.
    pub(super) fn download<'a>(
        &'a self,
        visibility: Visibility,
        name: &'a str,
        path: &'a Path,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let mut object = self.open_file(visibility, name, true).await?;
            let mut options = tokio::fs::OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let mut file = options.open(path).await?;
            let copied = async {
                while let Some(chunk) = object.chunk().await? {
                    file.write_all(&chunk).await?;
                }
                file.flush().await
            };
            let copied = copied.await;
            if copied.is_err() {
                let _ = tokio::fs::remove_file(path).await;
            }
            copied
        })
    }

    /// Deletes a file. A missing one is not an error.
    pub(super) fn delete(
        &self,
        visibility: Visibility,
        name: &str,
    ) -> BoxFuture<'_, io::Result<()>> {
        let key = self.key(visibility, name);
        Box::pin(async move { Ok(self.client.delete(&key, Attempts::Retried).await?) })
    }

    /// Deletes files that have expired by `now_s` (Unix seconds), and multipart uploads that were abandoned a day ago.
    pub(super) fn delete_expired(&self, now_s: i64) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            for visibility in [Visibility::Public, Visibility::Private] {
                purge::delete_expired(&self.client, &self.key(visibility, ""), now_s).await?;
            }
            Ok(purge::abort_abandoned_uploads(&self.client, now_s).await?)
        })
    }

    /// Checks that an object can be stored in the bucket and deleted again.
    pub(super) fn check_writable(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async {
            let key = format!("{}{}", self.client.prefix, id::short_id("probe-"));
            upload::put_probe(&self.client, &key, PROBE_TIMEOUT).await?;
            self.client
                .delete(&key, Attempts::One(PROBE_TIMEOUT))
                .await?;
            Ok(())
        })
    }

    /// A link of the bucket to a public file, valid for minutes and at most for `seconds_left`. The link is for `GET` if `is_get`, else for `HEAD`.
    pub(super) fn link(&self, name: &str, is_get: bool, seconds_left: i64) -> io::Result<String> {
        let key = self.key(Visibility::Public, name);
        let seconds_left = u64::try_from(seconds_left).unwrap_or(0).max(1);
        let ttl = LINK_TTL.min(Duration::from_secs(seconds_left));
        let client = &self.client;
        let credentials = client.credentials()?;
        let url = if is_get {
            let mut action = client.bucket.get_object(Some(&credentials), &key);
            let query = action.query_mut();
            query.insert(
                "response-cache-control",
                format!("private, max-age={seconds_left}, immutable"),
            );
            query.insert(
                "response-content-disposition",
                format!("inline; filename=\"{name}\""),
            );
            action.sign(ttl)
        } else {
            client
                .bucket
                .head_object(Some(&credentials), &key)
                .sign(ttl)
        };
        Ok(url.into())
    }

    fn key(&self, visibility: Visibility, name: &str) -> String {
        let folder = visibility.folder_name();
        format!("{}{folder}/{name}", self.client.prefix)
    }
}
