//! A client of the gateway: sends JSON requests with a key, and waits for the end of tasks.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;

use super::process::Address;
use super::secrets::Secrets;
use super::{TIMEOUT, until, until_true};

const GENERATIONS: &str = "/v1/images/generations";
const EDITS: &str = "/v1/images/edits";
/// How long an idle connection may be reused; gateways keep it three times as long.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// Connections to gateways.
pub(super) type Http = legacy::Client<HttpConnector, Full<Bytes>>;

pub(super) fn http() -> Http {
    // A gateway may close a connection that was idle for long just when the client reuses it.
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(MAX_IDLE)
        .build_http()
}

/// A client that sends requests to the gateway.
#[derive(Clone)]
pub(crate) struct Client {
    address: Address,
    http: Http,
    secrets: Secrets,
    /// The key, if there is one.
    pub(crate) secret: Option<String>,
    /// The key's id.
    pub(crate) key_id: String,
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Checks the status, and returns the response.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        let shown = self.body.get(..2000).unwrap_or(&self.body);
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(shown));
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).expect("text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// A header's text, empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    /// The message of an error in the standard envelope. The error must have this status and type.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, kind: &str) -> String {
        let body = self.clone().expect(status).json();
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(!message.is_empty());
        let error = serde_json::json!({ "code": status, "message": message, "type": kind });
        assert_eq!(body, serde_json::json!({ "error": error }));
        message.to_owned()
    }

    /// The message of an error in any envelope. The error must have this status.
    #[track_caller]
    pub(crate) fn message(self, status: u16) -> String {
        let body = self.expect(status).json();
        let message = body
            .pointer("/error/message")
            .or_else(|| body.get("message"));
        message
            .and_then(Value::as_str)
            .expect("a message")
            .to_owned()
    }

    /// The message of an error in the standard envelope, with the type that errors of this status have. It must contain `expected`.
    #[track_caller]
    pub(crate) fn rejected(&self, status: u16, expected: &str) -> String {
        let kind = match status {
            401 => "authentication_error",
            402 => "payment_required",
            403 => "permission_error",
            404 | 410 => "not_found_error",
            429 => "rate_limit_error",
            500.. => "bad_gateway",
            _ => "invalid_request_error",
        };
        let message = self.error(status, kind);
        assert!(message.contains(expected), "{message}, not {expected}");
        message
    }
}

impl Client {
    pub(super) fn new(
        address: Address,
        http: Http,
        secrets: Secrets,
        secret: Option<String>,
        key_id: String,
    ) -> Self {
        Self {
            address,
            http,
            secrets,
            secret,
            key_id,
        }
    }

    /// The pool of the client's connections.
    pub(super) fn http(&self) -> &Http {
        &self.http
    }

