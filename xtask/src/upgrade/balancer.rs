//! A load balancer as operators put before several nodes: each request goes to the next node on a connection of its own; to the one after that if the
//! node does not accept the connection. A request that a node has got is never sent again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

type Body = Either<Incoming, Full<Bytes>>;

struct Nodes {
    addresses: Vec<String>,
    next: AtomicUsize,
}

/// Starts a balancer for the nodes at `addresses` (host and port), which runs as long as the runtime; returns its address.
pub(super) async fn start(addresses: Vec<String>) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|e| format!("no port for the balancer: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let nodes = Arc::new(Nodes {
        addresses,
        next: AtomicUsize::new(0),
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let nodes = Arc::clone(&nodes);
            let service = service_fn(move |request| {
                let nodes = Arc::clone(&nodes);
                async move { Ok::<_, Infallible>(nodes.pass_on(request).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

impl Nodes {
    async fn pass_on(&self, mut request: Request<Incoming>) -> Response<Body> {
        // The connection to the node is for this request alone.
        let close = header::HeaderValue::from_static("close");
        request.headers_mut().insert(header::CONNECTION, close);
        let answer = match self.connect().await {
            Ok(stream) => send(stream, request).await,
            Err(e) => Err(e),
        };
        match answer {
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

    /// Connects to the next node that accepts.
    async fn connect(&self) -> Result<TcpStream, String> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.addresses.len();
        let mut why = String::new();
        for at in first..first + count {
            match TcpStream::connect(&self.addresses[at % count]).await {
                Ok(stream) => return Ok(stream),
                Err(e) => why = e.to_string(),
            }
        }
        Err(format!("no node accepts connections: {why}"))
    }
}

async fn send(stream: TcpStream, request: Request<Incoming>) -> Result<Response<Incoming>, String> {
    let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|e| e.to_string())?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    answer.map_err(|e| format!("the node gave no answer: {e}"))
}
