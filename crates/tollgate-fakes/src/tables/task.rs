//! The tasks in a provider's tables: how requests start them, ask about them and list them, and how
//! their state is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expr::Expr;
use super::media_functions;
use super::rule::Rule;
use super::scope::{Definitions, Scope};
use super::spec::Spec;
use super::template::Template;
use crate::clock;
use crate::instructions::Stage;
use crate::media_context::MediaContext;
use crate::tasks::{Task, TaskState};

/// A task that a request starts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartTask {
    pub(crate) id: Expr,
    /// What is kept of the request.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, Template>,
    /// The client's own id, which must be new.
    #[serde(default)]
    pub(crate) external_id: Option<Expr>,
    /// Whether the response shows the end of the task already.
    #[serde(default)]
    pub(crate) ended: Option<Expr>,
    #[serde(default)]
    pub(crate) record: Option<String>,
}

/// A request about a task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) stage: Stage,
    pub(crate) id: Expr,
    /// Which tasks it finds, beside their ids.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<Expr>,
    /// The error if there is no such task; `task-missing` if none is named.
    #[serde(default)]
    pub(crate) missing_error: Option<String>,
    /// The response if there is no such task, instead of an error.
    #[serde(default)]
    pub(crate) missing: Option<Template>,
    #[serde(default)]
    pub(crate) missing_status: Option<u16>,
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// By the task's state: `cancel` or `remove`.
    #[serde(default)]
    pub(crate) actions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) record: Option<String>,
}

/// A request about several tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// The ids that are asked for; all if it is null.
    #[serde(default)]
    pub(crate) ids: Option<Expr>,
    /// Whether they are the client's own ids.
    #[serde(default)]
    pub(crate) external: Option<Expr>,
    /// Which records are in the list: they are `item`.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<Expr>,
    pub(crate) record: String,
    #[serde(default)]
    pub(crate) newest_first: bool,
    #[serde(default)]
    pub(crate) page: Option<Expr>,
    #[serde(default)]
    pub(crate) page_size: Option<Expr>,
}

/// How the state of a task is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    #[serde(default)]
    pub(crate) define: Definitions,
    /// The files of a task that has succeeded; `links` lead to them.
    #[serde(default)]
    pub(crate) results: Option<Expr>,
    pub(crate) body: Template,
}

impl Spec {
    /// The state of a task as the provider writes it.
    pub(crate) fn record(
        &self,
        name: &str,
        context: &MediaContext<'_>,
        task: &mut Task,
        phase: TaskState,
        scope: &Scope<'_>,
    ) -> Value {
        let Some(record) = self.records.get(name) else {
            panic!("the provider has no record called `{name}`");
        };
        let mut vars = task_vars(task, phase, context, &Map::new());
        let plan = task.plan.clone();
        let nothing = Value::Null;
        let mut outer = *scope;
        outer.definitions = Some(&record.define);
        outer.shared = None;
        outer.body = &nothing;
        outer.plan = Some(&plan);
        outer.number = task.number;
        if let Some(results) = record
            .results
            .as_ref()
            .filter(|_| state_of(phase) == "succeeded")
        {
            let results = results.value(&Scope {
                vars: &vars,
                ..outer
            });
            let number = task.number;
            let links = context.results(task, |_| {
                let files = results.as_array().into_iter().flatten();
                files
                    .filter_map(|file| media_functions::recipe(file, number))
                    .collect()
            });
            vars.insert("results".to_owned(), results);
            vars.insert("links".to_owned(), json!(links));
        }
        record.body.render(&Scope {
            vars: &vars,
            ..outer
        })
    }
}

pub(crate) fn state_of(phase: TaskState) -> &'static str {
    match phase {
        TaskState::Queued => "queued",
        TaskState::Running(_) => "running",
        TaskState::Cancelled => "cancelled",
        TaskState::Ended(outcome) => outcome.name(),
    }
}

/// What expressions know of a task: what was kept of its request, and its state.
pub(crate) fn task_vars(
    task: &Task,
    phase: TaskState,
    context: &MediaContext<'_>,
    more: &Map<String, Value>,
) -> Map<String, Value> {
    let mut vars = more.clone();
    vars.extend(task.kept.as_object().cloned().unwrap_or_default());
    let has_ended = !matches!(phase, TaskState::Queued | TaskState::Running(_));
    let known = json!({
        "id": task.id, "state": state_of(phase), "ended": has_ended,
        "percent": match phase { TaskState::Running(percent) => percent, _ => 0 },
        "created_at": clock::milliseconds(task.created_at),
        "changed_at": clock::milliseconds(task.changed_at()),
        "kept": !has_ended || context.is_kept(task), "links": task.results,
    });
    vars.extend(known.as_object().cloned().unwrap_or_default());
    vars
}
