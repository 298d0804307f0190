//! A running fake: its listeners and connections, and what tests can set and read.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::bench::{self, Bench, Prebuilt};
use crate::bill::Bill;
use crate::exchange;
use crate::instructions::Stage;
use crate::provider::Provider;
use crate::request::ReceivedRequest;
use crate::result_files::Files;
use crate::scenario::Scenario;
use crate::socket::{Reset, Socket};
use crate::tables::spec::Spec;
use crate::tasks::{PollReport, Tasks};
use crate::tokens::Tokens;
use crate::work_plan::WorkPlan;

/// How a fake is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// The keys that it takes; any if there are none. For Kling `access:secret` is a pair that
    /// tokens are signed with; without any key a token's signature is not checked.
    pub keys: Vec<String>,
    /// How events are cut and joined on their way depends on it.
    pub seed: u64,
    /// Into how many pieces a text is cut at most.
    pub chunks: usize,
    /// The pause between two pieces of a stream.
    pub delay: Duration,
    /// Answers made before, for measuring: nothing is checked.
    pub bench: Option<Bench>,
    /// How long media take to be made.
    pub work: Duration,
    /// The poll at which a task is done at the earliest, counted from 1.
    pub polls: u32,
    /// How large a result is at least, in bytes.
    pub result_bytes: Option<u64>,
    /// How long the links to results work; for ever if there is no time.
    pub link_ttl: Option<Duration>,
    /// Where clients reach the fake, for links to results, without a slash at the end; the address
    /// that it listens on if there is none.
    pub public_url: Option<String>,
    /// One more address, to which the links to results lead instead: nothing else is served there,
    /// and requests that bring a key are rejected, since it is not theirs to know.
    pub files_address: Option<SocketAddr>,
    /// How many requests [`Fake::requests`] tells of: the latest.
    pub remember: usize,
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
            work: Duration::ZERO,
            polls: 1,
            result_bytes: None,
            link_ttl: None,
            public_url: None,
            files_address: None,
            remember: usize::MAX,
        }
    }
}

/// What the connections of a fake share.
pub(crate) struct Shared {
    pub(crate) spec: &'static Spec,
    pub(crate) options: Options,
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) prebuilt: Option<Prebuilt>,
    /// Which of the fakes of this process it is, so that no two make the same ids.
    pub(crate) instance: u64,
    /// Where clients reach it, without a slash at the end.
    pub(crate) public_url: String,
    /// Where its results are, without a slash at the end.
    pub(crate) files_url: String,
    /// A seed that nobody guesses.
    pub(crate) secret: u64,
    serial: AtomicU64,
    state: Mutex<State>,
    tasks: Mutex<Tasks>,
    files: Mutex<Files>,
}

/// A request, and what became of it.
pub(crate) struct LoggedRequest {
    request: Arc<ReceivedRequest>,
    rejected_by: OnceLock<&'static str>,
    pub(crate) received_at: Instant,
    pub(crate) bill: OnceLock<Arc<Bill>>,
}

impl LoggedRequest {
    pub(crate) fn reject(&self, rule: &'static str) {
        self.rejected_by.get_or_init(|| rule);
    }
}

#[derive(Default)]
pub(crate) struct State {
    request: VecDeque<Arc<LoggedRequest>>,
    pub(crate) set: HashMap<Stage, Scenario>,
    pub(crate) queue: HashMap<Stage, VecDeque<Scenario>>,
    /// How often each text with a directive for its first requests was received.
    pub(crate) counts: HashMap<u64, u32>,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Held for a moment only, and never while waiting for anything but [`Shared::files`].
    pub(crate) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        lock(&self.tasks)
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, Files> {
        lock(&self.files)
    }

    /// The number of the next request.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that no other request of this process has.
    pub(crate) fn number(&self, serial: u64) -> u64 {
        (self.instance << 32) + serial
    }

    /// What is billed so far: models and tokens.
    pub(crate) fn bills(&self) -> Vec<(String, Tokens)> {
        let state = self.state();
        let billed = state.request.iter().filter_map(|logged| {
            let model = logged.request.body["model"].as_str()?;
            Some((model.to_owned(), logged.bill.get()?.tokens()?))
        });
        billed.collect()
    }

    pub(crate) fn plan(&self) -> WorkPlan {
        WorkPlan::new(&self.options)
    }

