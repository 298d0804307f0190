//! DNS lookup for guarded requests; replaceable in tests.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Finds the addresses of a host name.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, which is always a name and not an address.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver: `/etc/hosts` and the configured name servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
