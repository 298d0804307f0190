//! A running fake: its listener, its connections, and what tests can ask and tell it.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::behaviour::Behaviour;
use crate::bench::{self, Bench, Prebuilt};
use crate::exchange;
use crate::incoming::Seen;
use crate::provider::{Api, Provider};
use crate::socket::{Reset, Socket};

/// How a fake is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// The keys that it takes; any if there are none.
    pub keys: Vec<String>,
    /// How events are cut and joined on their way depends on it.
    pub seed: u64,
    /// Into how many pieces a text is cut at most.
    pub chunks: usize,
    /// The pause between two pieces of a stream.
    pub delay: Duration,
    /// Answers made before, for measuring: nothing is checked.
    pub bench: Option<Bench>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            keys: Vec::new(),
            seed: 1,
            chunks: 5,
            delay: Duration::ZERO,
            bench: None,
        }
    }
}

/// What the connections of a fake share.
pub(crate) struct Shared {
    pub(crate) api: &'static dyn Api,
    pub(crate) options: Options,
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) prebuilt: Option<Prebuilt>,
    /// Which of the fakes of this process it is, so that no two make the same ids.
    pub(crate) instance: u64,
    serial: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) seen: Vec<Arc<Mutex<Seen>>>,
    pub(crate) set: Option<Behaviour>,
    pub(crate) queue: VecDeque<Behaviour>,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The number of the next request.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }
}

/// No state here can be left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many fakes this process has started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A running fake. It stops when it is dropped.
pub struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: JoinHandle<()>,
}

/// Starts a fake.
///
/// # Errors
///
/// The address cannot be listened on.
pub async fn start(provider: Provider, options: Options) -> io::Result<Fake> {
    let listener = TcpListener::bind(options.address).await?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        api: provider.api(),
        prebuilt: options.bench.as_ref().map(Prebuilt::new),
        options,
        instance: STARTED.fetch_add(1, Ordering::Relaxed),
        open: Arc::default(),
        serial: AtomicU64::default(),
        state: Mutex::default(),
    });
    let listener = tokio::spawn(accept(listener, Arc::clone(&shared)));
    Ok(Fake {
        address,
        shared,
        listener,
    })
}

impl Fake {
    /// What a channel is given as its base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, self.shared.api.base_path())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, refused ones too, in the order in which they came.
    pub fn requests(&self) -> Vec<Seen> {
        let state = self.shared.state();
        state.seen.iter().map(|seen| lock(seen).clone()).collect()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.shared.state().seen.clear();
    }

    /// Behaves so from now on. Requests that it refuses are refused all the same.
    pub fn set(&self, behaviour: Behaviour) {
        self.shared.state().set = Some(behaviour);
    }

    /// Behaves so for exactly one request that it does not refuse, before what [`Fake::set`] says.
    pub fn queue(&self, behaviour: Behaviour) {
        self.shared.state().queue.push_back(behaviour);
    }

    /// How many exchanges are in flight: from the head of the request to the end of the answer, or
    /// to the connection's end.
    pub fn open_streams(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Closes the listener and every connection.
    pub async fn stop(mut self) {
        self.listener.abort();
        // Its end is an abort, which is what was wanted.
        (&mut self.listener).await.unwrap_or_default();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it pieces of a stream arrive together; it is a wish, not a need.
    stream.set_nodelay(true).unwrap_or_default();
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let mut http = http1::Builder::new();
    http.max_buf_size(1 << 20);
    let served = if shared.prebuilt.is_some() {
        let answer = |request| bench::answer(Arc::clone(&shared), request);
        http.serve_connection(socket, service_fn(answer)).await
    } else {
        let answer = |request| exchange::answer(Arc::clone(&shared), reset.clone(), request);
        http.serve_connection(socket, service_fn(answer)).await
    };
    // A client that goes away, and a connection broken on purpose, end here too.
    served.unwrap_or_default();
}
