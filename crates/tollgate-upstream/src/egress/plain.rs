//! Requests to where the operator points: pooled connections, HTTP/1.1 and HTTP/2, streamed bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

use super::{Client, EgressError};

/// The body of a request: bytes at once, or a stream.
pub type RequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A request body of `bytes`.
pub fn body(bytes: impl Into<Bytes>) -> RequestBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// How long to wait for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From sending to the head of the answer, a connection made on the way included.
    pub first_byte: Duration,
    /// From one part of the body to the next.
    pub idle: Duration,
}

/// Connections to providers.
#[derive(Clone)]
pub(super) struct Pool(Pooled<InTime<HttpsConnector<HttpConnector>>, RequestBody>);

impl Pool {
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // A chat's small chunks must not wait for one another.
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        let connector = InTime {
            connector,
            limit: connect_timeout,
        };
        Self(
            Pooled::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .build(connector),
        )
    }
}

impl Client {
    /// Sends `request`, whose URI is absolute, and returns once the head of the answer is there.
    /// No redirect is followed. Dropping the future or the body ends the exchange.
    pub async fn send(
        &self,
        mut request: Request<RequestBody>,
        timeouts: Timeouts,
    ) -> Result<Response<ResponseBody>, EgressError> {
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(super::USER_AGENT));
        let sent = timeout(timeouts.first_byte, self.plain.0.request(request));
        let response = sent
            .await
            .map_err(|_| EgressError::TimedOut(timeouts.first_byte))?
            .map_err(|error| {
                tracing::debug!(?error, "a request to a provider failed");
                if error.is_connect() {
                    EgressError::Connect
                } else {
                    EgressError::Broken
                }
            })?;
        Ok(response.map(|incoming| ResponseBody {
            incoming,
            idle: timeouts.idle,
        }))
    }
}

/// The body of an answer, read part by part.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    idle: Duration,
}

impl ResponseBody {
    /// The next part, or none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        loop {
            let frame = timeout(self.idle, self.incoming.frame())
                .await
                .map_err(|_| EgressError::TimedOut(self.idle))?;
            match frame.transpose().map_err(|_| EgressError::Broken)? {
                None => return Ok(None),
                // Trailers say nothing that we need.
                Some(frame) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
            }
        }
    }

    /// All of it, if it is no larger than `max` bytes.
    pub async fn collect(mut self, max: usize) -> Result<Bytes, EgressError> {
        let mut all = BytesMut::new();
        while let Some(part) = self.chunk().await? {
            if all.len() + part.len() > max {
                return Err(EgressError::TooLarge { max: max as u64 });
            }
            all.extend_from_slice(&part);
        }
        Ok(all.freeze())
    }
}

/// A connector that gives up: the one inside limits TCP alone, not resolving and TLS.
#[derive(Clone)]
struct InTime<C> {
    connector: C,
    limit: Duration,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

impl<C> Service<Uri> for InTime<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Future: Send + 'static,
    C::Response: 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Connecting<C::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(self.limit, self.connector.call(uri));
        Box::pin(async move { connecting.await? })
    }
}
