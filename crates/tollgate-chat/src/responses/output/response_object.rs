//! The response object without its output items: id, status, model, echoed request fields, error,
//! usage.

use serde_json::{Map, Value, json};

use super::builder::OutputBuilder;
use super::item::OutputItem;
use super::request_echo::request_echo;
use crate::format::RenderOptions;
use crate::responses::finish::ResponseStatus;
use crate::responses::usage::write_usage;

/// All members of a response object except its output.
pub(crate) struct ResponseObject {
    id: String,
    created_at: i64,
    model: String,
    request_echo: Map<String, Value>,
}

impl ResponseObject {
    /// The object for a response to the request in `options`.
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            id: format!("resp_{}", options.seed),
            created_at: options.created,
            model: options.model.to_owned(),
            request_echo: request_echo(options.request),
        }
    }

    /// Sets the creation time and, if it is an id of this format, the id that the upstream reported.
    pub(crate) fn set_identity(&mut self, id: &str, created: Option<i64>) {
        if id.starts_with("resp_") {
            id.clone_into(&mut self.id);
        }
        self.created_at = created.unwrap_or(self.created_at);
    }

    /// Sets the service tier that served the response.
    pub(crate) fn set_service_tier(&mut self, tier: &str) {
        self.request_echo
            .insert("service_tier".to_owned(), tier.into());
    }

    /// The JSON of the object with this status, output and usage.
    pub(crate) fn build(&self, status: &str, output: Value, usage: Value) -> Map<String, Value> {
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
        object.extend(self.request_echo.clone());
        object
    }

    /// The JSON of the object for the end of a response.
    pub(crate) fn build_finished(
        &self,
        output: &OutputBuilder,
        status: ResponseStatus,
    ) -> Map<String, Value> {
        let items = output.items.iter().map(OutputItem::final_json).collect();
        let usage = output.usage.as_ref().map_or(Value::Null, write_usage);
        let mut object = self.build(status.as_str(), Value::Array(items), usage);
        match status {
            ResponseStatus::Completed => {}
            ResponseStatus::Incomplete(reason) => {
                object.insert("incomplete_details".to_owned(), json!({"reason": reason}));
            }
            ResponseStatus::Failed(code, message) => {
                object.insert(
                    "error".to_owned(),
                    json!({"code": code, "message": message}),
                );
            }
        }
        object
    }
}
