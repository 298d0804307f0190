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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    /// Needs no name server.
    const HOST: &str = "127.0.0.1";

    #[test]
    fn lookups_are_limited_even_if_nobody_waits_for_them() {
        // Lookups wait until the only thread for blocking work is free.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let resolver = SystemResolver;
            let (release, released) = mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            for _ in 0..MAX_LOOKUPS {
                let abandoned = resolver.resolve(HOST);
                assert!(abandoned.now_or_never().is_none());
            }
            assert_eq!(LOOKUPS.available_permits(), 0);
            let mut further = resolver.resolve(HOST);
            assert!((&mut further).now_or_never().is_none());
            release.send(()).unwrap();
            busy.await.unwrap().unwrap();
            let found = further.await.unwrap();
            assert_eq!(found, [IpAddr::from([127, 0, 0, 1])]);
        });
    }
}
