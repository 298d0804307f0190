//! Rules: what a provider rejects, and with which error.

use serde::Deserialize;

use super::scope::Bindings;
use super::syntax::{Expr, Template};

/// A rejection: it is made if the condition holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Its name, shown in the header `x-fake-rule`.
    #[serde(default)]
    pub(super) rule: Option<Template>,
    /// Checked for each element of this list.
    #[serde(default, rename = "in")]
    pub(super) list: Option<Expr>,
    /// The name of the element; `item` if there is none.
    #[serde(default, rename = "as")]
    pub(super) element: Option<String>,
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    #[serde(default, rename = "if")]
    pub(super) condition: Option<Expr>,
    /// The error in [`super::spec::Spec::errors`]; `invalid` if none is named.
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) code: Option<Template>,
    #[serde(default)]
    pub(super) param: Option<Template>,
    #[serde(default)]
    pub(super) message: Option<Template>,
    /// Instead of a rejection: rules of [`super::spec::Spec::rules`].
    #[serde(default, rename = "use")]
    pub(super) rules: Option<String>,
    /// Instead of a rejection: a schema that `of` must fit, which has the path `at`.
    #[serde(default)]
    pub(super) schema: Option<Template>,
    #[serde(default)]
    pub(super) of: Option<Expr>,
    #[serde(default)]
    pub(super) at: Option<Template>,
    /// Whether it says how the work went, and nothing that the request did wrong.
    #[serde(default)]
    pub(super) outcome: bool,
}
