//! The HTTP server: accepts connections within their limits, detects HTTP/1 or HTTP/2, applies timeouts, drains at shutdown.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_config::Config;

use super::client_address::{PeerAddress, is_in};
use super::connections::{
    self, Access, ConnectionLimits, ConnectionPermit, PermittedService, WRITE_TIMEOUT,
    close_gracefully, log_end,
};
use super::http2::{self, StreamBody};
use super::proxy_protocol;
use super::tls::{H2, ServerTls};
use crate::spawn::spawn_detached;

/// Connections of the admin listener at the same time; pages with a live view keep theirs open.
const MAX_ADMIN_CONNECTIONS: usize = 128;
/// How many of these connections one client address may have.
const MAX_ADMIN_CONNECTIONS_OF_ADDRESS: usize = 64;
/// Timeout for receiving a request's head, and for an idle connection between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of received data that a connection may buffer.
const READ_BUFFER: usize = 64 * 1024;
/// Pause after `accept` failed (no file descriptors left), so that some can be freed.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The longest duration of a connection with restricted access: it is used to send an error, or for a health check.
const MAX_RESTRICTED: Duration = Duration::from_secs(5);
/// When draining: how long to wait for the next request of a connection, the time without a new connection after which the socket is closed, and how
/// long that may take in total.
const DRAIN_HEAD_TIMEOUT: Duration = Duration::from_secs(1);
const LAST_ACCEPT: Duration = Duration::from_millis(20);
const MAX_LAST_ACCEPTS: Duration = Duration::from_millis(500);
/// The first bytes of an HTTP/2 connection (RFC 9113, 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Interval of checks of a preface that is received in pieces.
const PREFACE_PEEK_INTERVAL: Duration = Duration::from_millis(20);

/// A bound address.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    /// How many files the process may open.
    descriptors: u64,
    /// `None` for plain HTTP.
    tls: Option<ServerTls>,
}

impl Listener {
    /// The same address, with TLS if there is a certificate.
    #[must_use]
    pub fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self { tls, ..self }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at the same time, as far as the limit of open files allows.
    pub max_connections: usize,
    /// Connections of one client address at the same time.
    pub per_address: usize,
    /// Networks whose connections have no limit by address.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether connections from those networks begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// How long requests in flight may continue when draining.
    pub drain: Duration,
}

impl Options {
    /// The limits of the admin API's listener, whose connections are counted separately: clients cannot use them up.
    pub fn for_admins(config: &Config) -> Self {
        let options = Self::from(config);
        Self {
            max_connections: MAX_ADMIN_CONNECTIONS,
            per_address: MAX_ADMIN_CONNECTIONS_OF_ADDRESS,
            ..options
        }
    }

    /// The limits of the listener for metrics and health checks, which only the operator can reach.
    pub fn for_operations(config: &Config) -> Self {
        Self {
            max_connections: 64,
            per_address: 64,
            proxy_protocol: false,
            ..Self::from(config)
        }
    }
}

impl From<&Config> for Options {
    fn from(config: &Config) -> Self {
        Self {
            max_connections: config.limits.max_connections,
            per_address: config.limits.connections_per_address,
            trusted_proxies: config.limits.trusted_proxies(),
            proxy_protocol: config.limits.proxy_protocol,
            drain: Duration::from_secs(config.drain_s),
        }
    }
}

/// Listens on `inherited` if it is a socket, else binds `address`. Raises the limit of open files as far as the system allows.
///
/// # Errors
/// A sentence for the operator if the port is in use, or the address is not one of this machine.
pub async fn bind(
    address: &str,
    inherited: Option<std::net::TcpListener>,
) -> Result<Listener, String> {
    let explain = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "cannot listen on {address}: the port is in use; stop what uses it, or choose another with --listen"
            )
        }
        _ => format!("cannot listen on {address}: {e}"),
    };
    let descriptors = rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|e| {
        tracing::warn!(error = %e, "cannot raise the limit of open files");
        rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX)
    });
    let socket = match inherited {
        Some(socket) => {
            let ready = socket.set_nonblocking(true);
            let socket = ready.and_then(|()| TcpListener::from_std(socket));
            socket.map_err(|e| format!("cannot listen on the service manager's socket: {e}"))?
        }
        None => TcpListener::bind(address).await.map_err(explain)?,
    };
    let address = socket.local_addr().map_err(explain)?;
    Ok(Listener {
        socket,
        address,
        descriptors,
        tls: None,
    })
}

