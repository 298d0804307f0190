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
    /// What a channel's base URL has after the host.
    pub(crate) base_path: String,
    /// The key of a request; `authorization('Bearer')` if this does not say.
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
    /// Rules that several endpoints or other rules use.
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

/// An error. The templates know what the rule gives: `message`, `param`, `code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorSpec {
    /// The rule, if none rejects with it.
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
    /// The file, which is part of the program, is not in order.
    pub(crate) fn read(text: &str) -> Self {
        let read: Result<Self, _> = toml::from_str(text);
        read.unwrap_or_else(|error| panic!("a provider's tables: {error}"))
    }
}
