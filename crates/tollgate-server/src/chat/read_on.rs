//! A stream whose client has left. What the upstream charges for is known only at its end: where a part of the output is hidden
//! until then, the stream is read on for a while; else it is dropped at once, unless its end is already on the way.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::TaskTracker;
use tollgate_chat::tokens;
use tollgate_upstream::ChatBody;

use crate::chat::billing::Bill;
use crate::chat::converter::StreamConverter;
use crate::routing::ChannelPermit;
use crate::spawn::spawn_detached;

/// How long an upstream is read whose usage tells what was hidden.
pub const MAX_READ_ON: Duration = Duration::from_secs(30);
/// How long an upstream is read whose output was all visible: its last events may be on the way.
pub const MAX_WAIT: Duration = Duration::from_millis(500);
/// Bytes of text that may still come of a stream whose output was all visible: more means that its end is not on the way.
const MAX_TEXT_ON_THE_WAY: u64 = 256;
/// How often it is checked whether the server shuts down, and how long is read on then.
const CLOSING_CHECK: Duration = Duration::from_millis(250);
const MAX_WAIT_CLOSING: Duration = Duration::from_secs(3);

/// Returns after `time`, or soon after the server has begun to wait for what is left.
pub async fn end_of_time(time: Duration, closing: &TaskTracker) {
    let mut end = Instant::now() + time;
    let mut is_closing = false;
    while Instant::now() < end {
        if closing.is_closed() && !is_closing {
            is_closing = true;
            end = end.min(Instant::now() + MAX_WAIT_CLOSING);
        }
        let left = end.saturating_duration_since(Instant::now());
        sleep(left.min(CLOSING_CHECK)).await;
    }
}

/// A stream that nobody reads any more.
pub struct AbandonedStream {
    /// The upstream's stream.
    pub body: ChatBody,
    /// Counts what comes.
    pub converter: StreamConverter,
    /// Whether the upstream's body has ended.
    pub is_over: bool,
    /// Settles itself when it is dropped.
    pub bill: Bill,
    /// Kept until the upstream is dropped.
    pub permit: ChannelPermit,
}

impl AbandonedStream {
    /// Reads on as long as it takes, in a task that shutdown waits for, and settles.
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
            false => MAX_WAIT,
        };
        let is_complete = tokio::select! {
            is_complete = self.read_on(Instant::now() + time) => is_complete,
            () = end_of_time(time, closing) => false,
        };
        self.bill.delivered = self.converter.delivered(is_complete);
        if is_complete {
            self.permit.record_success();
        }
        // The upstream is dropped first; the bill settles itself.
        let Self { body, bill, .. } = self;
        drop(body);
        drop(bill);
    }

    /// Reads to the end of the stream. Returns false if it breaks off, if more has come than was held for, or if a stream whose
    /// output is visible goes on.
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
            if !is_hidden && text_bytes > shown_bytes + MAX_TEXT_ON_THE_WAY {
                return false;
            }
        }
        true
    }
}
