//! Messages that nodes send each other through Redis: tasks that wait for a worker, tasks that were cancelled, cooldowns.
//!
//! A node sends at most 20 messages a second; events since the last message are sent together in the next one. Each message is a list of texts: the
//! node, then kinds with their arguments. Cooldowns are also stored in a hash, for nodes that subscribe later. Keys and the channel of messages begin
//! with the version of the scripts ([`PREFIX`]).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::PubSubSink;
use ::redis::{RedisResult, Script, Value};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{CONNECT_TIMEOUT, RedisClient, RedisUnavailable};

/// The prefix of all keys. Its number is raised when the meaning of a key or message changes.
const PREFIX: &str = "{tollgate:nodes:1}";
/// Shortest time between two messages of a node: 20 a second.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Pause after a message that could not be sent, and between two attempts to subscribe.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Silence after which the subscription's connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Cancelled tasks in one message, and how many may wait for further messages. For others, nodes notice the cancellation when they renew the lease.
const MAX_CANCELS: usize = 256;
const MAX_WAITING_CANCELS: usize = 16 * MAX_CANCELS;

static PUBLISH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("publish.lua")));
static COOLDOWNS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("cooldowns.lua")));

/// A key or a model of a channel that can be in cooldown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CooldownName {
    /// The channel's name.
    pub channel: String,
    /// A fingerprint of the channel's address, because nodes may be reconfigured one after the other.
    pub address: String,
    /// The part of the channel that is in cooldown.
    pub subject: CooldownSubject,
}

/// The part of a channel that is in cooldown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CooldownSubject {
    /// The key with that fingerprint; `None` means all requests of a channel without keys.
    Key(Option<String>),
    /// The model with that name.
    Model(String),
}

/// A cooldown that a node has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCooldown {
    /// When it ends.
    pub until: Instant,
    /// Whether the provider requested it.
    pub is_requested: bool,
    /// The user whose failed requests are its only evidence, so that it applies to this user alone. `None` if it applies to all.
    pub only_user: Option<String>,
}

/// An event that a node sends to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// A task is waiting that the sending node does not start itself now.
    WakeWorkers,
    /// The task with that id was ended.
    StopTask(String),
    /// An operator has woken the channel with that name: its cooldowns end.
    WakeChannel(String),
    /// A cooldown, or its end.
    Cooldown(CooldownName, Option<SharedCooldown>),
}

/// Handles the messages of other nodes.
pub trait NodeInbox: Send + Sync {
    /// Handles a message; `is_own` if this node sent it.
    fn receive(&self, message: NodeMessage, is_own: bool);

    /// Replaces the cooldowns that other nodes have set by those in `all`: if one is missing there, it was lifted or has been lost.
    fn replace_cooldowns(&self, all: Vec<(CooldownName, SharedCooldown)>);
}

/// Sends and receives the messages of this process.
pub struct NodeMessages {
    redis: Arc<RedisClient>,
    /// This process's name.
    node: String,
    /// The channel of messages.
    channel: String,
    outbox: Mutex<Outbox>,
    changed: Notify,
}

/// Events that were not sent yet.
#[derive(Default)]
struct Outbox {
    wakes_workers: bool,
    stopped_tasks: Vec<String>,
    woken_channels: BTreeSet<String>,
    cooldowns: HashMap<CooldownName, Option<SharedCooldown>>,
}

