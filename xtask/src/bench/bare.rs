//! The bare axum server that the gateway is compared with: it reads the complete request and responds with fixed bytes, with the headers that the
//! gateway sends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::load::{RawResponse, Requests, Target};
use crate::outcome::Outcome;
use crate::process::TempDir;

/// The headers that the server adds itself.
const OWN_HEADERS: [&str; 2] = ["content-length", "date"];

/// A running bare server. Dropping it stops it.
pub(super) struct BareServer {
    server: Child,
    address: String,
    _folder: TempDir,
}

impl BareServer {
    /// Starts a server that responds with `poll` to `GET /v1/tasks/{id}` and with `receipt` to `POST /v1/images/generations`.
    pub(super) fn start(poll: &RawResponse, receipt: &RawResponse) -> Result<Self, String> {
        let folder = TempDir::new("bare")?;
        let path = folder.path().join("responses.json");
        let responses = json!({"poll": to_json(poll), "receipt": to_json(receipt)});
        fs::write(&path, responses.to_string()).map_err(|e| e.to_string())?;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command.arg("bare-server").arg(&path).stdout(Stdio::piped());
        let mut server = command
            .spawn()
            .map_err(|e| format!("cannot start the bare server: {e}"))?;
        let mut line = String::new();
        if let Some(stdout) = server.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        Ok(Self {
            server,
            address: line.trim().to_owned(),
            _folder: folder,
        })
    }

    /// This server as the target of a load.
    pub(super) fn target(&self, requests: &Requests) -> Target {
        Target {
            address: self.address.clone(),
            pid: self.server.id(),
            requests: Arc::clone(requests),
        }
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn to_json(response: &RawResponse) -> Value {
    let headers = response
        .head
        .lines()
        .skip(1)
        .filter_map(|l| l.split_once(": "));
    let headers: Vec<_> = headers
        .filter(|(name, _)| !OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)))
        .collect();
    json!({"headers": headers, "body": String::from_utf8_lossy(&response.body)})
}

/// A response whose headers and body are fixed.
struct FixedResponse {
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// The responses of the server, by the kind of request.
struct FixedResponses {
    poll: FixedResponse,
    receipt: FixedResponse,
}

/// Serves the responses in a file on a free loopback port, which it prints, until it is killed.
pub(super) fn serve(path: &Path) -> Outcome {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let responses = Arc::new(FixedResponses {
        poll: parse_response(&json["poll"]),
        receipt: parse_response(&json["receipt"]),
    });
    let router = Router::new()
        .route(
            "/v1/tasks/{id}",
            get(|State(responses): State<Arc<FixedResponses>>| async move {
                responses.poll.to_response()
            }),
        )
        .route("/v1/images/generations", post(respond_with_receipt))
        .with_state(responses);
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|e| e.to_string())?;
        println!("{}", listener.local_addr().map_err(|e| e.to_string())?);
        axum::serve(listener, router)
            .await
            .map_err(|e| e.to_string())
    })
}

/// Reads the complete body, as a server must that processes it.
async fn respond_with_receipt(
    State(responses): State<Arc<FixedResponses>>,
    _body: Bytes,
) -> Response<Body> {
    responses.receipt.to_response()
}

fn parse_response(json: &Value) -> FixedResponse {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let headers = json["headers"].as_array().into_iter().flatten();
    FixedResponse {
        headers: headers
            .map(|pair| (text(&pair[0]), text(&pair[1])))
            .collect(),
        body: text(&json["body"]).into(),
    }
}

impl FixedResponse {
    fn to_response(&self) -> Response<Body> {
        let mut response = Response::builder();
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let body = Body::from(self.body.clone());
        response.body(body).unwrap_or_default()
    }
}
