//! The tasks in a provider's tables: how requests start them, ask about them and list them, and how
//! their state is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::rule::Rule;
use super::scope::Definitions;
use super::syntax::{Expr, Template};
use crate::directive::Stage;

/// A task that a request starts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartTask {
    pub(crate) id: Expr,
    /// What is kept of the request.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, Template>,
    /// The client's own id, which must be new.
    #[serde(default)]
    pub(crate) external_id: Option<Expr>,
    /// Whether the response shows the end of the task already.
    #[serde(default)]
    pub(crate) ended: Option<Expr>,
    #[serde(default)]
    pub(crate) record: Option<String>,
}

/// A request about a task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) stage: Stage,
    pub(crate) id: Expr,
    /// Which tasks it finds, beside their ids.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<Expr>,
    /// The error if there is no such task; `task-missing` if none is named.
    #[serde(default)]
    pub(crate) missing_error: Option<String>,
    /// The response if there is no such task, instead of an error.
    #[serde(default)]
    pub(crate) missing: Option<Template>,
    #[serde(default)]
    pub(crate) missing_status: Option<u16>,
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// By the task's state: `cancel` or `remove`.
    #[serde(default)]
    pub(crate) actions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) record: Option<String>,
}

/// A request about several tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// The ids that are asked for; all if it is null.
    #[serde(default)]
    pub(crate) ids: Option<Expr>,
    /// Whether they are the client's own ids.
    #[serde(default)]
    pub(crate) external: Option<Expr>,
    /// Which records are in the list: they are `item`.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<Expr>,
    pub(crate) record: String,
    #[serde(default)]
    pub(crate) newest_first: bool,
    #[serde(default)]
    pub(crate) page: Option<Expr>,
    #[serde(default)]
    pub(crate) page_size: Option<Expr>,
}

/// How the state of a task is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    #[serde(default)]
    pub(crate) define: Definitions,
    /// The files of a task that has succeeded; `links` lead to them.
    #[serde(default)]
    pub(crate) results: Option<Expr>,
    pub(crate) body: Template,
}
