//! Honest clients: small and large chats, images from submission to result, health checks; and what they observe.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Client, HttpRequest};

/// How long an image may take before it counts as failed.
const IMAGE_LIMIT: Duration = Duration::from_secs(60);
/// Clock ticks per second in `/proc/PID/stat` on Linux.
const TICKS: f64 = 100.0;

/// What honest clients observed, and what the gateway used in the meantime.
pub(super) struct HonestObservations {
    kinds: [Latencies; 4],
    cpu_seconds: f64,
    peak_mib: u64,
    seconds: f64,
}

/// The latencies of one kind of request, in milliseconds, and the number of failures.
#[derive(Default)]
struct Latencies {
    ms: Vec<f64>,
    failed: usize,
    /// The error of the last failed request.
    last_error: String,
}

impl Latencies {
    fn add(&mut self, began: Instant, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.ms.push(began.elapsed().as_secs_f64() * 1000.0),
            Err(error) => {
                self.failed += 1;
                self.last_error = error;
            }
        }
    }

    /// The cell of the table: `median / 95th percentile`, and the number of failures if there are any.
    fn table_cell(&self) -> String {
        let mut ms = self.ms.clone();
        ms.sort_by(f64::total_cmp);
        let at = |share: usize| ms.get(ms.len() * share / 100).copied().unwrap_or(f64::NAN);
        let failed = match self.failed {
            0 => String::new(),
            n => format!(" {n} failed"),
        };
        format!("{:.1}/{:.1}{failed}", at(50), at(95))
    }
}

impl HonestObservations {
    pub(super) const HEADER: &'static str = "hostile client        /healthz ms     chat ms         100 KB chat ms  image ms        done  CPU %  peak MiB   (median / 95th percentile)";

    pub(super) fn table_row(&self, name: &str) -> String {
        let [health, chat, large, image] = &self.kinds;
        let cells = [health, chat, large, image].map(|kind| format!("{:<15}", kind.table_cell()));
        let succeeded: usize = self.kinds.iter().map(|kind| kind.ms.len()).sum();
        let mut row = format!(
            "{name:<21} {} {succeeded:>5} {:>6.0} {:>9}",
            cells.join(" "),
            100.0 * self.cpu_seconds / self.seconds,
            self.peak_mib
        );
        for kind in self.kinds.iter().filter(|kind| kind.failed > 0) {
            row = format!("{row}\n    {}", kind.last_error);
        }
        row
    }

    pub(super) fn failures(&self) -> usize {
        self.kinds.iter().map(|kind| kind.failed).sum()
    }
}

/// Runs the honest clients for `duration` with `key`.
pub(super) async fn run_clients(
    address: &str,
    key: &str,
    pid: u32,
    duration: Duration,
) -> Result<HonestObservations, String> {
    let (began, cpu) = (Instant::now(), cpu_seconds(pid)?);
    let end = began + duration;
    let user = HonestClient {
        base: format!("http://{address}"),
        key,
        http: Client::new(),
    };
    let small = chat_body(200);
    let large = chat_body(100_000);
    let (health, chat, long, image) = tokio::join!(
        repeat(end, Duration::from_millis(50), || user.check_health()),
        repeat(end, Duration::from_millis(20), || user.chat(&small)),
        repeat(end, Duration::from_millis(100), || user.chat(&large)),
        repeat(end, Duration::from_millis(20), || user.generate_image()),
    );
    Ok(HonestObservations {
        kinds: [health, chat, long, image],
        cpu_seconds: cpu_seconds(pid)? - cpu,
        peak_mib: peak_mib(pid)?,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Repeats a request until `end`, with a pause in between.
async fn repeat(
    end: Instant,
    pause: Duration,
    request: impl AsyncFn() -> Result<(), String>,
) -> Latencies {
    let mut latencies = Latencies::default();
    while Instant::now() < end {
        let began = Instant::now();
        let outcome = request().await;
        latencies.add(began, outcome);
        tokio::time::sleep(pause).await;
    }
    latencies
}

struct HonestClient<'a> {
    base: String,
    key: &'a str,
    http: Client,
}

impl HonestClient<'_> {
    async fn send(&self, request: HttpRequest<'_>) -> Result<Value, String> {
        let response = self.http.send(self.key, request).await?;
        match response.status.is_success() {
            true => Ok(response.json()),
            false => Err(response.describe()),
        }
    }

    async fn check_health(&self) -> Result<(), String> {
        let request = HttpRequest::get(format!("{}/healthz", self.base));
        self.send(request).await.map(drop)
    }

    async fn chat(&self, body: &Value) -> Result<(), String> {
        let request = HttpRequest::json(format!("{}/v1/chat/completions", self.base), body);
        self.send(request).await.map(drop)
    }

    /// Generates an image, from the submission until the record is `completed`.
    async fn generate_image(&self) -> Result<(), String> {
        let url = format!("{}/v1/images/generations", self.base);
        let body = json!({ "model": "gpt-image-1-official", "prompt": "a mill" });
        let receipt = self.send(HttpRequest::json(url, &body)).await?;
        let id = receipt["data"][0]["task_id"].as_str().unwrap_or_default();
        let url = format!("{}/v1/tasks/{id}", self.base);
        let limit = Instant::now() + IMAGE_LIMIT;
        while Instant::now() < limit {
            let record = self.send(HttpRequest::get(url.clone())).await?;
            let record = record.get("data").unwrap_or(&record);
            match record["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => return Err(record.to_string()),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        Err(format!("image {id} took more than {IMAGE_LIMIT:?}"))
    }
}

fn chat_body(bytes: usize) -> Value {
    let message = json!({ "role": "user", "content": "mill ".repeat(bytes / 5) });
    json!({ "model": "gpt-5", "messages": [message] })
}

/// User and system time of the process.
fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let stat = read_proc_file(pid, "stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    match (times.next(), times.next()) {
        (Some(Ok(user)), Some(Ok(system))) => Ok((user + system) / TICKS),
        _ => Err("no times in /proc/PID/stat".to_owned()),
    }
}

fn peak_mib(pid: u32) -> Result<u64, String> {
    let status = read_proc_file(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib / 1024)
        .ok_or_else(|| "no VmHWM in /proc/PID/status".to_owned())
}

fn read_proc_file(pid: u32, file: &str) -> Result<String, String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))
}
