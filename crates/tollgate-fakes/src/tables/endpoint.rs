//! The endpoints in a provider's tables: requests with an immediate response, requests that start a task, and requests about tasks.

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
    /// Methods and paths below the base path: `POST /videos/{id}/remix`; `{rest*}` matches several segments.
    pub(super) routes: Vec<String>,
    /// The condition under which the endpoint handles a request on these routes.
    #[serde(default)]
    pub(super) when: Option<Expr>,
    /// Names for expressions.
    #[serde(default)]
    pub(super) define: Definitions,
    /// The name of the shared definitions that the endpoint uses, in [`super::spec::Spec::definitions`].
    #[serde(default)]
    pub(super) names: Option<String>,
    /// Rules that are checked before the body is read.
    #[serde(default)]
    pub(super) before: Vec<Rule>,
    /// The schema of the body. If it is set, a body is required.
    #[serde(default)]
    pub(super) schema: Option<String>,
    /// Whether the body must be JSON, with any content.
    #[serde(default)]
    pub(super) json: bool,
    /// The schema of a `multipart/form-data` body, if the endpoint accepts one.
    #[serde(default)]
    pub(super) form_schema: Option<String>,
    /// The style of paths, if it differs from the provider's.
    #[serde(default)]
    pub(super) path_style: Option<PathStyle>,
    /// Names for values, which are evaluated before the rules.
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) chat: Option<ChatSpec>,
    /// The text in which directives may occur, in a request for media.
    #[serde(default)]
    pub(super) text: Option<Expr>,
    /// Whether the requested work is rejected, depending on its `outcome`. By default only work with the outcome `blocked` is rejected.
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
    /// The name of a template in [`super::spec::Spec::templates`], used instead of `response`.
    #[serde(default)]
    pub(super) template: Option<String>,
    /// The file that is the body of the response.
    #[serde(default)]
    pub(super) file: Option<Expr>,
    #[serde(default)]
    pub(super) status: Option<Expr>,
    /// The value of the `Location` header.
    #[serde(default)]
    pub(super) location: Option<Template>,
    /// The delay before the response is sent, in milliseconds.
    #[serde(default)]
    pub(super) hold: Option<Expr>,
}

/// How an endpoint generates chats. The templates can use the model's `output`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatSpec {
    /// The template of a [`crate::chat_output::ChatPrompt`] as JSON.
    pub(super) prompt: Template,
    /// The [`crate::event_stream::Form`] of the stream; null if the response is complete.
    pub(super) stream: Expr,
    /// Rules that are checked when the output is known.
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default, rename = "let")]
    pub(super) bindings: Bindings,
    pub(super) response: Template,
    /// The events of a stream, in lists of any depth; null entries are skipped. A text is sent unchanged, except that `$filler` marks the position
    /// for more text, and `$end` the beginning of the end.
    pub(super) events: Template,
    /// The template of what is sent for an event: the event is `event`, its number `event_at`.
    #[serde(default)]
    pub(super) frame: Option<Template>,
    /// The template of an event with more text.
    pub(super) filler: Template,
    /// The template of an error event; `first` is true if it precedes all other events.
    pub(super) error: Template,
}
