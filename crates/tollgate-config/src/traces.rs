//! Settings of OpenTelemetry.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::addresses;
use super::fields::{self, DAY_S};
use super::log::Ratio;

/// Where traces and metrics are sent, what share of traces, and how often metrics.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traces {
    /// The base URL of an OTLP/HTTP collector, without a `/` at its end. `None`: nothing is recorded.
    #[serde(deserialize_with = "addresses::deserialize_base_url")]
    pub endpoint: Option<String>,
    /// Headers of requests to the collector.
    #[serde(deserialize_with = "deserialize_headers")]
    pub headers: HeaderMap,
    /// The share of requests that are traced, of those whose callers sent no trace of their own.
    pub sample_ratio: Ratio,
    /// The time between two exports of the metrics. Zero: none are sent.
    #[serde(
        rename = "metrics_s",
        deserialize_with = "deserialize_metrics_interval"
    )]
    pub metrics_interval: Duration,
    /// The gateway's name in traces and metrics.
    pub service_name: String,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: HeaderMap::new(),
            sample_ratio: Ratio::ALL,
            metrics_interval: Duration::ZERO,
            service_name: "tollgate".to_owned(),
        }
    }
}

/// Parses whole seconds, at most a day.
fn deserialize_metrics_interval<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    fields::deserialize_integer::<D, u64, 0, DAY_S>(deserializer).map(Duration::from_secs)
}

/// Parses `NAME=VALUE,…`. No error repeats the text, because values can be keys.
fn deserialize_headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderMap, D::Error> {
    let text = String::deserialize(deserializer)?;
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let mut value = HeaderValue::from_str(value.trim()).ok()?;
        value.set_sensitive(true);
        Some((name.trim().parse::<HeaderName>().ok()?, value))
    };
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let headers: Option<HeaderMap> = pairs.map(header).collect();
    headers.ok_or_else(|| D::Error::custom("takes headers as NAME=VALUE, separated by commas"))
}
