//! A client of the gateway: JSON requests with a key, tasks followed to their end.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;

use super::server::Address;
use super::{PATIENCE, until};

const GENERATIONS: &str = "/v1/images/generations";
const EDITS: &str = "/v1/images/edits";
/// How long an idle connection may be used again; gateways keep it three times as long.
const REUSED: Duration = Duration::from_secs(5);

/// Connections to gateways.
pub(super) type Http = legacy::Client<HttpConnector, Full<Bytes>>;

pub(super) fn http() -> Http {
    // A connection that was idle for long may be closed by the gateway just as it is used again.
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(REUSED)
        .build_http()
}

/// Somebody who calls the gateway.
#[derive(Clone)]
pub(crate) struct Client {
    address: Address,
    http: Http,
    /// The key, if there is one.
    pub(crate) secret: Option<String>,
    /// The key's id.
    pub(crate) key_id: String,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The same, if it has this status.
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

    /// A header's text, empty where it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }

    /// The message of an error in the standard envelope, which must be of this status and type.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, kind: &str) -> String {
        let body = self.clone().expect(status).json();
        let error = body["error"]
            .as_object()
            .unwrap_or_else(|| panic!("{body}"));
        let names: Vec<&String> = error.keys().collect();
        assert_eq!(names, ["code", "message", "type"], "{body}");
        assert_eq!(
            body.as_object().map(serde_json::Map::len),
            Some(1),
            "{body}"
        );
        assert_eq!(body["error"]["code"], status, "{body}");
        assert_eq!(body["error"]["type"], kind, "{body}");
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(!message.is_empty());
        message.to_owned()
    }
}

impl Client {
    pub(super) fn new(
        address: Address,
        http: Http,
        secret: Option<String>,
        key_id: String,
    ) -> Self {
        Self {
            address,
            http,
            secret,
            key_id,
        }
    }

    /// Its connections.
    pub(super) fn http(&self) -> &Http {
        &self.http
    }

    /// The URL of a path at the gateway.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address.get())
    }

    /// A request that brings the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(self.url(path));
        match &self.secret {
            Some(secret) => request.header(AUTHORIZATION, format!("Bearer {secret}")),
            None => request,
        }
    }

    /// Sends a request; none where the connection breaks first.
    pub(crate) async fn try_send(&self, request: Request<Full<Bytes>>) -> Option<Reply> {
        let exchange = async {
            let response = self.http.request(request).await.ok()?;
            let (head, body) = response.into_parts();
            Some(Reply {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.collect().await.ok()?.to_bytes(),
            })
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await;
        answer.expect("an answer in time")
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        self.try_send(request).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let request = self.request(Method::GET, path);
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// POST of a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    /// POST of a JSON body with more headers.
    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = self.request(Method::POST, path);
        request = request.header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// What a link leads to, fetched without the key.
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

    /// Uploads a file; answers whatever comes.
    pub(crate) async fn upload(&self, name: &str, content_type: &str, bytes: &[u8]) -> Reply {
        let mut form = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: {content_type}\r\n\r\n"
        )
        .into_bytes();
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n--edge--\r\n");
        self.upload_form(form).await
    }

    /// Sends a form with the boundary `edge`, whatever is in it.
    pub(crate) async fn upload_form(&self, form: Vec<u8>) -> Reply {
        let request = self.request(Method::POST, "/v1/uploads/images");
        let request = request.header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
        self.send(request.body(form.into()).unwrap()).await
    }

    /// Uploads a picture; answers its link.
    pub(crate) async fn uploaded(&self, bytes: &[u8]) -> String {
        let reply = self
            .upload("picture.bin", "application/octet-stream", bytes)
            .await;
        reply.expect(200).json()["url"]
            .as_str()
            .expect("a link")
            .to_owned()
    }

    /// Submits a picture; answers whatever comes.
    pub(crate) async fn order(&self, body: &Value) -> Reply {
        let edits = body["model"] == "grok-imagine-1.0-edit-partner";
        self.post(if edits { EDITS } else { GENERATIONS }, body)
            .await
    }

    /// Submits a picture, which must be taken; answers the task's id.
    #[track_caller]
    pub(crate) fn submit(&self, body: &Value) -> impl Future<Output = String> + use<> {
        let (client, body) = (self.clone(), body.clone());
        async move { task_id(&client.order(&body).await.expect(200).json()) }
    }

    /// The record of a task, out of its envelope.
    pub(crate) async fn task(&self, id: &str) -> Value {
        let record = self
            .get(&format!("/v1/tasks/{id}"))
            .await
            .expect(200)
            .json();
        match record.get("data") {
            Some(data) => data.clone(),
            None => record,
        }
    }

    /// The record of a task when it has ended.
    pub(crate) async fn ended(&self, id: &str) -> Value {
        until("a task to end", async || {
            let record = self.task(id).await;
            matches!(status(&record), "completed" | "failed" | "cancelled").then_some(record)
        })
        .await
    }

    /// Waits until a worker has the task.
    pub(crate) async fn started(&self, id: &str) {
        until("a task to start", async || {
            (status(&self.task(id).await) == "in_progress").then_some(())
        })
        .await;
    }

    /// Submits a picture and waits for its end, which must be a success.
    pub(crate) async fn make(&self, body: &Value) -> Value {
        let id = self.submit(body).await;
        let record = self.ended(&id).await;
        assert_eq!(status(&record), "completed", "{body}: {record}");
        record
    }

    pub(crate) async fn cancel(&self, id: &str) -> Reply {
        self.post(&format!("/v1/tasks/{id}/cancel"), &Value::Null)
            .await
    }

    /// The key's balance record.
    pub(crate) async fn balance(&self) -> Value {
        self.get("/v1/balance").await.expect(200).json()
    }

    /// The user's balance record.
    pub(crate) async fn user_balance(&self) -> Value {
        self.get("/v1/user/balance").await.expect(200).json()
    }

    /// What the user has left and has spent.
    pub(crate) async fn purse(&self) -> (f64, f64) {
        let record = self.user_balance().await;
        let number = |name: &str| record[name].as_f64().unwrap_or_else(|| panic!("{record}"));
        (number("remain_balance"), number("used_balance"))
    }
}

/// The task's id in a receipt of any shape.
pub(crate) fn task_id(receipt: &Value) -> String {
    let id = receipt
        .pointer("/data/0/task_id")
        .or_else(|| receipt.get("id"));
    let id = id
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{receipt}"));
    assert!(id.starts_with("task_"), "{receipt}");
    id.to_owned()
}

/// The status of a record.
pub(crate) fn status(record: &Value) -> &str {
    record["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{record}"))
}

/// The links of a completed record of any shape.
pub(crate) fn links(record: &Value) -> Vec<String> {
    let link = |value: &Value| value.as_str().expect("a link").to_owned();
    if let Some(images) = record.pointer("/result/images").and_then(Value::as_array) {
        return images.iter().map(|image| link(&image["url"][0])).collect();
    }
    let items = record.pointer("/result/items").and_then(Value::as_array);
    let items = items.unwrap_or_else(|| panic!("{record}"));
    items
        .iter()
        .map(|item| link(&item["data"][0]["url"]))
        .collect()
}
