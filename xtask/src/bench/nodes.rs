//! Measures one, two and four nodes on one PostgreSQL server, with the same total load, and with the same load on each node: the database's cost of
//! an operation must not grow with the number of nodes. For comparison, the same number of nodes with a server each shows what that many processes
//! cost on these processors if they share nothing. Then it measures plain chats of one busy user on three nodes. The server stores its data in a
//! temporary folder and does not wait for the disk.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::bench_gateway::{BenchGateway, commit_count};
use super::chat::Setup;
use super::load::{self, Measurement, Requests, Target};
use super::postgres::cpu_seconds_with_children;
use super::table::Table;
use crate::postgres::{self, HOW_TO_INSTALL, Postgres};
use crate::process::TempDir;

const NODES: [usize; 3] = [1, 2, 4];
/// The number of connections, to all nodes together or to each node.
const CONNECTIONS: usize = 64;
/// With this number of users, nodes seldom wait for a row that another node has locked. One user is measured as well.
const USERS: usize = 1_000;
/// The minimum ratio, of four nodes to one node, of operations per second of the database's processor time.
const MIN_RATIO: f64 = 0.9;
const BUSY_NODES: usize = 3;

/// The measured cost of a load on all nodes.
struct Cost {
    rate: f64,
    /// Processor time of the gateways and of PostgreSQL for each operation, in microseconds.
    gateways_us: f64,
    database_us: f64,
    commits_per_100: f64,
    wal_bytes: f64,
}

pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("nodes on one PostgreSQL");
    let bin =
        postgres::find().ok_or_else(|| format!("there is no PostgreSQL: {HOW_TO_INSTALL}"))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let (mut database_us_same_total, mut database_us_same_each) = (Vec::new(), Vec::new());
    for count in NODES {
        let server = Postgres::start(&bin)?;
        let files = TempDir::new("bench-files")?;
        let storage = format!("file://{}", files.path().display());
        let shared = [
            ("TOLLGATE_DATABASE__URL", server.url()),
            ("TOLLGATE_STORAGE__URL", storage),
        ];
        let nodes = start_nodes(binary, count, &shared)?;
        let name = |kind: &str| format!("{kind}, {count} nodes: ");
        runtime.block_on(async {
            let shared = CONNECTIONS / count;
            let cost = measure_submissions(&nodes, &server, (shared, seconds)).await?;
            add_to_table(table, &name("submissions"), &cost);
            database_us_same_total.push(cost.database_us);
            let cost = measure_submissions(&nodes, &server, (CONNECTIONS, seconds)).await?;
            add_to_table(table, &name("submissions, 64 connections each"), &cost);
            database_us_same_each.push(cost.database_us);
            let cost = measure_polls(&nodes, &server, seconds).await?;
            add_to_table(table, &name("polls, unfinished"), &cost);
            Ok::<_, String>(())
        })?;
    }
    let apart = runtime.block_on(measure_with_a_server_each(binary, &bin, seconds))?;
    add_to_table(
        table,
        "submissions, 64 connections each, 4 nodes with a server each: ",
        &apart,
    );
    let last = NODES.len() - 1;
    let beside = "submissions: per CPU second of PostgreSQL, 4 nodes";
    table.note(
        format!("{beside} beside 1, same load in all"),
        format!(
            "{:.3}",
            database_us_same_total[0] / database_us_same_total[last]
        ),
    );
    table.note(
        format!("{beside} on one server beside one each"),
        format!("{:.3}", apart.database_us / database_us_same_each[last]),
    );
    table.at_least(
        &format!("{beside} beside 1, same load on each"),
        MIN_RATIO,
        database_us_same_each[0] / database_us_same_each[last],
    );
    for count in [1, BUSY_NODES] {
        let server = Postgres::start(&bin)?;
        let nodes = start_chat_nodes(binary, count, &server.url())?;
        let targets: Result<Vec<Target>, String> =
            nodes.iter().map(Setup::gateway_target_with_hold).collect();
        let load = (CONNECTIONS / count, seconds);
        let cost = runtime.block_on(measure_load(&targets?, &server, load))?;
        let what = format!("chats of one user, {count} nodes: ");
        add_to_table(table, &what, &cost);
    }
    Ok(())
}

/// Measures the maximum number of nodes, each on a server of its own, with the same load on each.
async fn measure_with_a_server_each(
    binary: &Path,
    bin: &Path,
    seconds: u64,
) -> Result<Cost, String> {
    let mut sides = Vec::new();
    for _ in 0..NODES[NODES.len() - 1] {
        let server = Postgres::start(bin)?;
        let shared = [("TOLLGATE_DATABASE__URL", server.url())];
        sides.push((start_nodes(binary, 1, &shared)?, server));
    }
    let loads = sides
        .iter()
        .map(|(nodes, server)| measure_submissions(nodes, server, (CONNECTIONS, seconds)));
    let costs = try_join_all(loads).await?;
    let count = costs.len() as f64;
    let mean = |figure: fn(&Cost) -> f64| costs.iter().map(figure).sum::<f64>() / count;
    Ok(Cost {
        rate: mean(|cost| cost.rate) * count,
        gateways_us: mean(|cost| cost.gateways_us),
        database_us: mean(|cost| cost.database_us),
        commits_per_100: mean(|cost| cost.commits_per_100),
        wal_bytes: mean(|cost| cost.wal_bytes),
    })
}