    pub(crate) fn remember(&self, request: &Arc<ReceivedRequest>) -> Arc<LoggedRequest> {
        let logged = Arc::new(LoggedRequest {
            request: Arc::clone(request),
            rejected_by: OnceLock::new(),
            received_at: Instant::now(),
            bill: OnceLock::new(),
        });
        let max = self.options.remember;
        if max > 0 {
            let mut state = self.state();
            if state.request.len() >= max {
                state.request.pop_front();
            }
            state.request.push_back(Arc::clone(&logged));
        }
        logged
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
    listeners: Vec<JoinHandle<()>>,
}

/// Starts a fake.
///
/// # Errors
///
/// The address cannot be listened on.
pub async fn start(provider: Provider, options: Options) -> io::Result<Fake> {
    let listener = TcpListener::bind(options.address).await?;
    let address = listener.local_addr()?;
    let here = || format!("http://{address}");
    let public_url = options.public_url.clone().unwrap_or_else(here);
    let mut files_url = public_url.clone();
    let mut files = None;
    if let Some(address) = options.files_address {
        let listener = TcpListener::bind(address).await?;
        files_url = format!("http://{}", listener.local_addr()?);
        files = Some(listener);
    }
    let shared = Arc::new(Shared {
        spec: provider.spec(),
        public_url,
        files_url,
        secret: RandomState::new().hash_one(address),
        prebuilt: options.bench.as_ref().map(Prebuilt::new),
        options,
        instance: STARTED.fetch_add(1, Ordering::Relaxed),
        open: Arc::default(),
        serial: AtomicU64::default(),
        state: Mutex::default(),
        tasks: Mutex::default(),
        files: Mutex::default(),
    });
    let mut listeners = vec![tokio::spawn(accept(
        listener,
        Arc::clone(&shared),
        Port::Api,
    ))];
    if let Some(files) = files {
        let accept = accept(files, Arc::clone(&shared), Port::Files);
        listeners.push(tokio::spawn(accept));
    }
    Ok(Fake {
        address,
        shared,
        listeners,
    })
}

impl Fake {
    /// What a channel is given as its base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, self.shared.spec.base_path)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, rejected ones too, in the order in which they came: no more of them
    /// than [`Options::remember`] says.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        let state = self.shared.state();
        let logged = state.request.iter();
        let requests = logged.map(|logged| ReceivedRequest {
            rejected_by: logged.rejected_by.get().copied(),
            billed: logged.bill.get().and_then(|bill| bill.tokens()),
            ..ReceivedRequest::clone(&logged.request)
        });
        requests.collect()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.shared.state().request.clear();
    }

    /// Behaves so from now on. Requests that it rejects are rejected all the same. Polls, requests
    /// that cancel and requests for results are other matters: [`Fake::set_at`].
    pub fn set(&self, scenario: Scenario) {
        self.set_at(Stage::Submit, scenario);
    }

    /// Behaves so at this step from now on.
    pub fn set_at(&self, stage: Stage, scenario: Scenario) {
        self.shared.state().set.insert(stage, scenario);
    }

    /// Behaves so for exactly one request that it does not reject, before what [`Fake::set`] says.
    pub fn queue(&self, scenario: Scenario) {
        self.queue_at(Stage::Submit, scenario);
    }

    /// Behaves so for exactly one request of this step.
    pub fn queue_at(&self, stage: Stage, scenario: Scenario) {
        let mut state = self.shared.state();
        state.queue.entry(stage).or_default().push_back(scenario);
    }

    /// When each task was polled: its id and the times, the oldest task first. Polls that were
    /// answered with an error count too.
    pub fn polls(&self) -> Vec<(String, Vec<Instant>)> {
        self.shared.tasks().polls()
    }

    /// How the tasks were polled, in a few numbers.
    pub fn poll_report(&self) -> PollReport {
        self.shared.tasks().report()
    }

    /// How many exchanges are in flight: from the head of the request to the end of the answer, or
    /// to the connection's end.
    pub fn open_streams(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Closes the listeners and every connection.
    pub async fn stop(mut self) {
        for listener in &mut self.listeners {
            listener.abort();
            // Its end is an abort, which is what was wanted.
            listener.await.unwrap_or_default();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
    }
}

/// Through which of its addresses a request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// That of the API; results are there too.
    Api,
    /// That of results alone.
    Files,
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, port: Port) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, Arc::clone(&shared), port));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, port: Port) {
    // Without it pieces of a stream arrive together; it may fail.
    stream.set_nodelay(true).unwrap_or_default();
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let mut http = http1::Builder::new();
    http.max_buf_size(1 << 20);
    let served = if shared.prebuilt.is_some() {
        let answer = |request| bench::answer(Arc::clone(&shared), request);
        http.serve_connection(socket, service_fn(answer)).await
    } else {
        let answer = |request| exchange::answer(Arc::clone(&shared), port, reset.clone(), request);
        http.serve_connection(socket, service_fn(answer)).await
    };
    // A client that goes away, and a connection broken on purpose, end here too.
    served.unwrap_or_default();
}
