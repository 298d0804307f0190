//! Requests to where the operator points: pooled connections, HTTP/1.1 and HTTP/2, streamed bodies.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::{Either, Full};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::parts::{Parts, PartsBody};
use super::pool::Reply;
use super::{Client, EgressError};

/// The body of a request: bytes, or [`Parts`] that are read while they are sent.
/// Small: a connection has places for many requests.
pub type RequestBody = Either<Full<Bytes>, Pin<Box<PartsBody>>>;

/// A request body of `bytes`.
pub fn body(bytes: impl Into<Bytes>) -> RequestBody {
    Either::Left(Full::new(bytes.into()))
}

impl From<Parts> for RequestBody {
    fn from(parts: Parts) -> Self {
        Self::Right(Box::pin(parts.into()))
    }
}

/// How long to wait for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection, resolving, TCP and TLS together; none for the client's own limit.
    pub connect: Option<Duration>,
    /// From sending to the head of the answer, a connection made on the way included.
    pub first_byte: Duration,
    /// From one part of the body to the next.
    pub idle: Duration,
}

impl Client {
    /// Sends `request`, whose URI is absolute, and returns once the head of the answer is there.
    /// No redirect is followed. Dropping the future or the body ends the exchange.
    pub fn send(
        &self,
        mut request: Request<RequestBody>,
        timeouts: Timeouts,
    ) -> impl Future<Output = Result<Response<ResponseBody>, EgressError>> + Send + use<> {
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(super::USER_AGENT));
        let asking = self.plain.ask(request, timeouts.connect);
        // Not an async block: that would have two places for what it waits for.
        timeout(timeouts.first_byte, asking).map(move |answer| {
            let answer = answer.map_err(|_| EgressError::TimedOut(timeouts.first_byte))??;
            Ok(answer.map(|reply| ResponseBody {
                reply,
                idle: timeouts.idle,
                waiting: None,
                alarm: None,
            }))
        })
    }
}

/// The body of an answer, read part by part.
#[derive(Debug)]
pub struct ResponseBody {
    reply: Reply,
    idle: Duration,
    /// Since when the next part is waited for, also by a [`ResponseBody::chunk`] that was dropped.
    waiting: Option<Instant>,
    /// One timer for the whole body, set again only when it has gone off: parts that come in time cost it nothing.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    /// The next part, or none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EgressError>> {
        loop {
            let Poll::Ready(frame) = self.reply.poll_frame(context) else {
                ready!(self.poll_silence(context));
                return Poll::Ready(Err(EgressError::TimedOut(self.idle)));
            };
            self.waiting = None;
            match frame.transpose().map_err(|_| EgressError::Broken)? {
                None => return Poll::Ready(Ok(None)),
                // Trailers say nothing that we need.
                Some(frame) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                    _ => {}
                },
            }
        }
    }

    /// Ready when nothing has come for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting.get_or_insert_with(Instant::now);
        let end = since
            .checked_add(self.idle)
            .unwrap_or_else(|| since + FOREVER);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        // It was set for an earlier wait, or by one: never too late, maybe too early.
        while alarm.as_mut().poll(context).is_ready() {
            if alarm.deadline() >= end {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(end);
        }
        Poll::Pending
    }

    /// All of it, if it is no larger than `max` bytes.
    pub async fn collect(mut self, max: usize) -> Result<Bytes, EgressError> {
        let fits = |length: usize| match length > max {
            true => Err(EgressError::TooLarge { max: max as u64 }),
            false => Ok(()),
        };
        // Most answers are one part: no copy.
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        fits(first.len())?;
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::from(&*first);
        let mut next = Some(second);
        while let Some(part) = next {
            fits(all.len() + part.len())?;
            all.extend_from_slice(&part);
            next = self.chunk().await?;
        }
        Ok(all.freeze())
    }
}

/// A wait beyond all counting.
const FOREVER: Duration = Duration::from_secs(86_400 * 365);
