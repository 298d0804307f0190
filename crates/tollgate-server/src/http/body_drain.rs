//! Reads and drops what is left of a request's body when its response is ready (a request may be rejected because of its key, balance or path before
//! its body is read), so that the connection can be used again.
//!
//! A connection on which a part of a request is unread must be closed, and a client that is still sending would see a broken connection instead of a
//! response. So the response is sent at once, and the rest is read and dropped at the same time; if the rest is large, the response has `connection:
//! close`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Request, Version, header};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::body;

/// The largest rest, in bytes, after which the connection is used again.
const MAX_REUSED: u64 = 1024 * 1024;

/// Receives the body of a request if it is dropped before its end was read.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<Mutex<Option<Body>>>);

impl UnreadBody {
    /// Watches the request's body. `None` for a request without a body, for HTTP/2 (a stream ends by itself), and for `Expect: 100-continue` (the
    /// client has sent no body yet).
    pub(super) fn watch<B>(request: Request<B>) -> (Option<Self>, Request<Body>)
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let has_no_body = request.body().is_end_stream();
        let is_http1 = matches!(request.version(), Version::HTTP_10 | Version::HTTP_11);
        if has_no_body || !is_http1 || request.headers().contains_key(header::EXPECT) {
            return (None, request.map(Body::new));
        }
        let unread = Self::default();
        let request = request.map(|body| {
            Body::new(WatchedBody {
                body: Some(body),
                unread: unread.clone(),
            })
        });
        (Some(unread), request)
    }

    /// Reads and drops the unread rest while the response is sent; if the rest is known to be larger than [`MAX_REUSED`], sets `connection: close` on
    /// the response.
    pub(super) fn drain(&self, response: &mut Response) {
        let Some(rest) = self.lock().take() else {
            return;
        };
        if rest
            .size_hint()
            .upper()
            .is_some_and(|rest| rest > MAX_REUSED)
        {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        body::drain(rest);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Body>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is handed to [`UnreadBody`] if it is dropped before its end.
struct WatchedBody<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    body: Option<B>,
    unread: UnreadBody,
}

impl<B> HttpBody for WatchedBody<B>
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

impl<B> Drop for WatchedBody<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        if let Some(rest) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.unread.lock() = Some(Body::new(rest));
        }
    }
}
