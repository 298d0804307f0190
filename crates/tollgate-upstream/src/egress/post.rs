//! Posts to client-given URLs: callbacks.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;
use tokio::time::timeout;
use url::Url;

use super::{Client, EgressError};

impl Client {
    /// Posts `body`, JSON, to a client-given URL with `headers`, and answers the status of the answer; its body is not read.
    ///
    /// Only http and https, only public addresses and those allowed by configuration. No redirect is followed: a redirect is
    /// an answer as any other. `limit` is for all of it, the look-up included.
    pub async fn post_guarded(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
    ) -> Result<u16, EgressError> {
        let posting = async {
            let url = super::guarded::parse(url)?;
            let request = request(&url, headers, body)?;
            let (answer, _connection) = self.guarded.exchange(&url, request).await?;
            Ok(answer.status().as_u16())
        };
        timeout(limit, posting)
            .await
            .map_err(|_| EgressError::TimedOut(limit))?
    }
}

fn request(
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, EgressError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request = Request::post(path)
        .header(HOST, host)
        .body(Full::new(body))
        .map_err(|_| EgressError::BadUrl("is not a valid URL"))?;
    let own = request.headers_mut();
    own.extend(headers);
    own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    own.insert(USER_AGENT, HeaderValue::from_static(super::USER_AGENT));
    own.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}
