//! The log on stderr: lines are put into a buffer and written out ten times a second by a thread of its own.
//!
//! A line costs its bytes and a short lock: no system call, no thread woken. A terminal that does not read
//! makes lines be dropped, and counted, not waited for.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How long a line may wait to be seen.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes that may wait.
const WAITING: usize = 8 * 1_048_576;

/// The log of this process, once started.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Clone)]
struct Log {
    lines: Arc<Lines>,
    /// Lines for people instead of JSON.
    human: bool,
}

#[derive(Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    stop: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    clock: Clock,
    dropped: u64,
    ended: bool,
}

/// Writes timestamps, each second in full only once.
#[derive(Default)]
struct Clock {
    second: i64,
    /// `2026-11-21T19:45:00.`
    text: String,
}

impl Clock {
    /// `now` to the microsecond, in UTC.
    fn write(&mut self, now: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        let (second, nanos) = (now.as_second(), now.subsec_nanosecond());
        if self.text.is_empty() || self.second != second {
            let whole = format!("{:.1}", Timestamp::from_second(second).unwrap_or(now));
            self.text = whole.trim_end_matches("0Z").to_owned();
            self.second = second;
        }
        out.extend(self.text.as_bytes());
        write!(out, "{:06}Z", nanos / 1_000)
    }
}

/// Writes out what waits when dropped.
pub struct Guard {
    lines: Arc<Lines>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the log: lines for people on a terminal, else one JSON object a line. `TOLLGATE_LOG` filters as
/// `RUST_LOG` does elsewhere; `info` without it.
pub fn start() -> Guard {
    let lines = Arc::<Lines>::default();
    let log = Log {
        lines: Arc::clone(&lines),
        human: io::stderr().is_terminal(),
    };
    let filter = EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(log.clone());
    if log.human {
        subscriber.compact().init();
    } else {
        let json = subscriber.json().flatten_event(true);
        json.with_current_span(false).with_span_list(false).init();
    }
    let _ = LOG.set(log);
    let writer = Arc::clone(&lines);
    let thread = std::thread::Builder::new().name("log".to_owned());
    Guard {
        thread: thread.spawn(move || writer.write_out()).ok(),
        lines,
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lines.locked().ended = true;
        self.lines.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ends after one last round.
            let _ = thread.join();
        }
    }
}

/// What the line of a request says.
pub struct RequestLine<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its path, without the query: that may hold a key.
    pub path: &'a str,
    /// The response's status.
    pub status: u16,
    /// Microseconds to the response's head.
    pub micros: u128,
    /// Its id.
    pub request_id: &'a str,
    /// The id (not the secret) of its key.
    pub key_id: Option<&'a str>,
}

/// Writes the line of a request, unless the filter leaves such lines out.
pub fn request(line: &RequestLine<'_>) {
    if !tracing::enabled!(target: "tollgate::request", Level::INFO) {
        return;
    }
    let Some(log) = LOG.get() else { return };
    let mut waiting = log.lines.locked();
    if waiting.is_full() {
        return;
    }
    let Waiting { bytes, clock, .. } = &mut *waiting;
    // Writing into memory does not fail.
    let _ = if log.human {
        line.for_people(bytes)
    } else {
        line.as_json(clock, bytes)
    };
}

impl RequestLine<'_> {
    fn as_json(&self, clock: &mut Clock, out: &mut Vec<u8>) -> io::Result<()> {
        let (mut status, mut micros) = (itoa::Buffer::new(), itoa::Buffer::new());
        out.extend(b"{\"timestamp\":\"");
        clock.write(Timestamp::now(), out)?;
        out.extend(b"\",\"level\":\"INFO\",\"method\":\"");
        out.extend(self.method.as_bytes());
        out.extend(b"\",\"path\":");
        serde_json::to_writer(&mut *out, &Shown(self.path))?;
        out.extend(b",\"status\":");
        out.extend(status.format(self.status).as_bytes());
        out.extend(b",\"us\":");
        out.extend(micros.format(self.micros).as_bytes());
        out.extend(b",\"request_id\":\"");
        out.extend(self.request_id.as_bytes());
        out.push(b'"');
        if let Some(key_id) = self.key_id {
            out.extend(b",\"key\":\"");
            out.extend(key_id.as_bytes());
            out.push(b'"');
        }
        out.extend(b",\"target\":\"tollgate::request\"}\n");
        Ok(())
    }

    fn for_people(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let now = Timestamp::now();
        let millis = self.micros as f64 / 1000.0;
        let Self {
            method,
            path,
            status,
            request_id,
            ..
        } = self;
        writeln!(
            out,
            "{now:.6}  INFO {status} {method} {} {millis:.1} ms {request_id}",
            Shown(path)
        )
    }
}

