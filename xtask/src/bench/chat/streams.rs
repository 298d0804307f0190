//! Measures streams: processor time per chunk, delay of the first chunk, memory of open streams, and clients that do not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::super::load::{Target, cpu_seconds, memory_bytes};
use super::super::table::Table;
use super::setup::Setup;
use super::upstream::{ENDLESS, OPEN};

const PATH: &str = "/v1/chat/completions";
const CONNECTIONS: usize = 64;
const PACED: Option<&str> = Some("paced");
/// The number of first chunks from which the median is computed.
const FIRST_CHUNKS: usize = 400;
const OPEN_STREAMS: u64 = 2_000;
const SLOW_CLIENTS: u64 = 20;
/// How long slow clients do not read.
const SLOW_FOR: Duration = Duration::from_secs(4);
const EVENT: &[u8] = b"data: ";
const LAST: &[u8] = b"0\r\n\r\n";

/// Measures all properties of streams.
pub(super) async fn measure(setup: &Setup, seconds: u64, table: &mut Table) -> Result<(), String> {
    let ours = setup.gateway_target(&setup.unlimited_key, PATH, "gpt-5", PACED)?;
    measure_chunks(setup, &ours, seconds, table).await?;
    measure_first_chunk(setup, &ours, table).await?;
    measure_open_streams(setup, table).await?;
    measure_slow_clients(setup, table).await
}

