//! Requests over kept HTTP/1.1 connections: the client of `tollgate_upstream::egress`, with its own pool, beside hyper-util's pooled client with the
//! same kind of connector, request and timeout.
//!
//! In each round each client sends requests of 1 KB from concurrent tasks to a server in another process and reads responses of 1 KB to their end; the
//! order alternates. A figure is the median of the rounds' processor time of this process per request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tollgate_upstream::egress::{self, ClientOptions, RequestBody, Timeouts};

use super::super::bare::BareServer;
use super::super::load::{RawResponse, Requests};
use super::super::table::Table;
use super::medians::{add_medians, cpu_time};

const ROUNDS: usize = 21;
/// Tasks that each send a request after the response to the previous one.
const TASKS: u16 = 32;
/// Requests of each task in a round.
const TASK_REQUESTS: u16 = 250;
/// The size of the bodies of requests and responses.
const BODY_BYTES: usize = 1024;
const TIMEOUT: Duration = Duration::from_secs(10);
/// As in `crates/tollgate-upstream/src/egress/pool.rs`.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const READ_BUFFER: usize = 128 * 1024;

pub(super) fn measure(table: &mut Table) -> Result<(), String> {
    eprintln!("own code: pool");
    let response = RawResponse {
        head: "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned(),
        body: vec![b'a'; BODY_BYTES],
    };
    let server = BareServer::start(&response, &response)?;
    let no_requests: Requests = Arc::new(|_| Vec::new());
    let address = server.target(&no_requests).address;
    let uri = format!("http://{address}/v1/images/generations");
    let uri = uri.parse::<Uri>().map_err(|e| format!("{uri}: {e}"))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let samples = runtime.block_on(measure_clients(&uri))?;
    let what = format!("pool, {TASKS} requests at a time, CPU us each (ratio)");
    add_medians(&what, ["own", "hyper-util"], samples, table);
    Ok(())
}

/// The microseconds per request of each client in each round.
async fn measure_clients(uri: &Uri) -> Result<[Vec<f64>; 2], String> {
    let clients = [
        Arc::new(PooledClient::own()),
        Arc::new(PooledClient::hyper_util()),
    ];
    // Opens the connections.
    for client in &clients {
        send_requests(client, uri).await?;
    }
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for step in 0..clients.len() {
            let at = (round + step) % clients.len();
            let before = cpu_time();
            send_requests(&clients[at], uri).await?;
            let used = cpu_time().saturating_sub(before);
            let requests = f64::from(TASKS) * f64::from(TASK_REQUESTS);
            samples[at].push(used.as_secs_f64() * 1e6 / requests);
        }
    }
    Ok(samples)
}

/// Sends the requests of one round.
async fn send_requests(client: &Arc<PooledClient>, uri: &Uri) -> Result<(), String> {
    let body = Bytes::from(vec![b'a'; BODY_BYTES]);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (client, uri, body) = (Arc::clone(client), uri.clone(), body.clone());
        tasks.spawn(async move {
            for _ in 0..TASK_REQUESTS {
                let length = client.exchange(build_request(&uri, &body)).await?;
                if length != BODY_BYTES {
                    return Err(format!("a response of {length} bytes"));
                }
            }
            Ok::<(), String>(())
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.map_err(|e| format!("a client broke: {e}"))??;
    }
    Ok(())
}

fn build_request(uri: &Uri, body: &Bytes) -> Request<RequestBody> {
    let mut request = Request::new(egress::body(body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    let headers = request.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::AUTHORIZATION, "Bearer none"),
        // Own code would add one, hyper-util would not.
        (header::USER_AGENT, "tollgate-bench"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    request
}

enum PooledClient {
    Own(egress::Client),
    HyperUtil(Box<legacy::Client<HttpsConnector<HttpConnector>, RequestBody>>),
}

impl PooledClient {
    fn own() -> Self {
        Self::Own(egress::Client::new(ClientOptions::default()))
    }

    fn hyper_util() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE_INTERVAL));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(READ_BUFFER)
            .build(connector);
        Self::HyperUtil(Box::new(client))
    }

    /// Sends a request and reads the response to its end; returns the length of its body.
    async fn exchange(&self, request: Request<RequestBody>) -> Result<usize, String> {
        let mut length = 0;
        match self {
            Self::Own(client) => {
                let timeouts = Timeouts {
                    connect: None,
                    first_byte: TIMEOUT,
                    idle: TIMEOUT,
                };
                let response = client.send(request, timeouts).await;
                let mut body = response.map_err(|e| e.to_string())?.into_body();
                while let Some(chunk) = body.chunk().await.map_err(|e| e.to_string())? {
                    length += chunk.len();
                }
            }
            Self::HyperUtil(client) => {
                let response = timeout(TIMEOUT, client.request(request)).await;
                let response = response.map_err(|e| e.to_string())?;
                let mut body = response.map_err(|e| e.to_string())?.into_body();
                while let Some(frame) = body.frame().await {
                    let frame = frame.map_err(|e| e.to_string())?;
                    length += frame.data_ref().map_or(0, Bytes::len);
                }
            }
        }
        Ok(length)
    }
}
