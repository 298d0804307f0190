//! `tollgate backup FILE` and `tollgate restore FILE`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tollgate_config::{Config, Overrides};
use tollgate_storage::data_dir;
use tollgate_store::{DatabaseLocation, back_up_sqlite, restore_sqlite};

use super::common::{Common, Failed, database_location};

#[derive(Args)]
pub(super) struct Backup {
    /// The file to write, which must not exist
    file: PathBuf,
}

#[derive(Args)]
pub(super) struct Restore {
    /// A file that `tollgate backup` has written
    file: PathBuf,
}

impl Backup {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let config = common.configuration(Overrides::default())?;
        let started = Instant::now();
        let bytes = back_up_sqlite(&sqlite_file(&config, "pg_dump")?, &self.file).await?;
        let file = self.file.display().to_string();
        let record =
            json!({ "file": file, "bytes": bytes, "ms": started.elapsed().as_millis() as u64 });
        common.print(&record, || {
            format!(
                "{file}: {bytes} bytes; not in it are the files in {} and the keys of the configuration",
                config.storage_dir().display()
            )
        })
    }
}

impl Restore {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let config = common.configuration(Overrides::default())?;
        let database = sqlite_file(&config, "pg_restore")?;
        data_dir::create(&config.data_dir)?;
        // The lock keeps a gateway from starting on a database that is not restored completely.
        let _lock = data_dir::lock_with_retry(&config.data_dir).await?;
        let bytes = restore_sqlite(&self.file, &database).await?;
        let shown = database.display().to_string();
        common.print(&json!({ "database": shown, "bytes": bytes }), || {
            format!("{shown}: {bytes} bytes; `tollgate audit` checks it")
        })
    }
}

/// The file of the configured SQLite database; an error that names `tool` if the database is on PostgreSQL.
fn sqlite_file(config: &Config, tool: &str) -> Result<PathBuf, Failed> {
    match database_location(config) {
        DatabaseLocation::Sqlite(file) => Ok(file),
        DatabaseLocation::Postgres(_) => Err(Failed::from(format!(
            "the database is PostgreSQL: use {tool}, see docs/operating.md"
        ))),
    }
}
