//! Fetches a result whose bytes an adapter needs before it delivers the result.

use bytes::Bytes;

use super::http_request::{ProviderClient, transport_error};
use crate::egress::FetchLimits;
use crate::error::ProviderError;
use crate::provider::Link;

impl ProviderClient {
    /// Fetches the file behind `link`, at most `max` bytes: from the channel's own origin with its headers, from any other origin through the SSRF
    /// guard.
    pub(crate) async fn fetch(&self, link: &Link, max: u64) -> Result<Bytes, ProviderError> {
        let limits = FetchLimits::with_max_bytes(max);
        let mut bytes = Vec::new();
        let (client, url) = (&self.egress, link.url.as_str());
        let fetched = if link.is_own {
            let headers = &link.headers;
            client.fetch_own(url, headers, &limits, &mut bytes).await
        } else {
            client.fetch_guarded(url, &limits, &mut bytes).await
        };
        fetched.map_err(|error| transport_error(&error, false))?;
        Ok(bytes.into())
    }
}
