//! Rules: the conditions under which a provider rejects a request, and the errors.

use serde::Deserialize;

use super::scope::Bindings;
use super::syntax::{Expr, Template};

/// A rule. If the condition is true or absent, it checks other rules (`use`) or a schema, if it has one of them; otherwise it rejects the request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// The name of the rule, returned in the header `x-fake-rule`.
    #[serde(default)]
    pub(super) rule: Option<Template>,
    /// A list; the rule is checked for each of its elements.
    #[serde(default, rename = "in")]
    pub(super) list: Option<Expr>,
    /// The name of the element in expressions; `item` if this is not set.
    #[serde(default, rename = "as")]
    pub(super) element: Option<String>,
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    /// The condition under which the rule applies; always if this is not set.
    #[serde(default, rename = "if")]
    pub(super) condition: Option<Expr>,
    /// The error in [`super::spec::Spec::errors`]; `invalid` if this is not set.
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) code: Option<Template>,
    #[serde(default)]
    pub(super) param: Option<Template>,
    #[serde(default)]
    pub(super) message: Option<Template>,
    /// The name of rules in [`super::spec::Spec::rules`] that are checked instead of rejecting.
    #[serde(default, rename = "use")]
    pub(super) rules: Option<String>,
    /// A schema that is checked instead of rejecting: for the value of `of`, whose path is `at`.
    #[serde(default)]
    pub(super) schema: Option<Template>,
    #[serde(default)]
    pub(super) of: Option<Expr>,
    #[serde(default)]
    pub(super) at: Option<Template>,
    /// Whether the rule reports the outcome of the work rather than an error in the request.
    #[serde(default)]
    pub(super) outcome: bool,
}
