//! A gateway under test: the real binary with a separate data directory, configuration and database, and the helpers that tests use around it.

mod assert_json;
pub(crate) mod cases;
mod channel_config;
mod client;
mod command;
mod database;
pub(crate) mod fake_oidc;
pub(crate) mod fake_s3;
mod gateway;
pub(crate) mod images;
#[path = "../../../../tollgate-store/tests/it/postgres_cluster.rs"]
mod postgres_cluster;
mod postgres_server;
pub(crate) mod priced_images;
mod process;
mod raw;
mod redis_server;
mod secrets;
mod setup;
mod stalling_proxy;
mod stream;
mod temp_dir;
pub(crate) mod webhook_receiver;

use std::time::{Duration, Instant};

pub(crate) use assert_json::{assert_has, assert_shape, now};
pub(crate) use channel_config::ChannelConfig;
pub(crate) use client::{Client, Reply, image_urls, status, task_id};
pub(crate) use command::{CommandOutput, run_command, tollgate};
pub(crate) use gateway::TestGateway;
pub(crate) use postgres_server::PostgresServer;
pub(crate) use raw::RawConnection;
pub(crate) use redis_server::{RedisServer, wait_for_subscribers};
pub(crate) use setup::Setup;
pub(crate) use stalling_proxy::StallingProxy;
pub(crate) use stream::{Event, Stream};
pub(crate) use temp_dir::TempDir;

/// The longest that a test waits for anything: a machine under load is not a failure.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);
/// Pause between two polls: longer, the longer a test waits. Each poll uses the gateway's processor time, which other tests need.
const PAUSE: Duration = Duration::from_millis(15);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Creates two tests of each function, which has a [`Backend`] parameter: on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::harness::run_test(crate::harness::Backend::Sqlite, super::$test);
            }

            #[test]
            fn postgres() {
                crate::harness::run_test(crate::harness::Backend::Postgres, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_both;

/// Creates a test of each function on SQLite only, where the database makes no difference.
macro_rules! on_sqlite {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::harness::run_test(crate::harness::Backend::Sqlite, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_sqlite;

/// Creates a test of each function on PostgreSQL only, for features of several nodes.
macro_rules! on_postgres {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn postgres() {
                crate::harness::run_test(crate::harness::Backend::Postgres, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_postgres;

/// The kind of database in which a gateway keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// Runs a test; on PostgreSQL only if the environment names a server, which is required in CI.
pub(crate) fn run_test<F: Future<Output = ()>>(backend: Backend, test: impl FnOnce(Backend) -> F) {
    if backend == Backend::Postgres && !database::is_available() {
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(backend));
}

/// Polls until `poll` returns something.
pub(crate) async fn until<T>(what: &str, poll: impl AsyncFn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "waited too long for {what}");
        let pause = (started.elapsed() / 10).clamp(PAUSE, LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
    }
}

/// Polls until `is_true` returns true.
pub(crate) async fn until_true(what: &str, is_true: impl AsyncFn() -> bool) {
    until(what, async || is_true().await.then_some(())).await;
}
