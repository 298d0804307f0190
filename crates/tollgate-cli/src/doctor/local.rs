//! Checks of this machine, the database and the configuration itself.

use std::sync::Arc;
use std::time::Duration;

use tollgate_config::Config;
use tollgate_core::{Clock as _, Millis, SystemClock};
use tollgate_server::cluster::clock_sync;
use tollgate_server::http::max_within_descriptors;
use tollgate_server::metrics::Metrics;
use tollgate_server::redis::RedisClient;
use tollgate_server::reloadable::Reloadable;
use tollgate_storage::files::{FileStorage, check_bucket};
use tollgate_store::{Store, StoreError, StoredConfiguration, inspect_database};
use tollgate_upstream::egress::{Client, ClientOptions};

use super::finding::Finding;
use crate::common::database_location;

/// Milliseconds of difference between two clocks that cause no problem.
const MAX_CLOCK_DIFFERENCE: Millis = 5_000;
/// Milliseconds of difference from which providers reject signed requests, because their tokens are valid for only a few minutes.
pub(super) const UNUSABLE_CLOCK_DIFFERENCE: Millis = 60_000;
/// The maximum number of models that are named in one line.
const MAX_NAMED: usize = 5;
/// How often a replica that is behind is checked again, and the pause between two checks.
const REPLICA_CHECKS: u32 = 5;
const REPLICA_PAUSE: Duration = Duration::from_millis(200);

/// A clock to compare with: its owner, and its time minus this machine's time in milliseconds.
pub(super) struct ClockDifference {
    pub(super) of: String,
    pub(super) ms: Millis,
    /// The difference, in either direction, from which the gateway does not work.
    pub(super) unusable_from: Millis,
}

impl ClockDifference {
    fn is_unusable(&self) -> bool {
        self.ms.abs() >= self.unusable_from
    }
}

pub(super) fn check_configuration(warnings: &[String]) -> Vec<Finding> {
    if warnings.is_empty() {
        return vec![Finding::ok("configuration", "read without warnings")];
    }
    let action = "correct it, or leave it if it is meant";
    let findings = warnings
        .iter()
        .map(|warning| Finding::warn("configuration", warning, action));
    findings.collect()
}

/// What later checks need from the check of the database.
#[derive(Default)]
pub(super) struct DatabaseCheck {
    /// The database's clock, if the database is on another machine.
    pub(super) clock: Option<ClockDifference>,
    /// Whether the database can be read without a migration.
    pub(super) is_current: bool,
}

/// Checks that the database responds and that this version can use it.
pub(super) async fn check_database(config: &Config, found: &mut Vec<Finding>) -> DatabaseCheck {
    let started = SystemClock.now();
    let is_shared = config.database_url.is_some();
    let what = if is_shared { "PostgreSQL" } else { "SQLite" };
    let mut check = DatabaseCheck::default();
    found.push(match inspect_database(&database_location(config)).await {
        Ok(None) => Finding::ok(
            "database",
            format!(
                "there is none in {} yet: `tollgate serve` creates it",
                config.data_dir.display()
            ),
        ),
        Ok(Some(state)) => {
            // The server read its clock at an unknown time between the request and the response.
            let half = (SystemClock.now() - started) / 2;
            let ms = state.now - started - half;
            check.clock = is_shared.then(|| ClockDifference {
                of: "the database".to_owned(),
                ms,
                unusable_from: clock_sync::max_offset(config.leases.ms()) + 1,
            });
            let known = state.known_version;
            check.is_current = state.schema_version == Some(known);
            match state.schema_version {
                Some(version) if state.is_too_new() => Finding::fail(
                    "database",
                    format!("{what} has schema version {version}, this program knows only {known}"),
                    "run the newer tollgate, or restore a backup from before the upgrade",
                ),
                Some(version) if version < known => Finding::warn(
                    "database",
                    format!("{what} has schema version {version}, this program uses {known}"),
                    "make a backup; the next start of `tollgate serve` brings it up to date",
                ),
                Some(version) => Finding::ok(
                    "database",
                    format!("{what} responds, schema version {version}"),
                ),
                None => Finding::ok(
                    "database",
                    format!("{what} responds and is empty: `tollgate serve` creates the tables"),
                ),
            }
        }
        Err(e) => Finding::fail(
            "database",
            e,
            match is_shared {
                true => "check `database.url`, and that the server runs and lets this machine in",
                false => "check `data_dir`, its owner and its disk",
            },
        ),
    });
    check
}

