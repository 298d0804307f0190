//! Sends POST requests to client-given URLs through the SSRF guard: webhooks.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;
use tokio::time::timeout;
use url::Url;

use super::client::Client;
use super::error::EgressError;
use super::fetch_guarded::parse_url;
use super::options::USER_AGENT as OUR_USER_AGENT;

impl Client {
    /// Checks that [`Client::post_guarded`] would connect to a URL at the moment, within `limit`. A name that has no address yet is accepted, because
    /// each POST checks again.
    ///
    /// # Errors
    /// Why it would not connect.
    pub async fn check_guarded_url(&self, url: &str, limit: Duration) -> Result<(), EgressError> {
        let url = parse_url(url)?;
        match timeout(limit, self.guarded.addresses(&url)).await {
            Ok(Err(error @ (EgressError::NotPublic | EgressError::InvalidUrl(_)))) => Err(error),
            _ => Ok(()),
        }
    }

    /// Posts `body`, JSON, to a client-given URL with `headers` and returns the status of the response, whose body is not read.
    ///
    /// Only http and https, only public addresses and those allowed by configuration. No redirect is followed: its
    /// status is returned like any other. `limit` is the timeout for everything, DNS lookup included.
    pub async fn post_guarded(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
    ) -> Result<u16, EgressError> {
        let posting = async {
            let url = parse_url(url)?;
            let request = post_request(&url, headers, body)?;
            let (response, _connection) = self.guarded.exchange(&url, request).await?;
            Ok(response.status().as_u16())
        };
        timeout(limit, posting)
            .await
            .map_err(|_| EgressError::TimedOut(limit))?
    }
}

fn post_request(
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, EgressError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request = Request::post(path)
        .header(HOST, host)
        .body(Full::new(body))
        .map_err(|_| EgressError::InvalidUrl("is not a valid URL"))?;
    let own = request.headers_mut();
    own.extend(headers);
    own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    own.insert(USER_AGENT, HeaderValue::from_static(OUR_USER_AGENT));
    own.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}
