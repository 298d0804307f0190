//! Around every request: its id, one log line, its numbers, and a net under panics.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse as _, Response};
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use hyper::body::Body as HttpBody;
use tollgate_core::{ApiError, id};
use tollgate_store::Key;
use tower_layer::Layer;
use tower_service::Service;

use crate::app::App;
use crate::chat::mount;
use crate::http::leftover::Leftover;
use crate::http::reply::Failure;
use crate::log::{self, RequestLine};
use crate::metrics::{Metrics, RouteMetrics};

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a client.
const LONGEST: usize = 128;
/// The route of paths that do not exist.
const NO_ROUTE: &str = "none";
/// The request's id: the client's, or made here. On every response and in every log line.
#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id's text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    fn of<B>(request: &http::Request<B>) -> Self {
        let taken = request
            .headers()
            .get(HEADER)
            .filter(|v| acceptable(v.as_bytes()));
        let made =
            || HeaderValue::from_str(&id::request_id()).unwrap_or(HeaderValue::from_static("none"));
        Self(taken.cloned().unwrap_or_else(made))
    }
}

fn acceptable(id: &[u8]) -> bool {
    (1..=LONGEST).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(b))
}

/// What is learnt of a request on its way, for its log line.
#[derive(Debug, Clone, Default)]
pub struct RequestNotes(Arc<OnceLock<Arc<Key>>>);

impl RequestNotes {
    /// The key that came with it.
    pub fn set_key(&self, key: &Arc<Key>) {
        let _ = self.0.set(Arc::clone(key));
    }
}

/// Puts it all around `routes`.
pub fn around(routes: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    routes.layer(Trace(Arc::clone(app)))
}

/// A layer of its own kind: axum's functions as layers clone and box each route once more for every request.
#[derive(Clone)]
struct Trace(Arc<App>);

impl<S> Layer<S> for Trace {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced {
            app: Arc::clone(&self.0),
            inner,
        }
    }
}

#[derive(Clone)]
struct Traced<S> {
    app: Arc<App>,
    inner: S,
}

impl<S> Service<Request> for Traced<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        traced(&self.app, route, request, |mut request, id, notes| {
            request.extensions_mut().insert(id);
            request.extensions_mut().insert(notes);
            self.inner.call(request)
        })
    }
}

/// An answer on its way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Answers one request by `answer`, with all of it around.
pub fn traced<B, F>(
    app: &Arc<App>,
    route: &str,
    request: http::Request<B>,
    answer: impl FnOnce(Request, RequestId, RequestNotes) -> F,
) -> Answering
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    let app = Arc::clone(app);
    let mut entry = Entry::of(&app, route, &request);
    let (leftover, request) = Leftover::watch(request);
    entry.leftover = leftover;
    let answering = answer(request, entry.request_id.clone(), entry.notes.clone());
    let answering = AssertUnwindSafe(answering).catch_unwind();
    Box::pin(async move {
        let mut response = match answering.await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(panic) => after_panic(&*panic),
        };
        if let Some(leftover) = &entry.leftover {
            leftover.clear(&mut response).await;
        }
        entry.sign(&app, &mut response);
        Ok(response)
    })
}

/// What is known of a request before it is answered.
struct Entry {
    begun: Instant,
    request_id: RequestId,
    notes: RequestNotes,
    method: Method,
    uri: Uri,
    route: Arc<RouteMetrics>,
    is_cross_origin: bool,
    leftover: Option<Leftover>,
}

impl Entry {
    fn of<B>(app: &App, route: &str, request: &http::Request<B>) -> Self {
        Self {
            begun: Instant::now(),
            request_id: RequestId::of(request),
            notes: RequestNotes::default(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: route_metrics(&app.metrics, route, request.method()),
            is_cross_origin: request.headers().contains_key(header::ORIGIN),
            leftover: None,
        }
    }

    /// Headers, numbers and the log line.
    fn sign(&self, app: &App, response: &mut Response) {
        let (request_id, path) = (&self.request_id, self.uri.path());
        let headers = response.headers_mut();
        headers.insert(HEADER, request_id.0.clone());
        if path.starts_with("/anthropic/") {
            // Where Anthropic's SDKs look for it.
            headers.insert("request-id", request_id.0.clone());
        }
        if self.is_cross_origin && mount::is_chat(path) {
            open_to_browsers(response);
        }
        let key = self.notes.0.get();
        if let Some(key) = key.filter(|_| self.method == Method::POST) {
            show_standing(app, key, response);
        }
        let took = self.begun.elapsed();
        let status = response.status().as_u16();
        self.route.count(status, took.as_secs_f64());
        log::request(&RequestLine {
            method: self.method.as_str(),
            path,
            status,
            micros: took.as_micros(),
            request_id: request_id.as_str(),
            key_id: key.map(|key| key.id.as_str()),
        });
    }
}

/// What a limited key has left (DECISIONS.md › Status codes).
fn show_standing(app: &App, key: &Key, response: &mut Response) {
    const NAMES: [HeaderName; 3] = [
        HeaderName::from_static("x-ratelimit-limit"),
        HeaderName::from_static("x-ratelimit-remaining"),
        HeaderName::from_static("x-ratelimit-reset"),
    ];
    if let Some(standing) = app.limits.standing(key, app.clock.now()) {
        for (name, number) in NAMES.into_iter().zip(standing) {
            response.headers_mut().insert(name, number.into());
        }
    }
}

/// Browsers may read what comes back from a page of any origin: keys are sent by hand, there are no cookies to abuse.
fn open_to_browsers(response: &mut Response) {
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
    // A method is the client's text: the ones that no route has share a name.
    let method = match method.as_str() {
        known @ ("GET" | "POST" | "HEAD" | "OPTIONS" | "PUT" | "DELETE" | "PATCH") => known,
        _ => "other",
    };
    metrics.route(method, route)
}

fn after_panic(panic: &(dyn Any + Send)) -> Response {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = said, "a handler panicked");
    Failure::from(ApiError::internal()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients_are_taken_only_when_harmless() {
        for good in ["a", "req_1.2:3-4", &"x".repeat(128)] {
            assert!(acceptable(good.as_bytes()), "{good}");
        }
        for bad in ["", "a b", "a\"b", "ü", &"x".repeat(129)] {
            assert!(!acceptable(bad.as_bytes()), "{bad}");
        }
    }
}
