//! Measures lists, searches and sums of the admin API with many stored rows, on SQLite and on a PostgreSQL server of its own; and plain chats while a
//! client pages through lists.

mod cases;
mod client;
mod data;
mod traffic;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::chat::Setup;
use super::table::Table;
use crate::postgres::{self, HOW_TO_INSTALL, Postgres};
use client::{ADMIN_KEY, Client};
use data::Database;

/// The number of requests of each kind.
const REQUESTS: usize = 100;
/// The limit for the 99th percentile of a list's time, in milliseconds.
const TARGET_MS: f64 = 100.0;

/// The databases to measure on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Databases {
    Sqlite,
    Postgres,
    Both,
}

/// Measures with `rows` chats and tasks.
pub(super) fn measure(
    binary: &Path,
    on: Databases,
    rows: u64,
    seconds: u64,
    table: &mut Table,
) -> Result<(), String> {
    if on != Databases::Postgres {
        eprintln!("lists on SQLite, {rows} rows");
        let setup = Setup::start(binary, None)?;
        let database = Database::sqlite(&setup.gateway.data())?;
        measure_on(setup, &database, "SQLite", rows, seconds, table)?;
    }
    if on != Databases::Sqlite {
        eprintln!("lists on PostgreSQL, {rows} rows");
        let bin =
            postgres::find().ok_or_else(|| format!("there is no PostgreSQL: {HOW_TO_INSTALL}"))?;
        let server = Postgres::start(&bin)?;
        let setup = Setup::start(binary, Some(&server.url()))?;
        let database = Database::Postgres(bin.join("psql"), server.url());
        measure_on(setup, &database, "PostgreSQL", rows, seconds, table)?;
    }
    Ok(())
}

fn measure_on(
    mut setup: Setup,
    database: &Database,
    name: &str,
    rows: u64,
    seconds: u64,
    table: &mut Table,
) -> Result<(), String> {
    setup.gateway.stop()?;
    let began = Instant::now();
    data::create_rows(database, rows)?;
    note_seconds(table, &format!("{name}: {rows} rows are created, s"), began);
    let began = Instant::now();
    setup
        .gateway
        .set_environment("TOLLGATE_ADMIN__KEY", ADMIN_KEY);
    // Prevents purging during the measurement.
    setup
        .gateway
        .set_environment("TOLLGATE_EXPIRY__TASKS_DAYS", "3650");
    setup.gateway.start()?;
    data::await_blocks(database, rows)?;
    note_seconds(table, &format!("{name}: blocks of all rows, s"), began);
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let mut client = Client::open(&setup.gateway.address()).await?;
        for case in cases::all_cases(&mut client).await? {
            let mut times = Vec::with_capacity(REQUESTS);
            let mut next = None;
            for number in 0..REQUESTS {
                let path = match (case.is_paged, &next) {
                    (true, Some(cursor)) => format!("{}&cursor={cursor}", case.path(number)),
                    _ => case.path(number),
                };
                let began = Instant::now();
                let page = client.get(&path).await?;
                times.push(began.elapsed());
                next = page["next_cursor"].as_str().map(str::to_owned);
            }
            let what = format!("{name}: {}", case.name);
            table.at_most_ms(&what, TARGET_MS, percentiles(times));
        }
        traffic::measure(&setup, name, seconds, table).await
    })
}

fn note_seconds(table: &mut Table, what: &str, began: Instant) {
    table.note(what, format!("{:.0}", began.elapsed().as_secs_f64()));
}

/// The median, the 99th percentile and the longest, in milliseconds.
fn percentiles(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    [last / 2, last * 99 / 100, last].map(|at| {
        let time = times.get(at).copied().unwrap_or_default();
        time.as_secs_f64() * 1e3
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_leaves_out_the_longest_of_a_hundred() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let [median, p99, longest] = percentiles(times);
        assert!((median, p99, longest) == (50.0, 99.0, 100.0));
    }
}
