//! Checks rules and schemas, and writes the errors of rejected requests.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::path::JsonPath;
use super::rule::Rule;
use super::schema::Violation;
use super::scope::Scope;
use super::spec::{ErrorSpec, Spec, StatusSpec};
use super::syntax::Template;
use super::values::plain;
use crate::rejection::{Checked, Rejection};
use crate::request::ReceivedRequest;
use crate::work_plan::Outcome;

impl Rule {
    pub(super) fn check(&self, spec: &Spec, scope: &Scope<'_>) -> Checked {
        let check = &mut |inner: &Scope<'_>| self.check_one(spec, inner);
        let Some(list) = &self.list else {
            return scope.with_bindings(&self.bindings, check);
        };
        let list = list.eval(scope);
        let mut elements = list.as_array().into_iter().flatten().enumerate();
        let name = self.element.as_deref().unwrap_or("item");
        elements.try_for_each(|(at, element)| {
            scope.with_element(name, at, element, |inner| {
                inner.with_bindings(&self.bindings, check)
            })
        })
    }

    fn check_one(&self, spec: &Spec, scope: &Scope<'_>) -> Checked {
        let condition = self.condition.as_ref();
        if condition.is_some_and(|condition| !condition.is_true(scope)) {
            return Ok(());
        }
        if let Some(rules) = &self.rules {
            return spec.check_named(rules, scope);
        }
        let Some(schema) = &self.schema else {
            return Err(self.reject(spec, None, scope));
        };
        let value = self.of.as_ref().map(|of| of.eval(scope));
        match value {
            Some(value) if !value.is_null() => {
                let at = self.at.as_ref().map(|at| at.text(scope));
                let path = JsonPath::new(spec.path_style, at.unwrap_or_default());
                spec.check_schema(&schema.text(scope), &value, &path, scope)
            }
            _ => Ok(()),
        }
    }

    /// Creates the rejection; `rule` is the name of the rule if it has none of its own.
    pub(super) fn reject(
        &self,
        spec: &Spec,
        rule: Option<&str>,
        scope: &Scope<'_>,
    ) -> Box<Rejection> {
        let own = self.rule.as_ref().map(|rule| rule.text(scope));
        let given = [
            ("code", &self.code),
            ("param", &self.param),
            ("message", &self.message),
        ];
        let given = given.into_iter().filter_map(|(name, template)| {
            Some((name.to_owned(), json!(template.as_ref()?.text(scope))))
        });
        let vars: Map<String, Value> = given.collect();
        let error = self.error.as_deref().unwrap_or("invalid");
        let mut rejection = spec.reject(error, own.as_deref().or(rule), vars, scope);
        rejection.is_outcome = self.outcome;
        rejection
    }
}

impl Spec {
    /// Creates the rejection with an error of [`Spec::errors`]. Its templates can use `vars`.
    pub(crate) fn reject(
        &self,
        error: &str,
        rule: Option<&str>,
        vars: Map<String, Value>,
        scope: &Scope<'_>,
    ) -> Box<Rejection> {
        let Some(spec) = self.errors.get(error) else {
            panic!("the provider has no error called `{error}`");
        };
        let mut vars = vars;
        if let Some(rule) = rule {
            vars.insert("rule".to_owned(), json!(rule));
        }
        let scope = Scope {
            first: Some(&vars),
            ..*scope
        };
        let text = |template: &Option<Template>| {
            let rendered = template.as_ref().map(|template| template.text(&scope));
            rendered.filter(|text| !text.is_empty())
        };
        let status = match &spec.status {
            StatusSpec::Fixed(status) => *status,
            StatusSpec::Computed(expr) => expr.value(&scope).as_u64().unwrap_or(500) as u16,
        };
        add_headers(
            Rejection {
                status,
                kind: intern(&text(&spec.kind).unwrap_or_default()),
                code: text(&spec.code).map(|code| intern(&code)),
                param: text(&spec.param),
                message: text(&spec.message).unwrap_or_else(|| plain(&scope.get("message"))),
                rule: intern(
                    rule.unwrap_or(&text(&spec.rule).unwrap_or_else(|| "scenario".to_owned())),
                ),
                headers: Vec::new(),
                details: match spec.details.as_ref().map(|details| details.render(&scope)) {
                    Some(Value::Array(details)) => details,
                    _ => Vec::new(),
                },
                is_outcome: false,
            },
            spec,
            &scope,
        )
    }

