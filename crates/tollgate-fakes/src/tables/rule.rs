//! Rules: what a provider rejects, and with which error.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expr::Expr;
use super::path::JsonPath;
use super::scope::{Bindings, Scope};
use super::spec::Spec;
use super::template::Template;
use crate::rejection::{Checked, Rejection};

/// A rejection: it is made if the condition holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Its name, shown in the header `x-fake-rule`.
    #[serde(default)]
    rule: Option<Template>,
    /// Checked for each element of this list.
    #[serde(default, rename = "in")]
    list: Option<Expr>,
    /// The name of the element; `item` if there is none.
    #[serde(default, rename = "as")]
    element: Option<String>,
    #[serde(default, rename = "let")]
    bindings: Bindings,
    #[serde(default, rename = "if")]
    condition: Option<Expr>,
    /// The error in [`Spec::errors`]; `invalid` if none is named.
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    code: Option<Template>,
    #[serde(default)]
    param: Option<Template>,
    #[serde(default)]
    message: Option<Template>,
    /// Instead of a rejection: rules of [`Spec::rules`].
    #[serde(default, rename = "use")]
    rules: Option<String>,
    /// Instead of a rejection: a schema that `of` must fit, which has the path `at`.
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

    /// The rejection; `rule` is its name if the rule has none.
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
