//! The HTTP client of one channel of Google's.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tollgate_core::Secret;

use super::credentials::Access;
use super::platform::Endpoint;
use crate::adapter::{HttpRequest, ProviderClient};
use crate::channel::Channel;
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};

/// The characters of a model id that are percent-encoded; the slash of `tunedModels/x` is not.
const ID: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A 4K image after a search takes minutes.
pub(super) const IMAGE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum size of a response with images: a 4K PNG has about 25 MB, and the response may contain drafts and signatures too.
pub(super) const MAX_IMAGE_BYTES: usize = 96 * 1024 * 1024;

pub(super) struct Gemini {
    pub(super) client: ProviderClient,
    pub(super) access: Access,
    pub(super) endpoint: Endpoint,
}

impl Gemini {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client, endpoint: Endpoint) -> Self {
        Self {
            client: ProviderClient::new(channel, egress),
            access: Access::new(channel, endpoint.surface),
            endpoint,
        }
    }

    /// The URL of a model's method.
    pub(super) fn method(&self, model: &str, method: &str) -> String {
        [&self.endpoint.base, model_path(model).as_str(), ":", method].concat()
    }

    /// Adds the key's credentials to the request.
    pub(super) async fn authorized(
        &self,
        request: HttpRequest,
        key: Option<&Secret>,
    ) -> Result<HttpRequest, ProviderError> {
        let header = self.access.header(&self.client, key).await?;
        Ok(match header {
            Some((name, value)) => request.header(name, value),
            None => request,
        })
    }
}

/// The path of a model, after the version.
pub(super) fn model_path(model: &str) -> String {
    let folder = if model.contains('/') { "/" } else { "/models/" };
    [folder, &utf8_percent_encode(model, ID).to_string()].concat()
}

/// The error of a job whose family this provider does not serve.
pub(super) fn not_served(family: &str, served: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::UnsupportedByChannel,
        format!("a channel of kind gemini serves {served}, not {family}"),
    )
}

#[cfg(test)]
mod tests {
    use super::model_path;

    #[test]
    fn the_model_is_in_the_path() {
        assert_eq!(model_path("gemini-2.5-pro"), "/models/gemini-2.5-pro");
        assert_eq!(model_path("tunedModels/x"), "/tunedModels/x");
        assert_eq!(model_path("a?key=b#c d"), "/models/a%3Fkey%3Db%23c%20d");
    }
}
