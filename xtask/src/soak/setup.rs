//! The gateways of a soak, their database, and the accounts that use them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::failing_provider;
use super::full_disk::Disk;
use super::options::{Database, Options};
use crate::customers::{PRICES, Service, create_accounts};
use crate::gateway::{Gateway, target_folder};
use crate::postgres::{self, Postgres};
use crate::process::TempDir;

/// Everything that runs during a soak. Dropped in this order: disk, gateways, database, files.
pub(super) struct Setup {
    disk: Option<Mutex<Disk>>,
    pub(super) nodes: Vec<Mutex<Gateway>>,
    pub(super) service: Service,
    _database: Option<Postgres>,
    _files: TempDir,
}

impl Setup {
    /// Starts the gateways on one new database and creates the accounts. `failing_provider` is the URL of a misbehaving provider.
    pub(super) fn open(
        binary: &Path,
        options: &Options,
        failing_provider: Option<&str>,
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
        let channels = failing_provider.map(failing_provider::channels);
        let settings = format!("{}{PRICES}", channels.unwrap_or_default());
        for _ in 0..options.nodes {
            let mut node = Gateway::prepare(binary, &settings)?;
            let first = nodes
                .first()
                .map_or_else(|| node.address(), Gateway::address);
            node.set_environment("TOLLGATE_PUBLIC_URL", format!("http://{first}"));
            node.set_environment("TOLLGATE_SANDBOX__IMAGE_MS", "50");
            node.set_environment("TOLLGATE_LEASES__SECONDS", "4");
            if let Some(server) = &server {
                node.set_environment("TOLLGATE_DATABASE__URL", server.url());
                let url = format!("file://{}", files.path().display());
                node.set_environment("TOLLGATE_STORAGE__URL", url);
            }
            if let (Some(megabytes), None) = (options.disk_mb, &disk) {
                node.set_environment("TOLLGATE_STORAGE__RESERVE_MB", "64");
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
        Ok(Self {
            service: Service {
                addresses: nodes.iter().map(Gateway::address).collect(),
                accounts: create_accounts(&nodes[0])?,
                failing_provider: failing_provider.is_some(),
            },
            nodes: nodes.into_iter().map(Mutex::new).collect(),
            disk: disk.map(Mutex::new),
            _database: server,
            _files: files,
        })
    }

    /// The number of gateways.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Locks one gateway.
    pub(super) fn node(&self, at: usize) -> MutexGuard<'_, Gateway> {
        let node = &self.nodes[at % self.nodes.len()];
        node.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk that may be filled, if there is one.
    pub(super) fn disk(&self) -> Option<MutexGuard<'_, Disk>> {
        let disk = self.disk.as_ref()?;
        Some(disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the gateways' folders; returns their paths.
    pub(super) fn keep_folders(&self) -> String {
        if let Some(mut disk) = self.disk() {
            disk.keep();
        }
        let folders = (0..self.node_count()).map(|at| self.node(at).keep().display().to_string());
        folders.collect::<Vec<_>>().join(" ")
    }

    /// The end of the first gateway's log.
    pub(super) fn log_tail(&self) -> String {
        self.node(0).log_tail()
    }
}
