//! DNS lookup for guarded requests; replaceable in tests.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Lookups at the same time. A lookup cannot be cancelled, and it occupies one of the threads (512 by default) that also do all work on files.
const MAX_LOOKUPS: usize = 64;
static LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_LOOKUPS)));

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
        let permit = Arc::clone(&LOOKUPS).acquire_owned().await;
        let permit = permit.map_err(io::Error::other)?;
        let host = host.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            // Until the lookup ends, even if nobody waits for it any more.
            let _permit = permit;
            let found = (host.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}
