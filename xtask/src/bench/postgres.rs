//! Measures chats on PostgreSQL compared with SQLite: a plain chat for which an amount is held, on one gateway, in alternation. The server stores its
//! data in a temporary folder and does not wait for the disk.

use std::fs;
use std::path::Path;

use super::bench_gateway::commit_count;
use super::chat::Setup;
use super::load::{self, Measurement, Target, cpu_seconds};
use super::table::Table;
use crate::postgres::{self, HOW_TO_INSTALL, Postgres};

const CONNECTIONS: usize = 32;

/// Measures processor time and throughput compared with SQLite; commits; processor time of PostgreSQL itself.
pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("chats on PostgreSQL");
    let bin =
        postgres::find().ok_or_else(|| format!("there is no PostgreSQL: {HOW_TO_INSTALL}"))?;
    let server = Postgres::start(&bin)?;
    let on_sqlite = Setup::start(binary, None)?;
    let on_postgres = Setup::start(binary, Some(&server.url()))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let targets = [
            on_sqlite.gateway_target_with_hold()?,
            on_postgres.gateway_target_with_hold()?,
        ];
        let sums = load::run_alternating(&[&targets[0], &targets[1]], CONNECTIONS, seconds).await?;
        let [sqlite, postgres] = [&sums[0], &sums[1]];
        for (name, measured) in [("SQLite", sqlite), ("PostgreSQL", postgres)] {
            measured.add_to_table(&format!("plain chat, balance held, {name}: "), table);
        }
        table.at_most(
            "plain chat, balance held: CPU on PostgreSQL beside SQLite",
            1.3,
            postgres.cpu_us() / sqlite.cpu_us(),
        );
        table.at_least(
            "plain chat, balance held: throughput on PostgreSQL beside SQLite",
            0.7,
            postgres.rate() / sqlite.rate(),
        );
        let [measured, commits, server_us] =
            measure_with_commits(&on_postgres, &targets[1], &server, seconds).await?;
        table.note(
            "chats on PostgreSQL: per second, alone",
            format!("{measured:.0}"),
        );
        table.note(
            "chats on PostgreSQL: commits per 100",
            format!("{commits:.1}"),
        );
        table.note(
            "chats on PostgreSQL: CPU us of the server each",
            format!("{server_us:.1}"),
        );
        Ok(())
    })
}

/// Measures chats per second, commits per 100 chats, and the processor time of PostgreSQL per chat.
#[expect(clippy::cast_precision_loss, reason = "ratios")]
async fn measure_with_commits(
    setup: &Setup,
    target: &Target,
    server: &Postgres,
    seconds: u64,
) -> Result<[f64; 3], String> {
    let before = commit_count(&setup.gateway.address()).await?;
    let pid = server.pid().ok_or("postgres is not running")?;
    let cpu_before = cpu_seconds_with_children(pid)?;
    let measured: Measurement = load::run(target, CONNECTIONS, seconds).await?;
    let cpu = cpu_seconds_with_children(pid)? - cpu_before;
    let commits = commit_count(&setup.gateway.address()).await? - before;
    let chats = measured.total_requests.max(1) as f64;
    Ok([
        measured.rate(),
        100.0 * commits as f64 / chats,
        1e6 * cpu / chats,
    ])
}

/// Processor time in seconds of a process and its children.
pub(super) fn cpu_seconds_with_children(pid: u32) -> Result<f64, String> {
    let mut sum = cpu_seconds(pid)?;
    let processes = fs::read_dir("/proc").map_err(|e| format!("cannot read /proc: {e}"))?;
    for process in processes.flatten() {
        let Some(child) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let parent = fields
            .split_whitespace()
            .nth(1)
            .and_then(|id| id.parse().ok());
        if parent == Some(pid) {
            // A process that has ended in the meantime is not counted.
            sum += cpu_seconds(child).unwrap_or_default();
        }
    }
    Ok(sum)
}
