//! The gateways of a soak, their database, and the accounts that use them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::bad_provider;
use super::full_disk::Disk;
use super::{Database, Options};
use crate::gateway::{Gateway, target_folder};
use crate::postgres::{self, Postgres};
use crate::process::TempDir;

/// Prices per image, in billionths; [`SETTINGS`] says the same to the gateway.
pub(super) const GROK_PRICE: i64 = 20_000_000;
pub(super) const GPT_PRICE: i64 = 40_000_000;
pub(super) const GPT_HIGH_PRICE: i64 = 107_000_000;

const SETTINGS: &str = r#"
[price."grok-imagine-1.0-partner"]
per_image = 0.02
[price."gpt-image-1-official"]
per_image = 0.04
when = [ { quality = "high", per_image = 0.107 } ]
[price."gpt-5"]
input_per_million = 1.25
output_per_million = 10.0
"#;

/// A user and what it was credited with, in billionths; none for one without limit.
pub(super) struct Account {
    pub(super) user: &'static str,
    pub(super) keys: Vec<String>,
    pub(super) credited: Mutex<Option<i64>>,
}

/// Everything that runs during a soak. Dropped in this order: disk, gateways, database, files.
pub(super) struct Setup {
    disk: Option<Mutex<Disk>>,
    nodes: Vec<Mutex<Gateway>>,
    pub(super) addresses: Vec<String>,
    pub(super) accounts: Vec<Account>,
    /// Whether a provider that misbehaves comes before the sandbox.
    pub(super) bad_provider: bool,
    _database: Option<Postgres>,
    _files: TempDir,
}

impl Setup {
    /// Starts the gateways on one new database and makes the accounts. `bad_provider` is the URL of a provider that misbehaves.
    pub(super) fn open(
        binary: &Path,
        options: &Options,
        bad_provider: Option<&str>,
    ) -> Result<Self, String> {
        let server = match options.database {
            Database::Sqlite => None,
            Database::Postgres => {
                let bin = postgres::find();
                let bin = bin
                    .ok_or_else(|| format!("no PostgreSQL found: {}", postgres::HOW_TO_INSTALL))?;
                Some(Postgres::start(&bin)?)
            }
        };
        let files = TempDir::within(&target_folder(), "files")?;
        let mut nodes: Vec<Gateway> = Vec::new();
        let mut disk = None;
        let channels = bad_provider.map(bad_provider::channels);
        let settings = format!("{}{SETTINGS}", channels.unwrap_or_default());
        for _ in 0..options.nodes {
            let mut node = Gateway::prepare(binary, &settings)?;
            let first = nodes
                .first()
                .map_or_else(|| node.address(), Gateway::address);
            node.environment("TOLLGATE_PUBLIC_URL", format!("http://{first}"));
            node.environment("TOLLGATE_SANDBOX__IMAGE_MS", "50");
            node.environment("TOLLGATE_LEASES__SECONDS", "4");
            if let Some(server) = &server {
                node.environment("TOLLGATE_DATABASE__URL", server.url());
                let url = format!("file://{}", files.path().display());
                node.environment("TOLLGATE_STORAGE__URL", url);
            }
            if let (Some(megabytes), None) = (options.disk_mb, &disk) {
                node.environment("TOLLGATE_STORAGE__RESERVE_MB", "64");
                let data = node.data();
                let folder = if server.is_some() {
                    files.path()
                } else {
                    &data
                };
                disk = Some(Disk::create(folder, megabytes)?);
            }
            node.start()?;
            nodes.push(node);
        }
        let accounts = accounts(&nodes[0])?;
        Ok(Self {
            addresses: nodes.iter().map(Gateway::address).collect(),
            nodes: nodes.into_iter().map(Mutex::new).collect(),
            accounts,
            bad_provider: bad_provider.is_some(),
            disk: disk.map(Mutex::new),
            _database: server,
            _files: files,
        })
    }

    /// How many gateways there are.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// One gateway, for oneself.
    pub(super) fn node(&self, at: usize) -> MutexGuard<'_, Gateway> {
        let node = &self.nodes[at % self.nodes.len()];
        node.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk that may be filled up, if there is one.
    pub(super) fn disk(&self) -> Option<MutexGuard<'_, Disk>> {
        let disk = self.disk.as_ref()?;
        Some(disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the gateways' folders; returns the first one's place.
    pub(super) fn keep(&self) -> String {
        if let Some(mut disk) = self.disk() {
            disk.keep();
        }
        let places = (0..self.count()).map(|at| self.node(at).keep().display().to_string());
        places.collect::<Vec<_>>().join(" ")
    }

    /// The end of the first gateway's log.
    pub(super) fn log_tail(&self) -> String {
        self.node(0).log_tail()
    }
}

/// Four users: one with more than it can spend, one that runs dry, one that is nearly broke from
/// the start, one without limit. Each has a free key and one with a quota.
fn accounts(node: &Gateway) -> Result<Vec<Account>, String> {
    let users = [
        ("rich", Some((100_000, 50))),
        ("modest", Some((60, 25))),
        ("poor", Some((3, 2))),
        ("boundless", None),
    ];
    let mut accounts = Vec::new();
    for (user, limits) in users {
        let balance = limits.map(|(balance, _)| i64::from(balance));
        match balance {
            Some(balance) => {
                node.record(&["user", "create", user, "--balance", &balance.to_string()])?
            }
            None => node.record(&["user", "create", user, "--unlimited"])?,
        };
        let free = node.record(&["key", "create", "--user", user, "--name", "free"])?;
        let mut keys = vec![key(&free)?];
        if let Some((_, quota)) = limits {
            let quota = quota.to_string();
            let tied = [
                "key", "create", "--user", user, "--name", "tied", "--quota", &quota,
            ];
            keys.push(key(&node.record(&tied)?)?);
        }
        accounts.push(Account {
            user,
            keys,
            credited: Mutex::new(balance.map(|b| b * 1_000_000_000)),
        });
    }
    // "Commands that write work beside a running server, which sees the change within one second."
    std::thread::sleep(Duration::from_millis(1000));
    Ok(accounts)
}

fn key(record: &Value) -> Result<String, String> {
    let key = record["key"].as_str();
    key.map(str::to_owned)
        .ok_or_else(|| format!("`key create` printed no key: {record}"))
}
