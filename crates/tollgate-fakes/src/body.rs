//! Response bodies that are sent step by step: pieces, zeros, a stall, a reset, an endless body.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;

use crate::bill::Bill;
use crate::socket::Reset;

type Frames = Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>;

/// The body of every response.
pub(crate) type Body = StreamBody<Frames>;

/// A step of sending a body.
pub(crate) enum Step {
    Send(Bytes),
    /// Sends that many zeros, a piece at a time.
    Zeros(u64),
    /// Resets the connection.
    Reset,
    /// Sends nothing more, but does not end the body.
    Stall,
    /// Sends pieces, which are generated from their number, until the client disconnects.
    Endless(Box<dyn Fn(u64) -> Bytes + Send>),
}

/// Counts an exchange as in flight until it is dropped.
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    pub(crate) fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The delay before a reset, so that the bytes sent before it are transmitted.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// A piece of zeros that is sent at once.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

struct Delivery {
    steps: std::vec::IntoIter<Step>,
    /// The number of zeros that are still to be sent.
    zeros: u64,
    endless: Option<Box<dyn Fn(u64) -> Bytes + Send>>,
    /// The number of pieces of `Step::Send` that were sent.
    sent: u64,
    /// The number of pieces of `endless` that were sent.
    endless_sent: u64,
    delay: Duration,
    reset: Reset,
    bill: Option<Arc<Bill>>,
    _flight: Option<InFlight>,
}

/// A body of these steps, with a pause of `delay` before each piece but the first. `bill` records the sent bytes.
pub(crate) fn body(
    steps: Vec<Step>,
    delay: Duration,
    reset: Reset,
    bill: Option<Arc<Bill>>,
    flight: Option<InFlight>,
) -> Body {
    let delivery = Delivery {
        steps: steps.into_iter(),
        zeros: 0,
        endless: None,
        sent: 0,
        endless_sent: 0,
        delay,
        reset,
        bill,
        _flight: flight,
    };
    let frames = stream::unfold(delivery, |mut delivery| async move {
        let frame = delivery.next().await?;
        if let (Some(bill), Ok(bytes)) = (&delivery.bill, &frame) {
            bill.sent(bytes.len());
        }
        Some((frame.map(Frame::data), delivery))
    });
    StreamBody::new(Box::pin(frames))
}

impl Delivery {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(make) = &self.endless {
            let bytes = make(self.endless_sent);
            self.endless_sent += 1;
            tokio::time::sleep(self.delay.max(Duration::from_millis(1))).await;
            return Some(Ok(bytes));
        }
        if self.zeros > 0 {
            return Some(Ok(self.some_zeros()));
        }
        match self.steps.next()? {
            Step::Zeros(count) => {
                self.zeros = count;
                Some(Ok(self.some_zeros()))
            }
            Step::Send(bytes) => {
                if self.sent > 0 {
                    self.pause().await;
                }
                self.sent += 1;
                Some(Ok(bytes))
            }
            Step::Reset => {
                tokio::time::sleep(BEFORE_RESET).await;
                self.reset.arm();
                Some(Err(io::Error::other("reset on purpose")))
            }
            Step::Stall => std::future::pending().await,
            Step::Endless(make) => {
                let bytes = make(0);
                self.endless_sent = 1;
                self.endless = Some(make);
                self.pause().await;
                Some(Ok(bytes))
            }
        }
    }

    fn some_zeros(&mut self) -> Bytes {
        let count = self.zeros.min(ZEROS.len() as u64);
        self.zeros -= count;
        Bytes::from_static(&ZEROS[..count as usize])
    }

    /// Waits, so that the bytes sent so far are transmitted as a piece of their own.
    async fn pause(&mut self) {
        if self.delay.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.delay).await;
        }
    }
}
