//! The measured gateway, and the requests that every part of the bench sends to it. The gateway has one worker, which the first submission keeps busy
//! without end, so that image generation is not measured.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::load::{Connection, RawResponse, Requests, Target, request_bytes};
use crate::gateway::Gateway;
use crate::process::TempDir;

const SETTINGS: &str = r#"
drain_s = 1
[sandbox]
image_ms = 0
[time_limits]
image_s = 36000
[fairness]
unfinished_tasks = 100000000
[workers]
calls = 1
[price."grok-imagine-1.0-partner"]
per_image = 0.02
"#;

const HANGING_PROMPT: &str = "a harbour at dawn, seen from the lighthouse [[sandbox:hang]]";
const FINISH_LIMIT: Duration = Duration::from_secs(30);
/// The name of the counter of commits in the text of the metrics.
const COMMITS: &str = "tollgate_store_commits_total";

/// A running gateway with users, each with a key.
pub(super) struct BenchGateway {
    pub(super) gateway: Gateway,
    /// The key of the first user.
    pub(super) key: String,
    pub(super) keys: Vec<String>,
}

impl BenchGateway {
    /// Starts a gateway on a new data directory.
    pub(super) fn start(binary: &Path) -> Result<Self, String> {
        Self::start_with(binary, &[], 1)
    }

    /// Starts a gateway with these environment variables and that number of users.
    pub(super) fn start_with(
        binary: &Path,
        environment: &[(&'static str, String)],
        users: usize,
    ) -> Result<Self, String> {
        let gateway = start_gateway(binary, environment)?;
        let keys: Vec<String> = (0..users)
            .map(|number| format!("sk-{number:048}"))
            .collect();
        let rows = keys.iter().enumerate().map(|(number, key)| {
            // A large balance, but not an unlimited one: the check of the balance is part of the measurement.
            let row = json!({"user": format!("bench{number}"), "balance": 1_000_000, "key": key});
            format!("{row}\n")
        });
        let folder = TempDir::new("bench-keys")?;
        let file = folder.path().join("keys.jsonl");
        fs::write(&file, rows.collect::<String>())
            .map_err(|e| format!("{}: {e}", file.display()))?;
        gateway.cli_json(&["import", &file.to_string_lossy()])?;
        // The running server reads the change within a second.
        std::thread::sleep(Duration::from_secs(1));
        Ok(Self {
            gateway,
            key: keys[0].clone(),
            keys,
        })
    }

    /// Starts another gateway on the database that the environment variables name, with the existing users.
    pub(super) fn join(
        binary: &Path,
        environment: &[(&'static str, String)],
        keys: &[String],
    ) -> Result<Self, String> {
        Ok(Self {
            gateway: start_gateway(binary, environment)?,
            key: keys[0].clone(),
            keys: keys.to_vec(),
        })
    }

    /// The server's process id.
    pub(super) fn pid(&self) -> Result<u32, String> {
        self.gateway
            .pid()
            .ok_or_else(|| "the gateway is not running".to_owned())
    }

    /// This gateway as the target of a load.
    pub(super) fn target(&self, requests: &Requests) -> Result<Target, String> {
        Ok(Target {
            address: self.gateway.address(),
            pid: self.pid()?,
            requests: Arc::clone(requests),
        })
    }

    /// A submission that is accepted and never finished: the first of them keeps the only worker busy without end.
    pub(super) fn submission_request(&self) -> Vec<u8> {
        image_request(&self.key, HANGING_PROMPT)
    }

    /// A submission as in [`Self::submission_request`], for each user.
    pub(super) fn submission_requests(&self) -> Vec<Vec<u8>> {
        self.keys
            .iter()
            .map(|key| image_request(key, HANGING_PROMPT))
            .collect()
    }

    /// The request that polls a task.
    pub(super) fn poll_request(&self, id: &str) -> Vec<u8> {
        request_bytes("GET", &format!("/v1/tasks/{id}"), &self.key, "")
    }

    /// Submits a task and waits until it is finished; returns its id.
    pub(super) async fn create_finished_task(&self) -> Result<String, String> {
        let (id, _) = self
            .submit(&image_request(&self.key, "a harbour at dawn"))
            .await?;
        let began = Instant::now();
        while began.elapsed() < FINISH_LIMIT {
            let response = self.send(&self.poll_request(&id)).await?;
            let record: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            match record["data"]["status"].as_str() {
                Some("completed") => return Ok(id),
                Some("failed") => return Err(format!("the task failed: {record}")),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Err(format!("the task did not finish within {FINISH_LIMIT:?}"))
    }

    /// Submits a task; returns its id and the receipt.
    pub(super) async fn submit(&self, submission: &[u8]) -> Result<(String, RawResponse), String> {
        let response = self.send(submission).await?;
        let receipt: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match receipt["data"][0]["task_id"].as_str() {
            Some(id) => Ok((id.to_owned(), response)),
            None => Err(format!("no receipt: {receipt}")),
        }
    }

    /// Sends one request on a new connection.
    pub(super) async fn send(&self, request: &[u8]) -> Result<RawResponse, String> {
        send(&self.gateway.address(), request).await
    }

    /// The number of commits of the store so far.
    pub(super) async fn commit_count(&self) -> Result<u64, String> {
        commit_count(&self.gateway.address()).await
    }
}

fn start_gateway(binary: &Path, environment: &[(&'static str, String)]) -> Result<Gateway, String> {
    let mut gateway = Gateway::prepare(binary, SETTINGS)?;
    for (name, value) in environment {
        gateway.set_environment(name, value);
    }
    gateway.start()?;
    Ok(gateway)
}

fn image_request(key: &str, prompt: &str) -> Vec<u8> {
    let body =
        json!({"model": "grok-imagine-1.0-partner", "prompt": prompt, "size": "1:1", "n": 1});
    request_bytes("POST", "/v1/images/generations", key, &body.to_string())
}

async fn send(address: &str, request: &[u8]) -> Result<RawResponse, String> {
    let mut connection = Connection::open(address).await?;
    connection.send(request).await?;
    connection.read_response().await
}

/// The number of commits so far of the store of the gateway at an address.
pub(super) async fn commit_count(address: &str) -> Result<u64, String> {
    let response = send(address, &request_bytes("GET", "/metrics", "", "")).await?;
    let text = String::from_utf8_lossy(&response.body);
    parse_counter(&text, COMMITS).ok_or_else(|| format!("{COMMITS} is not in GET /metrics"))
}

/// The value of a counter without labels.
fn parse_counter(text: &str, name: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_metrics() {
        let text = "# HELP a_total A.\na_total 12\nb_total{x=\"y\"} 3\nc_total 4.0\n";
        assert_eq!(parse_counter(text, "a_total"), Some(12));
        assert_eq!(parse_counter(text, "b_total"), None);
        assert_eq!(parse_counter(text, "c_total"), Some(4));
    }
}
