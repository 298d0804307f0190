//! A load balancer as operators use it in front of several nodes. Each request is sent to the next node on a new connection; if the node does not
//! accept the connection, to the node after it. A request that a node has received is never sent again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::http::{Client, HttpRequest};

type Body = Either<Incoming, Full<Bytes>>;

/// The interval of readiness checks, and the timeout of each.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
const CHECK_LIMIT: Duration = Duration::from_secs(1);
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Whether nodes that do not report readiness receive no requests, unless no node is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Every node that accepts connections receives requests.
    Off,
    /// Only nodes whose `GET /readyz` returns 200 receive requests.
    Readiness,
}

struct Node {
    address: String,
    is_ready: AtomicBool,
}

struct Nodes {
    nodes: Vec<Node>,
    next: AtomicUsize,
}

/// Starts a balancer for the nodes at `addresses` (host and port) at a loopback port (0: any free port). It runs as long as the runtime. Returns its
/// address.
pub(crate) async fn start(
    addresses: Vec<String>,
    port: u16,
    checks: Checks,
) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|e| format!("the balancer cannot listen: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let node = |address| Node {
        address,
        is_ready: AtomicBool::new(true),
    };
    let nodes = Arc::new(Nodes {
        nodes: addresses.into_iter().map(node).collect(),
        next: AtomicUsize::new(0),
    });
    if checks == Checks::Readiness {
        for at in 0..nodes.nodes.len() {
            tokio::spawn(check_readiness(Arc::clone(&nodes), at));
        }
    }
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let nodes = Arc::clone(&nodes);
            let service = service_fn(move |request| {
                let nodes = Arc::clone(&nodes);
                async move { Ok::<_, Infallible>(nodes.forward(request).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

/// Whether the gateway at `address` reports readiness within a second.
pub(crate) async fn is_ready(address: &str) -> bool {
    // A new connection for each check: a stalled connection does not show that the node is not ready.
    let client = Client::new();
    let request = HttpRequest::get(format!("http://{address}/readyz"));
    let response = timeout(CHECK_LIMIT, client.send("", request)).await;
    matches!(response, Ok(Ok(response)) if response.status == StatusCode::OK)
}

async fn check_readiness(nodes: Arc<Nodes>, at: usize) {
    let node = &nodes.nodes[at];
    loop {
        let is_ready = is_ready(&node.address).await;
        node.is_ready.store(is_ready, Ordering::Relaxed);
        sleep(CHECK_INTERVAL).await;
    }
}

impl Nodes {
    async fn forward(&self, mut request: Request<Incoming>) -> Response<Body> {
        // The connection to the node is used for this request only.
        let close = header::HeaderValue::from_static("close");
        request.headers_mut().insert(header::CONNECTION, close);
        let forwarded = match self.connect_to_node().await {
            Ok(stream) => send_to_node(stream, request).await,
            Err(e) => Err(e),
        };
        match forwarded {
            Ok(mut response) => {
                response.headers_mut().remove(header::CONNECTION);
                response.map(Either::Left)
            }
            Err(e) => {
                let body = Full::new(Bytes::from(format!("balancer: {e}")));
                let mut response = Response::new(Either::Right(body));
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            }
        }
    }

    /// Connects to the next node that accepts the connection; only to ready nodes, if there are any.
    async fn connect_to_node(&self) -> Result<TcpStream, String> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.nodes.len();
        let in_turn = (first..first + count).map(|at| &self.nodes[at % count]);
        let is_ready = |node: &&Node| node.is_ready.load(Ordering::Relaxed);
        let (ready, others): (Vec<&Node>, Vec<&Node>) = in_turn.partition(is_ready);
        let mut error = String::new();
        for node in ready.into_iter().chain(others) {
            match timeout(CONNECT_LIMIT, TcpStream::connect(&node.address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(e)) => error = e.to_string(),
                Err(_) => error = format!("no connection within {CONNECT_LIMIT:?}"),
            }
        }
        Err(format!("no node accepts connections: {error}"))
    }
}

async fn send_to_node(
    stream: TcpStream,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, String> {
    let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|e| e.to_string())?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await;
    response.map_err(|e| format!("the node sent no response: {e}"))
}
