//! An upstream whose responses the test defines, and which records the requests that it gets.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// A received request: its path, the key in `x-api-key` or `authorization`, and its body.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) body: Value,
    /// The values of `anthropic-beta`.
    pub(super) betas: Vec<String>,
}

/// Status, content type and body of a response.
pub(super) type UpstreamResponse = (u16, &'static str, String);

type Responder = dyn Fn(&Received) -> UpstreamResponse + Send + Sync;

/// Listens until it is dropped.
pub(super) struct Upstream {
    pub(super) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    listening: JoinHandle<()>,
}

/// A response with a JSON body.
pub(super) fn json_response(status: u16, body: &Value) -> UpstreamResponse {
    (status, "application/json", body.to_string())
}

/// A response with events.
pub(super) fn events(text: String) -> UpstreamResponse {
    (200, "text/event-stream", text)
}

impl Upstream {
    pub(super) async fn start(
        responder: impl Fn(&Received) -> UpstreamResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (responder, all): (Arc<Responder>, _) = (Arc::new(responder), Arc::clone(&received));
        let listening = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (responder, all) = (Arc::clone(&responder), Arc::clone(&all));
                connections.spawn(async move {
                    let service = service_fn(|request| respond(request, &*responder, &all));
                    let io = TokioIo::new(stream);
                    let served = http1::Builder::new().serve_connection(io, service);
                    served.await.unwrap_or_default();
                });
            }
        });
        Self {
            url,
            received,
            listening,
        }
    }

    /// The requests that arrived since the last call.
    pub(super) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn respond(
    request: Request<Incoming>,
    responder: &Responder,
    all: &Mutex<Vec<Received>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let header = |name: &str| head.headers.get(name)?.to_str().ok();
    let key = header("x-api-key").or(header("authorization"));
    let betas = head.headers.get_all("anthropic-beta").iter();
    let betas = betas
        .map(|value| value.to_str().unwrap().to_owned())
        .collect();
    let body = body.collect().await?.to_bytes();
    let received = Received {
        path: head.uri.path().to_owned(),
        key: key.unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        betas,
    };
    let (status, content_type, text) = responder(&received);
    all.lock().unwrap().push(received);
    let response = Response::builder()
        .status(status)
        .header("content-type", content_type);
    Ok(response.body(Full::from(text)).unwrap())
}
