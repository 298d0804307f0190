//! fal: images, videos and speech from any of fal's models through its queue, by configured mappings
//! (<https://docs.fal.ai/model-apis/model-endpoints/queue>).

mod errors;
mod models;
mod request_urls;
mod response;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tollgate_core::Secret;

use self::models::PRESETS;
use self::request_urls::RequestUrls;
use crate::adapter::{HttpRequest, HttpResponse, InlineFiles, ProviderClient, percent_encode};
use crate::channel::Channel;
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::mapped::{self, JobState, MappedQueue, Preset, Request};
use crate::provider::{Attempt, EnvironmentChannel, Link, Provider, Settings};

pub(crate) const BASE_URL: &str = "https://queue.fal.run";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an output in bytes: it contains only links, but some models add much more.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    mapped::check(channel, PRESETS)
}

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["FAL_KEY", "FAL_API_KEY"],
    base_url: None,
    models: &["doubao-seedream-4.5", "veo-3.1-pro", "veo-3.1-flash"],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    mapped::open(Fal {
        client: ProviderClient::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    })
}

struct Fal {
    client: ProviderClient,
    base: String,
}

impl Fal {
    async fn send(
        &self,
        request: HttpRequest,
        key: Option<&Secret>,
    ) -> Result<HttpResponse, ProviderError> {
        let request = request
            .with_timeout(POLL_TIMEOUT)
            .with_max_bytes(MAX_OUTPUT_BYTES);
        let request = request.with_authorization("Key ", key)?;
        self.client.send(request).await
    }
}

/// The provider job id is [`RequestUrls::to_job_id`].
#[async_trait]
impl MappedQueue for Fal {
    const PRESETS: &'static [Preset] = PRESETS;

    async fn submit(
        &self,
        request: Request,
        files: InlineFiles,
        attempt: &Attempt<'_>,
    ) -> Result<String, ProviderError> {
        let id: Vec<String> = request.upstream.split('/').map(percent_encode).collect();
        let url = format!("{}/{}", self.base, id.join("/"));
        let body = files.into_body(&request.input);
        let submission = HttpRequest::post_body(url, JSON, body)
            .with_authorization("Key ", attempt.key)?
            .with_trace(attempt.trace)
            .creating();
        let response = self.client.send(submission).await?;
        let urls = response::parse_submission(&self.client, &response)?;
        Ok(urls.relative_to(&self.base).to_job_id())
    }

    async fn poll_job(
        &self,
        provider_job_id: &str,
        key: Option<&Secret>,
    ) -> Result<JobState, ProviderError> {
        let urls = RequestUrls::from_job_id(provider_job_id).absolute(&self.base);
        let status = self.send(HttpRequest::get(&urls.status), key).await?;
        if let Some(state) = response::parse_status(&self.client, &status)? {
            return Ok(state);
        }
        let output = self.send(HttpRequest::get(&urls.response), key).await?;
        response::parse_output(&self.client, &output)
    }

    fn result(&self, output: &Value, index: usize, url: &str) -> Result<Link, ProviderError> {
        if response::is_blacked_out(output, index) {
            let message = "the upstream's safety checker rejected this result";
            return Err(ProviderError::new(UpstreamErrorKind::Moderated, message));
        }
        Ok(self.client.link(&self.base, url, HeaderMap::new()))
    }

    async fn cancel(
        &self,
        provider_job_id: &str,
        key: Option<&Secret>,
    ) -> Result<(), ProviderError> {
        let urls = RequestUrls::from_job_id(provider_job_id).absolute(&self.base);
        let request = HttpRequest::without_body(Method::PUT, &urls.cancel);
        let response = self.send(request, key).await?;
        // 400: the request has ended already. 404: it is unknown.
        match response.status.as_u16() {
            200..=299 | 400 | 404 => Ok(()),
            _ => Err(errors::response_error(&self.client, &response)),
        }
    }
}