    /// The URL of a path of the gateway.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address.get())
    }

    /// A request with the client's key.
    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(self.url(path));
        match &self.secret {
            Some(secret) => request.header(AUTHORIZATION, format!("Bearer {secret}")),
            None => request,
        }
    }

    /// The head of a POST with the key and additional headers, for a raw connection.
    pub(crate) fn raw_head(&self, path: &str, headers: &str) -> String {
        let key = self.secret.as_deref().unwrap();
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{headers}\r\n")
    }

    /// The head of a POST of `length` bytes of JSON.
    pub(crate) fn raw_json_head(&self, path: &str, length: usize) -> String {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        self.raw_head(path, &headers)
    }

    /// Sends a request; `None` if the connection breaks first.
    pub(crate) async fn try_send(&self, request: Request<Full<Bytes>>) -> Option<Reply> {
        self.secrets.read_headers(request.headers());
        let exchange = async {
            let response = self.http.request(request).await.ok()?;
            let (head, body) = response.into_parts();
            self.secrets.read_headers(&head.headers);
            Some(Reply {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.collect().await.ok()?.to_bytes(),
            })
        };
        let reply = tokio::time::timeout(TIMEOUT, exchange).await;
        let reply = reply.expect("a response in time")?;
        self.secrets.read_body(&reply.body);
        Some(reply)
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        self.try_send(request).await.expect("a response")
    }

    /// Sends a request with any method, with the key and additional headers.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.request(method, path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.into();
        self.secrets.read_body(&body);
        self.send(request.body(Full::new(body)).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send_with("GET", path, &[], "").await
    }

    /// Sends a GET, which must succeed; returns the JSON.
    pub(crate) async fn get_json(&self, path: &str) -> Value {
        self.get(path).await.expect(200).json()
    }

    /// Sends a POST with a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    /// Sends a POST with a JSON body and additional headers.
    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Reply {
        let headers = [&[("content-type", "application/json")], headers].concat();
        self.send_with("POST", path, &headers, body.to_string())
            .await
    }

    /// Sends a POST with any bytes.
    pub(crate) async fn post_bytes(&self, path: &str, content_type: &str, body: &[u8]) -> Reply {
        let headers = [("content-type", content_type)];
        self.send_with("POST", path, &headers, body.to_vec()).await
    }

    /// Sends a POST with a JSON body under an idempotency key; `None` if the connection breaks first.
    pub(crate) async fn try_post_once(&self, path: &str, key: &str, body: &Value) -> Option<Reply> {
        let request = self.request(Method::POST, path);
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.header("idempotency-key", key);
        let body = Full::from(body.to_string());
        self.try_send(request.body(body).unwrap()).await
    }

    /// Fetches a link without the key.
    pub(crate) async fn fetch(&self, url: &str) -> Reply {
        self.fetch_with(Method::GET, url, &[]).await
    }

    /// The same with a method and headers.
    pub(crate) async fn fetch_with(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// Uploads a file; returns the response, whatever its status.
    pub(crate) async fn upload(&self, name: &str, content_type: &str, bytes: &[u8]) -> Reply {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: {content_type}\r\n\r\n"
        );
        let form = [head.as_bytes(), bytes, b"\r\n--edge--\r\n"].concat();
        self.post_bytes("/v1/uploads/images", FORM, &form).await
    }

    /// Uploads an image; returns its link.
    pub(crate) async fn upload_image(&self, bytes: &[u8]) -> String {
        let reply = self.upload("image.bin", "application/octet-stream", bytes);
        let record = reply.await.expect(200).json();
        record["url"].as_str().expect("a link").to_owned()
    }

    /// Submits an image; returns the response, whatever its status.
    pub(crate) async fn post_image(&self, body: &Value) -> Reply {
        let edits = body["model"] == "grok-imagine-1.0-edit-partner";
        self.post(if edits { EDITS } else { GENERATIONS }, body)
            .await
    }

    /// Submits an image, which must be accepted; returns the task's id.
    pub(crate) fn submit(&self, body: &Value) -> impl Future<Output = String> + use<> {
        let (client, body) = (self.clone(), body.clone());
        async move { task_id(&client.post_image(&body).await.expect(200).json()) }
    }

    /// The record of a task, without its envelope.
    pub(crate) async fn task(&self, id: &str) -> Value {
        let record = self.get_json(&format!("/v1/tasks/{id}")).await;
        record.get("data").unwrap_or(&record).clone()
    }

    /// Every task of the newest page of 100.
    pub(crate) async fn tasks(&self) -> Vec<Value> {
        let page = self.get_json("/v1/tasks?limit=100").await;
        page["data"].as_array().expect("a list").clone()
    }

    /// Waits for the end of a task; returns its record.
    pub(crate) async fn wait_for_end(&self, id: &str) -> Value {
        until("a task to end", async || {
            let record = self.task(id).await;
            matches!(status(&record), "completed" | "failed" | "cancelled").then_some(record)
        })
        .await
    }

    /// Waits until a worker has started the task.
    pub(crate) async fn wait_for_start(&self, id: &str) {
        let is_running = async || status(&self.task(id).await) == "in_progress";
        until_true("a task to start", is_running).await;
    }

    /// Submits and waits for the end.
    pub(crate) async fn run(&self, path: &str, body: &Value) -> Value {
        let receipt = self.post(path, body).await.expect(200).json();
        self.wait_for_end(&task_id(&receipt)).await
    }

    /// Submits an image and waits for its end, which must be a success.
    pub(crate) async fn generate(&self, body: &Value) -> Value {
        let id = self.submit(body).await;
        let record = self.wait_for_end(&id).await;
        assert_eq!(status(&record), "completed", "{body}: {record}");
        record
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        self.post(&format!("/v1/tasks/{id}/cancel"), &Value::Null)
            .await
    }

    /// The remaining and the spent amount of the key.
    pub(crate) async fn key_balances(&self) -> (f64, f64) {
        self.balances_at("/v1/balance").await
    }

    /// The remaining and the spent amount of the user.
    pub(crate) async fn balances(&self) -> (f64, f64) {
        self.balances_at("/v1/user/balance").await
    }

    async fn balances_at(&self, path: &str) -> (f64, f64) {
        let record = self.get_json(path).await;
        let number = |name: &str| record[name].as_f64().unwrap_or_else(|| panic!("{record}"));
        (number("remain_balance"), number("used_balance"))
    }

    /// Checks that the remaining and the spent amount of the user are these, except for rounding of floats.
    #[track_caller]
    pub(crate) fn check_balances(&self, left: f64, used: f64) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let found = self.balances().await;
            let difference = (found.0 - left).abs() + (found.1 - used).abs();
            assert!(
                difference < 1e-9,
                "{caller}: {found:?}, not {:?}",
                (left, used)
            );
        }
    }
}

/// The content type of forms with the boundary `edge`.
const FORM: &str = "multipart/form-data; boundary=edge";

/// The task's id in a receipt of any shape.
pub(crate) fn task_id(receipt: &Value) -> String {
    let id = receipt.pointer("/data/0/task_id");
    let id = id.or_else(|| receipt.get("id")).and_then(Value::as_str);
    let id = id.unwrap_or_else(|| panic!("{receipt}"));
    assert!(id.starts_with("task_"), "{receipt}");
    id.to_owned()
}

/// The status of a record.
pub(crate) fn status(record: &Value) -> &str {
    record["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{record}"))
}

/// The links of a completed image record of any shape.
pub(crate) fn image_urls(record: &Value) -> Vec<String> {
    let (list, link) = match record.pointer("/result/images") {
        Some(list) => (list, "/url/0"),
        None => (&record["result"]["items"], "/data/0/url"),
    };
    let list = list.as_array().unwrap_or_else(|| panic!("{record}"));
    let url = |item: &Value| item.pointer(link)?.as_str().map(str::to_owned);
    list.iter().map(|item| url(item).expect("a link")).collect()
}