/// A client's text in a line: cut at 200 characters, nothing in it that could end the line.
struct Shown<'a>(&'a str);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        if self.0.len() <= 200 && self.0.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return f.write_str(self.0);
        }
        for c in self.0.chars().take(200) {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?
            } else {
                f.write_char(c)?
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Shown<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl Lines {
    fn locked(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes out what waits, again and again until the end.
    fn write_out(&self) {
        let mut bytes = Vec::new();
        loop {
            let waiting = self.locked();
            let (mut waiting, _) = self
                .stop
                .wait_timeout_while(waiting, PAUSE, |w| !w.ended)
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut bytes, &mut waiting.bytes);
            let (dropped, ended) = (std::mem::take(&mut waiting.dropped), waiting.ended);
            drop(waiting);
            let mut stderr = io::stderr().lock();
            // Nobody is left to tell that stderr is closed.
            let _ = stderr.write_all(&bytes);
            bytes.clear();
            if dropped > 0 {
                let _ = writeln!(
                    stderr,
                    r#"{{"level":"WARN","message":"log lines dropped","lines":{dropped}}}"#
                );
            }
            if ended {
                return;
            }
        }
    }
}

impl Waiting {
    /// Counts a line that finds no room.
    fn is_full(&mut self) -> bool {
        let full = self.bytes.len() >= WAITING;
        self.dropped += u64::from(full);
        full
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = LineWriter;

    fn make_writer(&'w self) -> LineWriter {
        LineWriter(Arc::clone(&self.lines))
    }
}

/// Takes the lines of all other events.
struct LineWriter(Arc<Lines>);

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.locked();
        if !waiting.is_full() {
            waiting.bytes.extend_from_slice(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_json_line_whatever_its_path() {
        let mut line = RequestLine {
            method: "GET",
            path: "/a\nb\u{1b}\"\\ü",
            status: 404,
            micros: 1234,
            request_id: "req_1",
            key_id: Some("key_1"),
        };
        let mut out = Vec::new();
        line.as_json(&mut Clock::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["path"], "/a\\nb\\u{1b}\"\\ü");
        assert_eq!((&json["status"], &json["us"]), (&404.into(), &1234.into()));
        assert_eq!(
            (&json["request_id"], &json["key"]),
            (&"req_1".into(), &"key_1".into())
        );

        let long = "x".repeat(300);
        line.path = &long;
        let mut out = Vec::new();
        line.for_people(&mut out).unwrap();
        assert!(out.len() < 300);
    }

    #[test]
    fn timestamps_are_written_as_in_full() {
        let mut clock = Clock::default();
        for nanos in [
            1_795_289_672_862_170_999_i128,
            1_795_289_672_000_000_000,
            1_795_289_673_000_005_000,
            1_795_289_680_999_999_999,
        ] {
            let now = Timestamp::from_nanosecond(nanos).unwrap();
            let mut out = Vec::new();
            clock.write(now, &mut out).unwrap();
            let truncated = Timestamp::from_microsecond(now.as_microsecond()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{truncated:.6}"));
        }
    }

    #[test]
    fn a_full_buffer_counts_what_it_drops() {
        let lines = Arc::<Lines>::default();
        let mut writer = LineWriter(Arc::clone(&lines));
        let line = vec![b'x'; WAITING];
        assert_eq!(writer.write(&line).unwrap(), WAITING);
        assert_eq!(writer.write(b"more").unwrap(), 4);
        let waiting = lines.locked();
        assert_eq!((waiting.bytes.len(), waiting.dropped), (WAITING, 1));
    }
}
