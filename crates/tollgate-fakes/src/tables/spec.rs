//! The tables of one provider, as read from its TOML file: schemas, rules, errors, endpoints.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use super::path::PathStyle;
use super::rule::Rule;
use super::schema::Schemas;
use super::scope::Definitions;
use super::syntax::{Expr, Template};
use super::task::Record;

/// A provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    /// The path of a channel's base URL.
    pub(crate) base_path: String,
    /// The expression for the key of a request; `authorization('Bearer')` if this is not set.
    #[serde(default)]
    pub(crate) key: Option<Expr>,
    /// Whether the key can be a signed token ([`crate::signed_token`]).
    #[serde(default)]
    pub(crate) signed_tokens: bool,
    #[serde(default)]
    pub(crate) path_style: PathStyle,
    /// Headers of every response; `id` is unique.
    pub(crate) headers: BTreeMap<String, Template>,
    pub(crate) error_body: Template,
    pub(crate) errors: HashMap<String, ErrorSpec>,
    /// The errors of schema violations, by the names of their rules; `default` for the others.
    pub(crate) violations: HashMap<String, Rule>,
    /// The provider's data, such as its models and states.
    #[serde(default)]
    pub(crate) tables: Map<String, Value>,
    #[serde(default)]
    pub(crate) schemas: Schemas,
    /// Names for expressions that several endpoints use.
    #[serde(default)]
    pub(crate) definitions: HashMap<String, Definitions>,
    /// Rules that several endpoints or other rules use.
    #[serde(default)]
    pub(crate) rules: HashMap<String, Vec<Rule>>,
    /// Responses that several endpoints use.
    #[serde(default)]
    pub(crate) templates: HashMap<String, Template>,
    #[serde(default)]
    pub(crate) records: HashMap<String, Record>,
    #[serde(default)]
    pub(crate) endpoints: Vec<Endpoint>,
}

/// An error. Its templates can use the values of the rule: `message`, `param`, `code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorSpec {
    /// The name of the rule if the rejecting rule has none; `scenario` if this is not set either.
    #[serde(default)]
    pub(super) rule: Option<Template>,
    pub(super) status: StatusSpec,
    #[serde(default)]
    pub(super) kind: Option<Template>,
    #[serde(default)]
    pub(super) code: Option<Template>,
    #[serde(default)]
    pub(super) param: Option<Template>,
    #[serde(default)]
    pub(super) message: Option<Template>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Template>,
    #[serde(default)]
    pub(super) details: Option<Template>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StatusSpec {
    Fixed(u16),
    Computed(Expr),
}

impl Spec {
    /// Reads a provider's file.
    ///
    /// # Panics
    ///
    /// If the file, which is part of the program, is invalid.
    pub(crate) fn read(text: &str) -> Self {
        let read: Result<Self, _> = toml::from_str(text);
        read.unwrap_or_else(|error| panic!("a provider's tables: {error}"))
    }
}