/// Returns the service for a connection from a client's address. Boxed: the server is compiled once for each service, not once for each listener.
pub type ServiceOf<S> = Box<dyn Fn(PeerAddress) -> S + Send + Sync>;

/// Serves until `drain` fires; then accepts connections that already wait, and returns when the requests in flight have ended, or after
/// `options.drain`. `service_of` returns the service for a connection from the client's address.
pub async fn serve<S>(
    listener: Listener,
    service_of: ServiceOf<S>,
    options: Options,
    drain: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let max = connections::max_within_descriptors(options.max_connections, listener.descriptors);
    if max < options.max_connections {
        tracing::warn!(
            open_files = listener.descriptors,
            max_connections = max,
            "limits.max_connections is higher than the limit of open files allows: it is lowered"
        );
    }
    let server = Arc::new(Server {
        proxies: match options.proxy_protocol {
            true => options.trusted_proxies.clone(),
            false => Vec::new(),
        },
        limits: ConnectionLimits::new(max, options.per_address, options.trusted_proxies),
        http1: http1_builder(),
        tls: listener.tls.clone(),
        service_of,
        drain,
        tracker: TaskTracker::new(),
    });
    loop {
        tokio::select! {
            biased;
            () = server.drain.cancelled() => break,
            accepted = accept(&listener.socket, &server.limits) => server.start_connection(accepted).await,
        }
    }
    // The system has already accepted these connections: closing the socket would reset them.
    let end = Instant::now() + MAX_LAST_ACCEPTS;
    while Instant::now() < end
        && let Ok(accepted) = timeout(LAST_ACCEPT, listener.socket.accept()).await
    {
        server.start_connection(accepted).await;
    }
    drop(listener);
    server.tracker.close();
    if timeout(options.drain, server.tracker.wait()).await.is_err() {
        tracing::warn!("some requests did not end within the drain timeout: they are aborted");
    }
}

/// The state that all connections share.
struct Server<S> {
    limits: ConnectionLimits,
    /// Networks whose connections begin with a header of the PROXY protocol.
    proxies: Vec<IpNet>,
    http1: http1::Builder,
    tls: Option<ServerTls>,
    service_of: ServiceOf<S>,
    drain: CancellationToken,
    tracker: TaskTracker,
}

impl<S> Server<S>
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    /// Starts to serve an accepted connection.
    async fn start_connection(self: &Arc<Self>, accepted: io::Result<(TcpStream, SocketAddr)>) {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(e) if is_of_the_client(&e) => return,
            Err(e) => {
                tracing::warn!(error = %e, "cannot accept connections");
                return tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        };
        let Some(permit) = self.limits.admit(peer.ip()) else {
            return;
        };
        // Responses are sent at once: Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        if is_in(peer.ip(), &self.proxies) {
            let started = Arc::clone(self).start_proxied_connection(stream, peer, permit);
            spawn_detached(self.tracker.track_future(started));
        } else {
            self.serve(stream, peer, permit);
        }
    }

    /// Reads the header with which a proxy begins a connection, then serves the connection as one of the client in the header.
    async fn start_proxied_connection(
        self: Arc<Self>,
        mut stream: TcpStream,
        proxy: SocketAddr,
        permit: ConnectionPermit,
    ) {
        let header = async {
            let header = proxy_protocol::read_header(&mut stream).await;
            let failed = |e: &io::Error| tracing::debug!(%proxy, error = %e, "cannot read the PROXY header of a connection");
            header.inspect_err(failed).ok()
        };
        let client = match in_time(header, &self.drain).await {
            None => return,
            Some(Some(client)) => client,
            // A connection that a proxy on this machine forwards does not count as one from this machine.
            Some(None) if proxy.ip().is_loopback() => (Ipv4Addr::UNSPECIFIED, 0).into(),
            Some(None) => proxy,
        };
        let Some(permit) = self.limits.for_client(permit, client.ip()) else {
            return;
        };
        self.serve(stream, client, permit);
    }

    /// Serves a connection of the client at `peer`, in the background.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, permit: ConnectionPermit) {
        let service = PermittedService {
            access: permit.access,
            service: (self.service_of)(PeerAddress(peer)),
        };
        let (http1, drain) = (self.http1.clone(), self.drain.clone());
        // Two kinds of tasks, so that a plain connection needs no memory for TLS.
        match self.tls.clone() {
            None => {
                let served = serve_connection(http1, stream, service, drain);
                spawn_detached(self.tracker.track_future(serve_permitted(served, permit)));
            }
            Some(tls) => {
                let served = serve_tls_connection(http1, tls, stream, service, drain);
                spawn_detached(self.tracker.track_future(serve_permitted(served, permit)));
            }
        }
    }
}

