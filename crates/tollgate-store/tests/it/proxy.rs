//! A TCP proxy to PostgreSQL that can stop forwarding, or lose the reply to a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tollgate_store::DatabaseLocation;

/// Forwards connections to a database.
pub(crate) struct Proxy {
    /// The same database, through this proxy.
    pub(crate) location: DatabaseLocation,
    proxy: Shared,
}

#[derive(Clone)]
struct Shared {
    dead: Arc<watch::Sender<bool>>,
    /// The number of commits whose replies are still to be lost.
    to_lose: Arc<AtomicU32>,
    /// The number of commits that were lost since the last one that was not.
    lost_in_succession: Arc<AtomicU32>,
}

/// After so many lost commits the next one is forwarded: a batch that loses all its tries until its timeout fails, as it should.
const MAX_LOST_IN_SUCCESSION: u32 = 2;

impl Proxy {
    /// A proxy to the database of a `postgres://user@host:port/name` URL.
    pub(crate) async fn new(url: &str) -> Self {
        let (user, rest) = url.split_once('@').expect("a URL with a user");
        let (server, name) = rest.split_once('/').expect("a URL with a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Shared {
            dead: Arc::new(watch::Sender::new(false)),
            to_lose: Arc::default(),
            lost_in_succession: Arc::default(),
        };
        tokio::spawn(accept(listener, server.to_owned(), proxy.clone()));
        Self {
            location: DatabaseLocation::Postgres(format!("{user}@127.0.0.1:{port}/{name}")),
            proxy,
        }
    }

    /// From then on the proxy forwards nothing, and keeps connections open.
    pub(crate) fn go_silent(&self) {
        self.proxy.dead.send_replace(true);
    }

    /// Forwards everything that was held back.
    pub(crate) fn resume(&self) {
        self.proxy.dead.send_replace(false);
    }

    /// Lets the next commit reach the server and be applied, and breaks the connection instead of forwarding the reply.
    pub(crate) fn lose_next_commit(&self) {
        self.proxy.to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Like [`Self::lose_next_commit`], but waits until the commit before it is lost, so that the losses hit several batches.
    pub(crate) async fn lose_another_commit(&self) {
        while self.has_commit_to_lose() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.lose_next_commit();
    }

    /// Whether a reply that is to be lost has not arrived yet.
    pub(crate) fn has_commit_to_lose(&self) -> bool {
        self.proxy.to_lose.load(Ordering::SeqCst) > 0
    }
}

impl Shared {
    /// Whether the reply to the commit that is forwarded now is to be lost.
    fn takes_loss(&self) -> bool {
        let may_lose = self.lost_in_succession.load(Ordering::SeqCst) < MAX_LOST_IN_SUCCESSION;
        let one_less = |n: u32| n.checked_sub(1).filter(|_| may_lose);
        let taken = self
            .to_lose
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_ok();
        if taken {
            self.lost_in_succession.fetch_add(1, Ordering::SeqCst);
        } else {
            self.lost_in_succession.store(0, Ordering::SeqCst);
        }
        taken
    }
}

async fn accept(listener: TcpListener, server: String, proxy: Shared) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (server, proxy) = (server.clone(), proxy.clone());
        tokio::spawn(async move {
            if let Ok(server) = TcpStream::connect(server).await {
                // Without this option a reply may wait 40 ms for the acknowledgement of the one before.
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                pass(client, server, proxy).await;
            }
        });
    }
}

async fn pass(client: TcpStream, server: TcpStream, proxy: Shared) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let lost = AtomicBool::new(false);
    // When one direction ends, the other one is closed too: the connection breaks.
    tokio::select! {
        () = upwards(from_client, to_server, &proxy, &lost) => {}
        () = downwards(from_server, to_client, &proxy, &lost) => {}
    }
}

async fn upwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    proxy: &Shared,
    lost: &AtomicBool,
) {
    let mut dead = proxy.dead.subscribe();
    let mut bytes = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        let _ = dead.wait_for(|dead| !dead).await;
        if bytes[..n].windows(7).any(|w| w == b"COMMIT\0") {
            lost.store(proxy.takes_loss(), Ordering::SeqCst);
        }
        if to.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

async fn downwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    proxy: &Shared,
    lost: &AtomicBool,
) {
    let mut dead = proxy.dead.subscribe();
    let mut bytes = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        let _ = dead.wait_for(|dead| !dead).await;
        // This is the server's confirmation of the commit: the reply that must be lost.
        if lost.load(Ordering::SeqCst) || to.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}
