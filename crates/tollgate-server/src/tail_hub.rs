//! The live tail of this node: while there are watchers, one loop reads the events of all nodes from the database and sends them to all watchers.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::broadcast;
use tollgate_core::Clock;
use tollgate_core::clock::{Millis, SECOND};
use tollgate_store::{Store, StoreError, TailPosition, TailRow};

use crate::spawn::spawn_detached;

/// How often events are read.
const INTERVAL: Duration = Duration::from_millis(250);
/// Rows of a source that are read at a time.
const ROWS: usize = 500;
/// How long every node records events after a request to do so, and how often the request is repeated.
const WATCH: Millis = 60 * SECOND;
const WATCH_INTERVAL: Duration = Duration::from_secs(15);
/// How long the loop continues without watchers, so that a watcher that reconnects misses nothing.
const IDLE: Duration = Duration::from_secs(30);
/// Reads with events that a watcher may be behind before it is disconnected: at least 16 seconds.
const CAPACITY: usize = 64;

/// An event of the live tail.
#[derive(Debug)]
pub struct TailItem {
    /// Whether it is an event of a task; else it is one of a chat.
    pub is_task: bool,
    /// The event as JSON.
    pub data: Value,
    /// The event as a server-sent event, with its id.
    pub text: Bytes,
}

/// The events of one read.
#[derive(Debug, Default)]
pub struct TailRead {
    /// The events; those of one node are in order.
    pub items: Vec<TailItem>,
    /// Events that are missing because there were too many.
    pub omitted: i64,
}

/// The events for a new watcher.
pub struct Subscription {
    /// Events since the requested position. `None` if that position is too old.
    pub missed: Option<TailRead>,
    /// Receives further events.
    pub reads: broadcast::Receiver<Arc<TailRead>>,
}

/// Reads the live tail for the watchers of this node.
pub struct TailHub {
    store: Store,
    clock: Arc<dyn Clock>,
    state: Mutex<Option<Running>>,
    /// Locked while the loop is started.
    starting: tokio::sync::Mutex<()>,
}

struct Running {
    sender: broadcast::Sender<Arc<TailRead>>,
    /// The position after all events that were sent.
    position: TailPosition,
}

impl TailHub {
    /// A hub without watchers.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            state: Mutex::new(None),
            starting: tokio::sync::Mutex::new(()),
        }
    }

    /// Subscribes to events from now on, or from the position `after` on.
    ///
    /// # Errors
    /// The database's.
    pub async fn subscribe(
        self: &Arc<Self>,
        after: Option<TailPosition>,
    ) -> Result<Subscription, StoreError> {
        let (reads, sent) = self.receiver().await?;
        let missed = match after {
            None => Some(TailRead::default()),
            Some(after) if after.is_too_old(self.clock.now()) => None,
            Some(after) => Some(self.read_between(after, &sent).await?),
        };
        Ok(Subscription { missed, reads })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of further events, and the position at which they begin. Starts the loop if it does not run.
    async fn receiver(
        self: &Arc<Self>,
    ) -> Result<(broadcast::Receiver<Arc<TailRead>>, TailPosition), StoreError> {
        let _starting = self.starting.lock().await;
        if let Some(running) = &*self.lock() {
            return Ok((running.sender.subscribe(), running.position.clone()));
        }
        let now = self.clock.now();
        self.store.watch_tail(now + WATCH, now).await?;
        let position = self.store.tail_end(now).await?;
        let (sender, receiver) = broadcast::channel(CAPACITY);
        *self.lock() = Some(Running {
            sender,
            position: position.clone(),
        });
        let hub = Arc::clone(self);
        spawn_detached(async move {
            if AssertUnwindSafe(hub.run()).catch_unwind().await.is_err() {
                // Its watchers are disconnected, and the next one starts the loop again.
                *hub.lock() = None;
            }
        });
        Ok((receiver, position))
    }

    /// Reads the events after `after` up to `until`.
    async fn read_between(
        &self,
        mut after: TailPosition,
        until: &TailPosition,
    ) -> Result<TailRead, StoreError> {
        let mut found = TailRead::default();
        loop {
            let rows = self.store.read_tail(&after, ROWS).await?;
            let before = after.clone();
            for row in &rows {
                add_events(row, &mut after, Some(until), &mut found);
            }
            if after == before {
                return Ok(found);
            }
        }
    }

    /// Reads and sends events until there have been no watchers for a while.
    async fn run(&self) {
        let (mut last_watch, mut last_watcher) = (Instant::now(), Instant::now());
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(mut position) = self.lock().as_ref().map(|running| running.position.clone())
            else {
                return;
            };
            let mut read = TailRead::default();
            match self.store.read_tail(&position, ROWS).await {
                Ok(rows) => {
                    for row in &rows {
                        add_events(row, &mut position, None, &mut read);
                    }
                }
                Err(e) => tracing::warn!(error = %e, "cannot read events of the live tail"),
            }
            if last_watch.elapsed() >= WATCH_INTERVAL {
                let now = self.clock.now();
                match self.store.watch_tail(now + WATCH, now).await {
                    Ok(()) => last_watch = Instant::now(),
                    Err(e) => {
                        tracing::warn!(error = %e, "cannot record that the live tail has watchers")
                    }
                }
            }
            let mut state = self.lock();
            let Some(running) = state.as_mut() else {
                return;
            };
            if running.sender.receiver_count() > 0 {
                last_watcher = Instant::now();
            } else if last_watcher.elapsed() >= IDLE {
                *state = None;
                return;
            }
            running.position = position;
            if !read.items.is_empty() || read.omitted > 0 {
                // If there are no receivers, nobody needs the events.
                let _ = running.sender.send(Arc::new(read));
            }
        }
    }
}

/// Adds the events of a row that are after `position` and, with `until`, not after that. Moves the position to the end of the row.
fn add_events(
    row: &TailRow,
    position: &mut TailPosition,
    until: Option<&TailPosition>,
    found: &mut TailRead,
) {
    let mut is_new = false;
    for (index, (kind, data)) in row.events.iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let is_wanted = until.is_none_or(|until| !until.is_before(row, index));
        if !position.is_before(row, index) || !is_wanted {
            continue;
        }
        is_new = true;
        position.advance(row, index);
        let text = format!("event: {kind}\nid: {position}\ndata: {data}\n\n");
        found.items.push(TailItem {
            is_task: kind == "task",
            data: data.clone(),
            text: text.into(),
        });
    }
    if is_new || row.events.is_empty() {
        found.omitted += row.omitted;
    }
    position.advance_to_end(row);
}
