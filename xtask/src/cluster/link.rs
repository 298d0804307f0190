//! A TCP connection between two parts of the cluster that can be stalled, cut and redirected, to simulate network failures.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::network::Cable;
use crate::outcome::Outcome;

const BUFFER: usize = 64 * 1024;

/// How a link handles bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// The bytes are forwarded.
    Passes,
    /// No byte arrives, and both ends may wait without end. On a link over a cable, packets are dropped; otherwise the link holds the bytes back.
    Stalls,
    /// Existing connections are closed, and new ones too.
    IsCut,
}

#[derive(Debug, Clone, Copy)]
struct State {
    target: SocketAddr,
    traffic: Traffic,
}

/// A listener that forwards every connection to its target.
#[derive(Clone)]
pub(super) struct Link {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    cable: Option<Cable>,
}

impl Link {
    /// Opens a link to `target` (host and port) at a free port of `host`, an address of this machine.
    pub(super) fn open(runtime: &Handle, host: &str, target: &str) -> Result<Self, String> {
        let target = parse_address(target)?;
        let traffic = Traffic::Passes;
        let (state, watched) = watch::channel(State { target, traffic });
        let listener = runtime.block_on(TcpListener::bind((host, 0)));
        let listener = listener.map_err(|e| format!("no port for a link: {e}"))?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward_connection(client, watched.clone()));
            }
        });
        Ok(Self {
            address,
            state: Arc::new(state),
            cable: None,
        })
    }

    /// Sets the cable at whose other end the link's gateway is.
    pub(super) fn with_cable(mut self, cable: Option<Cable>) -> Self {
        self.cable = cable;
        self
    }

    /// The host and port to connect to instead of the target's.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Changes how the link handles bytes, from now on.
    pub(super) fn set_traffic(&self, traffic: Traffic) -> Outcome {
        match (&self.cable, traffic) {
            (Some(cable), Traffic::Stalls) => return cable.disconnect(),
            (Some(cable), Traffic::Passes) => cable.reconnect()?,
            _ => {}
        }
        self.state.send_modify(|state| state.traffic = traffic);
        Ok(())
    }

    /// Redirects new connections to another target, and closes those to the previous one.
    pub(super) fn redirect_to(&self, target: &str) -> Outcome {
        let target = parse_address(target)?;
        self.state.send_modify(|state| state.target = target);
        Ok(())
    }
}

fn parse_address(target: &str) -> Result<SocketAddr, String> {
    let parsed = target.parse();
    parsed.map_err(|e| format!("{target} is no address: {e}"))
}

async fn forward_connection(client: TcpStream, mut state: watch::Receiver<State>) {
    if state.borrow().traffic == Traffic::IsCut || await_passing(&mut state).await.is_none() {
        return;
    }
    let target = state.borrow().target;
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = async {
        tokio::join!(
            copy_bytes(from_client, to_server, state.clone()),
            copy_bytes(from_server, to_client, state.clone()),
        )
    };
    let mut watched = state.clone();
    let ended = watched.wait_for(|now| now.traffic == Traffic::IsCut || now.target != target);
    tokio::select! {
        _ = both => {}
        _ = ended => {}
    }
}

/// Copies until the sender has ended. The other direction may continue.
async fn copy_bytes(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
) -> Option<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await;
        // The end of the connection is not forwarded while bytes are not.
        await_passing(&mut state).await?;
        match read {
            Ok(count) if count > 0 => to.write_all(&buffer[..count]).await.ok()?,
            _ => return to.shutdown().await.ok(),
        }
    }
}

/// Waits until the link forwards bytes. `None` if the link was dropped before.
async fn await_passing(state: &mut watch::Receiver<State>) -> Option<()> {
    let passes = state.wait_for(|state| state.traffic == Traffic::Passes);
    passes.await.ok().map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Starts a server that responds to each byte with `reply`; returns its address.
    async fn start_server(reply: u8) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while stream.read_u8().await.is_ok() {
                        stream.write_u8(reply).await.unwrap();
                    }
                });
            }
        });
        address
    }

    async fn exchange_byte(connection: &mut TcpStream) -> Option<u8> {
        connection.write_u8(0).await.ok()?;
        connection.read_u8().await.ok()
    }

    #[test]
    fn a_link_forwards_stalls_cuts_and_redirects() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (first, second) = (
            runtime.block_on(start_server(1)),
            runtime.block_on(start_server(2)),
        );
        let link = Link::open(runtime.handle(), "127.0.0.1", &first).unwrap();
        runtime.block_on(async {
            let mut connection = TcpStream::connect(link.address()).await.unwrap();
            assert_eq!(exchange_byte(&mut connection).await, Some(1));
            link.set_traffic(Traffic::Stalls).unwrap();
            let stalled = timeout(Duration::from_millis(100), exchange_byte(&mut connection)).await;
            assert!(stalled.is_err());
            // Bytes sent in the meantime arrive late.
            link.set_traffic(Traffic::Passes).unwrap();
            assert_eq!(connection.read_u8().await.ok(), Some(1));
            link.set_traffic(Traffic::IsCut).unwrap();
            assert_eq!(exchange_byte(&mut connection).await, None);
            let mut rejected = TcpStream::connect(link.address()).await.unwrap();
            assert_eq!(exchange_byte(&mut rejected).await, None);
            link.set_traffic(Traffic::Passes).unwrap();
            let mut before = TcpStream::connect(link.address()).await.unwrap();
            assert_eq!(exchange_byte(&mut before).await, Some(1));
            link.redirect_to(&second).unwrap();
            assert_eq!(exchange_byte(&mut before).await, None);
            let mut after = TcpStream::connect(link.address()).await.unwrap();
            assert_eq!(exchange_byte(&mut after).await, Some(2));
        });
    }
}
