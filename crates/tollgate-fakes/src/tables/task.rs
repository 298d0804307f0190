//! The tasks in a provider's tables: how requests start, read and list them, and how their state is written.

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
    /// The values of the request that are stored with the task.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, Template>,
    /// The client's own id of the task, which must be new.
    #[serde(default)]
    pub(crate) external_id: Option<Expr>,
    /// Whether the response already contains the end of the task.
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
    /// A condition on the task; if it is false, the task counts as missing.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<Expr>,
    /// The error if there is no such task; `task-missing` if this is not set.
    #[serde(default)]
    pub(crate) missing_error: Option<String>,
    /// The response if there is no such task, instead of an error.
    #[serde(default)]
    pub(crate) missing: Option<Template>,
    /// The status of `missing`; 200 if this is not set.
    #[serde(default)]
    pub(crate) missing_status: Option<u16>,
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// The action by the task's state: `cancel` or `remove`.
    #[serde(default)]
    pub(crate) actions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) record: Option<String>,
}

/// A request about several tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// The requested ids; all tasks if it is null.
    #[serde(default)]
    pub(crate) ids: Option<Expr>,
    /// Whether `ids` are the client's own ids.
    #[serde(default)]
    pub(crate) external: Option<Expr>,
    /// The condition for a record to be in the list; the record is `item`.
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

/// The template of the state of a task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    #[serde(default)]
    pub(crate) define: Definitions,
    /// The files of a task that has succeeded; `links` are the links to them.
    #[serde(default)]
    pub(crate) results: Option<Expr>,
    pub(crate) body: Template,
}
