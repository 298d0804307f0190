//! The log on stderr: lines are added to a buffer, which a separate thread writes ten times a second.
//!
//! Logging a line costs a copy and a short lock: no system call, and no thread is woken. If the terminal does not read, lines are dropped and counted
//! instead of waited for.

mod clock;
mod request_line;

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use request_line::{ChatSummary, RequestLine};

use tollgate_config::{Log as LogSettings, LogFormat, Ratio};

use clock::Clock;

/// The longest time until a line is written.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of lines that may wait to be written.
const MAX_WAITING_BYTES: usize = 8 * 1_048_576;

/// The log of this process, once started.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Clone)]
struct Log {
    lines: Arc<Lines>,
    layout: Layout,
    /// The share of successful requests that are logged.
    access_ratio: Ratio,
}

/// The format of lines.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Text for people instead of JSON.
    is_text: bool,
    /// Each line begins with its priority in the form that systemd's journal reads (`man sd-daemon`); text lines then have no time.
    is_journal: bool,
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

/// Writes all waiting lines when it is dropped.
pub struct Guard {
    lines: Arc<Lines>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the log. `TOLLGATE_LOG` sets levels, for everything or by target (`info,tollgate::request=off`); without it, or if it is invalid, the level
/// is `info`.
pub fn start(settings: &LogSettings) -> Guard {
    let lines = Arc::<Lines>::default();
    let layout = Layout {
        is_text: match settings.format {
            LogFormat::Auto => io::stderr().is_terminal(),
            LogFormat::Json => false,
            LogFormat::Text => true,
        },
        is_journal: is_journal(),
    };
    let log = Log {
        lines: Arc::clone(&lines),
        layout,
        access_ratio: settings.access_ratio,
    };
    let wanted = std::env::var("TOLLGATE_LOG").unwrap_or_else(|_| "info".to_owned());
    let (filter, invalid) = match wanted.parse::<Targets>() {
        Ok(filter) => (filter, None),
        Err(e) => (Targets::new().with_default(LevelFilter::INFO), Some(e)),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(most_verbose_level(&filter))
        .with_ansi(io::stderr().is_terminal())
        .with_writer(log.clone());
    if !layout.is_text {
        let json = subscriber.json().flatten_event(true);
        let json = json.with_current_span(false).with_span_list(false);
        json.finish().with(filter).init();
    } else if layout.is_journal {
        subscriber
            .compact()
            .without_time()
            .finish()
            .with(filter)
            .init();
    } else {
        subscriber.compact().finish().with(filter).init();
    }
    let _ = LOG.set(log);
    if let Some(error) = invalid {
        tracing::warn!(
            "TOLLGATE_LOG={wanted:?} is not valid, so `info` is used: {error}. The levels are error, warn, info, debug, trace and off; a level alone applies to all targets, target=level to one, and several are separated by commas"
        );
    }
    let writer = Arc::clone(&lines);
    let thread = std::thread::Builder::new().name("log".to_owned());
    Guard {
        thread: thread.spawn(move || writer.write_out()).ok(),
        lines,
    }
}

/// The most verbose level that `filter` lets through, so that calls below it are rejected without a check of their target.
fn most_verbose_level(filter: &Targets) -> LevelFilter {
    let of_targets = filter.iter().map(|(_, level)| level).max();
    filter
        .default_level()
        .max(of_targets)
        .unwrap_or(LevelFilter::OFF)
}

/// Whether stderr goes to systemd's journal: `JOURNAL_STREAM` names its device and inode (`man systemd.exec`).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|stderr| stream == format!("{}:{}", stderr.st_dev, stderr.st_ino))
}

/// The prefix that marks the priority of a line for systemd's journal.
fn journal_prefix(level: Level) -> &'static [u8] {
    match level {
        Level::ERROR => b"<3>",
        Level::WARN => b"<4>",
        Level::INFO => b"<6>",
        _ => b"<7>",
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lines.locked().ended = true;
        self.lines.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread ends after it has written the last lines.
            let _ = thread.join();
        }
    }
}

/// Whether a request with this response is logged. Errors always are, as far as the filter allows.
pub fn is_request_logged(status: u16) -> bool {
    LOG.get()
        .is_some_and(|log| status >= 400 || log.access_ratio.draw())
        && tracing::enabled!(target: "tollgate::request", Level::INFO)
}

/// Writes the log line of a request.
pub fn write_request_line(line: &RequestLine<'_>) {
    let Some(log) = LOG.get() else { return };
    let mut waiting = log.lines.locked();
    if waiting.is_full() {
        return;
    }
    let Waiting { bytes, clock, .. } = &mut *waiting;
    if log.layout.is_journal {
        bytes.extend(journal_prefix(Level::INFO));
    }
    // Writing to memory does not fail.
    let _ = match log.layout {
        Layout { is_text: false, .. } => line.write_json(clock, bytes),
        Layout { is_journal, .. } => line.write_text(!is_journal, bytes),
    };
}

impl Lines {
    fn locked(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes waiting lines in a loop, until the log ends.
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
            // If stderr is closed, the error cannot be reported.
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
    /// Returns whether the buffer is full, and counts the line as dropped then.
    fn is_full(&mut self) -> bool {
        let full = self.bytes.len() >= MAX_WAITING_BYTES;
        self.dropped += u64::from(full);
        full
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = LineWriter;

    fn make_writer(&'w self) -> LineWriter {
        LineWriter {
            lines: Arc::clone(&self.lines),
            prefix: b"",
        }
    }

    fn make_writer_for(&'w self, event: &Metadata<'_>) -> LineWriter {
        let prefix = match self.layout.is_journal {
            true => journal_prefix(*event.level()),
            false => b"",
        };
        LineWriter {
            prefix,
            ..self.make_writer()
        }
    }
}

/// Writes the lines of all other events, each in one piece.
struct LineWriter {
    lines: Arc<Lines>,
    prefix: &'static [u8],
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.lines.locked();
        if !waiting.is_full() {
            waiting.bytes.extend_from_slice(self.prefix);
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
    fn the_most_verbose_level_is_that_of_any_target() {
        let most_verbose = |filter: &str| most_verbose_level(&filter.parse().unwrap());
        assert_eq!(most_verbose("warn"), LevelFilter::WARN);
        assert_eq!(most_verbose("off"), LevelFilter::OFF);
        assert_eq!(
            most_verbose("info,tollgate::request=off"),
            LevelFilter::INFO
        );
        assert_eq!(most_verbose("info,hyper=trace"), LevelFilter::TRACE);
        assert_eq!(most_verbose("hyper=debug"), LevelFilter::DEBUG);
    }

    #[test]
    fn a_full_buffer_counts_what_it_drops() {
        let lines = Arc::<Lines>::default();
        let mut writer = LineWriter {
            lines: Arc::clone(&lines),
            prefix: b"",
        };
        let line = vec![b'x'; MAX_WAITING_BYTES];
        assert_eq!(writer.write(&line).unwrap(), MAX_WAITING_BYTES);
        assert_eq!(writer.write(b"more").unwrap(), 4);
        let waiting = lines.locked();
        assert_eq!(
            (waiting.bytes.len(), waiting.dropped),
            (MAX_WAITING_BYTES, 1)
        );
    }
}
