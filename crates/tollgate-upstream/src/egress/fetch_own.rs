//! Fetches results from a provider's own origin, which the operator configured, with the channel's key.

use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Uri};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use url::Url;

use super::client::Client;
use super::error::EgressError;
use super::fetch_guarded::{FetchLimits, Fetched, check_response_head};
use super::request::Timeouts;
use super::streamed_body::{RequestBody, body};

/// Timeout until the head of the response, and between two chunks of its body.
const TIMEOUTS: Timeouts = Timeouts {
    connect: None,
    first_byte: Duration::from_secs(60),
    idle: Duration::from_secs(60),
};

impl Client {
    /// Fetches `url` into `sink` within `limits`, sending `headers`. A redirect to the same origin is requested with the headers too; a redirect to
    /// any other address is requested without them, as [`Client::fetch_guarded`] does. On an error part of the body may be in the sink.
    pub async fn fetch_own<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        headers: &HeaderMap,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let deadline = Instant::now() + limits.total_time;
        let fetching = self.fetch_own_until(url, headers, limits, deadline, sink);
        timeout(limits.total_time, fetching)
            .await
            .map_err(|_| EgressError::TimedOut(limits.total_time))?
    }

    async fn fetch_own_until<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        headers: &HeaderMap,
        limits: &FetchLimits,
        deadline: Instant,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let mut url = Url::parse(url)
            .map_err(|_| EgressError::InvalidUrl("of the result is not a valid URL"))?;
        for redirects in 0..=limits.max_redirects {
            let response = self.send(get_request(&url, headers)?, TIMEOUTS).await?;
            if response.status().is_redirection() {
                let to = response
                    .headers()
                    .get(LOCATION)
                    .and_then(|v| v.to_str().ok());
                let to = to.and_then(|to| url.join(to).ok());
                let to = to.ok_or(EgressError::InvalidRedirect("nowhere"))?;
                if to.origin() == url.origin() {
                    url = to;
                    continue;
                }
                let remaining = FetchLimits {
                    total_time: deadline.saturating_duration_since(Instant::now()),
                    max_redirects: limits.max_redirects.saturating_sub(redirects + 1),
                    ..*limits
                };
                return self.fetch_guarded(to.as_str(), &remaining, sink).await;
            }
            check_response_head(response.status(), response.headers(), limits.max_bytes)?;
            let content_type = response.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            let content_type = content_type.map(str::to_owned);
            let mut body = response.into_body();
            let mut bytes = 0;
            while let Some(chunk) = body.chunk().await? {
                bytes += chunk.len() as u64;
                if bytes > limits.max_bytes {
                    let max = limits.max_bytes;
                    return Err(EgressError::TooLarge { max });
                }
                sink.write_all(&chunk).await.map_err(EgressError::Sink)?;
            }
            sink.flush().await.map_err(EgressError::Sink)?;
            return Ok(Fetched {
                final_url: url.into(),
                content_type,
                bytes,
            });
        }
        Err(EgressError::TooManyRedirects(limits.max_redirects))
    }
}

fn get_request(url: &Url, headers: &HeaderMap) -> Result<Request<RequestBody>, EgressError> {
    let uri = Uri::try_from(url.as_str());
    let mut request = Request::new(body(""));
    *request.uri_mut() =
        uri.map_err(|_| EgressError::InvalidUrl("of the result is not a valid URL"))?;
    request.headers_mut().extend(headers.clone());
    request
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(request)
}
