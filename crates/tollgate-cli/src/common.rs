//! Code that the commands share: common options, errors, opening the store.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tollgate_config::{Config, Overrides};
use tollgate_store::{AdminRejection, AdminReply, DatabaseLocation, Store, StoreError};

/// What every command takes.
#[derive(Args)]
pub(super) struct Common {
    /// Configuration file [default: ./tollgate.toml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder of the embedded database and the files [default: ./tollgate-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Print records as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// The error of a command that failed, with one sentence for stderr. `None` if the command has already printed its error.
pub(super) struct Failed(pub(super) Option<String>);

impl<E: std::fmt::Display> From<E> for Failed {
    fn from(e: E) -> Self {
        Self(Some(e.to_string()))
    }
}

impl Failed {
    /// A failure whose error the command has already printed.
    pub(super) fn silently() -> Self {
        Self(None)
    }
}

/// Prints a sentence to stderr, after the program's name.
pub(super) fn print_to_stderr(sentence: &str) {
    // If stderr is closed, there is nowhere else to print it.
    let _ = writeln!(std::io::stderr(), "tollgate: {sentence}");
}

/// The reply to an admin write.
///
/// # Errors
/// Why it changed nothing.
pub(super) fn accepted(result: Result<AdminReply, AdminRejection>) -> Result<AdminReply, Failed> {
    result.map_err(|rejection| match rejection {
        AdminRejection::Conflict { message, .. } | AdminRejection::Invalid { message, .. } => {
            Failed::from(message)
        }
        other => Failed::from(format!("it was changed meanwhile: {other:?}")),
    })
}

impl Common {
    /// Loads the configuration; prints its warnings to stderr.
    pub(super) fn configuration(&self, overrides: Overrides) -> Result<Config, Failed> {
        let overrides = Overrides {
            data_dir: self.data_dir.clone(),
            ..overrides
        };
        let (config, warnings) = Config::load(self.config.as_deref(), &overrides)?;
        for warning in warnings {
            print_to_stderr(&format!("warning: {warning}"));
        }
        Ok(config)
    }

    /// Opens the store of the configuration, for commands that run beside a server.
    pub(super) async fn store(&self) -> Result<Store, Failed> {
        let config = self.configuration(Overrides::default())?;
        open_store(&config).await
    }

    /// Prints a record: as JSON, or as the line that `plain` returns.
    pub(super) fn print(
        &self,
        record: &Value,
        plain: impl FnOnce() -> String,
    ) -> Result<(), Failed> {
        let text = if self.json {
            record.to_string()
        } else {
            plain()
        };
        Ok(writeln!(std::io::stdout(), "{text}")?)
    }
}

/// The location of the configured database.
pub(super) fn database_location(config: &Config) -> DatabaseLocation {
    match &config.database_url {
        Some(url) => DatabaseLocation::Postgres(url.expose().to_owned()),
        None => DatabaseLocation::Sqlite(config.data_dir.join("tollgate.db")),
    }
}

/// Opens the configured database; creates the data directory if it is missing.
pub(super) async fn open_store(config: &Config) -> Result<Store, Failed> {
    tollgate_storage::data_dir::create(&config.data_dir)?;
    let opened = Store::open(&database_location(config)).await;
    let with_replica = |store: Store| match &config.replica_url {
        Some(url) => store.with_replica(url.expose()),
        None => Ok(store),
    };
    opened.and_then(with_replica).map_err(|e| match e {
        StoreError::Setup(sentence) => Failed::from(sentence),
        e => Failed::from(format!("cannot open the database: {e}")),
    })
}
