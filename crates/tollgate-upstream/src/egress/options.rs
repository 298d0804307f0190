//! The options of the HTTP client, and its `user-agent`.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::resolve::{Resolve, SystemResolver};

/// The `user-agent` of every outgoing request.
pub(super) const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// Options of a [`Client`](super::Client).
pub struct ClientOptions {
    /// Private address blocks that guarded requests may also lead to (`media.allow_private_urls`).
    pub allow_private: Vec<IpNet>,
    /// Timeout for a connection: DNS lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Resolves the host names of guarded requests.
    pub resolver: Arc<dyn Resolve>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            allow_private: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            resolver: Arc::new(SystemResolver),
        }
    }
}
