//! Keeps this node's channels and prices equal to those in the file and the database: every node polls the version of the database's configuration
//! and replaces its own when the version has increased. Running requests keep the configuration that they began with.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tollgate_config::Config;
use tollgate_core::Clock;
use tollgate_store::{Store, StoreError, StoredConfiguration};
use tollgate_upstream::egress;

use super::live_nodes::LiveNodes;
use crate::redis::NodeLinks;
use crate::reloadable::{Reloadable, ReloadableHandle};

/// How often the version is read.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Applies the configuration of file and database on this node.
pub struct ConfigSync {
    store: Store,
    clock: Arc<dyn Clock>,
    egress: egress::Client,
    reloadable: ReloadableHandle,
    live_nodes: Arc<LiveNodes>,
    /// `None` without Redis.
    links: Option<NodeLinks>,
    /// Locked while a configuration is read and applied, so that an older one never replaces a newer one.
    applying: Mutex<()>,
}

impl ConfigSync {
    /// Applies the file's configuration; that of the database is applied by the first [`ConfigSync::refresh`].
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        egress: egress::Client,
        live_nodes: Arc<LiveNodes>,
        links: Option<NodeLinks>,
        file: Arc<Config>,
    ) -> Result<Self, String> {
        let stored = Arc::new(StoredConfiguration::default());
        let reloadable = Reloadable::open(file, stored, &egress, None)?;
        if let Some(links) = &links {
            reloadable.connect(links);
        }
        Ok(Self {
            store,
            clock,
            egress,
            reloadable: ReloadableHandle::new(reloadable),
            live_nodes,
            links,
            applying: Mutex::new(()),
        })
    }

    /// The channels and prices that it updates.
    pub fn reloadable(&self) -> &ReloadableHandle {
        &self.reloadable
    }

    /// Applies another configuration of the file.
    ///
    /// # Errors
    /// A sentence for the operator; then nothing is replaced.
    pub async fn reload(&self, file: Arc<Config>) -> Result<(), String> {
        let _applying = self.applying.lock().await;
        let stored = Arc::clone(&self.reloadable.current().stored);
        self.apply(file, stored)
    }

    /// Applies the database's configuration if it is newer than the one in effect.
    ///
    /// # Errors
    /// The database's: then nothing is replaced.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let _applying = self.applying.lock().await;
        let current = self.reloadable.current();
        // A pause may have ended, or the number of nodes changed.
        current.apply_pauses(self.clock.now());
        current.apply_shares(&self.live_nodes);
        if self.store.config_version().await? == current.stored.version {
            return Ok(());
        }
        let stored = Arc::new(self.store.stored_configuration().await?);
        if let Err(e) = self.apply(Arc::clone(&current.file), stored) {
            // The file's channels were opened before, so opening them cannot fail now.
            tracing::error!(error = e, "the stored configuration was not applied");
        }
        Ok(())
    }

    fn apply(&self, file: Arc<Config>, stored: Arc<StoredConfiguration>) -> Result<(), String> {
        let previous = self.reloadable.current();
        let next = Reloadable::open(file, stored, &self.egress, Some(&previous))?;
        if next.shadowed != previous.shadowed && !next.shadowed.is_empty() {
            let names = next.shadowed.join(", ");
            tracing::warn!(
                names,
                "the configuration file has the same objects: those of the database are not used"
            );
        }
        if next.errors != previous.errors && !next.errors.is_empty() {
            let errors = next.errors.join("; ");
            tracing::error!(
                errors,
                "a part of the stored configuration cannot be used on this node"
            );
        }
        next.apply_pauses(self.clock.now());
        next.apply_shares(&self.live_nodes);
        if let Some(links) = &self.links {
            next.connect(links);
        }
        self.reloadable.replace(next);
        Ok(())
    }

    /// Polls. Never returns.
    pub async fn run(&self) {
        let mut is_failing = false;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let refreshed = self.refresh().await;
            if let Err(e) = self.store.follow_tail_watch(self.clock.now()).await {
                tracing::debug!(error = %e, "cannot read whether the live tail has watchers");
            }
            if let Err(e) = &refreshed
                && !is_failing
            {
                tracing::warn!(error = %e, "cannot read the stored configuration");
            }
            is_failing = refreshed.is_err();
        }
    }
}
