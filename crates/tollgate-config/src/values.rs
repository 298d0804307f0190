//! Groups of settings: expiry, deadlines and timeouts, leases, workers, limits, chat, sandbox, currency.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tollgate_core::clock::SECOND;
use tollgate_core::{Millis, Secret, TaskKind};
use tollgate_store::RateLimits;

use super::addresses;
use super::fields::{
    DAY_S, MAX_S, deserialize_integer, deserialize_millis, deserialize_millis_within,
    deserialize_optional_integer, deserialize_seconds, serialize_millis, serialize_seconds,
};

/// A limit that is above the number of tokens that any model generates.
const MAX_TOKENS: i64 = 100_000_000;
const MAX_RATE: i64 = u32::MAX as i64;

/// How long links and records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expiry {
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_S>")]
    images_s: i64,
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_S>")]
    long_s: i64,
    #[serde(deserialize_with = "deserialize_integer::<_, _, 0, { MAX_S / DAY_S }>")]
    tasks_days: i64,
    /// In seconds; replaces `tasks_days` if it is set.
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 0, MAX_S>")]
    tasks_s: Option<i64>,
}

impl Default for Expiry {
    fn default() -> Self {
        Self {
            images_s: DAY_S,
            long_s: 3 * DAY_S,
            tasks_days: 30,
            tasks_s: None,
        }
    }
}

impl Expiry {
    /// How long links to most results are valid.
    pub fn images_ms(&self) -> Millis {
        self.images_s * SECOND
    }

    /// How long links to uploads and to Seedream 5.0 Lite results are valid.
    pub fn long_ms(&self) -> Millis {
        self.long_s * SECOND
    }

    /// How long task records are kept, counted from the task's end.
    pub fn tasks_ms(&self) -> Millis {
        self.tasks_s.unwrap_or(self.tasks_days * DAY_S) * SECOND
    }
}

/// Deadlines of tasks, and timeouts of a chat's upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeLimits {
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_S>")]
    image_s: i64,
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_S>")]
    video_s: i64,
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_S>")]
    speech_s: i64,
    /// Connect timeout of a chat's upstream, name resolution and TLS included.
    #[serde(
        rename = "chat_connect_s",
        deserialize_with = "deserialize_seconds",
        serialize_with = "serialize_seconds"
    )]
    pub chat_connect: Duration,
    /// Timeout from a chat's request to the first byte of its response.
    #[serde(
        rename = "chat_first_byte_s",
        deserialize_with = "deserialize_seconds",
        serialize_with = "serialize_seconds"
    )]
    pub chat_first_byte: Duration,
    /// Timeout from one byte of a chat's response to the next.
    #[serde(
        rename = "chat_idle_s",
        deserialize_with = "deserialize_seconds",
        serialize_with = "serialize_seconds"
    )]
    pub chat_idle: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            image_s: 600,
            video_s: 3_600,
            speech_s: 300,
            chat_connect: Duration::from_secs(10),
            chat_first_byte: Duration::from_secs(300),
            chat_idle: Duration::from_secs(120),
        }
    }
}

impl TimeLimits {
    /// The time from the submission of a task of that kind to its deadline.
    pub fn task_ms(&self, kind: TaskKind) -> Millis {
        let seconds = match kind {
            TaskKind::Image => self.image_s,
            TaskKind::Video => self.video_s,
            TaskKind::Speech => self.speech_s,
        };
        seconds * SECOND
    }
}

/// How long a worker's lease on a task lasts without renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Leases {
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 3_600>")]
    seconds: i64,
}

impl Default for Leases {
    fn default() -> Self {
        Self { seconds: 30 }
    }
}

impl Leases {
    /// The length of a lease.
    pub fn ms(&self) -> Millis {
        self.seconds * SECOND
    }
}

/// How many tasks this process works on at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workers {
    /// Permits for tasks that call a provider which does the work within the call; at least 1.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_024>")]
    pub calls: usize,
    /// Permits for tasks that wait in providers' queues; at least 1. Further tasks wait in the gateway's own queue.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000>")]
    pub open: usize,
    /// Results downloaded at the same time; at least 1.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_024>")]
    pub downloads: usize,
    /// Tasks whose reference images are fetched at the same time, at least 1; they need no permit of `calls`.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_024>")]
    pub fetches: usize,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            calls: 32,
            open: 20_000,
            downloads: 32,
            fetches: 64,
        }
    }
}

/// How shared capacity is divided among users, and limits on what a single user may have waiting.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fairness {
    /// Percent of the permits of workers, fetches and channels that are reserved for users who have none, 0 to 90.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 0, 90>")]
    pub reserve_percent: usize,
    /// Unfinished tasks of one user; a further submission is rejected with 429.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000_000>")]
    pub unfinished_tasks: u32,
    /// Webhooks of one user that wait to be delivered; a further submission with a `callback_url` is rejected with 429.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000_000>")]
    pub waiting_webhooks: u32,
    /// MB (of 1,048,576 bytes) of uploads of one user that have not expired; a further upload is rejected with 429.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 20, 1_000_000_000>")]
    pub upload_mb: u64,
    /// Weights of users by name, 1 to 1000; 1 for all others. A user of weight 2 has twice the share of the workers.
    pub weights: BTreeMap<String, Weight>,
}

/// The weight of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Weight(#[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000>")] pub u32);

impl Default for Fairness {
    fn default() -> Self {
        Self {
            reserve_percent: 25,
            unfinished_tasks: 100_000,
            waiting_webhooks: 50_000,
            upload_mb: 10_240,
            weights: BTreeMap::new(),
        }
    }
}

