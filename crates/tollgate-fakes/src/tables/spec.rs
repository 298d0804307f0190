//! The tables of one provider, as read from its TOML file: schemas, rules, errors, endpoints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::expr::{Expr, truthy};
use super::path::{JsonPath, PathStyle};
use super::schema::{Schemas, Violation};
use super::scope::{Definitions, Scope};
use super::task::Record;
use super::template::Template;
use crate::rejection::{Checked, ProviderError, Rejection};
use crate::request::ReceivedRequest;

/// A provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    /// What a channel's base URL has after the host.
    pub(crate) base_path: String,
    /// The scheme of the `Authorization` header.
    #[serde(default)]
    pub(crate) authorization: String,
    #[serde(default)]
    pub(crate) path_style: PathStyle,
    /// Headers of every response; `id` is unique.
    pub(crate) headers: BTreeMap<String, Template>,
    pub(crate) error_body: Template,
    pub(crate) errors: HashMap<String, ErrorSpec>,
    /// The errors of schema violations, by their rules; `default` for the others.
    pub(crate) violations: HashMap<String, Rule>,
    /// What the provider knows of its models, states and the like.
    #[serde(default)]
    pub(crate) tables: Map<String, Value>,
    #[serde(default)]
    pub(crate) schemas: Schemas,
    /// Names for expressions that several endpoints use.
    #[serde(default)]
    pub(crate) definitions: HashMap<String, Definitions>,
    /// Rules that several endpoints or the code of the provider use.
    #[serde(default)]
    pub(crate) rules: HashMap<String, Vec<Rule>>,
    /// Responses that several endpoints give.
    #[serde(default)]
    pub(crate) templates: HashMap<String, Template>,
    #[serde(default)]
    pub(crate) records: HashMap<String, Record>,
    #[serde(default)]
    pub(crate) endpoints: Vec<Endpoint>,
}

/// A rejection: it is made if the condition holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Its name, shown in the header `x-fake-rule`.
    #[serde(default)]
    pub(crate) rule: Option<Template>,
    #[serde(default, rename = "if")]
    condition: Option<Expr>,
    /// Checked for each element of this list.
    #[serde(default, rename = "in")]
    list: Option<Expr>,
    /// The error in [`Spec::errors`]; `invalid` if none is named.
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    code: Option<Template>,
    #[serde(default)]
    param: Option<Template>,
    #[serde(default)]
    message: Option<Template>,
    /// Instead of a condition: rules of [`Spec::rules`].
    #[serde(default, rename = "use")]
    rules: Option<String>,
    /// Instead of a condition: a schema that `of` must fit, which stands at `at`.
    #[serde(default)]
    schema: Option<Template>,
    #[serde(default)]
    of: Option<Expr>,
    #[serde(default)]
    at: Option<Template>,
    /// Whether it says how the work went, and nothing that the request did wrong.
    #[serde(default)]
    outcome: bool,
}

/// An error. The templates know what the rule gives: `message`, `param`, `code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorSpec {
    /// The rule, if none rejects with it.
    #[serde(default)]
    rule: Option<Template>,
    status: StatusSpec,
    #[serde(default)]
    kind: Option<Template>,
    #[serde(default)]
    code: Option<Template>,
    #[serde(default)]
    param: Option<Template>,
    #[serde(default)]
    message: Option<Template>,
    #[serde(default)]
    headers: BTreeMap<String, Template>,
    #[serde(default)]
    details: Option<Template>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StatusSpec {
    Fixed(u16),
    Computed(Expr),
}

/// A text that lives as long as the program; there are few different ones.
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

impl Spec {
    /// Reads a provider's file.
    ///
    /// # Panics
    ///
    /// The file, which is part of the program, is not in order.
    pub(crate) fn read(text: &str) -> Self {
        let read: Result<Self, _> = toml::from_str(text);
        read.unwrap_or_else(|error| panic!("a provider's tables: {error}"))
    }