impl NodeMessages {
    /// The messages of the node with that name, through `redis`.
    pub fn new(redis: Arc<RedisClient>, node: String) -> Self {
        // The databases of a server have separate keys, but share their channels.
        let channel = format!("{PREFIX}:messages:{}", redis.database());
        Self {
            redis,
            node,
            channel,
            outbox: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Sends an event to the other nodes, soon and in the background. While Redis is unreachable, only cooldowns are kept for later.
    pub fn send(&self, message: NodeMessage) {
        let mut outbox = self.lock();
        match message {
            NodeMessage::WakeWorkers => outbox.wakes_workers = true,
            NodeMessage::StopTask(id) => {
                if outbox.stopped_tasks.len() < MAX_WAITING_CANCELS {
                    outbox.stopped_tasks.push(id);
                }
            }
            NodeMessage::WakeChannel(name) => drop(outbox.woken_channels.insert(name)),
            NodeMessage::Cooldown(name, cooldown) => {
                outbox.cooldowns.insert(name, cooldown);
            }
        }
        drop(outbox);
        self.changed.notify_one();
    }

    /// Sends and receives messages. Never returns.
    pub async fn run(&self, inbox: &dyn NodeInbox) {
        tokio::join!(self.send_all(), self.receive_all(inbox));
    }

    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_all(&self) {
        loop {
            self.changed.notified().await;
            let (outbox, is_all) = self.lock().take();
            let is_sent = self.publish(&outbox).await.is_ok();
            if !is_sent {
                self.lock().keep_cooldowns(outbox);
            }
            sleep(if is_sent {
                MIN_INTERVAL
            } else {
                RETRY_INTERVAL
            })
            .await;
            if !(is_sent && is_all) {
                self.changed.notify_one();
            }
        }
    }

    async fn publish(&self, outbox: &Outbox) -> Result<(), RedisUnavailable> {
        let parts = outbox.parts();
        let now = Instant::now();
        let cooldowns: Vec<(String, Option<&SharedCooldown>)> = outbox
            .cooldowns
            .iter()
            .filter(|(_, cooldown)| cooldown.as_ref().is_none_or(|c| c.until > now))
            .filter_map(|(name, c)| Some((serde_json::to_string(name).ok()?, c.as_ref())))
            .collect();
        if parts.is_empty() && cooldowns.is_empty() {
            return Ok(());
        }
        let mut call = PUBLISH.key(format!("{PREFIX}:cooldowns"));
        call.arg(&self.channel).arg(&self.node).arg(parts.len());
        for part in &parts {
            call.arg(*part);
        }
        for (name, cooldown) in &cooldowns {
            let left = cooldown.map_or(0, |c| (c.until - now).as_millis().max(1));
            let user = cooldown.and_then(|c| c.only_user.as_deref());
            call.arg(name)
                .arg(left.to_string())
                .arg(u8::from(cooldown.is_some_and(|c| c.is_requested)))
                .arg(user.unwrap_or_default());
        }
        self.redis.run_script::<i64>(&call).await?;
        self.redis.metrics().message_sent();
        Ok(())
    }

    async fn receive_all(&self, inbox: &dyn NodeInbox) {
        loop {
            if self.redis.is_connected() {
                let ended = self.follow(inbox).await;
                tracing::debug!(error = ?ended.err(), "the subscription to messages of other nodes ended");
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Receives messages until the subscription breaks. Returns at once if the stored cooldowns cannot be read.
    async fn follow(&self, inbox: &dyn NodeInbox) -> RedisResult<()> {
        let (mut sink, mut messages) = self.redis.subscribe(&self.channel).await?;
        // The cooldowns are read after subscribing, so that none is missed in between.
        let call = COOLDOWNS.key(format!("{PREFIX}:cooldowns"));
        if let Ok(all) = self.redis.run_script::<String>(&call).await {
            inbox.replace_cooldowns(read_cooldowns(&all));
        } else {
            return Ok(());
        }
        tracing::debug!("subscribed to messages of other nodes");
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = sleep(CHECK_INTERVAL) => {
                    check_subscription(&mut sink).await?;
                    continue;
                }
            };
            let Some(message) = message else {
                return Ok(());
            };
            self.redis.metrics().message_received();
            let Ok(text) = std::str::from_utf8(message.get_payload_bytes()) else {
                continue;
            };
            let (node, messages) = read_message(text);
            let is_own = node == self.node;
            for message in messages {
                inbox.receive(message, is_own);
            }
        }
    }
}

/// Checks that the subscription's connection still works.
async fn check_subscription(sink: &mut PubSubSink) -> RedisResult<()> {
    let ping = timeout(CONNECT_TIMEOUT, sink.ping::<Value>()).await;
    let timed_out = (::redis::ErrorKind::Io, "timed out");
    ping.unwrap_or_else(|_| Err(timed_out.into())).map(drop)
}

impl Outbox {
    /// Takes the events for the next message; also returns whether these were all.
    fn take(&mut self) -> (Self, bool) {
        let mut taken = std::mem::take(self);
        if taken.stopped_tasks.len() > MAX_CANCELS {
            self.stopped_tasks = taken.stopped_tasks.split_off(MAX_CANCELS);
        }
        let is_all = self.stopped_tasks.is_empty();
        (taken, is_all)
    }

    /// Keeps the cooldowns of a message that was not sent, except those that have changed since.
    fn keep_cooldowns(&mut self, unsent: Self) {
        let now = Instant::now();
        self.stopped_tasks.clear();
        for (name, cooldown) in unsent.cooldowns {
            if cooldown.as_ref().is_none_or(|c| c.until > now) {
                self.cooldowns.entry(name).or_insert(cooldown);
            }
        }
    }

    /// The parts of the message, without cooldowns.
    fn parts(&self) -> Vec<&str> {
        let mut parts = Vec::new();
        if self.wakes_workers {
            parts.push("wake");
        }
        for id in &self.stopped_tasks {
            parts.extend(["stop", id]);
        }
        for name in &self.woken_channels {
            parts.extend(["wake_channel", name]);
        }
        parts
    }
}

/// The node that sent a message, and its events. Parsing stops at the first unknown event.
fn read_message(text: &str) -> (String, Vec<NodeMessage>) {
    let parts: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    let mut parts = parts.into_iter();
    let node = parts.next().unwrap_or_default();
    let mut messages = Vec::new();
    while let Some(message) = read_part(&mut parts) {
        messages.push(message);
    }
    (node, messages)
}

fn read_part(parts: &mut impl Iterator<Item = String>) -> Option<NodeMessage> {
    Some(match parts.next()?.as_str() {
        "wake" => NodeMessage::WakeWorkers,
        "stop" => NodeMessage::StopTask(parts.next()?),
        "wake_channel" => NodeMessage::WakeChannel(parts.next()?),
        "lift" => NodeMessage::Cooldown(serde_json::from_str(&parts.next()?).ok()?, None),
        "cooldown" => {
            let name = serde_json::from_str(&parts.next()?).ok()?;
            let left = Duration::from_millis(parts.next()?.parse().ok()?);
            let cooldown = SharedCooldown {
                until: Instant::now().checked_add(left)?,
                is_requested: parts.next()? == "1",
                only_user: Some(parts.next()?).filter(|user| !user.is_empty()),
            };
            NodeMessage::Cooldown(name, Some(cooldown))
        }
        _ => return None,
    })
}

fn read_cooldowns(text: &str) -> Vec<(CooldownName, SharedCooldown)> {
    let (_, messages) = read_message(text);
    let cooldown = |message| match message {
        NodeMessage::Cooldown(name, Some(cooldown)) => Some((name, cooldown)),
        _ => None,
    };
    messages.into_iter().filter_map(cooldown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fingerprint: &str) -> CooldownName {
        CooldownName {
            channel: "a".to_owned(),
            address: "b".to_owned(),
            subject: CooldownSubject::Key(Some(fingerprint.to_owned())),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_read_up_to_what_is_not_understood() {
        let name = serde_json::to_string(&key("f")).unwrap();
        let parts = [
            "node_a", "wake", "stop", "task_1", "lift", &name, "cooldown", &name, "5000", "1",
            "ada", "later", "wake",
        ];
        let (node, messages) = read_message(&serde_json::to_string(&parts).unwrap());
        let cooldown = SharedCooldown {
            until: Instant::now() + Duration::from_secs(5),
            is_requested: true,
            only_user: Some("ada".to_owned()),
        };
        let expected = [
            NodeMessage::WakeWorkers,
            NodeMessage::StopTask("task_1".to_owned()),
            NodeMessage::Cooldown(key("f"), None),
            NodeMessage::Cooldown(key("f"), Some(cooldown)),
        ];
        assert_eq!(
            (node.as_str(), messages.as_slice()),
            ("node_a", &expected[..])
        );
        assert_eq!(read_message("no JSON"), (String::new(), Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_sent_is_only_kept_if_it_still_holds() {
        let lasting = |s| {
            Some(SharedCooldown {
                until: Instant::now() + Duration::from_secs(s),
                is_requested: false,
                only_user: None,
            })
        };
        let mut outbox = Outbox {
            wakes_workers: true,
            ..Outbox::default()
        };
        for (name, cooldown) in [("a", lasting(1)), ("b", lasting(9)), ("c", lasting(9))] {
            outbox.cooldowns.insert(key(name), cooldown);
        }
        let (unsent, _) = outbox.take();
        outbox.cooldowns.insert(key("c"), None);
        tokio::time::advance(Duration::from_secs(2)).await;
        outbox.keep_cooldowns(unsent);
        assert!(!outbox.wakes_workers);
        let mut kept: Vec<_> = outbox.cooldowns.into_iter().collect();
        kept.sort_by_key(|(name, _)| format!("{name:?}"));
        assert_eq!(kept, [(key("b"), lasting(7)), (key("c"), None)]);
    }

    #[test]
    fn a_message_holds_so_many_cancelled_tasks() {
        let mut outbox = Outbox {
            stopped_tasks: vec!["task".to_owned(); MAX_CANCELS + 1],
            ..Outbox::default()
        };
        let (first, is_all) = outbox.take();
        assert_eq!((first.stopped_tasks.len(), is_all), (MAX_CANCELS, false));
        let (second, is_all) = outbox.take();
        assert_eq!((second.stopped_tasks.len(), is_all), (1, true));
    }
}