impl Fairness {
    /// How many of `permits` are reserved for users who have none.
    pub fn reserve(&self, permits: usize) -> usize {
        permits * self.reserve_percent / 100
    }
}

/// Limits of this process on connections, memory and rates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Open connections, at least 1, as far as the limit of open files allows; a few further connections are accepted, but only for health checks and
    /// operators.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000>")]
    pub max_connections: usize,
    /// Open connections of one client address, at least 1; further ones are rejected with 429.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000>")]
    pub connections_per_address: usize,
    /// Networks of trusted proxies, each of which has the connections of many clients.
    pub(super) trusted_proxies: Vec<addresses::Network>,
    /// Whether connections from those proxies begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// MB (of 1,048,576 bytes) of memory for request bodies in flight, 1 to 1,048,576; less than 136 counts as 136.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, 1_048_576>")]
    pub body_memory_mb: usize,
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 1, MAX_RATE>")]
    rpm: Option<u32>,
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 1, MAX_RATE>")]
    tpm: Option<u32>,
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 1, MAX_RATE>")]
    max_concurrency: Option<u32>,
    /// MB (of 1,048,576 bytes) of uploads of all users that have not expired.
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 20, 1_000_000_000>")]
    pub upload_mb: Option<u64>,
    /// How rate limits are enforced while Redis is unreachable; without effect if none is configured.
    pub on_redis_loss: OnRedisLoss,
    /// URL of the Redis or Valkey in which several nodes count rate limits together; `None`: each node counts by itself.
    #[serde(
        deserialize_with = "addresses::deserialize_redis_url",
        skip_serializing
    )]
    pub redis_url: Option<Secret>,
    /// The longest time that a call to Redis may take, 5 to 5,000 milliseconds.
    #[serde(
        rename = "redis_timeout_ms",
        deserialize_with = "deserialize_millis_within::<_, 5, 5_000>",
        serialize_with = "serialize_millis"
    )]
    pub redis_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 4_096,
            connections_per_address: 1_024,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            body_memory_mb: 256,
            rpm: None,
            tpm: None,
            max_concurrency: None,
            upload_mb: None,
            on_redis_loss: OnRedisLoss::default(),
            redis_url: None,
            redis_timeout: Duration::from_millis(50),
        }
    }
}

impl Limits {
    /// Networks of trusted proxies: their connections are not limited by address, and they report the client's address.
    pub fn trusted_proxies(&self) -> Vec<IpNet> {
        self.trusted_proxies
            .iter()
            .map(|network| network.0)
            .collect()
    }

    /// The rate limits that apply to all keys together.
    pub fn rates(&self) -> RateLimits {
        RateLimits {
            rpm: self.rpm,
            tpm: self.tpm,
            max_concurrency: self.max_concurrency,
        }
    }
}

/// How rate limits are enforced while Redis is unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRedisLoss {
    /// Each node applies its share: the limit divided by the number of live nodes, at least 1.
    #[default]
    Share,
    /// Each node applies the full limit to its own count.
    Open,
    /// Requests that a limit applies to are rejected with 503.
    Closed,
}

impl OnRedisLoss {
    const ALL: [(Self, &str); 3] = [
        (Self::Share, "share"),
        (Self::Open, "open"),
        (Self::Closed, "closed"),
    ];
}

impl Serialize for OnRedisLoss {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = Self::ALL.iter().find(|(mode, _)| mode == self);
        serializer.serialize_str(found.map_or("", |(_, name)| name))
    }
}

impl<'de> Deserialize<'de> for OnRedisLoss {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(mode, _)| *mode).ok_or_else(|| {
            serde::de::Error::custom(format!("is {text:?}, but it takes share, open or closed"))
        })
    }
}

/// Settings of all chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// Output tokens that are held for a request without a maximum, and the maximum that is sent to upstreams which require one; at least 1.
    #[serde(deserialize_with = "deserialize_integer::<_, _, 1, MAX_TOKENS>")]
    pub default_max_tokens: u64,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            default_max_tokens: 8_192,
        }
    }
}

/// The delays of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Sandbox {
    #[serde(
        rename = "image_ms",
        deserialize_with = "deserialize_millis",
        serialize_with = "serialize_millis"
    )]
    pub(super) image: Duration,
    #[serde(
        rename = "video_ms",
        deserialize_with = "deserialize_millis",
        serialize_with = "serialize_millis"
    )]
    pub(super) video: Duration,
    #[serde(
        rename = "speech_ms",
        deserialize_with = "deserialize_millis",
        serialize_with = "serialize_millis"
    )]
    pub(super) speech: Duration,
    #[serde(
        rename = "chat_ms",
        deserialize_with = "deserialize_millis",
        serialize_with = "serialize_millis"
    )]
    pub(super) chat: Duration,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            image: Duration::from_millis(800),
            video: Duration::from_millis(3_000),
            speech: Duration::from_millis(800),
            chat: Duration::ZERO,
        }
    }
}

/// The unit of amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Currency {
    /// US dollars.
    #[default]
    Usd,
    /// Chinese yuan.
    Cny,
    /// One unit is one token; prices are multipliers.
    Tokens,
}

impl Currency {
    /// The currency that the configuration calls `name`.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let mut currencies = [Self::Usd, Self::Cny, Self::Tokens].into_iter();
        currencies.find(|currency| currency.to_string() == name)
    }
}

impl fmt::Display for Currency {
    /// Writes the name that the configuration uses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usd => "USD",
            Self::Cny => "CNY",
            Self::Tokens => "Tokens",
        })
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::by_name(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("is {text:?}, but it takes USD, CNY or Tokens"))
        })
    }
}
