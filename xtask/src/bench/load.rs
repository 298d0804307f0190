//! Generates load: kept connections, each of which sends its next request after the response to the previous one. It writes and reads plain bytes, so
//! that it uses little of the machine that it measures.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::table::Table;

/// Clock ticks per second in `/proc/PID/stat`: 100 on every supported Linux.
const TICKS: u64 = 100;
/// The duration of the load before the measurement begins.
const WARM_UP: Duration = Duration::from_millis(300);

/// Creates the bytes of the request with that number.
pub(super) type Requests = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// A server and the requests to send to it.
pub(super) struct Target {
    pub(super) address: String,
    pub(super) pid: u32,
    pub(super) requests: Requests,
}

/// The measured values of a load.
#[derive(Clone, Copy, Default)]
pub(super) struct Measurement {
    requests: u64,
    /// The number of requests, including those of the warm-up.
    pub(super) total_requests: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Measurement {
    /// The number of responses per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub(super) fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds.max(1e-9)
    }

    /// The processor time that the server used per request, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.requests.max(1) as f64
    }

    /// Adds the rate and the processor time of `what` to the table.
    pub(super) fn add_to_table(&self, what: &str, table: &mut Table) {
        table.note(format!("{what}per second"), format!("{:.0}", self.rate()));
        table.note(
            format!("{what}CPU us each"),
            format!("{:.1}", self.cpu_us()),
        );
    }

    /// The sum of both.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            total_requests: self.total_requests + other.total_requests,
            seconds: self.seconds + other.seconds,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
        }
    }
}

/// The bytes of a request.
pub(super) fn request_bytes(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n");
    if !body.is_empty() {
        text += &format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
    }
    text += "\r\n";
    text += body;
    text.into_bytes()
}

/// Sends requests over `connections` for `seconds` and counts them. Any response but 200 is an error.
pub(super) async fn run(
    target: &Target,
    connections: usize,
    seconds: u64,
) -> Result<Measurement, String> {
    let number = Arc::new(AtomicU64::new(0));
    send_requests_for(target, connections, WARM_UP, &number).await?;
    let cpu = cpu_seconds(target.pid)?;
    let began = Instant::now();
    let requests =
        send_requests_for(target, connections, Duration::from_secs(seconds), &number).await?;
    Ok(Measurement {
        requests,
        total_requests: number.load(Ordering::Relaxed),
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds(target.pid)? - cpu,
    })
}

/// Puts the same load on two servers in alternation: each for a second, `seconds` times, so that other activity of the machine affects both. They
/// also alternate in who is first.
pub(super) async fn run_alternating_pair(
    targets: [&Target; 2],
    connections: usize,
    seconds: u64,
) -> Result<[Measurement; 2], String> {
    let mut sums = [Measurement::default(); 2];
    for turn in 0..seconds {
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            sums[at] = sums[at].plus(run(targets[at], connections, 1).await?);
        }
    }
    Ok(sums)
}

/// Puts the same load on any number of servers in alternation, as [`run_alternating_pair`] does.
pub(super) async fn run_alternating(
    targets: &[&Target],
    connections: usize,
    seconds: u64,
) -> Result<Vec<Measurement>, String> {
    let mut sums = vec![Measurement::default(); targets.len()];
    for turn in 0..usize::try_from(seconds).unwrap_or(1) {
        for step in 0..targets.len() {
            let at = (turn + step) % targets.len();
            sums[at] = sums[at].plus(run(targets[at], connections, 1).await?);
        }
    }
    Ok(sums)
}

async fn send_requests_for(
    target: &Target,
    connections: usize,
    limit: Duration,
    number: &Arc<AtomicU64>,
) -> Result<u64, String> {
    let until = Instant::now() + limit;
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let mut connection = Connection::open(&target.address).await?;
        let (requests, number) = (Arc::clone(&target.requests), Arc::clone(number));
        tasks.spawn(async move {
            let mut responses = 0;
            while Instant::now() < until {
                let request = requests(number.fetch_add(1, Ordering::Relaxed));
                connection.exchange(&request).await?;
                responses += 1;
            }
            Ok::<u64, String>(responses)
        });
    }
    let mut sum = 0;
    while let Some(joined) = tasks.join_next().await {
        sum += joined.map_err(|e| format!("the load generator broke: {e}"))??;
    }
    Ok(sum)
}

