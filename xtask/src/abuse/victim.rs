//! The gateway that is attacked.

use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::http::{Client, HttpRequest};

/// The gateway that is attacked, from the view of a hostile client.
pub(super) struct Victim {
    pub(super) address: String,
    /// The API key of the hostile client.
    pub(super) key: String,
    /// The number of tasks with which the queue is filled.
    pub(super) tasks: usize,
    /// Becomes true when the attack is to end.
    pub(super) stop: watch::Receiver<bool>,
}

impl Victim {
    /// The head of a POST with the key; `headers` are lines that each end with a line break.
    pub(super) fn request_head(&self, path: &str, headers: &str) -> String {
        let (address, key) = (&self.address, &self.key);
        format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{headers}\r\n"
        )
    }

    pub(super) fn has_attack_ended(&self) -> bool {
        *self.stop.borrow()
    }

    /// Opens a connection. `None` if the gateway does not accept it.
    pub(super) async fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(&self.address).await.ok()
    }

    /// Submits an image task; returns whether it was accepted.
    pub(super) async fn submit(&self, http: &Client, body: &Value) -> bool {
        let url = format!("http://{}/v1/images/generations", self.address);
        let sent = http.send(&self.key, HttpRequest::json(url, body)).await;
        sent.is_ok_and(|response| response.status.is_success())
    }

    /// Submits `count` tasks, rounded up to a multiple of 16, 16 at a time; returns after the last response.
    pub(super) async fn submit_many(self: &Arc<Self>, count: usize, body: &Value) {
        let mut workers = Vec::new();
        for _ in 0..16 {
            let (victim, body) = (Arc::clone(self), body.clone());
            workers.push(tokio::spawn(async move {
                let http = Client::new();
                for _ in 0..count.div_ceil(16) {
                    victim.submit(&http, &body).await;
                }
            }));
        }
        for worker in workers {
            let _ = worker.await;
        }
    }
}
