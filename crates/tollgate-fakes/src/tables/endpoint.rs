//! The endpoints in a provider's tables: requests that are answered at once, that start a task, or
//! that are about tasks.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::chat::{ChatRequest, ChatSpec};
use super::expr::Expr;
use super::path::{JsonPath, PathStyle};
use super::rule::Rule;
use super::scope::{Bindings, Definitions, Scope};
use super::spec::Spec;
use super::task::{About, ListTasks, StartTask};
use super::template::Template;
use crate::form;
use crate::instructions::Stage;
use crate::media_context::{MediaContext, MediaRequest, MediaResponse};
use crate::provider::Accepted;
use crate::rejection::OrRejected;
use crate::request::ReceivedRequest;

/// An endpoint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    /// Methods and paths below the base path: `POST /videos/{id}/remix`; `{rest*}` takes several
    /// segments.
    pub(super) routes: Vec<String>,
    /// Of the requests on these routes, those that it is for.
    #[serde(default)]
    pub(super) when: Option<Expr>,
    /// Names for expressions.
    #[serde(default)]
    pub(super) define: Definitions,
    /// The shared names that it uses, of [`Spec::definitions`].
    #[serde(default)]
    pub(super) names: Option<String>,
    /// Rules that come before the body is read.
    #[serde(default)]
    pub(super) before: Vec<Rule>,
    /// The schema of the body, which must be there if this is.
    #[serde(default)]
    pub(super) schema: Option<String>,
    /// Whether the body must be JSON, whatever it holds.
    #[serde(default)]
    pub(super) json: bool,
    /// The schema of a body that is a form, if it may be one.
    #[serde(default)]
    pub(super) form_schema: Option<String>,
    /// How paths are written here, if not as elsewhere.
    #[serde(default)]
    pub(super) path_style: Option<PathStyle>,
    /// Names for values, evaluated before the rules.
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) chat: Option<ChatSpec>,
    /// Where directives may stand: the text of a request for media.
    #[serde(default)]
    pub(super) text: Option<Expr>,
    /// Whether the work that was asked for is rejected, by its `outcome`; only if it is blocked by
    /// default.
    #[serde(default)]
    pub(super) rejects: Option<Expr>,
    #[serde(default)]
    pub(super) task: Option<StartTask>,
    #[serde(default)]
    pub(super) about: Option<About>,
    #[serde(default)]
    pub(super) list: Option<ListTasks>,
    #[serde(default)]
    pub(super) response: Option<Template>,
    /// Or the template of [`Spec::templates`].
    #[serde(default)]
    pub(super) template: Option<String>,
    /// The file that is the body of the response.
    #[serde(default)]
    pub(super) file: Option<Expr>,
    #[serde(default)]
    pub(super) status: Option<Expr>,
    /// The `Location` header.
    #[serde(default)]
    pub(super) location: Option<Template>,
    /// How long it takes until the response comes, in milliseconds.
    #[serde(default)]
    pub(super) hold: Option<Expr>,
}

/// A request to an endpoint, and what is known of it.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) spec: &'static Spec,
    endpoint: &'static Endpoint,
    request: Arc<ReceivedRequest>,
    /// The fields of a form.
    form: Option<Value>,
    pub(crate) vars: Map<String, Value>,
    /// Different for every request of the process, once it is answered.
    pub(crate) number: u64,
}

impl Work {
    pub(crate) fn scope(&self) -> Scope<'_> {
        let body = self.form.as_ref().unwrap_or(&self.request.body);
        let names = self.endpoint.names.as_ref();
        Scope {
            definitions: Some(&self.endpoint.define),
            shared: names.and_then(|names| self.spec.definitions.get(names)),
            request: Some(&self.request),
            number: self.number,
            ..Scope::new(&self.vars, body, &self.spec.tables)
        }
    }

    /// Adds values to the variables.
    pub(crate) fn bind(&mut self, bindings: &Bindings) {
        for (name, expr) in bindings.iter() {
            let value = expr.value(&self.scope());
            self.vars.insert(name.clone(), value);
        }
    }

    fn answer(&self, context: &MediaContext<'_>) -> OrRejected<MediaResponse> {
        let (endpoint, spec) = (self.endpoint, self.spec);
        let mut scope = self.scope();
        scope.context = Some(context);
        scope.plan = Some(&context.plan);
        scope.number = context.number;
        match (&endpoint.about, &endpoint.list) {
            (Some(about), _) => endpoint.answer_about(about, spec, &scope),
            (_, Some(list)) => Ok(endpoint.answer_list(list, spec, &scope)),
            _ => endpoint.answer_submission(spec, &scope),
        }
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
        let mut work = Work {
            spec,
            endpoint: self,
            request: Arc::clone(request),
            form: None,
            vars,
            number: 0,
        };
        spec.check_rules(&self.before, &work.scope())?;
        work.form = self.read_body(&work)?;
        work.bind(&self.bindings);
        let scope = work.scope();
        spec.check_rules(&self.rules, &scope)?;
        if let Some(chat) = &self.chat {
            return Ok(Accepted::Chat(Box::new(ChatRequest::new(chat, work))));
        }
        if self.about.is_none() && self.list.is_none() && self.text.is_none() {
            let response = self.response.as_ref();
            let response = response.map(|response| response.render(&scope));
            return Ok(Accepted::Fixed(response.unwrap_or_default()));
        }
        let (stage, ids) = match (&self.about, &self.list) {
            (Some(about), _) => (about.stage, vec![about.id.value(&scope)]),
            (_, Some(list)) => {
                let ids = list.ids.as_ref().map(|ids| ids.value(&scope));
                let ids = ids.as_ref().and_then(Value::as_array);
                (Stage::Poll, ids.cloned().unwrap_or_default())
            }
            _ => (Stage::Submit, Vec::new()),
        };
        let external = self.list.as_ref().and_then(|list| list.external.as_ref());
        let text = self.text.as_ref().map(|text| text.value(&scope));
        let ids = ids.iter().filter_map(Value::as_str).map(str::to_owned);
        Ok(Accepted::Media(MediaRequest {
            stage,
            text: text
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            tasks: ids.collect(),
            external: external.is_some_and(|external| external.is_true(&scope)),
            run: Box::new(move |context: &MediaContext<'_>| work.answer(context)),
        }))
    }

    /// Checks the body of a request, if there has to be one. Gives the fields of a form with their types.
    fn read_body(&self, work: &Work) -> OrRejected<Option<Value>> {
        if !self.json && self.schema.is_none() {
            return Ok(None);
        }
        let (spec, request, scope) = (work.spec, &work.request, work.scope());
        let reject = |error: &str, rule| spec.reject(error, Some(rule), Map::new(), &scope);
        let form_schema = self.form_schema.as_deref().filter(|_| request.has_form());
        let form = match form_schema {
            Some(_) if request.parts.is_empty() => return Err(reject("not-a-form", "form")),
            Some(name) => Some(form::form_object(&request.parts, name, &spec.schemas)),
            None if request.has_json() => None,
            None => return Err(reject("content-type", "content-type")),
        };
        let body = form.as_ref().unwrap_or(&request.body);
        if !body.is_object() {
            return Err(reject("not-json", "json"));
        }
        if let Some(name) = form_schema.or(self.schema.as_deref()) {
            let style = self.path_style.unwrap_or(spec.path_style);
            let path = JsonPath::new(style, String::new());
            spec.check_schema(name, body, &path, &Scope { body, ..scope })?;
        }
        Ok(form)
    }
}
