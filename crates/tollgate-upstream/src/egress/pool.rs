//! Connection pool for requests to providers: idle HTTP/1.1 connections are kept for reuse, HTTP/2 connections are shared.
//!
//! An HTTP/1.1 connection is used by one request at a time, and the future that waits for that request polls it: first for the head of the response,
//! then for its body. Therefore the connection needs no task of its own, which every chunk would have to wake before it could wake the request, and
//! it is read only while a request waits for it. An HTTP/2 connection is shared and has its own task. docs/performance.md has the measurement against
//! the pool of `hyper-util`.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::header::{HOST, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, timeout};
use tower_service::Service as _;

use super::error::EgressError;
use super::streamed_body::RequestBody;

/// The time after which an unused connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A request that is [`SentOnce`] uses no HTTP/1.1 connection that has been unused for longer: servers close idle connections after 5 s or more (5 s is
/// the default of Node.js and uvicorn).
const RECENTLY_USED: Duration = Duration::from_secs(3);
/// How often unused connections are checked for [`IDLE_TIMEOUT`].
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);
/// The interval of probes on a silent connection: TCP keepalive, and HTTP/2 pings.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Bytes that an HTTP/1.1 connection may read ahead. A client that reads slowly keeps that much in memory.
const READ_BUFFER: usize = 128 * 1024;
/// The maximum number of exchanges of an HTTP/2 connection: usual servers allow 100 or 128, and requests beyond that would wait for one to end.
const MAX_STREAMS: usize = 90;
/// The bytes that a server may send of one response, or of all responses of a connection, before they are read: a response that a slow client does
/// not read stops only itself.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

type Connector = HttpsConnector<HttpConnector>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type UnsentRequest = TrySendError<Request<RequestBody>>;

/// Extension of a request that must not be sent twice. If the server closes an idle connection at the moment at which this request is sent over it, nobody
/// knows whether the server has received it.
#[derive(Debug, Clone, Copy)]
pub struct SentOnce;

/// Resolves with the head of a response.
pub(super) type Sending =
    Pin<Box<dyn Future<Output = Result<Response<PooledBody>, EgressError>> + Send>>;

/// Sends requests.
///
/// A trait, because otherwise the compiler proves anew for each async function of each provider that everything in the pool is `Send` and `Sync`.
pub(super) trait SendRequest: Send + Sync {
    /// Sends `request` and waits for the head of the response. `connect` is the timeout for opening a connection; without it the pool's own timeout
    /// applies.
    fn send(self: Arc<Self>, request: Request<RequestBody>, connect: Option<Duration>) -> Sending;
}

/// The connections to all origins.
pub(super) struct Pool {
    connector: Connector,
    connect_timeout: Duration,
    origins: RwLock<HashMap<(Scheme, Authority), Arc<Origin>, RandomState>>,
}

/// The connections to one origin.
struct Origin {
    host: HeaderValue,
    available: Mutex<AvailableConnections>,
}

/// Connections that can take a request.
#[derive(Default)]
struct AvailableConnections {
    /// The idle HTTP/1.1 connections, the longest unused first, each with the time when it became idle.
    idle: VecDeque<(Instant, Box<Http1Connection>)>,
    /// The HTTP/2 connection that takes requests, and the time when it last accepted one.
    shared: Option<(Instant, SharedConnection)>,
}

/// An HTTP/2 connection. A clone is held by each of its exchanges until its response is complete.
#[derive(Clone)]
struct SharedConnection {
    sender: http2::SendRequest<RequestBody>,
    /// Counts the clones.
    exchanges: Arc<()>,
}

