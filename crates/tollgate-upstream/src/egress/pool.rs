//! Connections to where the operator points, kept for the requests to come.
//!
//! An HTTP/1.1 connection belongs to one request at a time, and is driven by whoever waits for that request: first for the
//! head of the answer, then for its parts. It needs no task of its own, which every part of an answer would have to wake
//! before it could wake the request, and nothing is read from it that nobody waits for. An HTTP/2 connection is shared, so
//! that has a task.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
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

use super::EgressError;
use super::plain::RequestBody;

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(90);
/// How often unused connections are looked through.
const SWEEP: Duration = Duration::from_secs(15);
/// How often an open connection that says nothing is asked whether it is still there.
const ALIVE: Duration = Duration::from_secs(30);

type Connector = HttpsConnector<HttpConnector>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Unsent = TrySendError<Request<RequestBody>>;

/// All connections.
pub(super) struct Pool {
    connector: Connector,
    connect_timeout: Duration,
    shelves: RwLock<HashMap<(Scheme, Authority), Arc<Shelf>>>,
}

/// The connections to one origin.
struct Shelf {
    host: HeaderValue,
    rest: Mutex<Rest>,
}

/// What is not in use, or can be used by many.
#[derive(Default)]
struct Rest {
    /// HTTP/1.1, the longest unused first.
    idle: VecDeque<(Instant, Box<Line>)>,
    /// HTTP/2, and when it was last asked for.
    shared: Option<(Instant, http2::SendRequest<RequestBody>)>,
}

/// A connection of HTTP/1.1.
struct Line {
    sender: http1::SendRequest<RequestBody>,
    /// None once it is over.
    connection: Option<http1::Connection<Stream, RequestBody>>,
}

/// A connection that takes a request.
enum Taken {
    Line(Box<Line>),
    Shared(http2::SendRequest<RequestBody>),
}

/// A request that may be on its way.
enum Begun {
    Asked(Asked, Arc<Shelf>),
    /// There was no line for it.
    Waits(Box<Request<RequestBody>>),
}

/// A request on a line: the head of the answer is waited for.
struct Asked {
    line: Option<Box<Line>>,
    sending: Pin<Box<dyn Future<Output = Result<Response<Incoming>, Unsent>> + Send>>,
}

/// The body of an answer, and the connection that it comes over.
pub(super) struct Reply {
    incoming: Incoming,
    /// Goes back when the answer is whole; closed with the reply otherwise. None for HTTP/2.
    line: Option<(Box<Line>, Arc<Shelf>)>,
}

impl Pool {
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Arc<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // A chat's small chunks must not wait for one another.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(ALIVE));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        Arc::new(Self {
            connector,
            connect_timeout,
            shelves: RwLock::default(),
        })
    }

    /// Sends `request` and waits for the head of the answer. A connection is waited for no longer than `connect`, or the
    /// pool's own limit.
    pub(super) fn ask(
        self: &Arc<Self>,
        request: Request<RequestBody>,
        connect: Option<Duration>,
    ) -> impl Future<Output = Result<Response<Reply>, EgressError>> + Send + use<> {
        let pool = Arc::clone(self);
        let uri = request.uri().clone();
        let begun = self.begin(request, &uri);
        // What waits for an answer, as thousands do, has no place for the request, nor for what making a connection takes.
        async move {
            let request = match begun? {
                Begun::Asked(asked, shelf) => match asked.await {
                    Ok((answer, line)) => return Ok(Reply::over_line(answer, line, &shelf)),
                    Err(unsent) => Box::new(again(*unsent, false)?),
                },
                Begun::Waits(request) => request,
            };
            Box::pin(pool.ask_otherwise(request, uri, connect)).await
        }
    }

    /// Puts `request` on a line that is there.
    fn begin(
        self: &Arc<Self>,
        request: Request<RequestBody>,
        uri: &Uri,
    ) -> Result<Begun, EgressError> {
        let shelf = self.shelf(uri)?;
        let Some(line) = shelf.take_line() else {
            return Ok(Begun::Waits(Box::new(request)));
        };
        let asked = line.ask(own(request, uri, &shelf));
        Ok(Begun::Asked(asked, shelf))
    }

    /// [`Pool::ask`] over whatever connection there is or can be made.
    async fn ask_otherwise(
        self: Arc<Self>,
        request: Box<Request<RequestBody>>,
        uri: Uri,
        connect: Option<Duration>,
    ) -> Result<Response<Reply>, EgressError> {
        let shelf = self.shelf(&uri)?;
        let mut request = *request;
        loop {
            *request.uri_mut() = uri.clone();
            let known = shelf.take();
            let fresh = known.is_none();
            let taken = match known {
                Some(taken) => taken,
                None => self.connect(&uri, &shelf, connect).await?,
            };
            let unsent = match taken {
                Taken::Line(line) => match line.ask(own(request, &uri, &shelf)).await {
                    Ok((answer, line)) => return Ok(Reply::over_line(answer, line, &shelf)),
                    Err(unsent) => *unsent,
                },
                Taken::Shared(mut sender) => match sender.try_send_request(request).await {
                    Ok(answer) => return Ok(answer.map(Reply::shared)),
                    Err(unsent) => unsent,
                },
            };
            request = again(unsent, fresh)?;
        }
    }

    fn shelf(self: &Arc<Self>, uri: &Uri) -> Result<Arc<Shelf>, EgressError> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(EgressError::BadUrl("is not absolute"));
        };
        let origin = (scheme.clone(), authority.clone());
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(&origin) {
            return Ok(Arc::clone(shelf));
        }
        drop(shelves);
        let shelf = Shelf {
            host: host(uri)?,
            rest: Mutex::default(),
        };
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        if shelves.is_empty() {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        let shelf = shelves.entry(origin).or_insert_with(|| Arc::new(shelf));
        Ok(Arc::clone(shelf))
    }

    /// A new connection.
    async fn connect(
        &self,
        uri: &Uri,
        shelf: &Shelf,
        limit: Option<Duration>,
    ) -> Result<Taken, EgressError> {
        let connecting = async {
            let stream = self.connector.clone().call(uri.clone()).await;
            let stream = stream.map_err(|error| not_made(&error))?;
            // Boxed: while a connection is waited for there need be no place for what comes then.
            if stream.connected().is_negotiated_h2() {
                let sender = Box::pin(open_shared(stream)).await;
                Ok(Taken::Shared(
                    shelf.share(sender.map_err(|e| not_made(&e))?),
                ))
            } else {
                let line = Box::pin(Line::open(stream)).await;
                Ok(Taken::Line(line.map_err(|e| not_made(&e))?))
            }
        };
        let limit = limit.unwrap_or(self.connect_timeout);
        timeout(limit, connecting).await.map_err(|e| not_made(&e))?
    }
}

