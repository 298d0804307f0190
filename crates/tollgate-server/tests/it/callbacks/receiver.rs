//! Somebody who is called back, and checks the signatures with nothing of the gateway's.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::gate::until;

/// What a receiver does with posts of one path, as the path's first part says it.
///
/// `yes`: 204. `no/N`: 500 to the first N. `break/N`: no answer to the first N, the connection is closed. `away`: a redirect
/// to `yes`. `gone`: 410. `hang`: no answer ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers(u16),
    Closes,
    Hangs,
}

fn manner(path: &str, before: usize) -> Manner {
    let mut parts = path.trim_start_matches('/').split('/');
    let name = parts.next().unwrap_or_default();
    let first = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    match name {
        "no" if before < first => Manner::Answers(500),
        "break" if before < first => Manner::Closes,
        "away" => Manner::Answers(307),
        "gone" => Manner::Answers(410),
        "hang" => Manner::Hangs,
        _ => Manner::Answers(204),
    }
}

/// A post as it came.
#[derive(Debug, Clone)]
pub(super) struct Post {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Post {
    /// A header's text, empty where it is missing.
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Whether it is signed with `secret` (Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`).
    pub(super) fn is_signed_with(&self, secret: &str) -> bool {
        let key = secret.strip_prefix("whsec_").expect("a webhook secret");
        let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
        for part in ["webhook-id", "webhook-timestamp"] {
            mac.update(self.header(part).as_bytes());
            mac.update(b".");
        }
        mac.update(&self.body);
        let signature = self.header("webhook-signature").strip_prefix("v1,");
        let signature = STANDARD.decode(signature.expect("version 1")).unwrap();
        mac.verify_slice(&signature).is_ok()
    }
}

/// Listens until it is dropped.
pub(super) struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
    listening: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, posts) = (listener.local_addr().unwrap(), Arc::default());
        let listening = tokio::spawn(accept(listener, Arc::clone(&posts)));
        Self {
            address,
            posts,
            listening,
        }
    }

    /// The URL of a path here; the path says what becomes of the post.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Every post to this path so far.
    pub(super) fn posts(&self, path: &str) -> Vec<Post> {
        let posts = self.posts.lock().unwrap();
        let here = posts.iter().filter(|post| post.path[1..] == *path);
        here.cloned().collect()
    }

    /// How many posts came, to whatever path.
    pub(super) fn count(&self) -> usize {
        self.posts.lock().unwrap().len()
    }

    /// Waits until so many posts have come to this path.
    pub(super) async fn told(&self, path: &str, times: usize) -> Vec<Post> {
        until("a callback", async || {
            Some(self.posts(path)).filter(|posts| posts.len() >= times)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn accept(listener: TcpListener, posts: Arc<Mutex<Vec<Post>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&posts)));
    }
}

async fn serve(stream: TcpStream, posts: Arc<Mutex<Vec<Post>>>) {
    let answer = service_fn(|request| answer(request, &posts));
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    // A connection that is closed on purpose ends here too.
    served.await.unwrap_or_default();
}

/// An error closes the connection.
async fn answer(
    request: Request<Incoming>,
    posts: &Mutex<Vec<Post>>,
) -> Result<Response<Full<Bytes>>, std::fmt::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = body.collect().await.map_err(|_| std::fmt::Error)?;
    assert_eq!(head.method, "POST");
    let before = {
        let mut posts = posts.lock().unwrap();
        let before = posts.iter().filter(|post| post.path == path).count();
        posts.push(Post {
            path: path.clone(),
            headers: head.headers,
            body: body.to_bytes(),
        });
        before
    };
    match manner(&path, before) {
        Manner::Hangs => std::future::pending().await,
        Manner::Closes => Err(std::fmt::Error),
        Manner::Answers(status) => {
            let answer = Response::builder()
                .status(status)
                .header("location", "/yes");
            Ok(answer.body(Full::default()).unwrap())
        }
    }
}
