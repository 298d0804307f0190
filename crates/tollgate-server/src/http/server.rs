//! The HTTP server: accepts connections up to a maximum, tells HTTP/1 from HTTP/2, sets time limits, drains at shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// How long a request's head may take, and how long a connection may be idle between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may read nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that a connection may buffer of what it reads.
const READ_BUFFER: usize = 64 * 1024;
/// Pause after `accept` failed (no file descriptors left), so that some can be freed.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// HTTP/2: concurrent streams of one connection, and the interval and timeout of pings.
const H2_MAX_STREAMS: u32 = 128;
const H2_PING: Duration = Duration::from_secs(20);
/// The first bytes of an HTTP/2 connection (RFC 9113, 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Interval of peeks at a preface that arrives in pieces.
const PREFACE_PEEK_INTERVAL: Duration = Duration::from_millis(20);

/// A bound address.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Limits of the server.
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

/// Binds `address`, and raises the limit of open files as far as the system allows.
///
/// # Errors
/// A sentence for the operator: the port is in use, or the address is not this machine's.
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

/// Serves until `drain` fires; then accepts no more connections, and returns when the requests in flight have ended, or
/// after `options.drain`.
pub async fn serve<S>(listener: Listener, service: S, options: Options, drain: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let protocols = Arc::new(Protocols::new());
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(options.max_connections));
    loop {
        let accepted = tokio::select! {
            biased;
            () = drain.cancelled() => break,
            accepted = accept(&listener.socket, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else {
            continue;
        };
        let (protocols, service) = (Arc::clone(&protocols), service.clone());
        let (watcher, drain) = (graceful.watcher(), drain.clone());
        tokio::spawn(async move {
            let protocol = tokio::select! {
                () = drain.cancelled() => None,
                protocol = timeout(HEAD_TIMEOUT, detect_protocol(&stream)) => protocol.ok().flatten(),
            };
            if let Some(protocol) = protocol {
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(WRITE_TIMEOUT));
                let stream = TokioIo::new(Box::pin(stream));
                // An error here is the client's: it went away, was too slow, or does not speak HTTP.
                let ended = match protocol {
                    Protocol::Http1 => {
                        let connection = protocols.http1.serve_connection(stream, service);
                        watcher.watch(connection).await
                    }
                    Protocol::Http2 => {
                        let connection = protocols.http2.serve_connection(stream, service);
                        watcher.watch(connection).await
                    }
                };
                if let Err(e) = ended {
                    tracing::debug!(error = %e, "a connection ended with an error");
                }
            }
            drop(permit);
        });
    }
    drop(listener);
    if timeout(options.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and are cut off");
    }
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Waits until the client has sent enough to tell HTTP/1 from HTTP/2. `None` if it closed the connection before.
async fn detect_protocol(stream: &TcpStream) -> Option<Protocol> {
    let mut start = [0; H2_PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(0) | Err(_) => return None,
            Ok(_) if start == H2_PREFACE => return Some(Protocol::Http2),
            Ok(n) if !H2_PREFACE.starts_with(&start[..n]) => return Some(Protocol::Http1),
            // A piece of the preface: the socket stays readable, so waiting for readiness would spin.
            Ok(_) => tokio::time::sleep(PREFACE_PEEK_INTERVAL).await,
        }
    }
}

/// The connection builders of both protocols.
struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    fn new() -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(READ_BUFFER)
            .keep_alive(true);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(H2_MAX_STREAMS)
            .max_header_list_size(32 * 1024)
            .keep_alive_interval(H2_PING)
            .keep_alive_timeout(H2_PING);
        Self { http1, http2 }
    }
}

async fn accept(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, _)) => {
            // Responses are written at once: Nagle's algorithm would only delay them.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(e) => {
            if !matches!(
                e.kind(),
                std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset
            ) {
                tracing::warn!(error = %e, "cannot accept connections");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
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
    async fn the_protocol_is_known_from_the_first_bytes_that_differ_from_the_http2_preface() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pair = async || {
            let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            (peer.unwrap(), accepted.unwrap().0)
        };
        let wait = Duration::from_millis(100);
        for (sent, expected) in [
            ("G", Some(Protocol::Http1)),
            ("POST", Some(Protocol::Http1)),
            ("PX", Some(Protocol::Http1)),
            ("", None),
            ("P", None),
        ] {
            let (mut peer, stream) = pair().await;
            peer.write_all(sent.as_bytes()).await.unwrap();
            let detected = timeout(wait, detect_protocol(&stream)).await;
            assert_eq!(detected.ok().flatten(), expected, "{sent}");
        }
        let (mut peer, stream) = pair().await;
        let (first, rest) = H2_PREFACE.split_at(9);
        peer.write_all(first).await.unwrap();
        assert!(timeout(wait, detect_protocol(&stream)).await.is_err());
        peer.write_all(rest).await.unwrap();
        assert_eq!(detect_protocol(&stream).await, Some(Protocol::Http2));
        let (peer, stream) = pair().await;
        drop(peer);
        assert_eq!(detect_protocol(&stream).await, None);
    }
}