fn not_made(error: &dyn std::fmt::Debug) -> EgressError {
    tracing::debug!(?error, "no connection to a provider could be made");
    EgressError::Connect
}

/// Speaks HTTP/2 over `stream`, in a task that ends with the last who can send a request.
async fn open_shared(stream: Stream) -> hyper::Result<http2::SendRequest<RequestBody>> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .keep_alive_interval(ALIVE)
        .handshake(stream)
        .await?;
    tokio::spawn(async move {
        // Its errors come out of the requests as well.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Closes what was not used for long, for as long as the pool is there.
async fn sweep(pool: Weak<Pool>) {
    let mut ticks = interval(SWEEP);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let shelves = pool.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let shelves: Vec<_> = shelves.values().map(Arc::clone).collect();
        for shelf in shelves {
            shelf.sweep();
        }
    }
}

impl Shelf {
    fn rest(&self) -> std::sync::MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line last used, which is the likeliest to be open still.
    fn take_line(&self) -> Option<Box<Line>> {
        self.rest().idle.pop_back().map(|(_, line)| line)
    }

    /// A connection that is there.
    fn take(&self) -> Option<Taken> {
        let mut rest = self.rest();
        if let Some((used, sender)) = &mut rest.shared {
            if !sender.is_closed() {
                *used = Instant::now();
                return Some(Taken::Shared(sender.clone()));
            }
            rest.shared = None;
        }
        rest.idle.pop_back().map(|(_, line)| Taken::Line(line))
    }

    /// Puts a line back whose answer is whole, if it is fit for another.
    fn put(&self, mut line: Box<Line>) {
        if line.rests() {
            self.rest().idle.push_back((Instant::now(), line));
        }
    }

    /// From now on all use this connection, or the one that another request made meanwhile.
    fn share(&self, sender: http2::SendRequest<RequestBody>) -> http2::SendRequest<RequestBody> {
        let mut rest = self.rest();
        match &rest.shared {
            Some((_, earlier)) if !earlier.is_closed() => earlier.clone(),
            _ => {
                rest.shared = Some((Instant::now(), sender.clone()));
                sender
            }
        }
    }

    fn sweep(&self) {
        let mut over = Vec::new();
        let mut rest = self.rest();
        for _ in 0..rest.idle.len() {
            // Looked at from the front, put back at the end: the order stays.
            if let Some((since, mut line)) = rest.idle.pop_front() {
                if since.elapsed() < IDLE && line.rests() {
                    rest.idle.push_back((since, line));
                } else {
                    over.push(line);
                }
            }
        }
        rest.shared
            .take_if(|(used, sender)| sender.is_closed() || used.elapsed() >= IDLE);
        drop(rest);
        // Closing takes system calls: not under the lock.
        drop(over);
    }
}

impl Line {
    /// Speaks HTTP/1.1 over `stream`.
    async fn open(stream: Stream) -> hyper::Result<Box<Self>> {
        let (sender, connection) = http1::handshake(stream).await?;
        let connection = Some(connection);
        Ok(Box::new(Self { sender, connection }))
    }

    /// Drives the connection; whether it is over.
    fn drive(&mut self, context: &mut Context<'_>) -> bool {
        let Some(connection) = &mut self.connection else {
            return true;
        };
        let over = match Pin::new(connection).poll(context) {
            Poll::Pending => false,
            Poll::Ready(ended) => {
                if let Err(error) = ended {
                    tracing::debug!(?error, "a connection to a provider broke off");
                }
                true
            }
        };
        if over {
            // What was not sent comes back out of it only now.
            self.connection = None;
        }
        over
    }

    /// Whether it is open and waits for a request. Nobody is woken by it from here on.
    fn rests(&mut self) -> bool {
        !self.drive(&mut Context::from_waker(Waker::noop())) && self.sender.is_ready()
    }

    /// Puts `request` on the line.
    fn ask(mut self: Box<Self>, request: Request<RequestBody>) -> Asked {
        let sending = self.sender.try_send_request(request);
        Asked {
            line: Some(self),
            sending: Box::pin(tokio::task::unconstrained(sending)),
        }
    }
}

impl Future for Asked {
    type Output = Result<(Response<Incoming>, Box<Line>), Box<Unsent>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(line) = &mut self.line {
            line.drive(context);
        }
        // It comes out of the line just driven: it has nobody to wake, and no budget to keep.
        let nobody = &mut Context::from_waker(Waker::noop());
        let answer = ready!(self.sending.as_mut().poll(nobody)).map_err(Box::new)?;
        let line = self.line.take().expect("an answer comes once");
        Poll::Ready(Ok((answer, line)))
    }
}

