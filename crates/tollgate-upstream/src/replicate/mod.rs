//! Replicate: images, videos and speech from any of Replicate's models through its queue, by configured mappings
//! (<https://replicate.com/docs/reference/http>).

mod errors;
mod models;
mod response;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tollgate_core::Secret;

use self::models::PRESETS;
use crate::adapter::{HttpRequest, HttpResponse, InlineFiles, ProviderClient, percent_encode};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;
use crate::mapped::{self, JobState, MappedQueue, Preset, Request};
use crate::provider::{Attempt, EnvironmentChannel, Link, Provider, Settings};

pub(crate) const BASE_URL: &str = "https://api.replicate.com/v1";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    mapped::check(channel, PRESETS)
}

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["REPLICATE_API_TOKEN"],
    base_url: None,
    models: &["doubao-seedream-4.5", "imagen-4.0-partner", "veo-3.1-pro"],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    mapped::open(Replicate {
        client: ProviderClient::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    })
}

struct Replicate {
    client: ProviderClient,
    base: String,
}

impl Replicate {
    fn prediction_url(&self, id: &str) -> String {
        format!("{}/predictions/{}", self.base, percent_encode(id))
    }

    async fn send(
        &self,
        request: HttpRequest,
        key: Option<&Secret>,
    ) -> Result<HttpResponse, ProviderError> {
        let request = request.with_timeout(POLL_TIMEOUT);
        let request = request.with_authorization("Bearer ", key)?;
        self.client.send(request).await
    }
}

/// The provider job id is the prediction's id.
#[async_trait]
impl MappedQueue for Replicate {
    const PRESETS: &'static [Preset] = PRESETS;

    async fn submit(
        &self,
        request: Request,
        files: InlineFiles,
        attempt: &Attempt<'_>,
    ) -> Result<String, ProviderError> {
        let (path, version) = models::prediction_path(&request.upstream);
        let mut body = json!({ "input": request.input });
        if let Some(version) = version {
            body["version"] = version.into();
        }
        let url = [&self.base, path.as_str()].concat();
        let submission = HttpRequest::post_body(url, JSON, files.into_body(&body))
            .with_authorization("Bearer ", attempt.key)?
            .with_trace(attempt.trace)
            .creating();
        let response = self.client.send(submission).await?;
        response::parse_submission(&self.client, &response)
    }

    async fn poll_job(&self, id: &str, key: Option<&Secret>) -> Result<JobState, ProviderError> {
        let request = HttpRequest::get(self.prediction_url(id));
        let response = self.send(request, key).await?;
        response::parse_prediction(&self.client, &response)
    }

    fn result(&self, _: &Value, _: usize, url: &str) -> Result<Link, ProviderError> {
        Ok(self.client.link(&self.base, url, HeaderMap::new()))
    }

    async fn cancel(&self, id: &str, key: Option<&Secret>) -> Result<(), ProviderError> {
        let url = [&self.prediction_url(id), "/cancel"].concat();
        let request = HttpRequest::without_body(Method::POST, url);
        let response = self.send(request, key).await?;
        // A prediction that has ended or is unknown need not be cancelled.
        match response.status.as_u16() {
            200..=299 | 400 | 404 | 422 => Ok(()),
            _ => Err(errors::response_error(&self.client, &response)),
        }
    }
}
