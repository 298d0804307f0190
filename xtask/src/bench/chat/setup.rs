//! The servers that the chat bench needs: upstream, gateway, bare proxy, nginx.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::json;

use super::super::load::{Requests, Target, request_bytes};
use super::nginx::Nginx;
use crate::gateway::Gateway;

/// A text with which a request has about 1 KB.
const PROMPT: &str = "Tell me about the harbour at dawn, its boats, the people who work there and what they speak of. ";

/// A running setup.
pub(in super::super) struct Setup {
    /// Dropped before the gateway: otherwise the gateway would read every stream that a client has left to its end before it stops.
    pub(super) upstream: HelperServer,
    pub(in super::super) gateway: Gateway,
    /// The key of a user with a balance: an amount is held before each call.
    pub(in super::super) limited_key: String,
    /// The key of a user without limit: each request needs one write.
    pub(in super::super) unlimited_key: String,
    proxy: HelperServer,
    pub(super) nginx: Option<Nginx>,
}

/// A server of this tool in a process of its own. Dropping it stops it.
pub(super) struct HelperServer {
    server: Child,
    pub(super) address: String,
}

impl HelperServer {
    fn start(arguments: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        let mut server = command
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", arguments[0]))?;
        let mut line = String::new();
        if let Some(stdout) = server.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        Ok(Self {
            server,
            address: line.trim().to_owned(),
        })
    }
}

impl Drop for HelperServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Setup {
    /// Starts all servers, with the gateway on SQLite or on the PostgreSQL database with that URL.
    pub(in super::super) fn start(
        binary: &Path,
        database_url: Option<&str>,
    ) -> Result<Self, String> {
        let mut new = Self::start_servers(binary, database_url)?;
        let key = |arguments: &[&str], user: &str| -> Result<String, String> {
            new.gateway.cli_json(arguments)?;
            // A limit that is never reached, but is counted nevertheless.
            let create = ["key", "create", "--user", user, "--rpm", "1000000000"];
            let key = new.gateway.cli_json(&create)?;
            Ok(key["key"].as_str().unwrap_or_default().to_owned())
        };
        let limited = ["user", "create", "limited", "--balance", "1000000"];
        let limited = key(&limited, "limited")?;
        let unlimited = key(&["user", "create", "free", "--unlimited"], "free")?;
        (new.limited_key, new.unlimited_key) = (limited, unlimited);
        // The running server reads the changes within a second.
        std::thread::sleep(std::time::Duration::from_secs(1));
        Ok(new)
    }

    /// Starts all servers, with another gateway on a PostgreSQL database that contains these keys: of a user with a balance, and of one without
    /// limit.
    pub(in super::super) fn join(
        binary: &Path,
        database_url: &str,
        [limited, unlimited]: [String; 2],
    ) -> Result<Self, String> {
        let mut new = Self::start_servers(binary, Some(database_url))?;
        (new.limited_key, new.unlimited_key) = (limited, unlimited);
        Ok(new)
    }

    fn start_servers(binary: &Path, database_url: Option<&str>) -> Result<Self, String> {
        let upstream = HelperServer::start(&["bench-upstream"])?;
        let proxy = HelperServer::start(&["bench-proxy", &upstream.address])?;
        let nginx = Nginx::start(&upstream.address)?;
        let mut gateway = Gateway::prepare(binary, &settings(&upstream.address))?;
        if let Some(url) = database_url {
            gateway.set_environment("TOLLGATE_DATABASE__URL", url);
        }
        gateway.start()?;
        Ok(Self {
            gateway,
            limited_key: String::new(),
            unlimited_key: String::new(),
            upstream,
            proxy,
            nginx,
        })
    }

    /// The gateway as target, with requests for `model` at `path`.
    pub(super) fn gateway_target(
        &self,
        key: &str,
        path: &str,
        model: &str,
        stream: Option<&str>,
    ) -> Result<Target, String> {
        let pid = self.gateway.pid().ok_or("the gateway is not running")?;
        Ok(build_target(
            self.gateway.address(),
            pid,
            path,
            key,
            model,
            stream,
        ))
    }

    /// The gateway as target, with plain chats of a user with a balance.
    pub(in super::super) fn gateway_target_with_hold(&self) -> Result<Target, String> {
        self.gateway_target(&self.limited_key, "/v1/chat/completions", "gpt-5", None)
    }

    /// The bare proxy as target.
    pub(super) fn proxy_target(&self, stream: Option<&str>) -> Target {
        build_target(
            self.proxy.address.clone(),
            self.proxy.server.id(),
            "/v1/chat/completions",
            "none",
            "gpt-5",
            stream,
        )
    }

    /// nginx as target, if it is installed.
    pub(super) fn nginx_target(&self, stream: Option<&str>) -> Option<Target> {
        let nginx = self.nginx.as_ref()?;
        Some(build_target(
            nginx.address(),
            nginx.pid(),
            "/v1/chat/completions",
            "none",
            "gpt-5",
            stream,
        ))
    }

    /// The upstream itself as target.
    pub(super) fn upstream_target(&self, stream: Option<&str>) -> Target {
        build_target(
            self.upstream.address.clone(),
            self.upstream.server.id(),
            "/v1/chat/completions",
            "none",
            "gpt-5",
            stream,
        )
    }
}

fn settings(upstream: &str) -> String {
    format!(
        "drain_s = 1\n[[channel]]\nname = \"same\"\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\napi_keys = [\"k\"]\nmodels = [\"gpt-5\"]\n\
         [[channel]]\nname = \"other\"\nkind = \"anthropic\"\nbase_url = \"http://{upstream}\"\napi_keys = [\"k\"]\n\
         models = [\"claude-haiku-4-5-20251001\"]\n\
         [price.\"gpt-5\"]\ninput_per_million = 1.25\noutput_per_million = 10.0\n\
         [price.\"claude-haiku-4-5-20251001\"]\ninput_per_million = 1.0\noutput_per_million = 5.0\n"
    )
}

fn build_target(
    address: String,
    pid: u32,
    path: &str,
    key: &str,
    model: &str,
    stream: Option<&str>,
) -> Target {
    let mut body = json!({
        "model": model,
        "messages": [
            { "role": "system", "content": "You are a guide who replies in one paragraph." },
            { "role": "user", "content": PROMPT.repeat(8) },
        ],
        "max_completion_tokens": 400,
    });
    if let Some(kind) = stream {
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
        body["user"] = json!(kind);
    }
    let bytes = request_bytes("POST", path, key, &body.to_string());
    let requests: Requests = Arc::new(move |_| bytes.clone());
    Target {
        address,
        pid,
        requests,
    }
}