struct Http1Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` after it was closed.
    connection: Option<http1::Connection<Stream, RequestBody>>,
}

/// A connection for the next request.
enum Connection {
    Http1(Box<Http1Connection>),
    Http2(SharedConnection),
}

/// The outcome of [`Pool::send_over_idle_connection`].
enum FirstTry {
    Sent(PendingResponse, Arc<Origin>),
    NoIdleConnection(Box<Request<RequestBody>>),
}

/// A request sent over HTTP/1.1; resolves with the head of the response.
struct PendingResponse {
    connection: Option<Box<Http1Connection>>,
    sending: Pin<Box<dyn Future<Output = Result<Response<Incoming>, UnsentRequest>> + Send>>,
}

/// The body of a response, and the connection that it is read from.
pub(super) struct PooledBody {
    incoming: Incoming,
    /// Returned to the pool when the body is complete; closed if this is dropped earlier. `None` for HTTP/2.
    connection: Option<(Box<Http1Connection>, Arc<Origin>)>,
    /// Counts the exchange of an HTTP/2 connection until this is dropped.
    _exchange: Option<Arc<()>>,
    /// Whether the response is an error that leads to a retry (408, 429, 5xx): many servers close the connection after such a response without
    /// announcing it, so that a retry over it would fail too.
    is_error: bool,
}

impl SendRequest for Pool {
    fn send(self: Arc<Self>, request: Request<RequestBody>, connect: Option<Duration>) -> Sending {
        let uri = request.uri().clone();
        let first_try = self.send_over_idle_connection(request, &uri);
        // Thousands of these futures wait for responses, so they reserve no memory for the request or for connecting.
        Box::pin(async move {
            let request = match first_try? {
                FirstTry::Sent(pending, origin) => match pending.await {
                    Ok((head, connection)) => {
                        return Ok(PooledBody::over_http1(head, connection, &origin));
                    }
                    Err(unsent) => Box::new(request_to_retry(*unsent, false)?),
                },
                FirstTry::NoIdleConnection(request) => request,
            };
            Box::pin(self.send_over_any_connection(request, uri, connect)).await
        })
    }
}

impl Pool {
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Arc<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Sends the small chunks of a chat without delay (disables Nagle's algorithm).
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE_INTERVAL));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        Arc::new(Self {
            connector,
            connect_timeout,
            origins: RwLock::default(),
        })
    }

    /// Sends `request` over an idle HTTP/1.1 connection, if there is one.
    fn send_over_idle_connection(
        self: &Arc<Self>,
        request: Request<RequestBody>,
        uri: &Uri,
    ) -> Result<FirstTry, EgressError> {
        let origin = self.origin(uri)?;
        let Some(connection) = origin.take_idle(is_sent_once(&request)) else {
            return Ok(FirstTry::NoIdleConnection(Box::new(request)));
        };
        let pending = connection.send(to_origin_form(request, uri, &origin));
        Ok(FirstTry::Sent(pending, origin))
    }

    /// [`SendRequest::send`] over any available connection or a new one.
    async fn send_over_any_connection(
        self: Arc<Self>,
        request: Box<Request<RequestBody>>,
        uri: Uri,
        connect: Option<Duration>,
    ) -> Result<Response<PooledBody>, EgressError> {
        let origin = self.origin(&uri)?;
        let mut request = *request;
        loop {
            *request.uri_mut() = uri.clone();
            let available = origin.take(is_sent_once(&request));
            let is_new = available.is_none();
            let connection = match available {
                Some(connection) => connection,
                None => self.connect(&uri, &origin, connect).await?,
            };
            let unsent = match connection {
                Connection::Http1(connection) => {
                    let request = to_origin_form(request, &uri, &origin);
                    match connection.send(request).await {
                        Ok((head, connection)) => {
                            return Ok(PooledBody::over_http1(head, connection, &origin));
                        }
                        Err(unsent) => *unsent,
                    }
                }
                Connection::Http2(mut shared) => {
                    match shared.sender.try_send_request(request).await {
                        Ok(head) => {
                            return Ok(head.map(|it| PooledBody::over_http2(it, shared.exchanges)));
                        }
                        Err(unsent) => unsent,
                    }
                }
            };
            request = request_to_retry(unsent, is_new)?;
        }
    }

    fn origin(self: &Arc<Self>, uri: &Uri) -> Result<Arc<Origin>, EgressError> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(EgressError::InvalidUrl("is not absolute"));
        };
        let key = (scheme.clone(), authority.clone());
        let origins = self.origins.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origins.get(&key) {
            return Ok(Arc::clone(origin));
        }
        drop(origins);
        let origin = Origin {
            host: host_header(uri)?,
            available: Mutex::default(),
        };
        let mut origins = self.origins.write().unwrap_or_else(PoisonError::into_inner);
        if origins.is_empty() {
            tokio::spawn(sweep_periodically(Arc::downgrade(self)));
        }
        let origin = origins.entry(key).or_insert_with(|| Arc::new(origin));
        Ok(Arc::clone(origin))
    }

    /// Opens a new connection.
    async fn connect(
        &self,
        uri: &Uri,
        origin: &Origin,
        limit: Option<Duration>,
    ) -> Result<Connection, EgressError> {
        let connecting = async {
            let stream = self.connector.clone().call(uri.clone()).await;
            let stream = stream.map_err(|error| connect_error(&error))?;
            // Boxed, so that the future that connects stays small.
            if stream.connected().is_negotiated_h2() {
                let sender = Box::pin(open_http2(stream)).await;
                let sender = sender.map_err(|e| connect_error(&e))?;
                Ok(Connection::Http2(origin.share(sender)))
            } else {
                let connection = Box::pin(Http1Connection::open(stream)).await;
                Ok(Connection::Http1(
                    connection.map_err(|e| connect_error(&e))?,
                ))
            }
        };
        let limit = limit.unwrap_or(self.connect_timeout);
        let connected = timeout(limit, connecting).await;
        connected.map_err(|e| connect_error(&e))?
    }
}

fn connect_error(error: &dyn std::fmt::Debug) -> EgressError {
    tracing::debug!(?error, "no connection to a provider could be made");
    EgressError::Connect
}

/// Opens HTTP/2 over `stream`; its task ends when the last sender is dropped.
async fn open_http2(stream: Stream) -> hyper::Result<http2::SendRequest<RequestBody>> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        // The windows are not adaptive: hyper would give all streams together the window of one, and one slow client would stop every stream of
        // the connection.
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .handshake(stream)
        .await?;
    tokio::spawn(async move {
        // Errors of the connection are also returned by the requests.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Closes unused connections as long as the pool exists.
async fn sweep_periodically(pool: Weak<Pool>) {
    let mut ticks = interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let origins = pool.origins.read().unwrap_or_else(PoisonError::into_inner);
        let origins: Vec<_> = origins.values().map(Arc::clone).collect();
        for origin in origins {
            origin.sweep();
        }
    }
}

impl Origin {
    fn available(&self) -> std::sync::MutexGuard<'_, AvailableConnections> {
        self.available
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`AvailableConnections::take_idle`].
    fn take_idle(&self, only_recent: bool) -> Option<Box<Http1Connection>> {
        self.available().take_idle(only_recent)
    }

    /// An available connection: HTTP/2 if there is one. `only_recent` concerns HTTP/1.1.
    fn take(&self, only_recent: bool) -> Option<Connection> {
        let mut available = self.available();
        if let Some((used_at, shared)) = &mut available.shared {
            if shared.can_take_request() {
                *used_at = Instant::now();
                return Some(Connection::Http2(shared.clone()));
            }
            // Its exchanges continue; it closes after the last of them.
            available.shared = None;
        }
        available.take_idle(only_recent).map(Connection::Http1)
    }

    /// Puts back a connection whose response is complete, if it can accept another request.
    fn put_back(&self, mut connection: Box<Http1Connection>) {
        if connection.is_idle() {
            let mut available = self.available();
            available.idle.push_back((Instant::now(), connection));
        }
    }

    /// Stores the connection of `sender` as the origin's shared one. If another request opened one in the meantime, that one is returned instead.
    fn share(&self, sender: http2::SendRequest<RequestBody>) -> SharedConnection {
        let mut available = self.available();
        match &available.shared {
            Some((_, earlier)) if earlier.can_take_request() => earlier.clone(),
            _ => {
                let new = SharedConnection {
                    sender,
                    exchanges: Arc::default(),
                };
                available.shared = Some((Instant::now(), new.clone()));
                new
            }
        }
    }

    fn sweep(&self) {
        let mut expired = Vec::new();
        let mut available = self.available();
        for _ in 0..available.idle.len() {
            // Each connection is removed from the front and pushed to the back once, so the order stays the same.
            if let Some((since, mut connection)) = available.idle.pop_front() {
                if since.elapsed() < IDLE_TIMEOUT && connection.is_idle() {
                    available.idle.push_back((since, connection));
                } else {
                    expired.push(connection);
                }
            }
        }
        available.shared.take_if(|(used_at, shared)| {
            shared.sender.is_closed() || used_at.elapsed() >= IDLE_TIMEOUT
        });
        drop(available);
        // Closing needs system calls, so it is done without holding the lock.
        drop(expired);
    }
}

impl AvailableConnections {
    /// The HTTP/1.1 connection that was used last, which is the most likely to be still open; with `only_recent`, `None` if that was
    /// [`RECENTLY_USED`] ago.
    fn take_idle(&mut self, only_recent: bool) -> Option<Box<Http1Connection>> {
        let (since, _) = self.idle.back()?;
        if only_recent && since.elapsed() >= RECENTLY_USED {
            return None;
        }
        self.idle.pop_back().map(|(_, connection)| connection)
    }
}

impl SharedConnection {
    /// Whether it is open and has fewer exchanges than servers allow.
    fn can_take_request(&self) -> bool {
        // The connection in the pool counts as one.
        !self.sender.is_closed() && Arc::strong_count(&self.exchanges) <= MAX_STREAMS
    }
}

impl Http1Connection {
    async fn open(stream: Stream) -> hyper::Result<Box<Self>> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(stream)
            .await?;
        let connection = Some(connection);
        Ok(Box::new(Self { sender, connection }))
    }

    /// Polls the connection, which reads and writes what it can. Returns whether it is closed.
    fn poll_connection(&mut self, context: &mut Context<'_>) -> bool {
        let Some(connection) = &mut self.connection else {
            return true;
        };
        let is_closed = match Pin::new(connection).poll(context) {
            Poll::Pending => false,
            Poll::Ready(ended) => {
                if let Err(error) = ended {
                    tracing::debug!(?error, "a connection to a provider broke off");
                }
                true
            }
        };
        if is_closed {
            // Dropping the connection returns a request that was not sent.
            self.connection = None;
        }
        is_closed
    }

    /// Whether the connection is open and can accept a request. Registers no waker.
    fn is_idle(&mut self) -> bool {
        !self.poll_connection(&mut Context::from_waker(Waker::noop())) && self.sender.is_ready()
    }

    fn send(mut self: Box<Self>, request: Request<RequestBody>) -> PendingResponse {
        let sending = self.sender.try_send_request(request);
        PendingResponse {
            connection: Some(self),
            sending: Box::pin(tokio::task::unconstrained(sending)),
        }
    }
}

impl Future for PendingResponse {
    type Output = Result<(Response<Incoming>, Box<Http1Connection>), Box<UnsentRequest>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(connection) = &mut self.connection {
            connection.poll_connection(context);
        }
        // The head is read by the connection that was just polled and that holds the waker, so this future needs no waker.
        let no_waker = &mut Context::from_waker(Waker::noop());
        let head = ready!(self.sending.as_mut().poll(no_waker)).map_err(Box::new)?;
        let connection = self.connection.take().expect("the head comes once");
        Poll::Ready(Ok((head, connection)))
    }
}

impl PooledBody {
    fn over_http1(
        head: Response<Incoming>,
        connection: Box<Http1Connection>,
        origin: &Arc<Origin>,
    ) -> Response<Self> {
        let is_error = matches!(head.status().as_u16(), 408 | 429 | 500..);
        head.map(|incoming| {
            let connection = Some((connection, Arc::clone(origin)));
            let mut body = Self {
                incoming,
                connection,
                _exchange: None,
                is_error,
            };
            if body.incoming.is_end_stream() {
                body.return_connection();
            }
            body
        })
    }

    fn over_http2(incoming: Incoming, exchange: Arc<()>) -> Self {
        Self {
            incoming,
            connection: None,
            _exchange: Some(exchange),
            is_error: false,
        }
    }

    /// Polls for the next frame of the body.
    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some((connection, _)) = &mut self.connection else {
            return Pin::new(&mut self.incoming).poll_frame(context);
        };
        connection.poll_connection(context);
        // As for the head: the connection that was just polled holds the waker.
        let no_waker = &mut Context::from_waker(Waker::noop());
        let frame = Pin::new(&mut self.incoming).poll_frame(no_waker);
        match &frame {
            // With a content-length, the last frame is recognised as the last.
            Poll::Ready(Some(Ok(_))) if self.incoming.is_end_stream() => self.return_connection(),
            Poll::Ready(None) => self.return_connection(),
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        frame
    }

    /// Returns the connection to the pool after a complete response, or closes it after an error response.
    fn return_connection(&mut self) {
        if let Some((connection, origin)) = self.connection.take()
            && !self.is_error
        {
            origin.put_back(connection);
        }
    }
}

impl std::fmt::Debug for PooledBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.incoming.fmt(f)
    }
}

fn is_sent_once(request: &Request<RequestBody>) -> bool {
    request.extensions().get::<SentOnce>().is_some()
}

/// Converts a request to the form of HTTP/1.1: only the path in the first line, the host in a header.
fn to_origin_form(
    mut request: Request<RequestBody>,
    uri: &Uri,
    origin: &Origin,
) -> Request<RequestBody> {
    let path = uri.path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    request
        .headers_mut()
        .entry(HOST)
        .or_insert_with(|| origin.host.clone());
    request
}

/// Returns the request if the server cannot have received it and a retry over another connection may succeed. That is so for a reused connection,
/// which the server may have closed in the meantime, but not for a new one (`is_new`).
fn request_to_retry(
    mut unsent: UnsentRequest,
    is_new: bool,
) -> Result<Request<RequestBody>, EgressError> {
    match unsent.take_message() {
        Some(request) if !is_new => Ok(request),
        request => {
            let error = unsent.into_error();
            tracing::debug!(?error, "a request to a provider failed");
            Err(match request {
                Some(_) => EgressError::Connect,
                None => EgressError::Broken,
            })
        }
    }
}

/// The `host` header for `uri`, without the scheme's default port.
fn host_header(uri: &Uri) -> Result<HeaderValue, EgressError> {
    let host = uri.host().unwrap_or_default();
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let value = match uri.port_u16().filter(|port| *port != default_port) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::try_from(host),
    };
    value.map_err(|_| EgressError::InvalidUrl("has a host that no header can hold"))
}
