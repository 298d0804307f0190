//! Records this node's version, settings and state in the database, and compares them with those of the other live nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tollgate_config::Config;
use tollgate_core::{Clock, Millis, Secret, id};
use tollgate_store::{NodeRecord, Store, StoreError, known_schema_version};

use super::config_sync::ConfigSync;
use super::readiness::{Cause, Readiness};
use crate::reloadable::Reloadable;

/// How often this node checks whether its record has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How often it writes its record and compares itself with the others if nothing has changed.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// The name of the entry with the fingerprint of the configuration that the node applies, in which nodes may differ.
pub const FINGERPRINT: &str = "fingerprint";
/// A prefix of the hash that is the fingerprint of `secrets.key`, so that it differs from other hashes of that key.
const PURPOSE: &[u8] = b"tollgate node settings";

/// The settings that must be the same on all nodes, by name: each with its value, or a fingerprint of it.
pub type CommonSettings = BTreeMap<String, String>;

/// Returns a hash of the configuration that a node applies, for comparing nodes.
pub type FingerprintOf = fn(&Reloadable) -> String;

/// Writes this node's record, and compares it with those of the other nodes.
pub struct Peers {
    store: Store,
    clock: Arc<dyn Clock>,
    config_sync: Arc<ConfigSync>,
    readiness: Arc<Readiness>,
    /// This process's name in the database.
    node: String,
    started_at: Millis,
    common: CommonSettings,
    fingerprint_of: FingerprintOf,
    /// The fingerprint of the configuration that was last reported.
    fingerprint: Mutex<Option<(Arc<Reloadable>, String)>>,
}

impl Peers {
    /// The record of a node that starts now with `config`.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        config_sync: Arc<ConfigSync>,
        readiness: Arc<Readiness>,
        node: String,
        (config, fingerprint_of): (&Config, FingerprintOf),
    ) -> Self {
        Self {
            started_at: clock.now(),
            common: common_settings(config),
            store,
            clock,
            config_sync,
            readiness,
            node,
            fingerprint_of,
            fingerprint: Mutex::new(None),
        }
    }

    /// Compares this node with the others, and writes its record.
    ///
    /// # Errors
    /// The database's.
    pub async fn report(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        if self.store.is_shared() {
            let oldest = self.store.oldest_compatible_schema().await?;
            let known = known_schema_version();
            self.readiness
                .set(Cause::Version, check_version(known, oldest));
            let nodes = self.store.live_nodes(now).await?;
            let oldest = oldest_node(&nodes, self.started_at, &self.node);
            let differing = oldest.and_then(|node| check_settings(&self.common, node));
            self.readiness.set(Cause::Settings, differing);
        }
        let current = self.config_sync.reloadable().current();
        let errors = (!current.errors.is_empty()).then(|| current.errors.join("; "));
        let mut settings = self.common.clone();
        settings.insert(FINGERPRINT.to_owned(), self.fingerprint(&current));
        let node = NodeRecord {
            id: self.node.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started_at,
            last_seen_at: now,
            config_version: current.stored.version,
            config_error: errors,
            schema_version: Some(known_schema_version()),
            clock_offset: self.readiness.clock_offset(),
            settings: Some(serde_json::json!(settings).to_string()),
            not_ready: self.readiness.reason().map(|(_, reason)| reason),
            is_leader: false,
        };
        self.store.record_node(node).await
    }

    /// Reports at intervals, and soon after something has changed. Never returns.
    pub async fn run(&self) {
        // Only the cause of a reason is compared, because the offset of a clock is different at each measurement.
        let state = || {
            (
                self.config_sync.reloadable().current(),
                self.readiness.reason().map(|(cause, _)| cause),
            )
        };
        let (mut reported, mut reported_at) = (state(), Instant::now());
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = state();
            let is_same = Arc::ptr_eq(&now.0, &reported.0) && now.1 == reported.1;
            if is_same && reported_at.elapsed() < REPORT_INTERVAL {
                continue;
            }
            match self.report().await {
                Ok(()) => (reported, reported_at) = (now, Instant::now()),
                Err(e) => tracing::warn!(error = %e, "cannot record this node"),
            }
        }
    }

    fn fingerprint(&self, current: &Arc<Reloadable>) -> String {
        let mut known = self
            .fingerprint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, fingerprint)) if Arc::ptr_eq(of, current) => fingerprint.clone(),
            _ => {
                let fingerprint = (self.fingerprint_of)(current);
                *known = Some((Arc::clone(current), fingerprint.clone()));
                fingerprint
            }
        }
    }
}

