//! Results that an adapter needs itself, before it delivers them.

use bytes::Bytes;

use super::{Wire, lost};
use crate::egress::FetchLimits;
use crate::provider::{Link, ProviderError};

impl Wire {
    /// Fetches what is behind `link`, at most `max` bytes, as a delivery would.
    pub(crate) async fn fetch(&self, link: &Link, max: u64) -> Result<Bytes, ProviderError> {
        let limits = FetchLimits::of_bytes(max);
        let mut bytes = Vec::new();
        let (client, url) = (&self.client, link.url.as_str());
        let fetched = if link.is_own {
            let headers = &link.headers;
            client.fetch_own(url, headers, &limits, &mut bytes).await
        } else {
            client.fetch_guarded(url, &limits, &mut bytes).await
        };
        fetched.map_err(|error| lost(&error, false))?;
        Ok(bytes.into())
    }
}
