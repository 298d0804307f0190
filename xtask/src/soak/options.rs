//! The options of `cargo xtask soak`.

use std::path::PathBuf;

use clap::ValueEnum;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long to keep up the load
    #[arg(long, default_value_t = 60)]
    pub(super) seconds: u64,
    /// Where the gateway keeps its records
    #[arg(long, value_enum, default_value_t = Database::Sqlite)]
    pub(super) database: Database,
    /// How many gateways share the database (more than one needs postgres)
    #[arg(long, default_value_t = 1)]
    pub(super) nodes: usize,
    /// The program to test, instead of building it
    #[arg(long)]
    pub(super) binary: Option<PathBuf>,
    /// Let hostile clients attack beside the honest ones, one after the other
    #[arg(long)]
    pub(super) hostile: bool,
    /// Put a provider that misbehaves in ever new ways before the sandbox
    #[arg(long = "bad-provider")]
    pub(super) failing_provider: bool,
    /// Keep the files (and SQLite's database) on a file system of so many MB, and fill it up now and then (needs root)
    #[arg(long, value_name = "N")]
    pub(super) disk_mb: Option<u64>,
    /// Make the same choices as the run that printed this number
    #[arg(long)]
    pub(super) seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Database {
    Sqlite,
    Postgres,
}
