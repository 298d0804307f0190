//! Images, videos and speech of OpenAI and of servers with the same API. <https://platform.openai.com/docs/api-reference>

mod errors;
mod field_support;
mod images;
mod models;
mod options;
mod sizes;
mod speech;
mod videos;

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use tollgate_core::Secret;

use super::BASE_URL;
use crate::adapter::{self, HttpResponse, ProviderClient};
use crate::channel::Channel;
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::Provider;

pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

/// How long an image of the highest quality may take: the vendor's own client waits as long.
const TIMEOUT: Duration = Duration::from_secs(600);
/// How the key stands in its header.
const BEARER: &str = "Bearer ";

/// Adds what makes images, videos and speech to `provider`.
pub(super) fn add(provider: &mut Provider, channel: &Arc<Channel>, egress: &egress::Client) {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let server = Arc::new(Server {
        client: ProviderClient::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
        channel: Arc::clone(channel),
    });
    let videos = Arc::new(videos::Videos(Arc::clone(&server)));
    provider.image = Some(Arc::new(images::Images(Arc::clone(&server))));
    provider.video = Some(videos.clone());
    provider.queue = Some(videos);
    provider.speech = Some(Arc::new(speech::Speech(server)));
}

/// The server of one channel.
struct Server {
    client: ProviderClient,
    /// With the version, without a slash at its end.
    base: String,
    channel: Arc<Channel>,
}

impl Server {
    fn url(&self, path: &str) -> String {
        [&self.base, path].concat()
    }

    /// What an answer means that is not the one asked for.
    fn response_error(&self, answer: &HttpResponse) -> ProviderError {
        errors::read(&self.client, answer)
    }
}

/// Headers for files that lie on the server itself.
fn key_header(key: Option<&Secret>) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let value = adapter::secret_value(BEARER, key);
        let value: HeaderValue =
            value.map_err(|e| ProviderError::new(UpstreamErrorKind::KeyRejected, e.message))?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}
