//! A proxy to a server that can be stalled: bytes are held back, connections stay open, as behind a broken network.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Forwards connections to a server until it is dropped.
pub(crate) struct StallingProxy {
    address: SocketAddr,
    is_stalled: Arc<watch::Sender<bool>>,
    listening: JoinHandle<()>,
}

impl StallingProxy {
    /// Starts a proxy to the server at `HOST:PORT`.
    pub(crate) async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_stalled = Arc::new(watch::channel(false).0);
        let stalled = Arc::clone(&is_stalled);
        let listening = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (server, stalled) = (server.clone(), stalled.subscribe());
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        let ((from, to), (back, client)) =
                            (server.into_split(), client.into_split());
                        tokio::join!(
                            forward(back, to, stalled.clone()),
                            forward(from, client, stalled),
                        );
                    }
                });
            }
        });
        Self {
            address,
            is_stalled,
            listening,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// If `is_stalled`, the proxy forwards nothing from then on; otherwise it forwards everything again.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.is_stalled.send_replace(is_stalled);
    }
}

impl Drop for StallingProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, stalled: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let is_open = stalled.clone().wait_for(|stalled| !stalled).await.is_ok();
        if !is_open || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
