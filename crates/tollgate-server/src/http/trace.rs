//! The layer around every request: request id, one log line, metrics, rate-limit and CORS headers, and a guard against panics.

use std::any::Any;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::BoxError;
use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use hyper::body::Body as HttpBody;
use ipnet::IpNet;
use tollgate_core::{ApiError, Clock};
use tollgate_store::Key;
use tower_layer::Layer;
use tower_service::Service;

use crate::auth::limits::RateLimiter;
use crate::http::body_drain::UnreadBody;
use crate::http::client_address::{PeerAddress, client_address};
use crate::http::reply::ErrorResponse;
use crate::http::request_id::{RequestId, X_REQUEST_ID};
use crate::http::request_notes::{RequestNotes, ResponseNotes};
use crate::logging;
use crate::metrics::{Metrics, RouteMetrics};
use crate::otel::RequestSpan;

/// The route label of paths that do not exist.
const NO_ROUTE: &str = "none";
/// The status in the log line of a request whose connection ended before its response.
const NO_RESPONSE: u16 = 499;

/// The state that tracing requests needs.
pub struct TraceContext {
    /// Counts requests by route and status.
    pub metrics: Arc<Metrics>,
    /// Rate limits, for the `x-ratelimit-*` headers.
    pub limits: RateLimiter,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// Networks of proxies that report the client's address.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether browser pages of any origin may read responses of a path (CORS).
    pub allows_any_origin: fn(&str) -> bool,
}

/// Traces every request of a router. A separate layer, because axum's `middleware::from_fn` clones and boxes each route again for every request.
#[derive(Clone)]
pub struct TraceLayer(pub Arc<TraceContext>);

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> TraceService<S> {
        TraceService {
            context: Arc::clone(&self.0),
            inner,
        }
    }
}

/// The service that [`TraceLayer`] returns.
#[derive(Clone)]
pub struct TraceService<S> {
    context: Arc<TraceContext>,
    inner: S,
}

impl<S> Service<Request> for TraceService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = TracedResponse;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        let peer = request.extensions().get::<PeerAddress>().copied();
        trace_request(
            &self.context,
            route,
            peer,
            request,
            |mut request, id, notes| {
                request.extensions_mut().insert(id);
                request.extensions_mut().insert(notes);
                self.inner.call(request)
            },
        )
    }
}

/// The response of a traced request.
pub type TracedResponse = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Runs `handler` on one request, with the request id, log line, metrics, headers and guard against panics of this module.
pub fn trace_request<B, F>(
    context: &Arc<TraceContext>,
    route: &str,
    peer: Option<PeerAddress>,
    request: http::Request<B>,
    handler: impl FnOnce(Request, RequestId, RequestNotes) -> F,
) -> TracedResponse
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    let context = Arc::clone(context);
    let mut trace = RequestTrace::begin(&context, route, peer, &request);
    let (unread, request) = UnreadBody::watch(request);
    trace.unread = unread;
    let response = handler(request, trace.request_id.clone(), trace.notes.clone());
    let response = AssertUnwindSafe(response).catch_unwind();
    Box::pin(async move {
        let mut response = match response.await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(panic) => response_after_panic(&*panic),
        };
        if let Some(unread) = &trace.unread {
            unread.drain(&mut response);
        }
        trace.finish(&context, &mut response);
        Ok(response)
    })
}

/// What is known about a request before its response.
struct RequestTrace {
    started: Instant,
    request_id: RequestId,
    notes: RequestNotes,
    method: Method,
    uri: Uri,
    client: Option<IpAddr>,
    route: Arc<RouteMetrics>,
    is_cross_origin: bool,
    unread: Option<UnreadBody>,
    is_finished: bool,
}

impl RequestTrace {
    fn begin<B>(
        context: &TraceContext,
        route: &str,
        peer: Option<PeerAddress>,
        request: &http::Request<B>,
    ) -> Self {
        let (headers, proxies) = (request.headers(), &context.trusted_proxies);
        let notes = RequestNotes::default();
        let span = RequestSpan::begin(headers, route);
        let request_id = RequestId::for_request(request, span.as_ref());
        if let Some(span) = span {
            notes.set_span(span);
        }
        Self {
            client: peer.map(|peer| client_address(peer.0.ip(), headers, proxies)),
            started: Instant::now(),
            request_id,
            notes,
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: route_metrics(&context.metrics, route, request.method()),
            is_cross_origin: request.headers().contains_key(header::ORIGIN),
            unread: None,
            is_finished: false,
        }
    }

    /// Adds the headers, counts the request, and schedules its log line.
    fn finish(&mut self, context: &TraceContext, response: &mut Response) {
        let (request_id, path) = (&self.request_id, self.uri.path());
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, request_id.text.clone());
        if path.starts_with("/anthropic/") {
            // Anthropic's SDKs read the id from this header.
            headers.insert("request-id", request_id.text.clone());
        }
        if self.is_cross_origin && (context.allows_any_origin)(path) {
            allow_any_origin(response);
        }
        let key = self.notes.key();
        if let Some(key) = key.filter(|_| self.method == Method::POST) {
            add_rate_limit_headers(context, key, response);
        }
        let elapsed = self.started.elapsed();
        let status = response.status().as_u16();
        let span = self.request_id.trace;
        self.route.count(status, elapsed.as_secs_f64(), span);
        self.note_response(status);
    }

    /// Schedules the log line and the end of the span for when all work on the request has ended.
    fn note_response(&mut self, status: u16) {
        self.is_finished = true;
        let is_logged = logging::is_request_logged(status);
        if is_logged || self.request_id.trace.is_some() {
            self.notes.set_response(ResponseNotes {
                method: std::mem::take(&mut self.method),
                path: self.uri.path().into(),
                request_id: self.request_id.clone(),
                client: self.client,
                started: self.started,
                status,
                is_logged,
                elapsed: self.started.elapsed(),
            });
        }
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        if !self.is_finished {
            self.note_response(NO_RESPONSE);
        }
    }
}

/// Adds `x-ratelimit-*` headers for a key with a limit of requests.
fn add_rate_limit_headers(context: &TraceContext, key: &Key, response: &mut Response) {
    const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
    const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
    if let Some(left) = context.limits.remaining_requests(key, context.clock.now()) {
        let headers = response.headers_mut();
        headers.insert(LIMIT, left.limit.into());
        headers.insert(REMAINING, left.remaining.into());
        headers.insert(RESET, left.reset_s.into());
    }
}

/// Allows pages of any origin to read the response: keys are sent explicitly, so there are no cookies to abuse.
fn allow_any_origin(response: &mut Response) {
    const EXPOSED: &str = "x-request-id, request-id, retry-after, x-should-retry, x-tollgate-dropped, \
                           x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset";
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
}

fn route_metrics(metrics: &Metrics, route: &str, method: &Method) -> Arc<RouteMetrics> {
    // The client chooses the text of a method: all methods that no route has share one label.
    let method = match method.as_str() {
        known @ ("GET" | "POST" | "HEAD" | "OPTIONS" | "PUT" | "DELETE" | "PATCH") => known,
        _ => "other",
    };
    metrics.route(method, route)
}

fn response_after_panic(panic: &(dyn Any + Send)) -> Response {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message, "a handler panicked");
    ErrorResponse::from(ApiError::internal()).into_response()
}