/// The channels, prices and models of the file and, if it can be read, the database.
pub(super) async fn read_reloadable(
    config: &Config,
    reads_database: bool,
    found: &mut Vec<Finding>,
) -> Option<Reloadable> {
    let mut stored = StoredConfiguration::default();
    if reads_database {
        let read = async {
            let store = Store::open(&database_location(config)).await?;
            store.stored_configuration().await
        };
        match read.await {
            Ok(read) => stored = read,
            Err(e) => found.push(Finding::fail("database", e, "look at the database's log")),
        }
    }
    let egress = Client::new(ClientOptions::default());
    let (file, stored) = (Arc::new(config.clone()), Arc::new(stored));
    match Reloadable::open(file, stored, &egress, None) {
        Ok(reloadable) => {
            let action = "correct it in the console: this node leaves it out";
            let errors = reloadable.errors.iter();
            found.extend(errors.map(|error| Finding::warn("channels", error, action)));
            Some(reloadable)
        }
        Err(e) => {
            found.push(Finding::fail("channels", e, "see `tollgate channel list`"));
            None
        }
    }
}

/// Checks the replica. `None` without `database.replica_url`, or if the primary cannot be read as it is.
pub(super) async fn check_replica(config: &Config, reads_database: bool) -> Option<Finding> {
    let url = config.replica_url.as_ref().filter(|_| reads_database)?;
    let action = "the gateway runs without it, on the primary alone; check `database.replica_url`: docs/scale.md#a-replica";
    let check = async {
        let store = Store::open(&database_location(config)).await?;
        let store = store.with_replica(url.expose())?;
        let mut found = store.check_replica().await;
        // A replica that is only slightly behind has reached the first position at the next check.
        for _ in 0..REPLICA_CHECKS {
            if matches!(found, Some(Ok(_)) | None) {
                break;
            }
            tokio::time::sleep(REPLICA_PAUSE).await;
            found = store.check_replica().await;
        }
        Ok::<_, StoreError>(found)
    };
    Some(match check.await {
        Ok(Some(Ok(_))) => Finding::ok("replica", "it responds and follows the primary"),
        Ok(Some(Err(why))) => Finding::warn("replica", format!("it is not read: {why}"), action),
        Ok(None) => return None,
        Err(e) => Finding::warn("replica", format!("it cannot be checked: {e}"), action),
    })
}

/// Checks Redis. `None` without `limits.redis_url`.
pub(super) async fn check_redis(config: &Config) -> Option<Finding> {
    let url = config.limits.redis_url.as_ref()?;
    let action = "the gateway runs without it: limits.on_redis_loss applies; check `limits.redis_url`: docs/redis.md";
    let client = RedisClient::new(
        url,
        config.limits.redis_timeout,
        Metrics::new().register_redis(),
    );
    let version = match client {
        Ok(client) => client.check().await,
        Err(e) => Err(e),
    };
    Some(match version {
        Ok(version) => Finding::ok("redis", format!("{version} responds")),
        Err(e) => Finding::warn("redis", format!("it cannot be used: {e}"), action),
    })
}

pub(super) async fn check_storage(config: &Config) -> Finding {
    let egress = Client::new(ClientOptions::default());
    if let Some(location) = config.storage_s3() {
        return match check_bucket(location, &egress).await {
            Ok(()) => Finding::ok("storage", format!("{location} takes and deletes objects")),
            Err(e) => {
                let action = "check `storage.url`, the keys (AWS_ACCESS_KEY_ID) and their rights: docs/storage.md";
                Finding::fail("storage", format!("{location} cannot be used: {e}"), action)
            }
        };
    }
    let folder = config.storage_dir();
    let shown = folder.display();
    let action = "check `storage.url`, the folder's owner, and the space on its disk";
    if !folder.exists() {
        return match config.default_storage_dir() {
            Some(_) => Finding::ok(
                "storage",
                format!("{shown} is not there yet: `tollgate serve` creates it"),
            ),
            None => Finding::fail("storage", format!("{shown} is not there"), action),
        };
    }
    let opened = FileStorage::from_config(config, &egress, "");
    let storage = match opened {
        Ok(storage) => storage,
        Err(e) => return Finding::fail("storage", e, action),
    };
    let mb = |bytes: u64| bytes / 1_048_576;
    let (free, reserve) = (storage.free_bytes(), config.storage_reserve_mb * 1_048_576);
    match storage.check_writable().await {
        Ok(()) => match free {
            Ok(free) if free < 2 * reserve => {
                let message = format!("{shown} takes files, {} MB of its disk are free", mb(free));
                let action = format!(
                    "free disk space: with less than storage.reserve_mb = {} uploads are rejected and tasks wait",
                    mb(reserve)
                );
                Finding::warn("storage", message, action)
            }
            Ok(free) => {
                let message = format!("{shown} takes files, {} MB of its disk are free", mb(free));
                Finding::ok("storage", message)
            }
            Err(_) => Finding::ok("storage", format!("{shown} takes files")),
        },
        Err(e) => Finding::fail("storage", format!("{shown} takes no file: {e}"), action),
    }
}

