//! Fetches results from where the operator's configuration leads: a provider's own origin, with its key.

use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Uri};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use url::Url;

use super::{Client, EgressError, FetchLimits, Fetched, Timeouts, body};

/// How long such a server may be silent.
const SILENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Fetches `url` into `sink` within `limits`, sending `headers`. A redirect to the same origin gets the headers too; one
    /// to any other address loses them and is fetched as [`Client::fetch_guarded`] does. On an error part of the body may be
    /// in the sink.
    pub async fn fetch_own<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        headers: &HeaderMap,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let end = Instant::now() + limits.total_time;
        let fetching = self.own(url, headers, limits, end, sink);
        timeout(limits.total_time, fetching)
            .await
            .map_err(|_| EgressError::TimedOut(limits.total_time))?
    }

    async fn own<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        headers: &HeaderMap,
        limits: &FetchLimits,
        end: Instant,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let mut url =
            Url::parse(url).map_err(|_| EgressError::BadUrl("of the result is not a valid URL"))?;
        for redirects in 0..=limits.max_redirects {
            let answer = self.send(request(&url, headers)?, PATIENCE).await?;
            if answer.status().is_redirection() {
                let to = answer.headers().get(LOCATION).and_then(|v| v.to_str().ok());
                let to = to.and_then(|to| url.join(to).ok());
                let to = to.ok_or(EgressError::BadRedirect("nowhere"))?;
                if to.origin() == url.origin() {
                    url = to;
                    continue;
                }
                let rest = FetchLimits {
                    total_time: end.saturating_duration_since(Instant::now()),
                    max_redirects: limits.max_redirects.saturating_sub(redirects + 1),
                    ..*limits
                };
                return self.fetch_guarded(to.as_str(), &rest, sink).await;
            }
            super::guarded::judge(answer.status(), answer.headers(), limits.max_bytes)?;
            let content_type = answer.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            let content_type = content_type.map(str::to_owned);
            let mut body = answer.into_body();
            let mut bytes = 0;
            while let Some(part) = body.chunk().await? {
                bytes += part.len() as u64;
                if bytes > limits.max_bytes {
                    let max = limits.max_bytes;
                    return Err(EgressError::TooLarge { max });
                }
                sink.write_all(&part).await.map_err(EgressError::Sink)?;
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

const PATIENCE: Timeouts = Timeouts {
    connect: None,
    first_byte: SILENCE,
    idle: SILENCE,
};

fn request(url: &Url, headers: &HeaderMap) -> Result<Request<super::RequestBody>, EgressError> {
    let uri = Uri::try_from(url.as_str());
    let mut request = Request::new(body(""));
    *request.uri_mut() =
        uri.map_err(|_| EgressError::BadUrl("of the result is not a valid URL"))?;
    request.headers_mut().extend(headers.clone());
    request
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(request)
}
