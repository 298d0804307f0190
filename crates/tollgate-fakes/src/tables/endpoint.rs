//! The endpoints in a provider's tables: requests that are answered at once, that start a task, or
//! that are about tasks.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expr::{Expr, truthy};
use super::functions;
use super::path::{JsonPath, PathStyle};
use super::scope::{Definitions, Scope};
use super::spec::{Rule, Spec};
use super::task::{About, ListTasks, StartTask, state_of, task_vars};
use super::template::Template;
use crate::directive::Stage;
use crate::form;
use crate::media_context::{MediaContext, MediaRequest, MediaResponse};
use crate::provider::Accepted;
use crate::rejection::{OrRejected, ProviderError};
use crate::request::ReceivedRequest;
use crate::tasks::{Task, TaskState};

/// An endpoint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    /// Methods and paths below the base path: `POST /videos/{id}/remix`; `{rest*}` takes several
    /// segments.
    pub(crate) routes: Vec<String>,
    /// The function of the provider's code that handles it, or that gives more variables.
    #[serde(default)]
    pub(crate) handler: Option<String>,
    /// Names for expressions.
    #[serde(default)]
    pub(crate) define: Definitions,
    /// The shared names that it uses, of [`Spec::definitions`].
    #[serde(default)]
    names: Option<String>,
    /// Rules that come before the body is read.
    #[serde(default)]
    pub(crate) before: Vec<Rule>,
    /// The schema of the body, which must be there if this is.
    #[serde(default)]
    schema: Option<String>,
    /// Whether the body must be JSON, whatever it holds.
    #[serde(default)]
    json: bool,
    /// The schema of a body that is a form, if it may be one.
    #[serde(default)]
    form_schema: Option<String>,
    /// How paths are written here, if not as elsewhere.
    #[serde(default)]
    path_style: Option<PathStyle>,
    #[serde(default)]
    rules: Vec<Rule>,
    /// Where directives may stand: the text of a request for media.
    #[serde(default)]
    text: Option<Expr>,
    /// Whether the work that was asked for is rejected, by its `outcome`; only if it is blocked by
    /// default.
    #[serde(default)]
    rejects: Option<Expr>,
    #[serde(default)]
    task: Option<StartTask>,
    #[serde(default)]
    about: Option<About>,
    #[serde(default)]
    list: Option<ListTasks>,
    #[serde(default)]
    response: Option<Template>,
    /// Or the template of [`Spec::templates`].
    #[serde(default)]
    template: Option<String>,
    /// The file that is the body of the response.
    #[serde(default)]
    file: Option<Expr>,
    #[serde(default)]
    status: Option<Expr>,
    /// The `Location` header.
    #[serde(default)]
    location: Option<Template>,
    /// How long it takes until the response comes, in milliseconds.
    #[serde(default)]
    hold: Option<Expr>,
}

/// The variables of a path, if it has this pattern.
fn match_path(pattern: &str, path: &str) -> Option<Map<String, Value>> {
    let mut vars = Map::new();
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix("*}"))
        {
            let all: Vec<&str> = segments.by_ref().collect();
            vars.insert(name.to_owned(), json!(all.join("/")));
        } else {
            match_segment(part, segments.next()?, &mut vars)?;
        }
    }
    segments.next().is_none().then_some(vars)
}

fn match_segment(pattern: &str, text: &str, vars: &mut Map<String, Value>) -> Option<()> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == text).then_some(());
    };
    let (name, rest) = rest.split_once('}')?;
    let text = text.strip_prefix(before)?;
    let literal = rest.split('{').next().unwrap_or_default();
    let end = if literal.is_empty() {
        text.len()
    } else {
        text.rfind(literal)?
    };
    let (value, text) = text.split_at(end);
    if value.is_empty() {
        return None;
    }
    vars.insert(name.to_owned(), json!(value));
    match_segment(rest, text, vars)
}

impl Spec {
    /// The endpoint of a request, and the variables in its path.
    pub(crate) fn route(
        &self,
        method: &str,
        path: &str,
    ) -> Option<(&Endpoint, Map<String, Value>)> {
        let path = path.strip_prefix(self.base_path.as_str())?;
        self.endpoints.iter().find_map(|endpoint| {
            let routes = endpoint
                .routes
                .iter()
                .filter_map(|route| route.split_once(' '));
            let mut routes = routes.filter(|(known, _)| *known == method);
            let vars = routes.find_map(|(_, pattern)| match_path(pattern, path))?;
            Some((endpoint, vars))
        })
    }

