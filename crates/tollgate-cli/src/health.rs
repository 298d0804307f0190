//! `tollgate health`: a health check for containers, which have no curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::Request;
use serde_json::json;
use tollgate_config::{Config, Overrides};
use tollgate_upstream::egress::{Client, ClientOptions, Timeouts, body};

use super::common::{Common, Failed};

/// `/readyz` needs up to 4 s for its checks.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(8),
    idle: Duration::from_secs(5),
};
/// Bytes of the response that are read.
const MAX_RESPONSE: usize = 65_536;

#[derive(Args)]
pub(super) struct Health {
    /// The gateway's URL [default: the configured `metrics.listen`, else `listen`]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Check database and storage (/readyz), not only that the process responds (/healthz)
    #[arg(long)]
    ready: bool,
}

impl Health {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let options = ClientOptions::default();
        let (base, client) = match self.url {
            Some(url) => (url.trim_end_matches('/').to_owned(), Client::new(options)),
            // The certificate is for the host name that clients use, not for this machine's address.
            None => (
                own_url(&common.configuration(Overrides::default())?),
                Client::accepting_any_certificate(options),
            ),
        };
        let path = if self.ready { "/readyz" } else { "/healthz" };
        let url = format!("{base}{path}");
        let request = Request::get(&url)
            .body(body(Bytes::new()))
            .map_err(|e| format!("--url {base}: {e}"))?;
        let response = client
            .send(request, TIMEOUTS)
            .await
            .map_err(|e| format!("{url} does not respond: {e}"))?;
        let status = response.status();
        let text = response.into_body().collect(MAX_RESPONSE).await?;
        let text = String::from_utf8_lossy(&text);
        if !status.is_success() {
            return Err(Failed::from(format!("{url} returned {status}: {text}")));
        }
        let record = json!({ "url": url, "ok": true });
        common.print(&record, || format!("{url}: ok"))
    }
}

/// The URL of the gateway with this configuration on this machine.
fn own_url(config: &Config) -> String {
    let listen = config.metrics_listen.as_ref().unwrap_or(&config.listen);
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "80"));
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    // A gateway that listens on all addresses also listens on loopback.
    let host = match address {
        Some(IpAddr::V4(v4)) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Some(IpAddr::V6(v6)) if v6.is_unspecified() => format!("[{}]", Ipv6Addr::LOCALHOST),
        _ => host.to_owned(),
    };
    // A separate listener for metrics and health checks has no TLS.
    let scheme = match config.metrics_listen {
        Some(_) => "http",
        None => config.scheme(),
    };
    format!("{scheme}://{host}:{port}")
}
