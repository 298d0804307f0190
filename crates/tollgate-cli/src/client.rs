//! A client of any gateway, for the commands that generate something: sends requests, converts errors to sentences, saves files.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tollgate_core::Secret;
use tollgate_upstream::egress::{Client, ClientOptions, ResponseBody, Timeouts, body};

use super::common::Failed;

/// The default address of a gateway.
const DEFAULT_BASE: &str = "http://127.0.0.1:8080";
const TIMEOUTS: Timeouts = Timeouts {
    connect: None,
    first_byte: Duration::from_secs(60),
    idle: Duration::from_secs(60),
};
/// Size of the largest JSON response that is read, in bytes.
const MAX_RESPONSE: usize = 16 * 1_048_576;

/// The gateway and the API key.
#[derive(Args)]
pub(super) struct Target {
    /// The gateway's URL
    #[arg(long, value_name = "URL", env = "TOLLGATE_BASE_URL", default_value = DEFAULT_BASE)]
    base_url: String,
    /// The API key
    #[arg(
        long,
        value_name = "KEY",
        env = "TOLLGATE_API_KEY",
        hide_env_values = true
    )]
    key: Option<String>,
}

/// A gateway, with the API key of the requests to it.
pub(super) struct Gateway {
    client: Client,
    base: String,
    key: Secret,
}

impl Target {
    pub(super) fn open(&self) -> Result<Gateway, Failed> {
        let key = self.key.as_deref().filter(|key| !key.is_empty());
        let key = key.ok_or("an API key is needed: pass --key, or set TOLLGATE_API_KEY")?;
        Ok(Gateway {
            client: Client::new(ClientOptions::default()),
            base: self.base_url.trim_end_matches('/').to_owned(),
            key: Secret::new(key),
        })
    }
}

impl Gateway {
    /// Sends a GET request; returns the JSON of the response.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failed> {
        self.json(
            Method::GET,
            &format!("{}{path}", self.base),
            None,
            Bytes::new(),
        )
        .await
    }

    /// Sends a POST request with a JSON body; returns the JSON of the response.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        let url = format!("{}{path}", self.base);
        self.json(
            Method::POST,
            &url,
            Some("application/json"),
            body.to_string().into(),
        )
        .await
    }

    /// Sends a POST request with a JSON body; returns the response as a stream of events.
    pub(super) async fn stream(&self, path: &str, body: &Value) -> Result<ResponseBody, Failed> {
        let url = format!("{}{path}", self.base);
        let bytes = Bytes::from(body.to_string());
        let response = self
            .send(Method::POST, &url, Some("application/json"), bytes)
            .await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(rejected(
            response.status(),
            &read_json(response.into_body()).await?,
        ))
    }

    /// Returns `image` if it is a link; else uploads the file of that name and returns its link.
    pub(super) async fn link_to(&self, image: &str) -> Result<String, Failed> {
        if image.contains("://") {
            return Ok(image.to_owned());
        }
        self.upload(Path::new(image)).await
    }

    /// Uploads an image; returns its link.
    pub(super) async fn upload(&self, file: &Path) -> Result<String, Failed> {
        let bytes = tokio::fs::read(file)
            .await
            .map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        let boundary = tollgate_core::id::short_id("part-");
        let mut form = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"reference\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        form.extend_from_slice(&bytes);
        form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let url = format!("{}/v1/uploads/images", self.base);
        let record = self
            .json(Method::POST, &url, Some(&content_type), form.into())
            .await?;
        let link = record["url"]
            .as_str()
            .ok_or("the gateway's response has no link")?;
        Ok(link.to_owned())
    }

    /// Downloads a link to a file.
    pub(super) async fn save(&self, url: &str, file: &Path) -> Result<(), Failed> {
        // The request has no API key, because the link may point to another server.
        let request = Request::get(url).body(body(Bytes::new()))?;
        let response = self.client.send(request, TIMEOUTS).await?;
        if response.status() != StatusCode::OK {
            return Err(Failed::from(format!(
                "the result cannot be fetched: {}",
                response.status()
            )));
        }
        let cannot = |e: std::io::Error| format!("cannot write {}: {e}", file.display());
        let mut out = tokio::fs::File::create(file).await.map_err(cannot)?;
        let mut parts = response.into_body();
        while let Some(part) = parts.chunk().await? {
            out.write_all(&part).await.map_err(cannot)?;
        }
        Ok(out.flush().await.map_err(cannot)?)
    }

    async fn json(
        &self,
        method: Method,
        url: &str,
        content_type: Option<&str>,
        bytes: Bytes,
    ) -> Result<Value, Failed> {
        let response = self.send(method, url, content_type, bytes).await?;
        let status = response.status();
        let body = read_json(response.into_body()).await?;
        if status.is_success() {
            return Ok(body);
        }
        Err(rejected(status, &body))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        content_type: Option<&str>,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, Failed> {
        let mut request = Request::builder().method(method).uri(url).header(
            header::AUTHORIZATION,
            format!("Bearer {}", self.key.expose()),
        );
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let response = self
            .client
            .send(request.body(body(bytes))?, TIMEOUTS)
            .await
            .map_err(|e| format!("cannot reach the gateway at {}: {e}", self.base))?;
        Ok(response)
    }
}

fn rejected(status: StatusCode, body: &Value) -> Failed {
    let message = body["error"]["message"]
        .as_str()
        .or_else(|| body["message"].as_str());
    Failed::from(format!(
        "the gateway returned {status}: {}",
        message.unwrap_or("nothing more")
    ))
}

async fn read_json(parts: ResponseBody) -> Result<Value, Failed> {
    let bytes = parts.collect(MAX_RESPONSE).await?;
    serde_json::from_slice(&bytes)
        .map_err(|_| Failed::from("the response is not JSON: is this a gateway?"))
}
