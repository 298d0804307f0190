//! The endpoints in a provider's tables: requests that are answered at once, that start a task, or
//! that are about tasks.

use serde::Deserialize;

use super::path::PathStyle;
use super::rule::Rule;
use super::scope::{Bindings, Definitions};
use super::syntax::{Expr, Template};
use super::task::{About, ListTasks, StartTask};

/// An endpoint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    /// Methods and paths below the base path: `POST /videos/{id}/remix`; `{rest*}` takes several
    /// segments.
    pub(super) routes: Vec<String>,
    /// Of the requests on these routes, those that it is for.
    #[serde(default)]
    pub(super) when: Option<Expr>,
    /// Names for expressions.
    #[serde(default)]
    pub(super) define: Definitions,
    /// The shared names that it uses, of [`super::spec::Spec::definitions`].
    #[serde(default)]
    pub(super) names: Option<String>,
    /// Rules that come before the body is read.
    #[serde(default)]
    pub(super) before: Vec<Rule>,
    /// The schema of the body, which must be there if this is.
    #[serde(default)]
    pub(super) schema: Option<String>,
    /// Whether the body must be JSON, whatever it holds.
    #[serde(default)]
    pub(super) json: bool,
    /// The schema of a body that is a form, if it may be one.
    #[serde(default)]
    pub(super) form_schema: Option<String>,
    /// How paths are written here, if not as elsewhere.
    #[serde(default)]
    pub(super) path_style: Option<PathStyle>,
    /// Names for values, evaluated before the rules.
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) chat: Option<ChatSpec>,
    /// Where directives may stand: the text of a request for media.
    #[serde(default)]
    pub(super) text: Option<Expr>,
    /// Whether the work that was asked for is rejected, by its `outcome`; only if it is blocked by
    /// default.
    #[serde(default)]
    pub(super) rejects: Option<Expr>,
    #[serde(default)]
    pub(super) task: Option<StartTask>,
    #[serde(default)]
    pub(super) about: Option<About>,
    #[serde(default)]
    pub(super) list: Option<ListTasks>,
    #[serde(default)]
    pub(super) response: Option<Template>,
    /// Or the template of [`super::spec::Spec::templates`].
    #[serde(default)]
    pub(super) template: Option<String>,
    /// The file that is the body of the response.
    #[serde(default)]
    pub(super) file: Option<Expr>,
    #[serde(default)]
    pub(super) status: Option<Expr>,
    /// The `Location` header.
    #[serde(default)]
    pub(super) location: Option<Template>,
    /// How long it takes until the response comes, in milliseconds.
    #[serde(default)]
    pub(super) hold: Option<Expr>,
}

/// How an endpoint chats. The templates know the model's `output`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatSpec {
    /// A [`crate::chat_output::ChatPrompt`] as JSON.
    pub(super) prompt: Template,
    /// A [`crate::event_stream::Form`]; null if the response is complete.
    pub(super) stream: Expr,
    /// What the provider rejects once the output is known.
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    pub(super) response: Template,
    /// The events of a stream, in lists of any depth, without those that are null. A text is sent as it is,
    /// but `$filler` is the place for more text, and `$end` the beginning of the end.
    pub(super) events: Template,
    /// What is sent of an event: it is `event`, its number `event_at`.
    #[serde(default)]
    pub(super) frame: Option<Template>,
    /// An event with more text.
    pub(super) filler: Template,
    /// The event of an error; `first` if it comes before all others.
    pub(super) error: Template,
}
