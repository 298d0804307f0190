//! Generates the response of an endpoint: work that is done at once, and tasks that are started, returned and listed.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::media_functions;
use super::record::{state_of, task_vars};
use super::scope::Scope;
use super::spec::Spec;
use super::syntax::Expr;
use super::task::{About, ListTasks};
use super::work::Work;
use crate::media_context::MediaContext;
use crate::media_response::MediaResponse;
use crate::rejection::OrRejected;
use crate::tasks::{Task, TaskState};

/// Generates the response to an accepted request for media.
pub(super) fn respond_to_media_request(
    work: &Work,
    context: &MediaContext<'_>,
) -> OrRejected<MediaResponse> {
    let (endpoint, spec) = (work.endpoint, work.spec);
    let mut scope = work.scope();
    scope.context = Some(context);
    scope.plan = Some(&context.plan);
    scope.number = context.number;
    match (&endpoint.about, &endpoint.list) {
        (Some(about), _) => endpoint.respond_about_task(about, spec, &scope),
        (_, Some(list)) => Ok(endpoint.respond_with_list(list, spec, &scope)),
        _ => endpoint.respond_to_submission(spec, &scope),
    }
}

impl Endpoint {
    /// Generates the response with `vars` in addition to those of the scope: the file of the endpoint if it has one, otherwise its template.
    fn respond(&self, spec: &Spec, vars: Map<String, Value>, scope: &Scope<'_>) -> MediaResponse {
        let mut all = scope.vars.clone();
        all.extend(vars);
        let scope = Scope {
            vars: &all,
            ..*scope
        };
        let number =
            |expr: &Option<Expr>| expr.as_ref().and_then(|expr| expr.value(&scope).as_u64());
        let file = self.file.as_ref().map(|file| file.value(&scope));
        let recipe = file
            .as_ref()
            .and_then(|file| media_functions::recipe(file, scope.number));
        let shared = self
            .template
            .as_ref()
            .and_then(|name| spec.templates.get(name));
        let mut response = match (recipe, self.response.as_ref().or(shared)) {
            (Some(recipe), _) => {
                // Thumbnails are not padded to a minimum size.
                let bytes = scope.plan.and_then(|plan| plan.bytes);
                let bytes = bytes.filter(|_| file.is_none_or(|file| file["file"] != "image"));
                MediaResponse::file(recipe.media_type(), recipe.make(bytes))
            }
            (None, Some(response)) => match response.render(&scope) {
                Value::Null => MediaResponse::nothing(200),
                value => MediaResponse::json(value),
            },
            (None, None) => MediaResponse::nothing(200),
        };
        if let Some(status) = number(&self.status) {
            response = response.status(status as u16);
        }
        if let Some(location) = &self.location {
            response = response.header("location", location.text(&scope));
        }
        response.after(Duration::from_millis(
            number(&self.hold).unwrap_or_default(),
        ))
    }

    fn respond_to_submission(&self, spec: &Spec, scope: &Scope<'_>) -> OrRejected<MediaResponse> {
        let rejects = match &self.rejects {
            Some(rejects) => rejects.is_true(scope),
            None => *scope.get("outcome") == "blocked",
        };
        let outcome = scope.plan.map(|plan| plan.outcome).filter(|_| rejects);
        if let Some(rejection) = outcome.and_then(|outcome| spec.reject_outcome(outcome, scope)) {
            return Err(rejection);
        }
        let Some(task) = &self.task else {
            return Ok(self.respond(spec, Map::new(), scope));
        };
        let Some(context) = scope.context else {
            return Ok(MediaResponse::nothing(500));
        };
        let id = task.id.value(scope);
        let id = id.as_str().unwrap_or_default();
        let mut vars = scope.vars.clone();
        vars.insert("id".to_owned(), json!(id));
        let inner = Scope {
            vars: &vars,
            ..*scope
        };
        let keep = task
            .keep
            .iter()
            .map(|(name, kept)| (name.clone(), kept.render(&inner)));
        let keep: Map<String, Value> = keep.collect();
        let external = task.external_id.as_ref().map(|id| id.value(scope));
        if let Some(external) = external.as_ref().and_then(Value::as_str)
            && !context.tasks(|tasks| tasks.name(external, id))
        {
            return Err(spec.reject("external-id", None, Map::new(), scope));
        }
        context.start_task(id, json!(keep));
        let ended = task
            .ended
            .as_ref()
            .is_some_and(|ended| ended.is_true(scope));
        let record = task.record.as_ref().and_then(|name| {
            context.with_task(id, |task, phase| {
                let phase = if ended {
                    TaskState::Ended(context.plan.outcome)
                } else {
                    phase
                };
                spec.record(name, context, task, phase, scope)
            })
        });
        vars.insert("record".to_owned(), record.unwrap_or(Value::Null));
        vars.extend(keep);
        Ok(self.respond(spec, vars, scope))
    }