    /// Checks a value against a schema; `path` is the path of the value.
    pub(crate) fn check_schema(
        &self,
        name: &str,
        value: &Value,
        path: &JsonPath,
        scope: &Scope<'_>,
    ) -> Checked {
        let Some(schema) = self.schemas.get(name) else {
            panic!("the provider has no schema called `{name}`");
        };
        let checked = schema.check(value, path, &self.schemas);
        checked.map_err(|violation| self.reject_violation(&violation, scope))
    }

    /// Creates the rejection of a value that does not match its schema.
    pub(crate) fn reject_violation(
        &self,
        violation: &Violation,
        scope: &Scope<'_>,
    ) -> Box<Rejection> {
        let rule = violation.rule();
        let template = self
            .violations
            .get(rule)
            .or_else(|| self.violations.get("default"));
        let Some(template) = template else {
            panic!("the provider has no error for `{rule}`");
        };
        let (mut all, own) = (scope.vars.clone(), violation.vars());
        all.extend(own.clone());
        let scope = Scope {
            vars: &all,
            first: Some(&own),
            ..*scope
        };
        template.reject(self, Some(rule), &scope)
    }

    pub(crate) fn check_rules(&self, rules: &[Rule], scope: &Scope<'_>) -> Checked {
        rules.iter().try_for_each(|rule| rule.check(self, scope))
    }

    /// Checks rules of [`Spec::rules`].
    pub(crate) fn check_named(&self, name: &str, scope: &Scope<'_>) -> Checked {
        let Some(rules) = self.rules.get(name) else {
            panic!("the provider has no rules called `{name}`");
        };
        self.check_rules(rules, scope)
    }

    /// Creates the rejection of a request that was not parsed further.
    pub(crate) fn reject_request(&self, error: &str, request: &ReceivedRequest) -> Box<Rejection> {
        self.reject_with(error, &Value::Null, request)
    }

    /// Like [`Spec::reject_request`]; the templates of the error can also use the fields of `vars`.
    pub(crate) fn reject_with(
        &self,
        error: &str,
        vars: &Value,
        request: &ReceivedRequest,
    ) -> Box<Rejection> {
        let nothing = Map::new();
        let mut scope = Scope::new(&nothing, &request.body, &self.tables);
        scope.request = Some(request);
        self.reject(
            error,
            None,
            vars.as_object().cloned().unwrap_or_default(),
            &scope,
        )
    }

    /// The error of work with this outcome; `None` if it succeeded.
    pub(crate) fn reject_outcome(
        &self,
        outcome: Outcome,
        scope: &Scope<'_>,
    ) -> Option<Box<Rejection>> {
        let (name, status) = match outcome {
            Outcome::Succeeded => return None,
            Outcome::Filtered if self.errors.contains_key("filtered") => ("filtered", 0),
            Outcome::Blocked | Outcome::Filtered => ("blocked", 0),
            Outcome::Failed => ("status", 500),
            Outcome::Expired => ("status", 504),
        };
        let vars = Map::from_iter([("status".to_owned(), json!(status))]);
        let mut rejection = self.reject(name, None, vars, scope);
        rejection.is_outcome = true;
        Some(rejection)
    }

    /// The body of an error; `id` is the id of the response.
    pub(crate) fn error_body(&self, rejection: &Rejection, id: &str) -> Value {
        let vars = json!({
            "status": rejection.status, "kind": rejection.kind, "code": rejection.code,
            "param": rejection.param, "message": rejection.message, "details": rejection.details,
            "id": id,
        });
        let vars = vars.as_object().cloned().unwrap_or_default();
        self.error_body
            .render(&Scope::new(&vars, &Value::Null, &self.tables))
    }

    /// The headers of every response.
    pub(crate) fn response_headers(&self, id: &str) -> Vec<(&'static str, String)> {
        let vars = Map::from_iter([("id".to_owned(), json!(id))]);
        let scope = Scope::new(&vars, &Value::Null, &self.tables);
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (intern(name), value.text(&scope)))
            .collect()
    }
}

/// Adds the headers of the error.
fn add_headers(mut rejection: Rejection, spec: &ErrorSpec, scope: &Scope<'_>) -> Box<Rejection> {
    for (name, value) in &spec.headers {
        rejection.headers.push((intern(name), value.text(scope)));
    }
    Box::new(rejection)
}

/// Returns a text with the lifetime of the program; there are only few different texts.
pub(crate) fn intern(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(found) = known.get(text) {
        return found;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(kept);
    kept
}
