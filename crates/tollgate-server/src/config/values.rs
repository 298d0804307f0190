//! Settings that belong together, as the rest of the gateway reads them.

use std::fmt;
use std::time::Duration;

use tollgate_core::clock::SECOND;
use tollgate_core::{Millis, TaskKind};
use tollgate_store::RateLimits;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    pub(super) images_s: i64,
    pub(super) long_s: i64,
    pub(super) tasks_s: i64,
}

impl Expiry {
    /// Links to most results.
    pub fn images_ms(&self) -> Millis {
        self.images_s * SECOND
    }

    /// Links to uploads and to Seedream 5.0 Lite results.
    pub fn long_ms(&self) -> Millis {
        self.long_s * SECOND
    }

    /// Records of tasks, counted from their end.
    pub fn tasks_ms(&self) -> Millis {
        self.tasks_s * SECOND
    }
}

/// How long tasks may take, and a chat's upstream be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    pub(super) image_s: i64,
    pub(super) video_s: i64,
    pub(super) speech_s: i64,
    /// A chat's connection to its upstream, resolving and TLS included.
    pub chat_connect: Duration,
    /// From a chat's request sent to the first byte of its answer.
    pub chat_first_byte: Duration,
    /// From one byte of a chat's answer to the next.
    pub chat_idle: Duration,
}

impl TimeLimits {
    /// A task of that kind, from submission to end.
    pub fn task_ms(&self, kind: TaskKind) -> Millis {
        let seconds = match kind {
            TaskKind::Image => self.image_s,
            TaskKind::Video => self.video_s,
            TaskKind::Speech => self.speech_s,
        };
        seconds * SECOND
    }
}

/// How long a worker keeps a task without a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    pub(super) seconds: i64,
}

impl Leases {
    /// The length of a lease.
    pub fn ms(&self) -> Millis {
        self.seconds * SECOND
    }
}

/// How much work this process does at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Tasks that a provider works on within the call, at least 1.
    pub calls: usize,
    /// Tasks that wait in providers' queues and are asked for from here, at least 1. More stay in our own queue.
    pub open: usize,
    /// Results that are fetched at the same time, at least 1.
    pub downloads: usize,
}

/// What this process takes at the same time, and in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open connections, at least 1; the next ones wait to be accepted.
    pub max_connections: usize,
    /// MiB of JSON bodies in memory, at least 1.
    pub body_memory_mb: usize,
    /// Of all keys together; each at least 1.
    pub rates: RateLimits,
}

/// What holds for all chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat {
    /// Tokens of an answer that a request without a cap is held for, and that an upstream that needs a cap is given; at
    /// least 1.
    pub default_max_tokens: u64,
}

/// What amounts are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// US dollars.
    Usd,
    /// Chinese yuan.
    Cny,
    /// One unit is one token; prices are multipliers.
    Tokens,
}

impl Currency {
    pub(super) const ALL: [Self; 3] = [Self::Usd, Self::Cny, Self::Tokens];
}

impl fmt::Display for Currency {
    /// As the configuration writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usd => "USD",
            Self::Cny => "CNY",
            Self::Tokens => "Tokens",
        })
    }
}