/// Serves a connection; if its permit restricts it, only for a limited time.
async fn serve_permitted(served: impl Future<Output = ()>, permit: ConnectionPermit) {
    if permit.access == Access::Full {
        served.await;
    } else {
        let _ = timeout(MAX_RESTRICTED, served).await;
    }
    drop(permit);
}

/// Whether the client closed the connection before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

/// Waits for a connection that may be accepted.
async fn accept(
    socket: &TcpListener,
    limits: &ConnectionLimits,
) -> io::Result<(TcpStream, SocketAddr)> {
    limits.ready().await;
    socket.accept().await
}

/// Serves one connection to its end.
async fn serve_connection<S>(
    http1: http1::Builder,
    stream: TcpStream,
    service: S,
    drain: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let detected = in_time(detect_protocol(&stream), &drain).await;
    let Some(protocol) = detected else { return };
    serve_protocol(http1, protocol, stream, service, drain).await;
}

/// [`serve_connection`] over TLS: the handshake selects the protocol.
async fn serve_tls_connection<S>(
    http1: http1::Builder,
    tls: ServerTls,
    stream: TcpStream,
    service: S,
    drain: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let handshake = async {
        let accepted = tls.accept(stream).await;
        let failed = |e: &io::Error| tracing::debug!(error = %e, "a TLS handshake failed");
        accepted.inspect_err(failed).ok()
    };
    let Some(stream) = in_time(handshake, &drain).await else {
        return;
    };
    let protocol = match stream.get_ref().1.alpn_protocol() {
        Some(H2) => Protocol::Http2,
        _ => Protocol::Http1,
    };
    serve_protocol(http1, protocol, stream, service, drain).await;
}

/// The result of a client's first bytes. `None` if they are not received within the timeout for a request's head, or within the shorter one of a
/// drain.
async fn in_time<T>(
    first: impl Future<Output = Option<T>>,
    drain: &CancellationToken,
) -> Option<T> {
    let late = async {
        drain.cancelled().await;
        tokio::time::sleep(DRAIN_HEAD_TIMEOUT).await;
    };
    tokio::select! {
        first = timeout(HEAD_TIMEOUT, first) => first.ok().flatten(),
        () = late => None,
    }
}

/// Any kind of connection.
trait ByteStream: AsyncRead + AsyncWrite + Send {}

impl<I: AsyncRead + AsyncWrite + Send> ByteStream for I {}

/// Serves the requests of a connection in the protocol that the client uses.
///
/// Boxed, and not an async function: a future that is passed through several async functions uses memory in each of them, which was 10 KiB for each
/// connection.
fn serve_protocol<I, S>(
    http1: http1::Builder,
    protocol: Protocol,
    stream: I,
    service: S,
    drain: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = Box::pin(stream);
    match protocol {
        Protocol::Http1 => Box::pin(serve_http1(http1, TokioIo::new(stream), service, drain)),
        Protocol::Http2 => {
            // The stream is boxed so that HTTP/2 is compiled once, not once with and once without TLS.
            let stream: Pin<Box<dyn ByteStream>> = stream;
            let stream = TokioIo::new(stream);
            let service = service_fn(move |request| {
                let response = service.call(request);
                async { response.await.map(|response| response.map(StreamBody::new)) }
            });
            Box::pin(http2::serve(stream, service, drain.cancelled_owned()))
        }
    }
}

/// [`serve_protocol`] over HTTP/1.
async fn serve_http1<I, S>(http1: http1::Builder, stream: I, service: S, drain: CancellationToken)
where
    I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let requests = Arc::new(Notify::new());
    let notify = Arc::clone(&requests);
    let service = service_fn(move |request| {
        notify.notify_waiters();
        service.call(request)
    });
    let connection = pin!(http1.serve_connection(stream, service));
    // The client may have sent a request already: the connection is closed after it, or if none is received within a moment.
    let closing = async {
        drain.cancelled().await;
        let _ = timeout(DRAIN_HEAD_TIMEOUT, requests.notified()).await;
    };
    if let Err(e) = close_gracefully(connection, closing).await {
        log_end(&e);
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
            // A part of the preface was received: the socket stays readable, so waiting for readiness would spin.
            Ok(_) => tokio::time::sleep(PREFACE_PEEK_INTERVAL).await,
        }
    }
}

fn http1_builder() -> http1::Builder {
    let mut http1 = http1::Builder::new();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(READ_BUFFER)
        .keep_alive(true);
    http1
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
