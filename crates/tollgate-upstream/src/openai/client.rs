//! The HTTP client for images, videos and speech of one channel.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tollgate_core::Secret;

use super::errors;
use crate::adapter::{self, HttpResponse, ProviderClient};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;

pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";
/// The prefix of the key in the `authorization` header.
pub(super) const BEARER: &str = "Bearer ";

pub(super) struct Client {
    pub(super) http: ProviderClient,
    /// The base URL with the version, without a slash at its end.
    pub(super) base: String,
    pub(super) channel: Arc<Channel>,
}

impl Client {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        Self {
            http: ProviderClient::new(channel, egress),
            base: base.trim_end_matches('/').to_owned(),
            channel: Arc::clone(channel),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        [&self.base, path].concat()
    }

    /// The error of a response that is not the expected one.
    pub(super) fn response_error(&self, response: &HttpResponse) -> ProviderError {
        errors::response_error(&self.http, response)
    }
}

/// Headers with the key, for files on the server itself.
pub(super) fn key_header(key: Option<&Secret>) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert(AUTHORIZATION, adapter::secret_value(BEARER, key)?);
    }
    Ok(headers)
}
