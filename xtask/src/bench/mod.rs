//! `cargo xtask bench`: measures the figures that Tollgate promises on this machine. Rates are ratios within one run: the gateway is compared with a
//! bare axum server ([`bare`]) that responds with the same bytes to the same load ([`load`]), in alternation.

mod bare;
mod bench_gateway;
mod chat;
mod fill;
mod limits;
mod lists;
mod load;
mod memory;
mod nodes;
mod own_code;
mod polls;
mod postgres;
mod results;
mod stored;
mod submit;
mod table;
mod traces;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::outcome::Outcome;
use crate::{gateway, process, repo};
use table::{Table, mib};

const BINARY_LIMIT_MIB: f64 = 40_000_000.0 / 1_048_576.0;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure only this
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// How long each load lasts
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The number of stored tasks that the comparison with few stored tasks uses
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
    /// How many chats and tasks are stored for the lists
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// On which databases lists are measured
    #[arg(long, value_enum, default_value_t = lists::Databases::Both)]
    database: lists::Databases,
    /// The program to measure, instead of building it
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Receive the responses of the server at this address and decode them with crates: the process that `own-code` compares the gateway with
    #[arg(long, hide = true)]
    decode_from: Option<String>,
    /// Decode into a struct that borrows the text, instead of a `Value`
    #[arg(long, hide = true)]
    decode_borrowed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Polls,
    Submit,
    Stored,
    Memory,
    Chat,
    /// Chats on PostgreSQL beside SQLite; not part of a run of everything
    Postgres,
    /// One, two and four nodes on one PostgreSQL; not part of a run of everything
    Nodes,
    /// Rate limits of three nodes, with Redis and without; not part of a run of everything
    Limits,
    /// Chats without traces, and with few and all recorded; not part of a run of everything
    Traces,
    /// Large results through S3, beside curl; not part of a run of everything
    Results,
    /// Lists, searches and sums with millions of rows; not part of a run of everything
    Lists,
    /// Own code beside the crates that would replace it; not part of a run of everything
    OwnCode,
}

#[derive(clap::Args)]
pub(crate) struct BareOptions {
    /// The file with the responses
    responses: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct ProxyOptions {
    /// Host and port
    upstream: String,
}

/// Runs the bare server that the gateway is compared with.
pub(crate) fn serve_bare(options: &BareOptions) -> Outcome {
    bare::serve(&options.responses)
}

/// Runs the upstream of the chat bench.
pub(crate) fn serve_upstream() -> Outcome {
    chat::serve_upstream()
}

/// Runs the bare proxy of the chat bench.
pub(crate) fn serve_proxy(options: &ProxyOptions) -> Outcome {
    chat::serve_proxy(&options.upstream)
}

/// Measures and prints a table; fails if a figure misses its target.
pub(crate) fn run(options: Options) -> Outcome {
    if let Some(address) = &options.decode_from {
        return own_code::decode_with_crates(address, options.decode_borrowed);
    }
    // Lists take milliseconds, so a debug build of this tool is fast enough to measure a given program.
    let may_be_debug = options.only == Some(Part::Lists) && options.binary.is_some();
    if cfg!(debug_assertions) && !may_be_debug {
        return rerun_in_release();
    }
    if options.only == Some(Part::OwnCode) {
        let mut table = Table::default();
        own_code::measure(options.binary, &mut table)?;
        table.print();
        return Ok(());
    }
    let binary = gateway::build_unless_given(options.binary.clone())?;
    let wanted = |part| options.only.is_none_or(|only| only == part);
    let mut table = Table::default();
    if wanted(Part::Polls) {
        polls::measure(&binary, options.seconds, &mut table)?;
    }
    if wanted(Part::Submit) {
        submit::measure(&binary, options.seconds, &mut table)?;
    }
    if wanted(Part::Stored) {
        stored::measure(&binary, options.seconds, options.tasks, &mut table)?;
    }
    if wanted(Part::Memory) {
        memory::measure(&binary, &mut table)?;
        let size = fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?;
        table.at_most("size of the binary, MiB", BINARY_LIMIT_MIB, mib(size.len()));
    }
    if wanted(Part::Chat) {
        chat::measure(&binary, options.seconds, &mut table)?;
    }
    if options.only == Some(Part::Postgres) {
        postgres::measure(&binary, options.seconds, &mut table)?;
    }
    if options.only == Some(Part::Nodes) {
        nodes::measure(&binary, options.seconds, &mut table)?;
    }
    if options.only == Some(Part::Limits) {
        limits::measure(&binary, &mut table)?;
    }
    if options.only == Some(Part::Traces) {
        traces::measure(&binary, options.seconds, &mut table)?;
    }
    if options.only == Some(Part::Results) {
        results::measure(&binary, &mut table)?;
    }
    if options.only == Some(Part::Lists) {
        let Options { rows, seconds, .. } = options;
        lists::measure(&binary, options.database, rows, seconds, &mut table)?;
    }
    table.print();
    match table.missed_count() {
        0 => Ok(()),
        n => Err(format!("bench: {n} figures miss their targets")),
    }
}

/// Runs the loads of most parts against `binary`; the figures do not matter.
pub(crate) fn run_training_loads(binary: &Path, seconds: u64) -> Outcome {
    let mut table = Table::default();
    polls::measure(binary, seconds, &mut table)?;
    submit::measure(binary, seconds, &mut table)?;
    memory::measure(binary, &mut table)?;
    chat::measure(binary, seconds, &mut table)
}

/// Runs this command again in a release build, because a slow load generator would measure itself.
pub(crate) fn rerun_in_release() -> Outcome {
    let mut cargo = process::cargo();
    cargo.current_dir(repo::root());
    cargo.args([
        "run",
        "--quiet",
        "--release",
        "--locked",
        "-p",
        "xtask",
        "--",
    ]);
    cargo.args(std::env::args_os().skip(1));
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("see above".to_owned()),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}
