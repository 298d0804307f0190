//! A receiver of webhooks, which checks signatures without using the gateway's code.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{AppendHeaders, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::until;

/// A received post.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Post {
    /// A header's text, empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.body.clone()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Whether it is signed with `secret` (Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`).
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
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

type Posts = Arc<Mutex<Vec<Post>>>;

/// Listens until it is dropped.
pub(crate) struct WebhookReceiver {
    address: SocketAddr,
    posts: Posts,
    server: JoinHandle<()>,
}

impl WebhookReceiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, posts) = (listener.local_addr().unwrap(), Posts::default());
        let routes = Router::new().fallback(receive).with_state(posts.clone());
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Self {
            address,
            posts,
            server,
        }
    }

    /// The URL of a path, whose first part selects the response. `accept`: 204. `fail/N`: 500 to the first N. `close/N`: the connection is closed
    /// without a response to the first N. `redirect`: to `accept`. `gone`: 410. `busy/N`: 503 with `retry-after: 2` to the first N. `hang`: no
    /// response.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Every post to this path so far.
    pub(crate) fn posts(&self, path: &str) -> Vec<Post> {
        let posts = self.posts.lock().unwrap();
        let here = posts.iter().filter(|post| post.path[1..] == *path);
        here.cloned().collect()
    }

    /// How many posts arrived on all paths.
    pub(crate) fn count(&self) -> usize {
        self.posts.lock().unwrap().len()
    }

    /// Waits until this number of posts have arrived on this path.
    pub(crate) async fn wait_for_posts(&self, path: &str, times: usize) -> Vec<Post> {
        let posts = async || Some(self.posts(path)).filter(|posts| posts.len() >= times);
        until("a webhook", posts).await
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn receive(
    State(posts): State<Posts>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let before = {
        let mut posts = posts.lock().unwrap();
        let before = posts.iter().filter(|post| post.path == path).count();
        let path = path.clone();
        posts.push(Post {
            path,
            headers,
            body,
        });
        before
    };
    let mut parts = path.trim_start_matches('/').split('/');
    let name = parts.next().unwrap_or_default();
    let is_first = before < parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let status = match name {
        "fail" if is_first => 500,
        // A panic closes the connection.
        "close" if is_first => std::panic::resume_unwind(Box::new(())),
        "busy" if is_first => 503,
        "redirect" => 307,
        "gone" => 410,
        "hang" => std::future::pending().await,
        _ => 204,
    };
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    let headers = [("location", "/accept"), ("retry-after", "2")];
    let count = if name == "busy" { 2 } else { 1 };
    (status, AppendHeaders(headers.into_iter().take(count))).into_response()
}
