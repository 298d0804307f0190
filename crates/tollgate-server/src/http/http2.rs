//! HTTP/2 streams: counts the open ones, and ends those whose client reads nothing.
//!
//! The write timeout of a connection does not apply to a stream whose flow-control window stays closed while other streams and pings continue. A
//! stream's task takes the next piece of its body only after the previous one was handed to the connection, so the time since the last piece shows
//! how long the window has been closed.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::rt::{Executor, Read, Write};
use hyper::server::conn::http2;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::connections::{WRITE_TIMEOUT, close_gracefully, log_end};

/// How long a connection without streams stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Concurrent streams of one connection, and the interval and timeout of pings.
const MAX_STREAMS: u32 = 128;
const PING: Duration = Duration::from_secs(20);
/// Largest headers of a request, in bytes, when they are decoded.
const MAX_HEADERS: u32 = 32 * 1024;
/// Streams that a client may reset before they are accepted, and resets that it may cause, before the connection is closed (rapid reset,
/// CVE-2023-44487).
const MAX_PENDING_RESETS: usize = 20;
const MAX_PROVOKED_RESETS: usize = 256;
/// Bytes of one stream that wait to be sent; also the largest piece of a body.
const SEND_BUFFER: usize = 64 * 1024;

/// Builds connections whose streams are counted in `streams`.
fn builder(streams: &Arc<Streams>) -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(StreamExecutor(Arc::clone(streams)));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_PROVOKED_RESETS)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

/// Serves an HTTP/2 connection until it ends, is idle, or `closing` fires and its streams have ended.
pub(super) async fn serve<I, S>(stream: I, service: S, closing: impl Future<Output = ()>)
where
    I: Read + Write + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = http::Response<StreamBody>, Error = Infallible>,
    S::Future: Send + 'static,
{
    let streams = Arc::new(Streams::default());
    let connection = pin!(builder(&streams).serve_connection(stream, service));
    let idle = CancellationToken::new();
    let closing = async {
        tokio::select! {
            () = closing => {}
            () = streams.idle() => idle.cancel(),
        }
    };
    let unfinished = async {
        idle.cancelled().await;
        sleep(WRITE_TIMEOUT).await;
    };
    tokio::select! {
        ended = close_gracefully(connection, closing) => if let Err(e) = ended { log_end(&e) },
        () = unfinished => {}
    }
}

/// The open streams of one connection.
#[derive(Default)]
struct Streams {
    open: AtomicUsize,
    changed: Notify,
}

impl Streams {
    /// Waits until the connection has had no stream for a minute.
    async fn idle(&self) {
        loop {
            if self.open.load(Ordering::Acquire) > 0 {
                self.changed.notified().await;
                continue;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(IDLE_TIMEOUT) => return,
            }
        }
    }
}

/// Spawns the streams of one connection.
#[derive(Clone)]
struct StreamExecutor(Arc<Streams>);

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.open.fetch_add(1, Ordering::AcqRel);
        self.0.changed.notify_one();
        let task = StreamTask {
            stream: Box::pin(stream),
            sent_at: None,
            timer: None,
            _open: OpenStream(Arc::clone(&self.0)),
        };
        TokioExecutor::new().execute(task);
    }
}

/// A stream that is included in the count of its connection.
struct OpenStream(Arc<Streams>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }
}

tokio::task_local! {
    /// When the running stream's last piece of body was taken, if that piece may still wait for the window.
    static SENT_AT: Cell<Option<Instant>>;
}

/// A stream's task; it is reset if its window stays closed for [`WRITE_TIMEOUT`].
struct StreamTask<F> {
    stream: Pin<Box<F>>,
    sent_at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    _open: OpenStream,
}

impl<F: Future<Output = ()>> Future for StreamTask<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let polled = SENT_AT.sync_scope(Cell::new(this.sent_at), || {
            let polled = this.stream.as_mut().poll(context);
            this.sent_at = SENT_AT.with(Cell::get);
            polled
        });
        let Some(sent_at) = this.sent_at.filter(|_| polled.is_pending()) else {
            return polled;
        };
        let deadline = sent_at + WRITE_TIMEOUT;
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        // Dropping the stream resets it.
        timer.as_mut().poll(context)
    }
}

/// A response's body in small pieces, so that a slow client can be distinguished from one that reads nothing.
pub(super) struct StreamBody {
    body: Body,
    left: Bytes,
}

impl StreamBody {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            left: Bytes::new(),
        }
    }
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _ = SENT_AT.try_with(|sent_at| sent_at.set(None));
        if self.left.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(context);
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.left = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let len = self.left.len().min(SEND_BUFFER);
        let piece = self.left.split_to(len);
        let _ = SENT_AT.try_with(|sent_at| sent_at.set(Some(Instant::now())));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let left = self.left.len() as u64;
        let mut total = SizeHint::new();
        if let Some(upper) = hint.upper() {
            total.set_upper(upper + left);
        }
        total.set_lower(hint.lower() + left);
        total
    }
}

#[cfg(test)]
mod tests {
    use axum::response::Response;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::client::conn::http2 as client;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;

    use super::*;

    /// A client with windows of 64 KiB on a connection that is served, and the connection's end.
    async fn connect() -> (
        client::SendRequest<Empty<Bytes>>,
        tokio::task::JoinHandle<()>,
    ) {
        let (near, far) = tokio::io::duplex(1024 * 1024);
        let service = service_fn(|request: Request<Incoming>| async move {
            let len = request.uri().path()[1..].parse().unwrap();
            let body = StreamBody::new(Body::from(vec![b'x'; len]));
            Ok::<_, Infallible>(Response::new(body))
        });
        let ended = tokio::spawn(serve(TokioIo::new(far), service, std::future::pending()));
        let mut builder = client::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(64 * 1024)
            .initial_connection_window_size(1024 * 1024);
        let (sender, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection);
        (sender, ended)
    }

    fn request(len: usize) -> Request<Empty<Bytes>> {
        let uri = format!("http://gateway/{len}");
        Request::get(uri).body(Empty::new()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_streams_is_closed() {
        let (mut sender, ended) = connect().await;
        let started = Instant::now();
        let response = sender.send_request(request(5)).await.unwrap();
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes().len(), 5);
        ended.await.unwrap();
        assert!(started.elapsed() >= IDLE_TIMEOUT);
        assert!(sender.send_request(request(5)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_whose_window_stays_closed_is_reset_and_others_go_on() {
        let (mut sender, ended) = connect().await;
        let unread = sender.send_request(request(1_000_000)).await.unwrap();
        let slow = sender.send_request(request(1_000_000)).await.unwrap();
        let mut slow = slow.into_body();
        let mut received = 0;
        while let Some(frame) = slow.frame().await {
            received += frame.unwrap().into_data().unwrap().len();
            sleep(Duration::from_secs(2)).await;
        }
        assert_eq!(received, 1_000_000, "a slow client gets everything");
        let unread = unread.into_body().collect().await;
        assert!(unread.is_err(), "the stream was not reset");
        assert!(!ended.is_finished());
        let response = sender.send_request(request(5)).await.unwrap();
        assert!(response.into_body().collect().await.is_ok());
    }
}
