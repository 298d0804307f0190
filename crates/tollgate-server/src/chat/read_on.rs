//! Handles a stream whose client has left. The upstream reports what it charges only at the end: if a part of the output is hidden until then, the
//! gateway reads on for up to 30 s; else for up to 0.5 s and 256 more bytes of text, because the end may have been sent already.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::TaskTracker;
use tollgate_chat::tokens;
use tollgate_upstream::ChatBody;

use crate::chat::billing::Bill;
use crate::chat::converter::StreamConverter;
use crate::routing::ChannelPermit;
use crate::spawn::spawn_detached;

/// How long the gateway reads on if only the upstream's usage shows how much output was hidden.
pub const MAX_READ_ON: Duration = Duration::from_secs(30);
/// How long the gateway reads on if all output was visible: the upstream may have sent the last events already.
pub const MAX_READ_ON_VISIBLE: Duration = Duration::from_millis(500);
/// Bytes of text that may still be received of a stream whose output was all visible: more text means that the stream is not about to end.
const MAX_TRAILING_TEXT: u64 = 256;
/// How often the gateway checks whether it is shutting down.
const CLOSING_CHECK: Duration = Duration::from_millis(250);
/// How long the gateway reads on after it has noticed a shutdown.
const MAX_READ_ON_CLOSING: Duration = Duration::from_secs(3);

/// Returns after `time`, or about 3 s after the shutdown has begun to wait for the tasks in `closing`, whichever is earlier.
pub async fn sleep_unless_closing(time: Duration, closing: &TaskTracker) {
    let mut end = Instant::now() + time;
    let mut is_closing = false;
    while Instant::now() < end {
        if closing.is_closed() && !is_closing {
            is_closing = true;
            end = end.min(Instant::now() + MAX_READ_ON_CLOSING);
        }
        let left = end.saturating_duration_since(Instant::now());
        sleep(left.min(CLOSING_CHECK)).await;
    }
}

/// A stream whose client has left.
pub struct AbandonedStream {
    /// The upstream's stream.
    pub body: ChatBody,
    /// Counts the output that is received.
    pub converter: StreamConverter,
    /// Whether the upstream's body has ended.
    pub is_over: bool,
    /// The bill, which settles itself when it is dropped.
    pub bill: Bill,
    /// The channel's permit, which is kept until the upstream's stream is dropped.
    pub permit: ChannelPermit,
}

impl AbandonedStream {
    /// Reads on as long as necessary, in a task that shutdown waits for, and settles the bill.
    pub fn settle_in_background(mut self) {
        self.bill.client_left();
        let closing = self.bill.closing();
        spawn_detached(closing.clone().track_future(async move {
            self.settle(&closing).await;
        }));
    }

    async fn settle(mut self, closing: &TaskTracker) {
        let time = match self.bill.is_output_hidden() {
            true => MAX_READ_ON,
            false => MAX_READ_ON_VISIBLE,
        };
        let is_complete = tokio::select! {
            is_complete = self.read_on(Instant::now() + time) => is_complete,
            () = sleep_unless_closing(time, closing) => false,
        };
        self.bill.delivered = self.converter.delivered(is_complete);
        if is_complete {
            self.permit.record_success();
        }
        // The upstream's stream is dropped first; then the bill settles itself.
        let Self { body, bill, .. } = self;
        drop(body);
        drop(bill);
    }

    /// Reads to the end of the stream. Returns false if the end is not received by `deadline`, if the stream breaks off, if more output is received
    /// than was held for, or if a stream whose output is all visible continues for more than [`MAX_TRAILING_TEXT`].
    async fn read_on(&mut self, deadline: Instant) -> bool {
        let max_output = self.bill.held_output();
        let is_hidden = self.bill.is_output_hidden();
        let shown_bytes = self.converter.delivered(false).text_bytes;
        while !self.is_over {
            let Ok(Ok(chunk)) = timeout_at(deadline, self.body.chunk()).await else {
                return false;
            };
            self.is_over = chunk.is_none();
            let converted = match chunk {
                Some(chunk) => self.converter.push(chunk),
                None => self.converter.finish(),
            };
            if converted.is_err() {
                return false;
            }
            let text_bytes = self.converter.delivered(false).text_bytes;
            if max_output.is_some_and(|max| tokens::estimate_bytes(text_bytes) > max) {
                return false;
            }
            if !is_hidden && text_bytes > shown_bytes + MAX_TRAILING_TEXT {
                return false;
            }
        }
        true
    }
}
