//! One multiplexed connection to Redis behind a circuit breaker: it is closed after several failures in a row and opened again in the background.
//! While there is none, calls fail at once.

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ::redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult,
    ScriptInvocation,
};
use tokio::time::{sleep, timeout};
use tollgate_config::redis_url::check_url;
use tollgate_core::Secret;

use crate::metrics::RedisMetrics;

/// Timeout of a new connection, including name resolution, TLS and authentication.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Failed calls in a row after which the connection is closed.
const FAILURE_THRESHOLD: u32 = 3;
/// How often the connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before the first attempt to connect again; doubled as long as connections fail, or fail soon.
const MIN_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Why a call has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedisUnavailable {
    /// Redis is not connected.
    #[error("Redis is not connected")]
    NotSent,
    /// No reply was received in time, or it is an error. Redis may have executed the call nevertheless.
    #[error("Redis does not respond")]
    NoReply,
}

/// The connection of this process.
pub struct RedisClient {
    client: Client,
    /// The timeout of a call.
    call_timeout: Duration,
    state: RwLock<State>,
    failures: Mutex<Failures>,
    metrics: RedisMetrics,
}

#[derive(Default)]
struct State {
    /// `None` if calls fail at once.
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure does not close a newer one.
    generation: u64,
}

/// Failed calls in a row. Calls that failed at the same time count as one.
#[derive(Default)]
struct Failures {
    count: u32,
    /// When the last failure was counted; `None` if there is none.
    last: Option<Instant>,
}

impl RedisClient {
    /// A client that is not connected yet; `call_timeout` is the timeout of its calls.
    ///
    /// # Errors
    /// As [`check_url`].
    pub fn new(
        url: &Secret,
        call_timeout: Duration,
        metrics: RedisMetrics,
    ) -> Result<Self, String> {
        check_url(url.expose())?;
        let client = Client::open(url.expose());
        Ok(Self {
            client: client.map_err(|_| "limits.redis_url cannot be used".to_owned())?,
            call_timeout,
            state: RwLock::default(),
            failures: Mutex::default(),
            metrics,
        })
    }

    /// Connects and requests the server's version.
    ///
    /// # Errors
    /// The reason, in a sentence without user name and password.
    pub async fn check(&self) -> Result<String, String> {
        let mut connection = self.connect().await.map_err(|e| e.to_string())?;
        let info = ::redis::cmd("INFO").arg("server").to_owned();
        let info = timeout(CONNECT_TIMEOUT, info.query_async::<String>(&mut connection)).await;
        let info = info.map_err(|_| "timed out".to_owned())?;
        let info = info.map_err(|e| e.to_string())?;
        let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        Ok(match (line("valkey_version:"), line("redis_version:")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "a server without a version".to_owned(),
        })
    }

    /// Runs a script: by its hash, or with its text if the server does not have the script (after a restart or a failover).
    ///
    /// # Errors
    /// [`RedisUnavailable`], at the latest after `limits.redis_timeout_ms`.
    pub async fn run_script<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, RedisUnavailable> {
        self.call(async |mut connection| script.invoke_async(&mut connection).await)
            .await
    }

    /// Runs a command.
    ///
    /// # Errors
    /// [`RedisUnavailable`], at the latest after `limits.redis_timeout_ms`.
    pub async fn run_command<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, RedisUnavailable> {
        self.call(async |mut connection| command.query_async(&mut connection).await)
            .await
    }

    /// Opens a second connection, for the messages of `channel`.
    ///
    /// # Errors
    /// The server's error, or no reply within a second.
    pub(super) async fn subscribe(&self, channel: &str) -> RedisResult<(PubSubSink, PubSubStream)> {
        let subscribing = async {
            let (mut sink, messages) = self.client.get_async_pubsub().await?.split();
            sink.subscribe(channel).await?;
            Ok((sink, messages))
        };
        let subscribed = timeout(CONNECT_TIMEOUT, subscribing).await;
        subscribed.unwrap_or_else(|_| Err((ErrorKind::Io, "timed out").into()))
    }

    /// The number of the server's database. Keys are separate in each database, messages are not.
    pub(super) fn database(&self) -> i64 {
        self.client.get_connection_info().redis_settings().db()
    }

    /// The metrics of calls and messages.
    pub(super) fn metrics(&self) -> &RedisMetrics {
        &self.metrics
    }

    async fn call<T>(
        &self,
        command: impl AsyncFnOnce(MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, RedisUnavailable> {
        let (connection, generation) = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            (state.connection.clone(), state.generation)
        };
        let Some(connection) = connection else {
            self.metrics.call_skipped();
            return Err(RedisUnavailable::NotSent);
        };
        let started = Instant::now();
        let reply = timeout(self.call_timeout, command(connection)).await;
        let reply = reply.unwrap_or_else(|_| Err((ErrorKind::Io, "timed out").into()));
        self.metrics.call_ended(started.elapsed(), reply.is_ok());
        match reply {
            Ok(reply) => {
                self.forget_failures();
                Ok(reply)
            }
            Err(e) => {
                self.note_failure(&e, generation, started);
                Err(RedisUnavailable::NoReply)
            }
        }
    }

    fn forget_failures(&self) {
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = Failures::default();
    }

    /// Records that a call that began at `started` failed.
    fn note_failure(&self, error: &RedisError, generation: u64, started: Instant) {
        let count = {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            if failures.last.is_none_or(|last| last < started) {
                failures.count += 1;
                failures.last = Some(Instant::now());
            }
            failures.count
        };
        if count < FAILURE_THRESHOLD && !error.is_connection_dropped() {
            return;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.generation == generation && state.connection.take().is_some() {
            self.metrics.set_up(false);
            tracing::warn!(error = %error, "the connection to Redis is lost: each node applies limits.on_redis_loss");
        }
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CONNECT_TIMEOUT));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        connected.unwrap_or_else(|_| Err((ErrorKind::Io, "timed out").into()))
    }

    /// Connects if there is no connection; otherwise checks it. Returns whether there is one afterwards.
    pub async fn ensure_connected(&self) -> bool {
        if self.is_connected() {
            let ping = async |mut connection: MultiplexedConnection| {
                let ping = ::redis::cmd("PING").to_owned();
                ping.query_async::<String>(&mut connection).await
            };
            let _ = self.call(ping).await;
            return self.is_connected();
        }
        match self.connect().await {
            Ok(connection) => {
                let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
                state.connection = Some(connection);
                state.generation += 1;
                self.forget_failures();
                self.metrics.set_up(true);
                tracing::info!("connected to Redis");
                true
            }
            Err(e) => {
                tracing::debug!(error = %e, "cannot connect to Redis");
                false
            }
        }
    }

    /// Whether calls are sent.
    pub fn is_connected(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.connection.is_some()
    }

    /// Keeps the connection open. Never returns.
    pub async fn run(&self) {
        let mut backoff = MIN_BACKOFF;
        loop {
            let since = Instant::now();
            while self.ensure_connected().await {
                sleep(CHECK_INTERVAL).await;
            }
            // If a server accepts connections and fails every call, the pause grows too.
            backoff = match since.elapsed() > MAX_BACKOFF {
                true => MIN_BACKOFF,
                false => (2 * backoff).min(MAX_BACKOFF),
            };
            sleep(backoff).await;
        }
    }
}