    fn respond_about_task(
        &self,
        about: &About,
        spec: &Spec,
        scope: &Scope<'_>,
    ) -> OrRejected<MediaResponse> {
        let Some(context) = scope.context else {
            return Ok(MediaResponse::nothing(500));
        };
        let name = about.id.value(scope);
        let name = name.as_str().unwrap_or_default();
        let named = context.tasks(|tasks| tasks.id_of(name).map(str::to_owned));
        let id = named.as_deref().unwrap_or(name);
        let mut remove = false;
        let found = context.with_task(id, |task, phase| {
            let vars = task_vars(task, phase, context, scope.vars);
            let plan = task.plan.clone();
            let inner = Scope {
                vars: &vars,
                plan: Some(&plan),
                number: task.number,
                ..*scope
            };
            if about
                .filter
                .as_ref()
                .is_some_and(|filter| !filter.is_true(&inner))
            {
                return None;
            }
            if let Err(rejection) = spec.check_rules(&about.rules, &inner) {
                return Some(Err(rejection));
            }
            let mut after = phase;
            match about.actions.get(state_of(phase)).map(String::as_str) {
                Some("cancel") => {
                    task.cancel();
                    after = TaskState::Cancelled;
                }
                Some("remove") => remove = true,
                _ => {}
            }
            let record = about.record.as_ref();
            let record = record.map(|name| spec.record(name, context, task, after, scope));
            let mut vars = vars.clone();
            vars.insert("record".to_owned(), json!(record));
            vars.insert("links".to_owned(), json!(task.results));
            Some(Ok(self.respond(spec, vars, &inner)))
        });
        if remove {
            context.tasks(|tasks| tasks.remove(id));
        }
        match (found.flatten(), &about.missing) {
            (Some(response), _) => response,
            (None, Some(missing)) => {
                let response = MediaResponse::json(missing.render(scope));
                Ok(response.status(about.missing_status.unwrap_or(200)))
            }
            (None, None) => {
                let error = about.missing_error.as_deref();
                let rule = error.unwrap_or("task");
                Err(spec.reject(
                    error.unwrap_or("task-missing"),
                    Some(rule),
                    Map::new(),
                    scope,
                ))
            }
        }
    }

    fn respond_with_list(&self, list: &ListTasks, spec: &Spec, scope: &Scope<'_>) -> MediaResponse {
        let Some(context) = scope.context else {
            return MediaResponse::nothing(500);
        };
        let wanted = list
            .ids
            .as_ref()
            .map_or(Value::Null, |ids| ids.value(scope));
        let external = list
            .external
            .as_ref()
            .is_some_and(|external| external.is_true(scope));
        let mut ids: Vec<String> = match wanted.as_array().filter(|wanted| !wanted.is_empty()) {
            Some(wanted) => {
                let names = wanted.iter().filter_map(Value::as_str);
                let own = |name: &str| match external {
                    true => context.tasks(|tasks| tasks.id_of(name).map(str::to_owned)),
                    false => Some(name.to_owned()),
                };
                names.filter_map(own).collect()
            }
            None => context.tasks(|tasks| tasks.ids().to_vec()),
        };
        if list.newest_first {
            ids.reverse();
        }
        let record = |id: &String| {
            let record_if_listed = |task: &mut Task, phase| {
                let record = spec.record(&list.record, context, task, phase, scope);
                let keep = |filter: &Expr| {
                    let vars = task_vars(task, phase, context, scope.vars);
                    let inner = Scope {
                        vars: &vars,
                        ..*scope
                    };
                    inner.with_element("item", 0, &record, |inner| filter.is_true(inner))
                };
                list.filter.as_ref().is_none_or(keep).then_some(record)
            };
            context.with_task(id, record_if_listed).flatten()
        };
        let items: Vec<Value> = ids.iter().filter_map(record).collect();
        let total = items.len();
        let number =
            |expr: &Option<Expr>| expr.as_ref().and_then(|expr| expr.value(scope).as_u64());
        let page = number(&list.page).unwrap_or(1).max(1) as usize;
        let size = number(&list.page_size)
            .unwrap_or(u64::from(u32::MAX))
            .max(1) as usize;
        let items: Vec<Value> = items
            .into_iter()
            .skip((page - 1) * size)
            .take(size)
            .collect();
        let vars = json!({"items": items, "total": total, "page": page, "page_size": size});
        self.respond(spec, vars.as_object().cloned().unwrap_or_default(), scope)
    }
}