impl Reply {
    fn over_line(
        answer: Response<Incoming>,
        line: Box<Line>,
        shelf: &Arc<Shelf>,
    ) -> Response<Self> {
        answer.map(|incoming| {
            let line = Some((line, Arc::clone(shelf)));
            let mut reply = Self { incoming, line };
            if reply.incoming.is_end_stream() {
                reply.let_go();
            }
            reply
        })
    }

    fn shared(incoming: Incoming) -> Self {
        Self {
            incoming,
            line: None,
        }
    }

    /// The next part.
    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some((line, _)) = &mut self.line else {
            return Pin::new(&mut self.incoming).poll_frame(context);
        };
        line.drive(context);
        // As the head: what comes, comes out of the connection just driven.
        let frame =
            Pin::new(&mut self.incoming).poll_frame(&mut Context::from_waker(Waker::noop()));
        match &frame {
            // Where the length was told, the last part is known to be that.
            Poll::Ready(Some(Ok(_))) if self.incoming.is_end_stream() => self.let_go(),
            Poll::Ready(None) => self.let_go(),
            Poll::Ready(Some(Err(_))) => self.line = None,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        frame
    }

    /// Gives the connection back: the answer is whole.
    fn let_go(&mut self) {
        if let Some((line, shelf)) = self.line.take() {
            shelf.put(line);
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.incoming.fmt(f)
    }
}

/// A request as it stands in HTTP/1.1: the path alone in the first line, the host in a header.
fn own(mut request: Request<RequestBody>, uri: &Uri, shelf: &Shelf) -> Request<RequestBody> {
    let path = uri.path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    request
        .headers_mut()
        .entry(HOST)
        .or_insert_with(|| shelf.host.clone());
    request
}

/// The request, if it is certain that the other side has not seen it and another connection may do better: one that was
/// kept may have been closed meanwhile.
fn again(mut unsent: Unsent, fresh: bool) -> Result<Request<RequestBody>, EgressError> {
    match unsent.take_message() {
        Some(request) if !fresh => Ok(request),
        unsent_still => {
            let error = unsent.into_error();
            tracing::debug!(?error, "a request to a provider failed");
            Err(match unsent_still {
                Some(_) => EgressError::Connect,
                None => EgressError::Broken,
            })
        }
    }
}

/// The `host` header for `uri`: without the port where that is the scheme's own.
fn host(uri: &Uri) -> Result<HeaderValue, EgressError> {
    let host = uri.host().unwrap_or_default();
    let usual = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let value = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::try_from(host),
    };
    value.map_err(|_| EgressError::BadUrl("has a host that no header can hold"))
}
