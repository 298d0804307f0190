//! Writes the state of a task as the provider does.

use serde_json::{Map, Value, json};

use super::media_functions;
use super::scope::Scope;
use super::spec::Spec;
use crate::clock;
use crate::media_context::MediaContext;
use crate::tasks::{Task, TaskState};

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

/// The variables that describe a task for expressions: the stored values of its request, and its state.
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