pub(super) fn check_open_files(config: &Config) -> Finding {
    let wanted = config.limits.max_connections;
    let limit = match rlimit::Resource::NOFILE.get() {
        // `tollgate serve` raises the soft limit to the hard limit.
        Ok((_, hard)) => hard,
        Err(e) => return Finding::warn("open files", e, "check `ulimit -Hn`"),
    };
    let max = max_within_descriptors(wanted, limit);
    if max < wanted {
        return Finding::warn(
            "open files",
            format!(
                "{limit} allow {max} connections, fewer than limits.max_connections = {wanted}"
            ),
            "raise the limit (LimitNOFILE= of the systemd unit), or lower the setting",
        );
    }
    Finding::ok(
        "open files",
        format!("{limit}, enough for {wanted} connections"),
    )
}

/// Compares this machine's clock with others: signed requests to providers, and links with an expiry, need the right time.
pub(super) fn check_clock(clocks: &[ClockDifference]) -> Finding {
    let severity = |clock: &&ClockDifference| (clock.is_unusable(), clock.ms.abs());
    let Some(worst) = clocks.iter().max_by_key(severity) else {
        return Finding::ok("clock", "there is no other clock to compare with");
    };
    let direction = if worst.ms > 0 { "behind" } else { "ahead of" };
    let message = format!("{:.1} s {direction} {}", seconds(worst.ms), worst.of);
    let action = "synchronise this machine's clock (chrony, systemd-timesyncd)";
    match worst.ms.abs() {
        _ if worst.is_unusable() => Finding::fail("clock", message, action),
        MAX_CLOCK_DIFFERENCE.. => Finding::warn("clock", message, action),
        _ => Finding::ok("clock", format!("agrees with {}", worst.of)),
    }
}

fn seconds(ms: Millis) -> f64 {
    ms.abs() as f64 / 1000.0
}

pub(super) fn check_prices(reloadable: &Reloadable) -> Finding {
    let mut free = reloadable.served_models_without_price();
    free.sort_unstable();
    if free.is_empty() {
        return Finding::ok("prices", "every model that a channel serves has one");
    }
    let named = free[..free.len().min(MAX_NAMED)].join(", ");
    let more = if free.len() > MAX_NAMED { ", …" } else { "" };
    Finding::warn(
        "prices",
        format!("{} models cost nothing: {named}{more}", free.len()),
        "set them under [price]: docs/pricing.md",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn the_largest_clock_difference_decides() {
        let clock = |of: &str, ms| ClockDifference {
            of: of.to_owned(),
            ms,
            unusable_from: match of {
                "the database" => 7_501,
                _ => UNUSABLE_CLOCK_DIFFERENCE,
            },
        };
        for (clocks, level, expected) in [
            (vec![], Level::Ok, "no other clock"),
            (
                vec![clock("a", 300), clock("b", -4_999)],
                Level::Ok,
                "agrees with b",
            ),
            (vec![clock("a", 5_000)], Level::Warn, "5.0 s behind a"),
            (
                vec![clock("a", 1), clock("b", -61_000)],
                Level::Fail,
                "61.0 s ahead of b",
            ),
            (
                vec![clock("a", 50_000), clock("the database", 7_501)],
                Level::Fail,
                "7.5 s behind the database",
            ),
            (
                vec![clock("the database", -7_500)],
                Level::Warn,
                "7.5 s ahead of the database",
            ),
        ] {
            let found = check_clock(&clocks);
            assert_eq!(found.level, level, "{found}");
            assert!(found.to_string().contains(expected), "{found}");
        }
    }
}
