//! What the names in an expression stand for.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::expr::Expr;
use super::functions;
use crate::clock;
use crate::media_context::MediaContext;
use crate::request::ReceivedRequest;
use crate::work_plan::WorkPlan;

/// Named expressions, evaluated when they are used.
pub(crate) type Definitions = BTreeMap<String, Expr>;

/// The names that an expression can use. The first that has one wins: `vars`, `definitions`, the
/// fields of the body, `tables`.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) vars: &'a Map<String, Value>,
    pub(crate) definitions: Option<&'a Definitions>,
    /// Those that several endpoints share.
    pub(crate) shared: Option<&'a Definitions>,
    pub(crate) body: &'a Value,
    pub(crate) tables: &'a Map<String, Value>,
    pub(crate) request: Option<&'a ReceivedRequest>,
    /// What a request reaches while it is answered; `None` while it is checked.
    pub(crate) context: Option<&'a MediaContext<'a>>,
    /// How the work goes: that of the request, or of the task that it is about.
    pub(crate) plan: Option<&'a WorkPlan>,
    /// The number of the first file that is made.
    pub(crate) number: u64,
    pub(crate) item: Option<(usize, &'a Value)>,
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
            item: None,
        }
    }

    /// The value of a name; null if nothing has it.
    pub(crate) fn get(&self, name: &str) -> Value {
        match (name, self.item) {
            ("item", Some((_, item))) => return item.clone(),
            ("at", Some((at, _))) => return json!(at),
            ("body", _) => return self.body.clone(),
            _ => {}
        }
        if let Some(value) = self.vars.get(name) {
            return value.clone();
        }
        let definitions = self.definitions.and_then(|all| all.get(name));
        let definition = definitions.or_else(|| self.shared.and_then(|all| all.get(name)));
        if let Some(expr) = definition {
            return expr.eval(self);
        }
        if let Some(value) = self.body.get(name) {
            return value.clone();
        }
        if let Some(table) = self.tables.get(name) {
            return table.clone();
        }
        self.built_in(name).unwrap_or(Value::Null)
    }

    fn built_in(&self, name: &str) -> Option<Value> {
        Some(match name {
            "now" => json!(clock::milliseconds(SystemTime::now())),
            "path" => json!(self.request?.path),
            "method" => json!(self.request?.method),
            "files" => {
                let parts = self.request?.parts.iter();
                let files = parts.filter(|part| part.filename.is_some()).map(|part| {
                    let declared = part.content_type.as_deref();
                    let declared = declared.unwrap_or("application/octet-stream");
                    let image = functions::of_part(&part.bytes, declared);
                    json!({"name": part.name, "type": declared, "image": image})
                });
                files.collect()
            }
            "request_id" => json!(self.context?.request),
            "origin" => json!(self.context?.origin()),
            "polls" => json!(self.plan?.polls),
            "work" => json!(self.plan?.work.as_millis() as u64),
            "outcome" => json!(self.plan?.outcome.name()),
            "link_ttl" => json!(self.context?.link_ttl().map(|ttl| ttl.as_millis() as u64)),
            _ => return None,
        })
    }

    /// Evaluates with an element of a list as `item`, and its number as `at`.
    pub(crate) fn with_item<T>(
        &self,
        at: usize,
        item: &Value,
        f: impl FnOnce(&Scope<'_>) -> T,
    ) -> T {
        f(&Scope {
            item: Some((at, item)),
            ..*self
        })
    }
}
