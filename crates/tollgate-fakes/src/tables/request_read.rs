//! Checks a request to an endpoint, and determines its kind of response.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::chat::ChatRequest;
use super::endpoint::Endpoint;
use super::media_work::respond_to_media_request;
use super::path::JsonPath;
use super::scope::Scope;
use super::spec::Spec;
use super::work::Work;
use crate::directive::Stage;
use crate::form;
use crate::media_context::{MediaContext, MediaRequest};
use crate::rejection::OrRejected;
use crate::request::ReceivedRequest;

/// An accepted request, by its kind of response.
pub(crate) enum Accepted {
    /// The response is a fixed value that no model generates.
    Fixed(Value),
    Chat(Box<ChatRequest>),
    Media(MediaRequest),
}

impl Endpoint {
    /// Checks a request, and determines its kind of response.
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
            run: Box::new(move |context: &MediaContext<'_>| {
                respond_to_media_request(&work, context)
            }),
        }))
    }

    /// Checks the body of a request, if one is required. Returns the fields of a form with their types; `None` if the body is JSON or not required.
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
