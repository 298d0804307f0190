//! What a request's body still holds when its answer is ready: refusals by key, balance or path come before the body was read.
//!
//! A connection with half a request in it cannot be used again, and is closed; a client that has just begun its next request on
//! it is told of a broken connection instead of an answer. So a small rest is read and thrown away, and where there is more, the
//! answer says that the connection ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Request, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::timeout;

/// The most that is thrown away.
const REST_MAX: usize = 1024 * 1024;
/// How long its sender may take.
const REST_TIME: Duration = Duration::from_secs(2);

/// Where an unread body ends up.
#[derive(Clone, Default)]
pub(super) struct Leftover(Arc<Mutex<Option<Body>>>);

impl Leftover {
    /// Watches the request's body; none for a request that has none, or holds it back until it is asked for.
    pub(super) fn watch<B>(request: Request<B>) -> (Option<Self>, Request<Body>)
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let has_none = request.body().is_end_stream();
        let is_old = matches!(request.version(), Version::HTTP_10 | Version::HTTP_11);
        if has_none || !is_old || request.headers().contains_key(header::EXPECT) {
            return (None, request.map(Body::new));
        }
        let leftover = Self::default();
        let request = request.map(|body| {
            Body::new(Watched {
                body: Some(body),
                leftover: leftover.clone(),
            })
        });
        (Some(leftover), request)
    }

    /// Throws away what nobody read, before the answer is sent.
    pub(super) async fn clear(&self, response: &mut Response) {
        let Some(rest) = self.place().take() else {
            return;
        };
        let is_clear = timeout(REST_TIME, throw_away(rest)).await;
        if !is_clear.unwrap_or(false) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Body>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the body's end was reached.
async fn throw_away(mut body: Body) -> bool {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > REST_MAX {
            return false;
        }
    }
    true
}

/// A body that goes back when it is dropped before its end.
struct Watched<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    body: Option<B>,
    leftover: Leftover,
}

impl<B> HttpBody for Watched<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(HttpBody::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl<B> Drop for Watched<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        if let Some(rest) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.leftover.place() = Some(Body::new(rest));
        }
    }
}