    /// The rejection with an error of [`Spec::errors`]. `vars` are known to its templates.
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
        let mut all = scope.vars.clone();
        all.extend(vars);
        if let Some(rule) = rule {
            all.insert("rule".to_owned(), json!(rule));
        }
        let scope = Scope {
            vars: &all,
            ..*scope
        };
        let text = |template: &Option<Template>| {
            let rendered = template.as_ref().map(|template| template.text(&scope));
            rendered.filter(|text| !text.is_empty())
        };
        let status = match &spec.status {
            StatusSpec::Fixed(status) => *status,
            StatusSpec::Computed(expr) => expr.eval(&scope).as_u64().unwrap_or(500) as u16,
        };
        all_headers(
            Rejection {
                status,
                kind: intern(&text(&spec.kind).unwrap_or_default()),
                code: text(&spec.code).map(|code| intern(&code)),
                param: text(&spec.param),
                message: text(&spec.message).unwrap_or_else(|| {
                    scope.get("message").as_str().unwrap_or_default().to_owned()
                }),
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

    /// Checks a value against a schema; `path` is where it stands.
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
        let fit = schema.check(value, path, &self.schemas);
        fit.map_err(|violation| self.violation(&violation, scope))
    }

    pub(crate) fn violation(&self, violation: &Violation, scope: &Scope<'_>) -> Box<Rejection> {
        let rule = violation.rule();
        let words = self
            .violations
            .get(rule)
            .or_else(|| self.violations.get("default"));
        let Some(words) = words else {
            panic!("the provider has no words for `{rule}`");
        };
        let mut vars = scope.vars.clone();
        vars.extend(violation.vars());
        let scope = Scope {
            vars: &vars,
            ..*scope
        };
        words.reject(self, Some(rule), &scope)
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

    /// An error of a request of which nothing more is known.
    pub(crate) fn reject_request(&self, error: &str, request: &ReceivedRequest) -> Box<Rejection> {
        let nothing = Map::new();
        let mut scope = Scope::new(&nothing, &request.body, &self.tables);
        scope.request = Some(request);
        self.reject(error, None, Map::new(), &scope)
    }

    /// Whether the body is a JSON object.
    pub(crate) fn require_json(&self, request: &ReceivedRequest) -> Checked {
        let (error, rule) = match (request.says_json(), request.body.is_object()) {
            (true, true) => return Ok(()),
            (true, false) => ("not-json", "json"),
            (false, _) => ("content-type", "content-type"),
        };
        let mut rejection = self.reject_request(error, request);
        rejection.rule = rule;
        Err(rejection)
    }

    /// Checks a value against a schema, for code. `vars` is an object, or null.
    pub(crate) fn check_value(
        &self,
        schema: &str,
        value: &Value,
        path: &JsonPath,
        vars: Value,
    ) -> Checked {
        let vars = vars.as_object().cloned().unwrap_or_default();
        let scope = Scope::new(&vars, value, &self.tables);
        self.check_schema(schema, value, path, &scope)
    }

    /// Checks rules of [`Spec::rules`] with the shared names `names`, for code.
    pub(crate) fn check_body(
        &self,
        rules: &str,
        body: &Value,
        names: &str,
        vars: &Map<String, Value>,
        request: Option<&ReceivedRequest>,
    ) -> Checked {
        let mut scope = Scope::new(vars, body, &self.tables);
        scope.shared = self.definitions.get(names);
        scope.request = request;
        self.check_named(rules, &scope)
    }

    /// An error that a scenario asks for.
    pub(crate) fn provider_error(
        &self,
        provider_error: ProviderError,
        request: &ReceivedRequest,
    ) -> Rejection {
        let mut vars = Map::new();
        let name = match provider_error {
            ProviderError::Status(status) => {
                vars.insert("status".to_owned(), json!(status));
                "status"
            }
            ProviderError::RateLimited { retry_after } => {
                vars.insert("retry_after".to_owned(), json!(retry_after));
                "rate-limited"
            }
            ProviderError::QuotaExhausted => "quota-exhausted",
            ProviderError::KeyRefused => "key-refused",
            ProviderError::ModelMissing => "model-missing",
            ProviderError::Overloaded => "overloaded",
            ProviderError::Blocked => "blocked",
            ProviderError::Filtered if self.errors.contains_key("filtered") => "filtered",
            ProviderError::Filtered => "blocked",
        };
        let nothing = Map::new();
        let mut scope = Scope::new(&nothing, &request.body, &self.tables);
        scope.request = Some(request);
        *self.reject(name, None, vars, &scope)
    }

    /// The body of an error; `id` is that of the response.
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

    /// Headers of every response.
    pub(crate) fn response_headers(&self, id: &str) -> Vec<(&'static str, String)> {
        let vars = Map::from_iter([("id".to_owned(), json!(id))]);
        let scope = Scope::new(&vars, &Value::Null, &self.tables);
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (intern(name), value.text(&scope)))
            .collect()
    }
}

fn all_headers(mut rejection: Rejection, spec: &ErrorSpec, scope: &Scope<'_>) -> Box<Rejection> {
    for (name, value) in &spec.headers {
        rejection.headers.push((intern(name), value.text(scope)));
    }
    Box::new(rejection)
}

impl Rule {
    fn check(&self, spec: &Spec, scope: &Scope<'_>) -> Checked {
        let Some(list) = &self.list else {
            return self.check_one(spec, scope);
        };
        let list = list.eval(scope);
        let mut items = list.as_array().into_iter().flatten().enumerate();
        items.try_for_each(|(at, item)| {
            scope.with_item(at, item, |inner| self.check_one(spec, inner))
        })
    }

    fn check_one(&self, spec: &Spec, scope: &Scope<'_>) -> Checked {
        if self
            .condition
            .as_ref()
            .is_some_and(|condition| !truthy(&condition.eval(scope)))
        {
            return Ok(());
        }
        if let Some(rules) = &self.rules {
            return spec.check_named(rules, scope);
        }
        if let Some(schema) = &self.schema {
            let value = self.of.as_ref().map_or(Value::Null, |of| of.eval(scope));
            if value.is_null() {
                return Ok(());
            }
            let at = self
                .at
                .as_ref()
                .map(|at| at.text(scope))
                .unwrap_or_default();
            let path = JsonPath::root(spec.path_style);
            let path = at
                .split('.')
                .filter(|step| !step.is_empty())
                .fold(path, |path, step| path.field(step));
            return spec.check_schema(&schema.text(scope), &value, &path, scope);
        }
        Err(self.reject(spec, None, scope))
    }

    /// The rejection; `rule` is its name if the rule has none.
    fn reject(&self, spec: &Spec, rule: Option<&str>, scope: &Scope<'_>) -> Box<Rejection> {
        let own = self.rule.as_ref().map(|rule| rule.text(scope));
        let mut vars = Map::new();
        for (name, template) in [
            ("code", &self.code),
            ("param", &self.param),
            ("message", &self.message),
        ] {
            if let Some(template) = template {
                vars.insert(name.to_owned(), json!(template.text(scope)));
            }
        }
        let error = self.error.as_deref().unwrap_or("invalid");
        let mut rejection = spec.reject(error, own.as_deref().or(rule), vars, scope);
        rejection.is_outcome = self.outcome;
        rejection
    }
}
