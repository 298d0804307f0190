//! Connections: accepted up to a cap, each with time limits, drained at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// How long a request's head may take, and how long a connection may be idle between two requests.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a peer may take nothing of what it is sent.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// What a connection may buffer of what it reads.
const READ_BUFFER: usize = 64 * 1024;
/// Pause after the system refused to accept (no descriptors left), so that it can recover.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// HTTP/2: requests at the same time on one connection, and how long a silent peer is believed alive.
const H2_STREAMS: u32 = 128;
const H2_PING: Duration = Duration::from_secs(20);

/// A bound address.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// How connections are treated.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at the same time; the next ones wait to be accepted.
    pub max_connections: usize,
    /// How long requests in flight may go on when draining.
    pub drain: Duration,
}

impl From<&Config> for Options {
    fn from(config: &Config) -> Self {
        Self {
            max_connections: config.limits.max_connections,
            drain: Duration::from_secs(config.drain_s),
        }
    }
}

/// Takes the address, and as many file descriptors as the system lets this process have.
///
/// # Errors
/// A sentence for the operator: a busy port, an address that is not this machine's.
pub async fn bind(address: &str) -> Result<Listener, String> {
    let explain = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "cannot listen on {address}: the port is in use; stop what uses it, or choose another with --listen"
            )
        }
        _ => format!("cannot listen on {address}: {e}"),
    };
    if let Err(e) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(error = %e, "cannot raise the limit of open files");
    }
    let socket = TcpListener::bind(address).await.map_err(explain)?;
    let address = socket.local_addr().map_err(explain)?;
    Ok(Listener { socket, address })
}

/// Serves until `drain` fires; then accepts nothing more and returns when what was in flight has ended, or after
/// `options.drain`.
pub async fn serve(listener: Listener, router: Router, options: Options, drain: CancellationToken) {
    let http = Arc::new(builder());
    let graceful = GracefulShutdown::new();
    let seats = Arc::new(Semaphore::new(options.max_connections));
    loop {
        let accepted = tokio::select! {
            biased;
            () = drain.cancelled() => break,
            accepted = accept(&listener.socket, &seats) => accepted,
        };
        let Some((stream, seat)) = accepted else {
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_TIME));
        let connection = http
            .serve_connection(TokioIo::new(Box::pin(stream)), service)
            .into_owned();
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // An error here is the peer's: it went away, was too slow, or does not speak HTTP.
            if let Err(e) = watched.await {
                tracing::debug!(error = %e, "a connection ended badly");
            }
            drop(seat);
        });
    }
    drop(listener);
    if tokio::time::timeout(options.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not end in time and are cut off");
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(READ_BUFFER)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS)
        .max_header_list_size(32 * 1024)
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING);
    builder
}

async fn accept(
    socket: &TcpListener,
    seats: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let seat = Arc::clone(seats).acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, _)) => {
            // Answers are whole: waiting to fill packets only delays them.
            let _ = stream.set_nodelay(true);
            Some((stream, seat))
        }
        Err(e) => {
            if !matches!(
                e.kind(),
                std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset
            ) {
                tracing::warn!(error = %e, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None
        }
    }
}