/// Starts gateways on one database, with [`USERS`] users.
fn start_nodes(
    binary: &Path,
    count: usize,
    shared: &[(&'static str, String)],
) -> Result<Vec<BenchGateway>, String> {
    let first = BenchGateway::start_with(binary, shared, USERS)?;
    let keys = first.keys.clone();
    let mut nodes = vec![first];
    for _ in 1..count {
        nodes.push(BenchGateway::join(binary, shared, &keys)?);
    }
    Ok(nodes)
}

/// Starts gateways on one database, with the users of the first gateway.
fn start_chat_nodes(binary: &Path, count: usize, url: &str) -> Result<Vec<Setup>, String> {
    let mut nodes = vec![Setup::start(binary, Some(url))?];
    for _ in 1..count {
        let keys = [nodes[0].limited_key.clone(), nodes[0].unlimited_key.clone()];
        nodes.push(Setup::join(binary, url, keys)?);
    }
    Ok(nodes)
}

async fn measure_submissions(
    nodes: &[BenchGateway],
    server: &Postgres,
    load: (usize, u64),
) -> Result<Cost, String> {
    let targets: Result<Vec<Target>, String> = nodes
        .iter()
        .map(|node| {
            let submissions = node.submission_requests();
            // Each node has its own order of users.
            let hasher = RandomState::new();
            let requests: Requests = Arc::new(move |number| {
                let at = hasher.hash_one(number) % submissions.len() as u64;
                submissions[usize::try_from(at).unwrap_or(0)].clone()
            });
            node.target(&requests)
        })
        .collect();
    measure_load(&targets?, server, load).await
}

/// Polls, on every node, a task that was submitted there.
async fn measure_polls(
    nodes: &[BenchGateway],
    server: &Postgres,
    seconds: u64,
) -> Result<Cost, String> {
    let mut targets = Vec::new();
    for node in nodes {
        let (id, _) = node.submit(&node.submission_request()).await?;
        let poll = node.poll_request(&id);
        let requests: Requests = Arc::new(move |_| poll.clone());
        targets.push(node.target(&requests)?);
    }
    measure_load(&targets, server, (CONNECTIONS / nodes.len(), seconds)).await
}

/// Puts a load on all nodes at the same time, with that number of connections to each, for that number of seconds.
#[expect(clippy::cast_precision_loss, reason = "means")]
async fn measure_load(
    targets: &[Target],
    server: &Postgres,
    (connections, seconds): (usize, u64),
) -> Result<Cost, String> {
    let pid = server.pid().ok_or("postgres is not running")?;
    let addresses = targets.iter().map(|target| target.address.clone());
    let count_commits = async || -> Result<u64, String> {
        let counts = addresses
            .clone()
            .map(|address| async move { commit_count(&address).await });
        Ok(try_join_all(counts).await?.into_iter().sum())
    };
    let log = || -> Result<f64, String> {
        let position = server.query("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")?;
        position.parse().map_err(|e| format!("{position}: {e}"))
    };
    let (cpu, before, wal) = (
        cpu_seconds_with_children(pid)?,
        count_commits().await?,
        log()?,
    );
    let loads = targets
        .iter()
        .map(|target| load::run(target, connections, seconds));
    let measured: Vec<Measurement> = try_join_all(loads).await?;
    let total_requests = measured
        .iter()
        .map(|one| one.total_requests)
        .sum::<u64>()
        .max(1) as f64;
    let cost = Cost {
        rate: measured.iter().map(Measurement::rate).sum(),
        gateways_us: measured.iter().map(Measurement::cpu_us).sum::<f64>() / measured.len() as f64,
        database_us: 1e6 * (cpu_seconds_with_children(pid)? - cpu) / total_requests,
        commits_per_100: 100.0 * (count_commits().await? - before) as f64 / total_requests,
        wal_bytes: (log()? - wal) / total_requests,
    };
    Ok(cost)
}

fn add_to_table(table: &mut Table, what: &str, cost: &Cost) {
    table.note(format!("{what}per second"), format!("{:.0}", cost.rate));
    table.note(
        format!("{what}CPU us of the gateways each"),
        format!("{:.1}", cost.gateways_us),
    );
    table.note(
        format!("{what}CPU us of PostgreSQL each"),
        format!("{:.1}", cost.database_us),
    );
    table.note(
        format!("{what}commits per 100"),
        format!("{:.1}", cost.commits_per_100),
    );
    table.note(
        format!("{what}bytes of the write-ahead log each"),
        format!("{:.0}", cost.wal_bytes),
    );
}
