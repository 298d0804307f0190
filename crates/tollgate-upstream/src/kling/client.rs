//! The HTTP client of one Kling channel.

use std::sync::Arc;

use serde_json::Value;
use tollgate_core::Secret;

use super::auth::{self, ProviderClock};
use super::errors;
use super::options::Voices;
use crate::adapter::{HttpRequest, HttpResponse, ProviderClient, missing_job_id_error};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;

/// The base URL of the site outside China. A key is valid at one site only.
pub(crate) const BASE_URL: &str = "https://api-singapore.klingai.com";
/// Codes for a token that is not valid yet, or no longer valid: clocks differ.
const CLOCK_CODES: [i64; 2] = [1003, 1004];

pub(super) struct Kling {
    pub(super) client: Arc<ProviderClient>,
    /// The base URL, without a slash at its end.
    pub(super) base: String,
    pub(super) clock: ProviderClock,
    pub(super) voices: Voices,
}

impl Kling {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client, voices: Voices) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        Self {
            client: Arc::new(ProviderClient::new(channel, egress)),
            base: base.trim_end_matches('/').to_owned(),
            clock: ProviderClock::default(),
            voices,
        }
    }

    /// Sends a request; returns the `data` of the response.
    pub(super) async fn send_for_data(
        &self,
        key: Option<&Secret>,
        request: impl Fn() -> HttpRequest,
    ) -> Result<Value, ProviderError> {
        let response = self.send(key, request).await?;
        errors::data(&self.client, &response)
    }

    /// Sends a request that creates something; returns the `data` of the response.
    pub(super) async fn create(
        &self,
        key: Option<&Secret>,
        request: impl Fn() -> HttpRequest,
    ) -> Result<Value, ProviderError> {
        let response = self.send(key, request).await?;
        errors::data(&self.client, &response)
            .map_err(|error| missing_job_id_error(&response, error))
    }

    /// Sends a request, and retries it once if only the time of its token was wrong.
    pub(super) async fn send(
        &self,
        key: Option<&Secret>,
        request: impl Fn() -> HttpRequest,
    ) -> Result<HttpResponse, ProviderError> {
        let authorized = |ahead| {
            let bearer = key.map(|key| auth::bearer(key, ahead));
            request().with_authorization("Bearer ", bearer.as_ref())
        };
        let ahead = self.clock.ahead();
        let response = self.client.send(authorized(ahead)?).await?;
        let is_early_or_late = errors::code(&response).is_some_and(|c| CLOCK_CODES.contains(&c));
        let is_signed = key.is_some_and(|key| auth::pair(key).is_some());
        if is_early_or_late && is_signed && self.clock.adjust(&response.headers, ahead) {
            tracing::warn!("this machine's clock differs from the upstream's: check it");
            return self.client.send(authorized(self.clock.ahead())?).await;
        }
        Ok(response)
    }
}
