//! The state that all connections of a fake share: its log of requests, its tasks, its result files.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crate::bill::Bill;
use crate::directive::Stage;
use crate::lock::lock;
use crate::options::Options;
use crate::request::ReceivedRequest;
use crate::result_files::Files;
use crate::scenario::Scenario;
use crate::tasks::Tasks;
use crate::tokens::Tokens;
use crate::work_plan::WorkPlan;

/// The state that all connections of a fake share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) open: Arc<AtomicUsize>,
    /// The number of the fake within this process, so that no two fakes generate the same ids.
    pub(crate) instance: u64,
    /// The URL at which clients reach the fake, without a slash at the end.
    pub(crate) public_url: String,
    /// The URL of the fake's results, without a slash at the end.
    pub(crate) files_url: String,
    /// A seed that cannot be guessed.
    pub(crate) secret: u64,
    serial: AtomicU64,
    state: Mutex<State>,
    tasks: Mutex<Tasks>,
    files: Mutex<Files>,
}

/// The number of fakes that this process has started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A request and its outcome.
pub(crate) struct LoggedRequest {
    pub(crate) request: Arc<ReceivedRequest>,
    pub(crate) rejected_by: OnceLock<&'static str>,
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
    pub(crate) requests: VecDeque<Arc<LoggedRequest>>,
    pub(crate) set: HashMap<Stage, Scenario>,
    pub(crate) queue: HashMap<Stage, VecDeque<Scenario>>,
    /// The number of requests received with each text that contains a directive for its first requests.
    pub(crate) counts: HashMap<u64, u32>,
}

impl Shared {
    /// The state of a fake at these URLs.
    pub(crate) fn new(options: Options, public_url: String, files_url: String) -> Self {
        let instance = STARTED.fetch_add(1, Ordering::Relaxed);
        Self {
            public_url,
            files_url,
            secret: RandomState::new().hash_one(instance),
            options,
            instance,
            open: Arc::default(),
            serial: AtomicU64::default(),
            state: Mutex::default(),
            tasks: Mutex::default(),
            files: Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Locks the tasks. The lock is held for a moment only, and never while waiting for anything but [`Shared::files`].
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

    /// The bills so far: requests and tokens.
    pub(crate) fn bills(&self) -> Vec<(Arc<ReceivedRequest>, Tokens)> {
        let state = self.state();
        let billed = state.requests.iter().filter_map(|logged| {
            let tokens = logged.bill.get()?.tokens()?;
            Some((Arc::clone(&logged.request), tokens))
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
            if state.requests.len() >= max {
                state.requests.pop_front();
            }
            state.requests.push_back(Arc::clone(&logged));
        }
        logged
    }
}