    /// Whether the path is that of an endpoint, if only with another method.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        let path = path
            .strip_prefix(self.base_path.as_str())
            .unwrap_or_default();
        let routes = self.endpoints.iter().flat_map(|endpoint| &endpoint.routes);
        let mut routes = routes.filter_map(|route| route.split_once(' '));
        routes.any(|(_, pattern)| match_path(pattern, path).is_some())
    }
}

impl Endpoint {
    /// Checks a request, and says how it is answered.
    pub(crate) fn read(
        &'static self,
        spec: &'static Spec,
        request: &Arc<ReceivedRequest>,
        vars: Map<String, Value>,
    ) -> OrRejected<Accepted> {
        let mut scope = Scope::new(&vars, &request.body, &spec.tables);
        scope.definitions = Some(&self.define);
        scope.shared = self
            .names
            .as_ref()
            .and_then(|names| spec.definitions.get(names));
        scope.request = Some(request);
        spec.check_rules(&self.before, &scope)?;
        let body = self.body(spec, &scope)?;
        let scope = Scope {
            body: &body,
            ..scope
        };
        spec.check_rules(&self.rules, &scope)?;
        if self.about.is_none() && self.list.is_none() && self.text.is_none() {
            let response = self.response.as_ref();
            return Ok(Accepted::Fixed(
                response.map_or(Value::Null, |r| r.render(&scope)),
            ));
        }
        let (stage, ids, external) = match (&self.about, &self.list) {
            (Some(about), _) => {
                let ids = vec![about.id.eval(&scope)];
                (
                    Stage::named(&about.stage).unwrap_or(Stage::Poll),
                    ids,
                    false,
                )
            }
            (_, Some(list)) => {
                let ids = list
                    .ids
                    .as_ref()
                    .map_or(Value::Null, |ids| ids.eval(&scope));
                let external = list.external.as_ref().is_some_and(|e| e.is_true(&scope));
                (
                    Stage::Poll,
                    ids.as_array().cloned().unwrap_or_default(),
                    external,
                )
            }
            _ => (Stage::Submit, Vec::new(), false),
        };
        let text = self.text.as_ref().map(|text| text.eval(&scope));
        let text = text
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let ids = ids.iter().filter_map(Value::as_str).map(str::to_owned);
        let (tasks, request) = (ids.collect(), Arc::clone(request));
        let run = move |context: &MediaContext<'_>| {
            let mut scope = Scope::new(&vars, &body, &spec.tables);
            scope.definitions = Some(&self.define);
            scope.shared = self
                .names
                .as_ref()
                .and_then(|names| spec.definitions.get(names));
            scope.request = Some(&request);
            scope.context = Some(context);
            scope.plan = Some(&context.plan);
            scope.number = context.number;
            match (&self.about, &self.list) {
                (Some(about), _) => self.answer_about(about, spec, &scope),
                (_, Some(list)) => Ok(self.answer_list(list, spec, &scope)),
                _ => self.answer_submission(spec, &scope),
            }
        };
        Ok(Accepted::Media(MediaRequest {
            stage,
            text,
            tasks,
            external,
            run: Box::new(run),
        }))
    }

    /// The body of a request, if there has to be one: the fields of a form with their types.
    fn body(&self, spec: &Spec, scope: &Scope<'_>) -> OrRejected<Value> {
        let (Some(request), true) = (scope.request, self.json || self.schema.is_some()) else {
            return Ok(scope.body.clone());
        };
        let mut name = self.schema.as_deref().unwrap_or_default();
        let reject = |error: &str, rule| spec.reject(error, Some(rule), Map::new(), scope);
        let form = self.form_schema.as_ref().filter(|_| request.says_form());
        let body = if let Some(form) = form {
            name = form;
            if request.parts.is_empty() {
                return Err(reject("not-a-form", "form"));
            }
            form::form_object(&request.parts, name, &spec.schemas)
        } else if request.says_json() {
            request.body.clone()
        } else {
            return Err(reject("content-type", "content-type"));
        };
        if !body.is_object() {
            return Err(reject("not-json", "json"));
        }
        if !name.is_empty() {
            let path = JsonPath::root(self.path_style.unwrap_or(spec.path_style));
            spec.check_schema(
                name,
                &body,
                &path,
                &Scope {
                    body: &body,
                    ..*scope
                },
            )?;
        }
        Ok(body)
    }

    /// Answers with `vars` beside those of the scope.
    fn answer(&self, spec: &Spec, vars: Map<String, Value>, scope: &Scope<'_>) -> MediaResponse {
        let mut all = scope.vars.clone();
        all.extend(vars);
        let scope = Scope {
            vars: &all,
            ..*scope
        };
        let number =
            |expr: &Option<Expr>| expr.as_ref().and_then(|expr| expr.eval(&scope).as_u64());
        let file = self.file.as_ref().map(|file| file.eval(&scope));
        let recipe = file
            .as_ref()
            .and_then(|file| functions::recipe(file, scope.number));
        let shared = self
            .template
            .as_ref()
            .and_then(|name| spec.templates.get(name));
        let mut response = match (recipe, self.response.as_ref().or(shared)) {
            (Some(recipe), _) => {
                // Thumbnails are no larger than they need to be.
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

    fn answer_submission(&self, spec: &Spec, scope: &Scope<'_>) -> OrRejected<MediaResponse> {
        let outcome = scope.get("outcome");
        let rejects = match &self.rejects {
            Some(rejects) => rejects.is_true(scope),
            None => outcome == "blocked",
        };
        if rejects
            && let Some(provider_error) =
                ProviderError::of_outcome(outcome.as_str().unwrap_or_default())
        {
            return Err(Box::new(
                spec.outcome_error(provider_error, scope).about_work(),
            ));
        }
        let Some(task) = &self.task else {
            return Ok(self.answer(spec, Map::new(), scope));
        };
        let Some(context) = scope.context else {
            return Ok(MediaResponse::nothing(500));
        };
        let id = task.id.eval(scope);
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
        let external = task.external_id.as_ref().map(|id| id.eval(scope));
        if let Some(external) = external.as_ref().and_then(Value::as_str)
            && !context.tasks(|tasks| tasks.name(external, id))
        {
            return Err(spec.reject("external-id", None, Map::new(), scope));
        }
        context.begin(id, json!(keep));
        let ended = task
            .ended
            .as_ref()
            .is_some_and(|ended| ended.is_true(scope));
        let record = task.record.as_ref().and_then(|name| {
            context.look(id, |task, phase| {
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
        Ok(self.answer(spec, vars, scope))
    }

    fn answer_about(
        &self,
        about: &About,
        spec: &Spec,
        scope: &Scope<'_>,
    ) -> OrRejected<MediaResponse> {
        let Some(context) = scope.context else {
            return Ok(MediaResponse::nothing(500));
        };
        let name = about.id.eval(scope);
        let name = name.as_str().unwrap_or_default();
        let named = context.tasks(|tasks| tasks.named(name).map(str::to_owned));
        let id = named.as_deref().unwrap_or(name);
        let mut remove = false;
        let found = context.look(id, |task, phase| {
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
            Some(Ok(self.answer(spec, vars, &inner)))
        });
        if remove {
            context.tasks(|tasks| tasks.remove(id));
        }
        match (found.flatten(), &about.missing) {
            (Some(answer), _) => answer,
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

    fn answer_list(&self, list: &ListTasks, spec: &Spec, scope: &Scope<'_>) -> MediaResponse {
        let Some(context) = scope.context else {
            return MediaResponse::nothing(500);
        };
        let wanted = list.ids.as_ref().map_or(Value::Null, |ids| ids.eval(scope));
        let external = list
            .external
            .as_ref()
            .is_some_and(|external| external.is_true(scope));
        let mut ids: Vec<String> = match wanted.as_array().filter(|wanted| !wanted.is_empty()) {
            Some(wanted) => {
                let names = wanted.iter().filter_map(Value::as_str);
                let own = |name: &str| match external {
                    true => context.tasks(|tasks| tasks.named(name).map(str::to_owned)),
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
            let look = |task: &mut Task, phase| {
                let record = spec.record(&list.record, context, task, phase, scope);
                let keep = |filter: &Expr| {
                    let vars = task_vars(task, phase, context, scope.vars);
                    let inner = Scope {
                        vars: &vars,
                        ..*scope
                    };
                    truthy(&inner.with_item(0, &record, |inner| filter.eval(inner)))
                };
                list.filter.as_ref().is_none_or(keep).then_some(record)
            };
            context.look(id, look).flatten()
        };
        let items: Vec<Value> = ids.iter().filter_map(record).collect();
        let total = items.len();
        let number = |expr: &Option<Expr>| expr.as_ref().and_then(|expr| expr.eval(scope).as_u64());
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
        self.answer(spec, vars.as_object().cloned().unwrap_or_default(), scope)
    }
}

impl Spec {
    /// The error of work that did not go well, where the endpoint's names are known.
    fn outcome_error(
        &self,
        provider_error: ProviderError,
        scope: &Scope<'_>,
    ) -> crate::rejection::Rejection {
        let (name, status) = match provider_error {
            ProviderError::Filtered if self.errors.contains_key("filtered") => ("filtered", 0),
            ProviderError::Blocked | ProviderError::Filtered => ("blocked", 0),
            ProviderError::Status(status) => ("status", status),
            _ => ("status", 500),
        };
        let vars = Map::from_iter([("status".to_owned(), json!(status))]);
        *self.reject(name, None, vars, scope)
    }
}
