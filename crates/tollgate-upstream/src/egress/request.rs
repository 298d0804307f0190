//! Sends requests to URLs that the operator configured: pooled connections, HTTP/1.1 and HTTP/2, timeouts, streamed bodies.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::client::Client;
use super::error::EgressError;
use super::options::USER_AGENT as OUR_USER_AGENT;
use super::pool::PooledBody;
use super::streamed_body::RequestBody;

/// Timeouts of one request.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The timeout for a connection: DNS lookup, TCP and TLS together. `None` for the client's default.
    pub connect: Option<Duration>,
    /// The timeout from sending the request to the head of the response, including the time to connect.
    pub first_byte: Duration,
    /// The timeout between two chunks of the body.
    pub idle: Duration,
}

impl Client {
    /// Sends `request`, whose URI is absolute, and returns when the head of the response has arrived. Redirects are not
    /// followed. Dropping the future or the body aborts the exchange.
    pub fn send(
        &self,
        mut request: Request<RequestBody>,
        timeouts: Timeouts,
    ) -> impl Future<Output = Result<Response<ResponseBody>, EgressError>> + Send + use<> {
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(OUR_USER_AGENT));
        let sending = Arc::clone(&self.pool).send(request, timeouts.connect);
        // Not an async block: its state would hold the inner future twice.
        timeout(timeouts.first_byte, sending).map(move |head| {
            let head = head.map_err(|_| EgressError::TimedOut(timeouts.first_byte))??;
            Ok(head.map(|body| ResponseBody {
                body,
                idle: timeouts.idle,
                waiting_since: None,
                timer: None,
            }))
        })
    }
}

/// The body of a response, read chunk by chunk.
#[derive(Debug)]
pub struct ResponseBody {
    body: PooledBody,
    idle: Duration,
    /// The time since when the next chunk is awaited, including by a [`ResponseBody::chunk`] that was dropped.
    waiting_since: Option<Instant>,
    /// One timer for the complete body, reset only after it fired, so that chunks which arrive in time cost nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    /// The next chunk. `None` at the end of the body.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EgressError>> {
        loop {
            let Poll::Ready(frame) = self.body.poll_frame(context) else {
                ready!(self.poll_idle_timeout(context));
                return Poll::Ready(Err(EgressError::TimedOut(self.idle)));
            };
            self.waiting_since = None;
            match frame.transpose().map_err(|_| EgressError::Broken)? {
                None => return Poll::Ready(Ok(None)),
                // Trailers are ignored.
                Some(frame) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                    _ => {}
                },
            }
        }
    }

    /// Ready when nothing has arrived for `idle`.
    fn poll_idle_timeout(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let deadline = since
            .checked_add(self.idle)
            .unwrap_or_else(|| since + NO_TIMEOUT);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        // The timer may have been set for an earlier chunk: it may fire too early, but never too late.
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// The complete body, if it has at most `max` bytes.
    pub async fn collect(mut self, max: usize) -> Result<Bytes, EgressError> {
        let fits = |length: usize| match length > max {
            true => Err(EgressError::TooLarge { max: max as u64 }),
            false => Ok(()),
        };
        // Most bodies are one chunk, which is returned without a copy.
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        fits(first.len())?;
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::from(&*first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            fits(all.len() + chunk.len())?;
            all.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(all.freeze())
    }
}

/// Used instead of an idle timeout that is too large to add to an instant.
const NO_TIMEOUT: Duration = Duration::from_secs(86_400 * 365);
