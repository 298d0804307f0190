//! Credentials of a request: an API key, or an access token of a service account.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use tollgate_core::Secret;

use super::platform::Surface;
use super::service_account::{self, Account};
use crate::adapter::{self, ProviderClient};
use crate::channel::Channel;
use crate::error::{ProviderError, UpstreamErrorKind};

/// The header for an API key. The query parameter `key` is never used, because URLs end up in logs.
const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// A channel's keys as headers.
pub(super) struct Access {
    surface: Surface,
    accounts: Vec<Account>,
}

impl Access {
    pub(super) fn new(channel: &Arc<Channel>, surface: Surface) -> Self {
        let keys = channel.api_keys.iter();
        let key_files = keys.filter(|key| service_account::is_key_file(key));
        Self {
            surface,
            // `check` rejects keys that cannot be parsed.
            accounts: key_files
                .filter_map(|key| Account::parse(key).ok())
                .collect(),
        }
    }

    /// The header for `key`; `None` without a key. Fetches a token if there is no valid one.
    pub(super) async fn header(
        &self,
        client: &ProviderClient,
        key: Option<&Secret>,
    ) -> Result<Option<(HeaderName, HeaderValue)>, ProviderError> {
        let Some(key) = key else {
            return Ok(None);
        };
        if service_account::is_key_file(key) {
            let account = self.account(key).ok_or_else(|| {
                ProviderError::new(
                    UpstreamErrorKind::KeyRejected,
                    "the channel's key is not a service account's key file",
                )
            })?;
            return Ok(Some((AUTHORIZATION, account.bearer(client).await?)));
        }
        let (name, before) = match self.surface {
            Surface::Developer => (KEY, ""),
            Surface::AgentPlatform => (AUTHORIZATION, "Bearer "),
        };
        Ok(Some((name, adapter::secret_value(before, key)?)))
    }

    /// Discards the key's token if the response to a request with it had `status` 401.
    pub(super) async fn discard_if_rejected(&self, key: Option<&Secret>, status: Option<u16>) {
        if status != Some(401) {
            return;
        }
        if let Some(account) = key.and_then(|key| self.account(key)) {
            account.discard_token().await;
        }
    }

    fn account(&self, key: &Secret) -> Option<&Account> {
        self.accounts.iter().find(|account| account.has_key(key))
    }
}

/// Checks that a channel's keys are of the kind that its surface accepts.
///
/// # Errors
/// A sentence that states which key is of the wrong kind, without any part of the key.
pub(super) fn check(channel: &Channel, surface: Surface) -> Result<(), String> {
    for (at, key) in channel.api_keys.iter().enumerate() {
        if !service_account::is_key_file(key) {
            continue;
        }
        if surface == Surface::Developer {
            return Err(format!(
                "api_keys[{at}] is a service account's key file, which needs `platform = \"vertex\"`"
            ));
        }
        Account::parse(key).map_err(|why| format!("api_keys[{at}]: {why}"))?;
    }
    Ok(())
}
