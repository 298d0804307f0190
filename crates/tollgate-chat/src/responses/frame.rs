//! The frame of the reply object, which streams and whole replies share: everything but its output.

use serde_json::{Map, Value, json};

use super::item::Item;
use super::output::Output;
use super::request::echo;
use super::usage::{Outcome, write_usage};
use crate::format::Rendering;

/// The reply object without its output.
pub(super) struct Frame {
    id: String,
    created_at: i64,
    model: String,
    echo: Map<String, Value>,
}

impl Frame {
    /// The frame of a reply to the request that `rendering` knows.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            id: format!("resp_{}", rendering.seed),
            created_at: rendering.created,
            model: rendering.model.to_owned(),
            echo: echo(rendering.request),
        }
    }

    /// Takes what the upstream said of itself. Its id only where it is one of this format.
    pub(super) fn learn(&mut self, id: &str, created: Option<i64>) {
        if id.starts_with("resp_") {
            id.clone_into(&mut self.id);
        }
        self.created_at = created.unwrap_or(self.created_at);
    }

    /// The tier that served the reply.
    pub(super) fn served_by(&mut self, tier: &str) {
        self.echo.insert("service_tier".to_owned(), tier.into());
    }

    /// The object with these members.
    pub(super) fn object(&self, status: &str, output: Value, usage: Value) -> Map<String, Value> {
        let mut object = Map::from_iter([
            ("id".to_owned(), Value::from(self.id.as_str())),
            ("object".to_owned(), Value::from("response")),
            ("created_at".to_owned(), Value::from(self.created_at)),
            ("status".to_owned(), Value::from(status)),
            ("error".to_owned(), Value::Null),
            ("incomplete_details".to_owned(), Value::Null),
            ("model".to_owned(), Value::from(self.model.as_str())),
            ("output".to_owned(), output),
            ("usage".to_owned(), usage),
        ]);
        object.extend(self.echo.clone());
        object
    }

    /// The finished object.
    pub(super) fn finished(&self, output: &Output, outcome: Outcome) -> Map<String, Value> {
        let items = output.items.iter().map(Item::value).collect();
        let usage = output.usage.as_ref().map_or(Value::Null, write_usage);
        let mut object = self.object(outcome.status(), Value::Array(items), usage);
        match outcome {
            Outcome::Completed => {}
            Outcome::Incomplete(reason) => {
                object.insert("incomplete_details".to_owned(), json!({"reason": reason}));
            }
            Outcome::Failed(code, message) => {
                object.insert(
                    "error".to_owned(),
                    json!({"code": code, "message": message}),
                );
            }
        }
        object
    }
}