/// The settings that must be the same on all nodes: the unit of amounts, the location of results, and the key that encrypts provider keys. A storage
/// folder is not compared, because it may have other names on other machines.
fn common_settings(config: &Config) -> CommonSettings {
    let mut common = CommonSettings::new();
    common.insert("currency".to_owned(), config.currency.to_string());
    if let Some(location) = config.storage_s3() {
        common.insert("storage.url".to_owned(), location.to_string());
    }
    if let Some(key) = &config.secrets_key {
        common.insert("secrets.key".to_owned(), fingerprint_of_secret(key));
    }
    common
}

fn fingerprint_of_secret(key: &Secret) -> String {
    let digest = Sha256::new()
        .chain_update(PURPOSE)
        .chain_update(key.expose())
        .finalize();
    id::hex(&digest[..8])
}

/// The node that has been alive longest, if it started before this one and its record has settings.
fn oldest_node<'a>(
    nodes: &'a [NodeRecord],
    started_at: Millis,
    own_node: &str,
) -> Option<&'a NodeRecord> {
    let known = nodes.iter().filter(|node| node.settings.is_some());
    let oldest = known.min_by_key(|node| (node.started_at, node.id.as_str()))?;
    ((oldest.started_at, oldest.id.as_str()) < (started_at, own_node)).then_some(oldest)
}

/// Why this node must not work beside `other`. `None` if it may. A setting that only one of the two has is not compared.
fn check_settings(common: &CommonSettings, other: &NodeRecord) -> Option<String> {
    let theirs: CommonSettings = serde_json::from_str(other.settings.as_ref()?).ok()?;
    let differs =
        |(name, value): &(&String, &String)| theirs.get(*name).is_some_and(|their| their != *value);
    let names: Vec<&str> = common
        .iter()
        .filter(differs)
        .map(|(name, _)| name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} must be the same on all nodes, and {} of node {}, which has been running longer: to change this, stop all nodes first",
            names.join(", "),
            if names.len() == 1 { "differs from that" } else { "differ from those" },
            other.id
        )
    })
}

/// Why a program that knows the schema version `known` must not work on a database that programs from version `oldest` on may use.
fn check_version(known: i64, oldest: i64) -> Option<String> {
    (known < oldest).then(|| {
        format!(
            "a newer node has changed the database to a schema that needs version {oldest}, and this program knows {known}: run a newer tollgate"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, started_at: Millis, settings: &str) -> NodeRecord {
        NodeRecord {
            id: id.to_owned(),
            started_at,
            settings: Some(settings.to_owned()),
            ..NodeRecord::default()
        }
    }

    #[test]
    fn a_node_is_compared_with_the_one_that_has_been_alive_longest() {
        let silent = NodeRecord {
            started_at: 1,
            ..NodeRecord::default()
        };
        let nodes = [
            node("node_c", 7, "{}"),
            node("node_b", 5, "{}"),
            node("node_a", 5, "{}"),
            silent,
        ];
        let oldest =
            |started_at, id| oldest_node(&nodes, started_at, id).map(|node| node.id.as_str());
        assert_eq!(oldest(9, "node_d"), Some("node_a"));
        assert_eq!(oldest(5, "node_b"), Some("node_a"));
        assert_eq!(oldest(5, "node_a"), None);
        assert_eq!(oldest(4, "node_d"), None);
        assert_eq!(oldest_node(&[], 4, "node_d"), None);
    }

    #[test]
    fn settings_that_both_nodes_have_must_be_the_same() {
        let key = fingerprint_of_secret(&Secret::new("a"));
        assert_eq!(key.len(), 16);
        let common = [("currency", "USD"), ("secrets.key", &key)];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let common = CommonSettings::from(common);
        let compare = |settings: &str| check_settings(&common, &node("node_a", 1, settings));
        for same in [
            format!(r#"{{"currency": "USD", "secrets.key": "{key}", "fingerprint": "f"}}"#),
            r#"{"currency": "USD", "storage.url": "s3://a/"}"#.to_owned(),
            "{}".to_owned(),
        ] {
            assert_eq!(compare(&same), None, "{same}");
        }
        let currency = compare(r#"{"currency": "EUR"}"#).unwrap();
        assert!(
            currency.starts_with(
                "currency must be the same on all nodes, and differs from that of node node_a"
            ),
            "{currency}"
        );
        let both = compare(r#"{"currency": "EUR", "secrets.key": "0"}"#).unwrap();
        assert!(
            both.starts_with("currency, secrets.key must be the same"),
            "{both}"
        );
    }

    #[test]
    fn a_program_that_is_too_old_for_the_database_is_an_error() {
        assert_eq!(check_version(23, 13), None);
        assert_eq!(check_version(23, 23), None);
        assert!(check_version(23, 24).unwrap().contains("needs version 24"));
    }
}
