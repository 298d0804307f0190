//! Connections: accepted up to a cap, each with time limits, drained at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::entrance::Entrance;

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
/// What an HTTP/2 connection begins with.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between two looks at a preface that comes in pieces.
const PREFACE_PAUSE: Duration = Duration::from_millis(20);

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
pub async fn serve(
    listener: Listener,
    entrance: Entrance,
    options: Options,
    drain: CancellationToken,
) {
    let http = Arc::new(Http::new());
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
        let (http, entrance) = (Arc::clone(&http), entrance.clone());
        let (watcher, drain) = (graceful.watcher(), drain.clone());
        tokio::spawn(async move {
            let speaks = tokio::select! {
                () = drain.cancelled() => None,
                speaks = timeout(HEAD_TIME, speaks(&stream)) => speaks.ok().flatten(),
            };
            if let Some(speech) = speaks {
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(WRITE_TIME));
                let stream = TokioIo::new(Box::pin(stream));
                // An error here is the peer's: it went away, was too slow, or does not speak HTTP.
                let ended = match speech {
                    Speech::Http1 => {
                        let connection = http.one.serve_connection(stream, entrance);
                        watcher.watch(connection).await
                    }
                    Speech::Http2 => {
                        let connection = http.two.serve_connection(stream, entrance);
                        watcher.watch(connection).await
                    }
                };
                if let Err(e) = ended {
                    tracing::debug!(error = %e, "a connection ended badly");
                }
            }
            drop(seat);
        });
    }
    drop(listener);
    if timeout(options.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and are cut off");
    }
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Http1,
    Http2,
}

/// Waits until the peer has sent enough to tell HTTP/1 from HTTP/2; none where it went away.
async fn speaks(stream: &TcpStream) -> Option<Speech> {
    let mut begun = [0; H2_PREFACE.len()];
    loop {
        match stream.peek(&mut begun).await {
            Ok(0) | Err(_) => return None,
            Ok(_) if begun == H2_PREFACE => return Some(Speech::Http2),
            Ok(n) if !H2_PREFACE.starts_with(&begun[..n]) => return Some(Speech::Http1),
            // A piece of the preface: what has come stays readable, so there is nothing to wait on but time.
            Ok(_) => tokio::time::sleep(PREFACE_PAUSE).await,
        }
    }
}

/// What serves connections, by what they speak.
struct Http {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Http {
    fn new() -> Self {
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(READ_BUFFER)
            .keep_alive(true);
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .max_concurrent_streams(H2_STREAMS)
            .max_header_list_size(32 * 1024)
            .keep_alive_interval(H2_PING)
            .keep_alive_timeout(H2_PING);
        Self { one, two }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn a_peer_is_served_once_it_shows_what_it_speaks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pair = async || {
            let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            (peer.unwrap(), accepted.unwrap().0)
        };
        let patience = Duration::from_millis(100);
        for (sent, shows) in [
            ("G", Some(Speech::Http1)),
            ("POST", Some(Speech::Http1)),
            ("PX", Some(Speech::Http1)),
            ("", None),
            ("P", None),
        ] {
            let (mut peer, stream) = pair().await;
            peer.write_all(sent.as_bytes()).await.unwrap();
            let shown = timeout(patience, speaks(&stream)).await;
            assert_eq!(shown.ok().flatten(), shows, "{sent}");
        }
        let (mut peer, stream) = pair().await;
        let (first, rest) = H2_PREFACE.split_at(9);
        peer.write_all(first).await.unwrap();
        assert!(timeout(patience, speaks(&stream)).await.is_err());
        peer.write_all(rest).await.unwrap();
        assert_eq!(speaks(&stream).await, Some(Speech::Http2));
        let (peer, stream) = pair().await;
        drop(peer);
        assert_eq!(speaks(&stream).await, None);
    }
}
