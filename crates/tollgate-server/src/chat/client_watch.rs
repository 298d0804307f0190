//! Handles requests whose client leaves before the response begins: if the request was sent to an upstream, it is handled to its end, so that what
//! the upstream charges is charged to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::chat::read_on::{self, MAX_READ_ON, MAX_READ_ON_VISIBLE};
use crate::spawn::spawn_detached;

/// No upstream has received the request.
const NONE: u8 = 0;
/// The upstream's output is visible as it is generated.
const VISIBLE: u8 = 1;
/// The upstream's output, or a part of it, is visible only at its end.
const HIDDEN: u8 = 2;

/// Whether the client has left, and whether its request was sent to an upstream.
#[derive(Debug, Default)]
pub struct ClientWatch {
    upstream: AtomicU8,
    is_gone: AtomicBool,
}

impl ClientWatch {
    /// Records that the request is sent to an upstream now.
    pub fn request_sent(&self, is_hidden: bool) {
        let upstream = if is_hidden { HIDDEN } else { VISIBLE };
        self.upstream.store(upstream, Ordering::Relaxed);
    }

    /// Records that the upstream failed: no upstream has the request.
    pub fn request_failed(&self) {
        self.upstream.store(NONE, Ordering::Relaxed);
    }

    /// Whether the client has left. No other upstream is tried then.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Records that the client has left. Returns how long to wait for the upstream; `None` if no upstream has the request.
    fn record_leave(&self) -> Option<Duration> {
        self.is_gone.store(true, Ordering::Relaxed);
        match self.upstream.load(Ordering::Relaxed) {
            NONE => None,
            VISIBLE => Some(MAX_READ_ON_VISIBLE),
            _ => Some(MAX_READ_ON),
        }
    }
}

/// The handling of a request. If it is dropped after the request was sent to an upstream, it continues in the background for a while.
pub struct WatchedRequest<F: Future + Send + 'static> {
    handler: Option<Pin<Box<F>>>,
    watch: Arc<ClientWatch>,
    closing: TaskTracker,
}

impl<F: Future + Send + 'static> WatchedRequest<F> {
    /// Handles a request by polling `handler`. Shutdown waits for the tasks in `closing`.
    pub fn new(handler: F, watch: Arc<ClientWatch>, closing: TaskTracker) -> Self {
        Self {
            handler: Some(Box::pin(handler)),
            watch,
            closing,
        }
    }
}

impl<F: Future + Send + 'static> Future for WatchedRequest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(handler) = &mut self.handler else {
            return Poll::Pending;
        };
        let output = std::task::ready!(handler.as_mut().poll(cx));
        self.handler = None;
        Poll::Ready(output)
    }
}

impl<F: Future + Send + 'static> Drop for WatchedRequest<F> {
    fn drop(&mut self) {
        let Some(handler) = self.handler.take() else {
            return;
        };
        let Some(time) = self.watch.record_leave() else {
            return;
        };
        let closing = self.closing.clone();
        spawn_detached(self.closing.track_future(async move {
            // When the handler is dropped, its bill settles itself.
            tokio::select! {
                _ = handler => {}
                () = read_on::sleep_unless_closing(time, &closing) => {}
            }
        }));
    }
}
