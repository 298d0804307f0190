//! Clients of the upgrade test: chats, image submissions with webhooks, polls. They retry nothing: every request must succeed the first time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::customers;
use crate::http::{Client, HttpRequest, HttpResponse};

/// The time limit of a task.
const TASK_LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// The observations of the clients.
#[derive(Default)]
pub(super) struct ClientObservations {
    pub(super) requests: AtomicU64,
    pub(super) chats: AtomicU64,
    /// The cost of the chats by their tokens, in billionths.
    pub(super) chat_cost: AtomicI64,
    failures: Mutex<Vec<String>>,
    /// Acknowledged tasks, each with whether it was observed to be completed with one image.
    tasks: Mutex<BTreeMap<String, bool>>,
    /// The number of webhooks received for each task.
    webhooks: Mutex<BTreeMap<String, usize>>,
    stopped: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientObservations {
    pub(super) fn record_failure(&self, what: String) {
        lock(&self.failures).push(what);
    }

    pub(super) fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    pub(super) fn tasks(&self) -> BTreeMap<String, bool> {
        lock(&self.tasks).clone()
    }

    pub(super) fn webhooks(&self) -> BTreeMap<String, usize> {
        lock(&self.webhooks).clone()
    }

    /// Makes every client stop starting new requests.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
}

/// Starts a receiver of webhooks that runs as long as the runtime; returns its URL.
pub(super) async fn start_webhook_receiver(
    observations: Arc<ClientObservations>,
) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|e| format!("no port for webhooks: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let receive = async |State(observations): State<Arc<ClientObservations>>,
                         axum::Json(record): axum::Json<Value>| {
        let id = record["id"].as_str().or(record["data"]["id"].as_str());
        let id = id.unwrap_or_default().to_owned();
        *lock(&observations.webhooks).entry(id).or_default() += 1;
    };
    let router = Router::new()
        .route("/", post(receive))
        .with_state(observations);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}/"))
}

/// One client.
pub(super) struct LoadClient {
    pub(super) balancer: SocketAddr,
    pub(super) key: String,
    pub(super) webhook_url: String,
    pub(super) client: Client,
    pub(super) observations: Arc<ClientObservations>,
}

impl LoadClient {
    /// Sends chats, complete and streamed in turn, until the load is stopped.
    pub(super) async fn send_chats(self) {
        let mut stream = false;
        while self.observations.is_running() {
            stream = !stream;
            let body = json!({
                "model": "gpt-5",
                "messages": [{ "role": "user", "content": "Tell me of the harbour. [[sandbox:words=30]]" }],
                "stream": stream,
                "stream_options": stream.then(|| json!({ "include_usage": true })),
            });
            let url = self.url("/v1/chat/completions");
            let Some(response) = self.send(HttpRequest::json(url, &body)).await else {
                continue;
            };
            match customers::cost_of_chat(&response, stream) {
                Some(cost) => {
                    self.observations
                        .chat_cost
                        .fetch_add(cost, Ordering::Relaxed);
                    self.observations.chats.fetch_add(1, Ordering::Relaxed);
                }
                None => self
                    .observations
                    .record_failure(format!("a chat was cut off: {}", response.describe())),
            }
            sleep(PAUSE).await;
        }
    }

    /// Submits images and polls each to its end until the load is stopped. A webhook is requested for each.
    pub(super) async fn generate_images(self) {
        while self.observations.is_running() {
            let body = json!({
                "model": "gpt-image-1-official",
                "prompt": "a lighthouse at dawn",
                "callback_url": self.webhook_url,
            });
            let request = HttpRequest::json(self.url("/v1/images/generations"), &body);
            let Some(receipt) = self.send(request).await else {
                continue;
            };
            let receipt = receipt.json();
            let id = receipt.pointer("/data/0/task_id").or(receipt.get("id"));
            let Some(id) = id.and_then(Value::as_str) else {
                self.observations
                    .record_failure(format!("a receipt without an id: {receipt}"));
                continue;
            };
            lock(&self.observations.tasks).insert(id.to_owned(), false);
            self.poll_until_ended(id).await;
        }
    }

    async fn poll_until_ended(&self, id: &str) {
        let began = Instant::now();
        while began.elapsed() < TASK_LIMIT {
            let request = HttpRequest::get(self.url(&format!("/v1/tasks/{id}")));
            let record = self.send(request).await.map(|response| response.json());
            if let Some(record) = record {
                let record = record.get("data").cloned().unwrap_or(record);
                match customers::image_count(&record) {
                    Some(1) => {
                        lock(&self.observations.tasks).insert(id.to_owned(), true);
                        return;
                    }
                    Some(_) => {
                        return self
                            .observations
                            .record_failure(format!("task {id}: {record}"));
                    }
                    None => {}
                }
            }
            sleep(PAUSE).await;
        }
        self.observations
            .record_failure(format!("task {id} has not ended within {TASK_LIMIT:?}"));
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.balancer)
    }

    /// The response to a request if its status is 200; otherwise the request counts as failed.
    async fn send(&self, request: HttpRequest<'_>) -> Option<HttpResponse> {
        self.observations.requests.fetch_add(1, Ordering::Relaxed);
        match self.client.send(&self.key, request).await {
            Ok(response) if response.status == 200 => Some(response),
            Ok(response) => {
                self.observations.record_failure(response.describe());
                None
            }
            Err(e) => {
                self.observations.record_failure(e);
                None
            }
        }
    }
}
