//! Sends signed requests to the bucket, and retries them if that is safe and may help.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use rand::RngExt as _;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use tokio::sync::Semaphore;
use tollgate_config::S3Location;
use tollgate_upstream::egress::{Client, RequestBody, ResponseBody, Timeouts, body};
use url::Url;

use super::credentials::CredentialSource;
use super::error::{S3Error, element};

/// How often a request is sent before its error is returned.
const MAX_ATTEMPTS: u32 = 4;
/// Pause before a request is retried; doubled each time, and shortened at random by up to a half.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest time until the head of the response to a request without a large body.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time between two chunks of a response.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the signature of a request is valid.
pub(super) const SIGNATURE_TTL: Duration = Duration::from_secs(15 * 60);
/// Largest response that is read into memory: a page of a listing.
pub(super) const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;
/// Files or parts that are uploaded at the same time, which limits the memory for their buffers.
const MAX_TRANSFERS: usize = 64;

/// How often a request may be sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attempts {
    /// Once, with this timeout for the response.
    One(Duration),
    /// Several times: it is retried after transient errors.
    Retried,
}

/// The bucket, and everything that requests to it need.
pub(super) struct S3Client {
    egress: Client,
    pub(super) bucket: Bucket,
    credentials: CredentialSource,
    /// The beginning of every key: empty, or with a `/` at its end.
    pub(super) prefix: String,
    pub(super) transfers: Semaphore,
}

impl std::fmt::Debug for S3Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S3Client({}{})", self.bucket.base_url(), self.prefix)
    }
}

impl S3Client {
    pub(super) fn open(location: &S3Location, egress: Client) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let first = |names: [&str; 2]| names.into_iter().find_map(variable);
        let region = location.region.clone();
        let region = region
            .or_else(|| first(["AWS_REGION", "AWS_DEFAULT_REGION"]))
            .unwrap_or_else(|| "us-east-1".to_owned());
        let given = match &location.endpoint {
            Some(endpoint) => Some(endpoint.clone()),
            None => match first(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
                Some(text) => Some(
                    Url::parse(&text)
                        .map_err(|_| format!("AWS_ENDPOINT_URL is {text:?}, but it takes a URL"))?,
                ),
                None => None,
            },
        };
        let path_style = location.path_style.unwrap_or(given.is_some());
        let style = match path_style {
            true => UrlStyle::Path,
            false => UrlStyle::VirtualHost,
        };
        let invalid = |what: &dyn std::fmt::Display| format!("storage.url: {location}: {what}");
        let endpoint = match given {
            Some(endpoint) => endpoint,
            None => Url::parse(&format!("https://s3.{region}.amazonaws.com"))
                .map_err(|_| invalid(&format!("there is no region {region:?}")))?,
        };
        let bucket = Bucket::new(endpoint, style, location.bucket.clone(), region);
        let credentials = CredentialSource::find(variable);
        Ok(Self {
            egress,
            bucket: bucket.map_err(|e| invalid(&e))?,
            credentials: credentials.map_err(|e| invalid(&e))?,
            prefix: location.prefix.clone(),
            transfers: Semaphore::new(MAX_TRANSFERS),
        })
    }

    /// The access keys with which requests are signed now.
    pub(super) fn credentials(&self) -> Result<Arc<Credentials>, S3Error> {
        self.credentials.current().map_err(S3Error::Credentials)
    }

    /// Sends one request; returns the response if its status is a success.
    pub(super) async fn send(
        &self,
        operation: &'static str,
        request: S3Request,
    ) -> Result<Response<ResponseBody>, S3Error> {
        let timeouts = Timeouts {
            connect: None,
            first_byte: request.timeout,
            idle: IDLE_TIMEOUT,
        };
        let connection = |source| S3Error::Connection { operation, source };
        let request = request.into_http(operation)?;
        let response = self.egress.send(request, timeouts).await;
        let response = response.map_err(connection)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // The body has details of the error; if it cannot be read, the status alone is reported.
        let text = response.into_body().collect(MAX_RESPONSE_BYTES).await;
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let text_of = |name| element(&text, name).unwrap_or_default().to_owned();
        Err(S3Error::Status {
            operation,
            status,
            code: text_of("Code"),
            message: text_of("Message"),
        })
    }

    /// As `send`, but returns the complete body of the response as text.
    pub(super) async fn send_for_text(
        &self,
        operation: &'static str,
        request: S3Request,
    ) -> Result<String, S3Error> {
        let body = self.send(operation, request).await?.into_body();
        let bytes = body.collect(MAX_RESPONSE_BYTES).await;
        let bytes = bytes.map_err(|source| S3Error::Connection { operation, source })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The size of an object in bytes.
    pub(super) async fn object_bytes(&self, key: &str) -> Result<u64, S3Error> {
        const OPERATION: &str = "HeadObject";
        let sending = || async {
            let credentials = self.credentials()?;
            let url = self.bucket.head_object(Some(&credentials), key);
            let request = S3Request::new(Method::HEAD, url.sign(SIGNATURE_TTL));
            let response = self.send(OPERATION, request).await?;
            content_length(OPERATION, response.headers())
        };
        with_retry(sending).await
    }

    /// Deletes an object. It is no error if the object does not exist.
    pub(super) async fn delete(&self, key: &str, attempts: Attempts) -> Result<(), S3Error> {
        let sending = |timeout| async move {
            let credentials = self.credentials()?;
            let url = self.bucket.delete_object(Some(&credentials), key);
            let request = S3Request::new(Method::DELETE, url.sign(SIGNATURE_TTL)).timeout(timeout);
            self.send("DeleteObject", request).await.map(drop)
        };
        let deleted = match attempts {
            Attempts::One(timeout) => sending(timeout).await,
            Attempts::Retried => with_retry(|| sending(RESPONSE_TIMEOUT)).await,
        };
        match deleted {
            Err(error) if error.is_missing() => Ok(()),
            deleted => deleted,
        }
    }
}

