//! Measures rate limits with three nodes: how many requests the nodes admit together, with Redis and without; and how much Redis adds to a request's
//! time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::try_join_all;

use super::bench_gateway::BenchGateway;
use super::load::{Connection, request_bytes};
use super::table::Table;
use crate::cluster::server::Server;
use crate::postgres::{self, HOW_TO_INSTALL, Postgres};

const NODES: usize = 3;
/// The limit of each key, in requests a minute.
const LIMIT: usize = 600;
/// The number of requests that are sent, in much less than a minute.
const SENT: usize = 3 * LIMIT;
const CONNECTIONS: [usize; 2] = [6, 30];
/// The allowed deviation of the number of admitted requests from the limit.
const TOLERANCE: f64 = 0.02;
/// The number of requests to each gateway whose times are compared.
const TIMED: usize = 5_000;
const WARM_UP: usize = 200;

pub(super) fn measure(binary: &Path, table: &mut Table) -> Result<(), String> {
    eprintln!("rate limits");
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let redis = Server::start_redis()?.ok_or("there is no redis-server and no valkey-server")?;
    let url = format!("redis://{}", redis.address());
    for (name, redis_url) in [("with", Some(&url)), ("without", None)] {
        let admitted = measure_admitted(binary, &runtime, redis_url)?;
        for (connections, admitted) in CONNECTIONS.iter().zip(admitted) {
            let what = format!(
                "requests admitted of {LIMIT}, {NODES} nodes {name} Redis, {connections} at a time"
            );
            table.note(&what, admitted.to_string());
            if redis_url.is_some() {
                #[expect(clippy::cast_precision_loss, reason = "hundreds")]
                let off = (admitted as f64 / LIMIT as f64 - 1.0).abs();
                table.at_most(&format!("{what}: off by"), TOLERANCE, off);
            }
        }
    }
    let [without, with] = runtime.block_on(measure_times(binary, &url))?;
    for (name, times) in [("without", &without), ("with", &with)] {
        table.note(
            format!("a request with a limit, {name} Redis, ms: median, 99 %"),
            format!("{:.3} {:.3}", percentile(times, 50), percentile(times, 99)),
        );
    }
    table.note(
        "Redis adds, ms: median, 99 %",
        format!(
            "{:.3} {:.3}",
            percentile(&with, 50) - percentile(&without, 50),
            percentile(&with, 99) - percentile(&without, 99)
        ),
    );
    Ok(())
}

/// The number of requests that the nodes admit of [`LIMIT`], for each of [`CONNECTIONS`].
fn measure_admitted(
    binary: &Path,
    runtime: &tokio::runtime::Runtime,
    redis: Option<&String>,
) -> Result<Vec<usize>, String> {
    let bin =
        postgres::find().ok_or_else(|| format!("there is no PostgreSQL: {HOW_TO_INSTALL}"))?;
    let server = Postgres::start(&bin)?;
    let mut shared = vec![("TOLLGATE_DATABASE__URL", server.url())];
    if let Some(url) = redis {
        shared.push(("TOLLGATE_LIMITS__REDIS_URL", url.clone()));
    }
    let first = BenchGateway::start_with(binary, &shared, 1)?;
    let mut keys = Vec::new();
    for _ in CONNECTIONS {
        keys.push(create_limited_key(&first, LIMIT)?);
    }
    let mut nodes = vec![first];
    for _ in 1..NODES {
        let keys = nodes[0].keys.clone();
        nodes.push(BenchGateway::join(binary, &shared, &keys)?);
    }
    // Waits until each node knows the number of nodes.
    std::thread::sleep(std::time::Duration::from_secs(12));
    let addresses: Vec<String> = nodes.iter().map(|node| node.gateway.address()).collect();
    let mut counts = Vec::new();
    for (connections, key) in CONNECTIONS.into_iter().zip(&keys) {
        counts.push(runtime.block_on(count_admitted(&addresses, connections, key))?);
    }
    Ok(counts)
}

/// Creates a key of the first user, with a limit of `rpm` requests a minute.
fn create_limited_key(gateway: &BenchGateway, rpm: usize) -> Result<String, String> {
    let rpm = rpm.to_string();
    let create = ["key", "create", "--user", "bench0", "--rpm", &rpm];
    let key = gateway.gateway.cli_json(&create)?;
    let key = key["key"].as_str().ok_or("`key create` printed no key")?;
    Ok(key.to_owned())
}

/// The cheapest request that counts towards the limit.
fn counted_request(key: &str) -> Vec<u8> {
    request_bytes(
        "POST",
        "/v1/tasks/batch",
        key,
        r#"{"task_ids": ["task_x"]}"#,
    )
}

async fn count_admitted(
    addresses: &[String],
    connections: usize,
    key: &str,
) -> Result<usize, String> {
    let sent = Arc::new(AtomicUsize::new(0));
    let bytes = counted_request(key);
    let clients = (0..connections).map(|number| {
        let (sent, bytes) = (Arc::clone(&sent), bytes.clone());
        let address = addresses[number % addresses.len()].clone();
        async move {
            let mut connection = Connection::open(&address).await?;
            let mut admitted = 0;
            while sent.fetch_add(1, Ordering::Relaxed) < SENT {
                connection.send(&bytes).await?;
                let head = connection.read_response().await?.head;
                if head.starts_with("HTTP/1.1 200") {
                    admitted += 1;
                } else if !head.starts_with("HTTP/1.1 429") {
                    return Err(format!("neither 200 nor 429: {head}"));
                }
            }
            Ok(admitted)
        }
    });
    let admitted: Vec<usize> = try_join_all(clients).await?;
    Ok(admitted.into_iter().sum())
}

/// The sorted times in milliseconds of requests to a gateway without Redis and one with Redis, in alternation.
async fn measure_times(binary: &Path, redis: &str) -> Result<[Vec<f64>; 2], String> {
    let mut sides = Vec::new();
    for environment in [
        vec![],
        vec![("TOLLGATE_LIMITS__REDIS_URL", format!("{redis}/1"))],
    ] {
        let gateway = BenchGateway::start_with(binary, &environment, 1)?;
        let key = create_limited_key(&gateway, 1_000_000)?;
        let connection = Connection::open(&gateway.gateway.address()).await?;
        sides.push((gateway, connection, counted_request(&key), Vec::new()));
    }
    // Both gateways read their new key within a second.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    for number in 0..TIMED + WARM_UP {
        for (_, connection, bytes, times) in &mut sides {
            let began = Instant::now();
            connection.exchange(bytes).await?;
            if number >= WARM_UP {
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let sorted = sides.into_iter().map(|(_, _, _, mut times)| {
        times.sort_unstable_by(f64::total_cmp);
        times
    });
    let sorted: Vec<Vec<f64>> = sorted.collect();
    sorted
        .try_into()
        .map_err(|_| "two gateways were measured".to_owned())
}

/// The value at a percentile.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}
