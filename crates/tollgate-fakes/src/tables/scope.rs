//! The scope of an expression: the values of the names that it uses.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::media_functions;
use super::syntax::Expr;
use crate::clock;
use crate::media_context::MediaContext;
use crate::request::ReceivedRequest;
use crate::work_plan::WorkPlan;

/// Named expressions, which are evaluated when they are used.
pub(crate) type Definitions = BTreeMap<String, Expr>;

/// Named expressions, each evaluated once, with access to the names before it: `["NAME = EXPRESSION", …]`.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Bindings(pub(super) Vec<(String, Expr)>);

impl TryFrom<Vec<String>> for Bindings {
    type Error = String;

    fn try_from(lines: Vec<String>) -> Result<Self, String> {
        let binding = |line: String| {
            let (name, expr) = line.split_once(" = ").ok_or("a binding without ` = `")?;
            Ok((name.to_owned(), Expr::try_from(expr.to_owned())?))
        };
        Ok(Self(
            lines
                .into_iter()
                .map(binding)
                .collect::<Result<_, String>>()?,
        ))
    }
}

impl Bindings {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, Expr)> {
        self.0.iter()
    }
}

/// A named value: an element of a list with its number, or a binding.
pub(crate) struct Local<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
    /// The number of the element; `None` for a binding.
    pub(super) at: Option<usize>,
    /// The local that was defined before this one.
    pub(super) outer: Option<&'a Local<'a>>,
}

/// The names that an expression can use. Each is looked up in this order: `first`, locals, `body`, `vars`, `definitions`, `shared`, the fields of the
/// body, `tables`, [`Scope::built_in`].
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) vars: &'a Map<String, Value>,
    /// The definitions of the endpoint or record.
    pub(crate) definitions: Option<&'a Definitions>,
    /// Definitions that several endpoints share.
    pub(crate) shared: Option<&'a Definitions>,
    pub(crate) body: &'a Value,
    pub(crate) tables: &'a Map<String, Value>,
    pub(crate) request: Option<&'a ReceivedRequest>,
    /// The state for the response to a request for media. `None` while the request is checked, and for chats.
    pub(crate) context: Option<&'a MediaContext<'a>>,
    /// The plan of the work: that of the request, or of the task that it is about. `None` if `context` is `None`.
    pub(crate) plan: Option<&'a WorkPlan>,
    /// A number that is unique among the requests of the process, from which ids and the numbers of generated files are derived. 0 while the request
    /// is checked.
    pub(crate) number: u64,
    pub(crate) local: Option<&'a Local<'a>>,
    /// Names that take precedence over all others.
    pub(crate) first: Option<&'a Map<String, Value>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        vars: &'a Map<String, Value>,
        body: &'a Value,
        tables: &'a Map<String, Value>,
    ) -> Self {
        Self {
            vars,
            definitions: None,
            shared: None,
            body,
            tables,
            request: None,
            context: None,
            plan: None,
            number: 0,
            local: None,
            first: None,
        }
    }

    /// Names that every expression can use: `now`, `path`, `files`, `polls` and so on. `None` if the name is unknown or its value is not available,
    /// such as that of `polls` while the request is checked.
    pub(super) fn built_in(&self, name: &str) -> Option<Value> {
        Some(match name {
            "now" => json!(clock::milliseconds(SystemTime::now())),
            "path" => json!(self.request?.path),
            "method" => json!(self.request?.method),
            "files" => {
                let parts = self.request?.parts.iter();
                let files = parts.filter(|part| part.filename.is_some()).map(|part| {
                    let declared = part.content_type.as_deref();
                    let declared = declared.unwrap_or("application/octet-stream");
                    let image = media_functions::describe_image_part(&part.bytes, declared);
                    json!({"name": part.name, "type": declared, "image": image})
                });
                files.collect()
            }
            "request_id" => json!(self.context?.request),
            "origin" => json!(self.context?.origin()),
            "polls" => json!(self.plan?.polls),
            "work" => json!(self.plan?.duration.as_millis() as u64),
            "outcome" => json!(self.plan?.outcome.name()),
            "link_ttl" => json!(self.context?.link_ttl().map(|ttl| ttl.as_millis() as u64)),
            _ => return None,
        })
    }

    /// Evaluates with an element of a list as `name`, and its number as `name_at`.
    pub(crate) fn with_element<T>(
        &self,
        name: &str,
        at: usize,
        value: &Value,
        f: impl FnOnce(&Scope<'_>) -> T,
    ) -> T {
        let local = Local {
            name,
            value,
            at: Some(at),
            outer: self.local,
        };
        f(&Scope {
            local: Some(&local),
            ..*self
        })
    }
}
