//! The state that a request for media uses while its response is generated: new ids, links, the task queue.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::directive::Stage;
use crate::media_files::FileRecipe;
use crate::media_response::MediaResponse;
use crate::rejection::OrRejected;
use crate::result_files::{self, Link};
use crate::rng::mix;
use crate::shared::Shared;
use crate::tasks::{Task, TaskState, Tasks};
use crate::work_plan::WorkPlan;

type Run = Box<dyn FnOnce(&MediaContext<'_>) -> OrRejected<MediaResponse> + Send>;

/// An accepted request.
pub(crate) struct MediaRequest {
    pub(crate) stage: Stage,
    /// The text in which directives may occur.
    pub(crate) text: String,
    /// The ids of the tasks that the request is about.
    pub(crate) tasks: Vec<String>,
    /// Whether `tasks` are ids that the client has chosen.
    pub(crate) external: bool,
    pub(crate) run: Run,
}

impl MediaRequest {
    /// A request about existing tasks.
    pub(crate) fn about(
        stage: Stage,
        tasks: Vec<String>,
        run: impl FnOnce(&MediaContext<'_>) -> OrRejected<MediaResponse> + Send + 'static,
    ) -> Self {
        Self {
            stage,
            text: String::new(),
            tasks,
            external: false,
            run: Box::new(run),
        }
    }
}

/// The state that is available while the response to a request is generated.
pub(crate) struct MediaContext<'a> {
    shared: &'a Shared,
    pub(crate) plan: WorkPlan,
    /// A number that is unique among the requests of the process.
    pub(crate) number: u64,
    /// The id of the request.
    pub(crate) request: String,
    now: Instant,
    /// The number of calls of [`MediaContext::hex`].
    hex_calls: Cell<u64>,
}

impl<'a> MediaContext<'a> {
    pub(crate) fn new(shared: &'a Shared, plan: WorkPlan, number: u64, request: String) -> Self {
        Self {
            shared,
            plan,
            number,
            request,
            now: Instant::now(),
            hex_calls: Cell::default(),
        }
    }

    /// Sixteen hexadecimal digits that cannot be guessed, different each time.
    pub(crate) fn hex(&self) -> String {
        let nth = self.hex_calls.get();
        self.hex_calls.set(nth + 1);
        let seed = self.shared.secret ^ mix(self.number) ^ mix(!nth);
        format!("{:016x}", mix(seed))
    }

    /// An id in the form of a UUID.
    pub(crate) fn uuid(&self) -> String {
        let (a, b) = (self.hex(), self.hex());
        let (first, second, third) = (&a[..8], &a[8..12], &a[13..]);
        format!("{first}-{second}-4{third}-8{}-{}", &b[1..4], &b[4..])
    }

    /// An id of eighteen decimal digits.
    pub(crate) fn digits(&self) -> String {
        let digits = self.hex();
        let number = u64::from_str_radix(&digits, 16).unwrap_or_default();
        format!("8{:017}", number % 100_000_000_000_000_000)
    }

    /// Stores a file and returns the link to it.
    pub(crate) fn link(&self, recipe: FileRecipe) -> String {
        self.link_of(recipe, &self.plan)
    }

    fn link_of(&self, recipe: FileRecipe, plan: &WorkPlan) -> String {
        let (first, second) = (self.hex(), self.hex());
        let name = format!("{first}{second}.{}", recipe.extension());
        let address = format!("{}{}{name}", self.shared.files_url, result_files::PREFIX);
        let mut link = Link::new(recipe);
        link.bytes = plan.bytes;
        link.later.clone_from(&plan.later);
        link.expires = self.shared.options.link_ttl.map(|ttl| self.now + ttl);
        self.shared.files().add(name, link);
        address
    }

    /// The response for the path of a result.
    pub(crate) fn fetch(&self, path: &str) -> MediaResponse {
        let files = self.shared.files();
        let link = files.get(path);
        link.map_or_else(result_files::missing, |link| link.response(self.now))
    }

    /// Starts a task with the plan of the request; `kept` are the values of the request for later responses.
    pub(crate) fn start_task(&self, id: &str, kept: Value) {
        let task = Task::new(id.to_owned(), kept, self.number, self.plan.clone());
        self.tasks(|tasks| tasks.add(task));
    }

    /// The fake's origin as seen by clients, without a slash at the end.
    pub(crate) fn origin(&self) -> &str {
        &self.shared.public_url
    }

    /// Reads or changes the tasks.
    pub(crate) fn tasks<T>(&self, read: impl FnOnce(&mut Tasks) -> T) -> T {
        read(&mut self.shared.tasks())
    }

    /// Reads or changes a task; `None` if no task has this id.
    pub(crate) fn with_task<T>(
        &self,
        id: &str,
        read: impl FnOnce(&mut Task, TaskState) -> T,
    ) -> Option<T> {
        self.tasks(|tasks| {
            let task = tasks.get(id)?;
            let state = task.state(self.now);
            Some(read(task, state))
        })
    }

    /// The links to the results of a task that has succeeded: created once, then always the same.
    pub(crate) fn results(
        &self,
        task: &mut Task,
        recipes: impl FnOnce(&Task) -> Vec<FileRecipe>,
    ) -> Vec<String> {
        if task.results.is_empty() {
            let recipes = recipes(task).into_iter();
            let links = recipes.map(|recipe| self.link_of(recipe, &task.plan));
            task.results = links.collect();
        }
        task.results.clone()
    }

    /// How long results are kept. `None` if they do not expire.
    pub(crate) fn link_ttl(&self) -> Option<Duration> {
        self.shared.options.link_ttl
    }

    /// Whether the result of a task that has ended still exists.
    pub(crate) fn is_kept(&self, task: &Task) -> bool {
        let age = task.changed_at().elapsed().unwrap_or_default();
        self.link_ttl().is_none_or(|ttl| age < ttl)
    }
}