async fn measure_chunks(
    setup: &Setup,
    ours: &Target,
    seconds: u64,
    table: &mut Table,
) -> Result<(), String> {
    let proxy = setup.proxy_target(PACED);
    let nginx = setup.nginx_target(PACED);
    let mut targets = vec![("gateway", ours), ("bare hyper proxy", &proxy)];
    targets.extend(nginx.as_ref().map(|nginx| ("nginx", nginx)));
    let mut sums = vec![(0u64, 0f64); targets.len()];
    for turn in 0..seconds as usize {
        for step in 0..targets.len() {
            let at = (turn + step) % targets.len();
            let before = cpu_seconds(targets[at].1.pid)?;
            let n = count_events(targets[at].1, Duration::from_secs(1)).await?;
            sums[at].0 += n;
            sums[at].1 += cpu_seconds(targets[at].1.pid)? - before;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rates: Vec<f64> = sums
        .iter()
        .map(|(n, cpu)| *n as f64 / cpu.max(0.01))
        .collect();
    for ((name, _), rate) in targets.iter().zip(&rates) {
        table.note(
            format!("streams: {name}, chunks per CPU second"),
            format!("{rate:.0}"),
        );
    }
    if let Some(nginx) = rates.get(2) {
        table.at_least(
            "streams: chunks per CPU second beside nginx",
            0.4,
            rates[0] / nginx,
        );
        table.note(
            "streams: the bare hyper proxy beside nginx",
            format!("{:.3}", rates[1] / nginx),
        );
    }
    Ok(())
}

/// Reads streams over kept connections for `limit`; returns the number of events.
async fn count_events(target: &Target, limit: Duration) -> Result<u64, String> {
    let until = Instant::now() + limit;
    let events = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, request) = (target.address.clone(), (target.requests)(0));
        let events = Arc::clone(&events);
        tasks.spawn(async move {
            let mut stream = connect(&address).await?;
            let mut buffer = Vec::with_capacity(32 * 1024);
            while Instant::now() < until {
                stream
                    .write_all(&request)
                    .await
                    .map_err(|e| e.to_string())?;
                buffer.clear();
                while !buffer.ends_with(LAST) {
                    if stream
                        .read_buf(&mut buffer)
                        .await
                        .map_err(|e| e.to_string())?
                        == 0
                    {
                        return Err("a stream was closed".to_owned());
                    }
                }
                events.fetch_add(
                    memchr::memmem::find_iter(&buffer, EVENT).count() as u64,
                    Ordering::Relaxed,
                );
                if !buffer.starts_with(b"HTTP/1.1 200") {
                    return Err(String::from_utf8_lossy(&buffer).into_owned());
                }
            }
            Ok(())
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.map_err(|e| e.to_string())??;
    }
    Ok(events.load(Ordering::Relaxed))
}

/// The median of how much later the first chunk arrives through the gateway than directly from the upstream.
async fn measure_first_chunk(
    setup: &Setup,
    ours: &Target,
    table: &mut Table,
) -> Result<(), String> {
    let limited = setup.gateway_target(&setup.limited_key, PATH, "gpt-5", PACED)?;
    let direct = setup.upstream_target(PACED);
    let [mut through, mut held, mut straight] = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..FIRST_CHUNKS {
        straight.push(time_to_first_event(&direct).await?);
        through.push(time_to_first_event(ours).await?);
        held.push(time_to_first_event(&limited).await?);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let straight = median(&mut straight);
    table.note(
        "streams: first chunk straight from the upstream, median ms",
        format!("{straight:.3}"),
    );
    table.at_most(
        "streams: first chunk later by, median ms",
        1.0,
        median(&mut through) - straight,
    );
    table.at_most(
        "streams, balance held: first chunk later by, median ms",
        1.0,
        median(&mut held) - straight,
    );
    Ok(())
}

/// The time to the first event on a connection that is already open; the remaining events are not read.
async fn time_to_first_event(target: &Target) -> Result<Duration, String> {
    let mut stream = connect(&target.address).await?;
    let request = (target.requests)(0);
    let mut buffer = Vec::with_capacity(16 * 1024);
    let began = Instant::now();
    stream
        .write_all(&request)
        .await
        .map_err(|e| e.to_string())?;
    while memchr::memmem::find(&buffer, EVENT).is_none() {
        if stream
            .read_buf(&mut buffer)
            .await
            .map_err(|e| e.to_string())?
            == 0
        {
            return Err("a stream was closed before its first chunk".to_owned());
        }
    }
    Ok(began.elapsed())
}

async fn measure_open_streams(setup: &Setup, table: &mut Table) -> Result<(), String> {
    let ours = setup.gateway_target(&setup.unlimited_key, PATH, "gpt-5", Some(OPEN))?;
    let each = memory_per_open_stream(&ours).await?;
    let proxy = memory_per_open_stream(&setup.proxy_target(Some(OPEN))).await?;
    table.at_most("open streams: KiB of memory each", 40.0, each);
    table.note(
        "open streams: KiB of the bare hyper proxy",
        format!("{proxy:.1}"),
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
async fn memory_per_open_stream(target: &Target) -> Result<f64, String> {
    let before = memory_bytes(target.pid, "VmRSS:")?;
    let mut streams = Vec::new();
    for _ in 0..OPEN_STREAMS {
        streams.push(open_stream(target).await?);
    }
    let grown = memory_bytes(target.pid, "VmRSS:")?.saturating_sub(before);
    Ok(grown as f64 / OPEN_STREAMS as f64 / 1024.0)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
async fn measure_slow_clients(setup: &Setup, table: &mut Table) -> Result<(), String> {
    let target = setup.gateway_target(&setup.unlimited_key, PATH, "gpt-5", Some(ENDLESS))?;
    let before = memory_bytes(target.pid, "VmRSS:")?;
    let mut streams = Vec::new();
    for _ in 0..SLOW_CLIENTS {
        streams.push(open_stream(&target).await?);
    }
    tokio::time::sleep(SLOW_FOR).await;
    let grown = memory_bytes(target.pid, "VmRSS:")?.saturating_sub(before);
    table.at_most(
        "slow clients: KiB buffered of each",
        256.0,
        grown as f64 / SLOW_CLIENTS as f64 / 1024.0,
    );
    Ok(())
}

/// A stream whose first event has arrived.
async fn open_stream(target: &Target) -> Result<TcpStream, String> {
    let mut stream = connect(&target.address).await?;
    stream
        .write_all(&(target.requests)(0))
        .await
        .map_err(|e| e.to_string())?;
    let mut buffer = Vec::with_capacity(4 * 1024);
    while memchr::memmem::find(&buffer, EVENT).is_none() {
        if stream
            .read_buf(&mut buffer)
            .await
            .map_err(|e| e.to_string())?
            == 0
        {
            return Err("a stream was closed before its first chunk".to_owned());
        }
    }
    Ok(stream)
}

async fn connect(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|e| format!("cannot connect to {address}: {e}"))?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    Ok(stream)
}
