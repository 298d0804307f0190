//! The HTTP client of one Ark channel.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::models::Site;
use crate::adapter::ProviderClient;
use crate::channel::Channel;
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::Attempt;

pub(crate) const BASE_URL: &str = "https://ark.cn-beijing.volces.com/api/v3";
/// A request header that Ark documents for finding a request again.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");

pub(super) struct Ark {
    pub(super) client: ProviderClient,
    /// The base URL, without a slash at its end.
    pub(super) base: String,
    pub(super) site: Site,
}

impl Ark {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        Self {
            client: ProviderClient::new(channel, egress),
            base: base.trim_end_matches('/').to_owned(),
            site: Site::at(base),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        [&self.base, path].concat()
    }
}

/// The value of [`REQUEST_ID`].
pub(super) fn request_id(attempt: &Attempt<'_>) -> HeaderValue {
    // All its characters are valid in a header.
    HeaderValue::from_str(attempt.external_id).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

/// The error of a job whose family this provider does not serve.
pub(super) fn not_served(family: &str, served: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::UnsupportedByChannel,
        format!("a channel of kind ark serves {served}, not {family}"),
    )
}
