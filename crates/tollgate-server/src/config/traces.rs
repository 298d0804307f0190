//! Settings of OpenTelemetry traces.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::addresses;
use super::log::Ratio;

/// Where traces are sent, and how many.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traces {
    /// The base URL of an OTLP/HTTP collector, without a `/` at its end. `None`: nothing is recorded.
    #[serde(deserialize_with = "addresses::base_url")]
    pub endpoint: Option<String>,
    /// Headers of requests to it.
    #[serde(deserialize_with = "headers")]
    pub headers: HeaderMap,
    /// The share of requests that are recorded, of those whose callers have no trace of their own.
    pub sample_ratio: Ratio,
    /// The gateway's name in traces.
    pub service_name: String,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: HeaderMap::new(),
            sample_ratio: Ratio::ALL,
            service_name: "tollgate".to_owned(),
        }
    }
}

/// `NAME=VALUE,…`, which no error repeats: values are keys.
fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderMap, D::Error> {
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