/// One kept connection.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head and body of a response, as received.
pub(super) struct RawResponse {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|e| format!("cannot connect to {address}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends bytes unchanged.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.stream.write_all(bytes).await;
        sent.map_err(|e| format!("cannot send: {e}"))
    }

    /// Sends a request and skips its response, which must be 200.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<(), String> {
        self.send(request).await?;
        let (head, length) = self.receive().await?;
        if !self.buffer.starts_with(b"HTTP/1.1 200") {
            let end = (head + length).min(600);
            let response = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
            return Err(format!("not 200: {response}"));
        }
        self.buffer.clear();
        Ok(())
    }

    /// Reads one response.
    pub(super) async fn read_response(&mut self) -> Result<RawResponse, String> {
        let (head, length) = self.receive().await?;
        let response = RawResponse {
            head: String::from_utf8_lossy(&self.buffer[..head]).into_owned(),
            body: self.buffer[head..head + length].to_vec(),
        };
        self.buffer.clear();
        Ok(response)
    }

    /// Fills the buffer with one response; returns the lengths of its head and its body.
    async fn receive(&mut self) -> Result<(usize, usize), String> {
        let mut lengths = None;
        loop {
            if let Some((head, body)) = lengths
                && self.buffer.len() >= head + body
            {
                return Ok((head, body));
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|e| format!("cannot receive: {e}"))? == 0 {
                return Err("the server closed the connection".to_owned());
            }
            if lengths.is_none() {
                lengths = parse_lengths(&self.buffer)?;
            }
        }
    }
}

/// The lengths of head and body of the response that begins here; `None` until its head is complete.
fn parse_lengths(bytes: &[u8]) -> Result<Option<(usize, usize)>, String> {
    const NAME: &[u8] = b"content-length:";
    let Some(head) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut lines = bytes[..head].split(|b| *b == b'\n');
    let length = lines.find(|l| l.len() > NAME.len() && l[..NAME.len()].eq_ignore_ascii_case(NAME));
    let length = length.and_then(|l| {
        std::str::from_utf8(&l[NAME.len()..])
            .ok()?
            .trim()
            .parse()
            .ok()
    });
    match length {
        Some(length) => Ok(Some((head + 4, length))),
        None => Err(format!(
            "a response without a length: {}",
            String::from_utf8_lossy(&bytes[..head])
        )),
    }
}

/// The processor time that a process has used so far.
#[expect(clippy::cast_precision_loss, reason = "a few thousand ticks")]
pub(super) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat = stat.map_err(|e| format!("no process {pid}: {e}"))?;
    // The name in parentheses may contain any characters; the fields after it are numbers from the third on.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let field = |at: usize| fields.split_whitespace().nth(at - 3)?.parse::<u64>().ok();
    match (field(14), field(15)) {
        (Some(user), Some(system)) => Ok((user + system) as f64 / TICKS as f64),
        _ => Err(format!("cannot read /proc/{pid}/stat: {stat}")),
    }
}

/// A size from `/proc/PID/status` in bytes, such as `VmRSS`.
pub(super) fn memory_bytes(pid: u32, field: &str) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(|e| format!("no process {pid}: {e}"))?;
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| format!("no {field} in /proc/{pid}/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_response_is_read_from_its_head() {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse_lengths(response), Ok(Some((38, 2))));
        assert_eq!(parse_lengths(&response[..30]), Ok(None));
        assert!(parse_lengths(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn our_own_process_can_be_measured() {
        let pid = std::process::id();
        assert!(cpu_seconds(pid).is_ok_and(|s| s >= 0.0));
        assert!(memory_bytes(pid, "VmRSS:").is_ok_and(|bytes| bytes > 1_000_000));
    }
}