/// A request with a signed URL.
pub(super) struct S3Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: RequestBody,
    /// The time until the head of the response, including the time for sending the body.
    timeout: Duration,
}

impl S3Request {
    /// A request without a body.
    pub(super) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::from_iter([(
                ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            )]),
            body: body(""),
            timeout: RESPONSE_TIMEOUT,
        }
    }

    /// Adds a header. A value that is invalid in a header is left out; the server then rejects the request because of its signature.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Sets the body.
    pub(super) fn body(mut self, body: impl Into<RequestBody>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the longest time until the head of the response.
    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn into_http(self, operation: &'static str) -> Result<Request<RequestBody>, S3Error> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        *request.uri_mut() = Uri::try_from(self.url.as_str()).map_err(|_| S3Error::Mismatch {
            operation,
            what: "the URL is not valid".to_owned(),
        })?;
        Ok(request)
    }
}

/// The length that the headers of a response announce.
pub(super) fn content_length(operation: &'static str, headers: &HeaderMap) -> Result<u64, S3Error> {
    let length = headers.get(http::header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    length.ok_or_else(|| S3Error::Mismatch {
        operation,
        what: "the response does not state the object's length".to_owned(),
    })
}

/// Calls `send`, and calls it again after transient errors, with growing pauses.
pub(super) async fn with_retry<T, F: Future<Output = Result<T, S3Error>>>(
    mut send: impl FnMut() -> F,
) -> Result<T, S3Error> {
    for attempt in 1..MAX_ATTEMPTS {
        match send().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, attempt, "a request to the bucket failed: it is retried");
                pause_before(attempt).await;
            }
            outcome => return outcome,
        }
    }
    send().await
}

/// Waits for the pause that follows attempt number `attempt`.
pub(super) async fn pause_before(attempt: u32) {
    let pause = FIRST_PAUSE * 2_u32.pow(attempt.saturating_sub(1).min(8));
    let part = rand::rng().random_range(0.5..=1.0);
    tokio::time::sleep(pause.mul_f64(part)).await;
}
