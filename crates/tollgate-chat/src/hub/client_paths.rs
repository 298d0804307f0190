//! Names and JSON paths of fields in the client's own request, in the terms of its format, for error messages.

use serde_json::Value;

use super::extra_fields::ExtraFields;
use super::field_names::RequestField;
use super::part::{Part, PartKind};
use super::request::Request;
use super::turn::Role;

impl Request {
    /// The name of `field` in the client's format.
    pub fn client_field_name(&self, field: RequestField) -> &'static str {
        (self.client_format.field_name)(field)
    }

    /// The JSON path of a part in the client's request, such as `messages[2].content[0]`. `turn` and `part` are indices into
    /// [`Request::turns`]; leading system turns that were read from a separate field are not counted.
    pub fn client_part_path(&self, turn: usize, part: usize) -> String {
        let is_separate = self.client_format.is_separate_system;
        let turns = self.turns.iter();
        let system_turns = turns
            .take_while(|turn| turn.role == Role::System && is_separate(turn))
            .count();
        let (turns, parts) = (
            self.client_field_name(RequestField::Turns),
            self.client_field_name(RequestField::Parts),
        );
        format!(
            "{turns}[{}].{parts}[{part}]",
            turn.saturating_sub(system_turns)
        )
    }

    /// A member of [`Request::extra`] that a writer of `format` would have to drop, so that the client would receive something else than it requested
    /// (`previous_response_id`, audio output …). Such a request is rejected. `None` if there is no such member.
    pub fn essential_extra_unknown_to(&self, format: &str) -> Option<&str> {
        let mut lost = self.extra.names_unknown_to(format);
        lost.find(|name| {
            self.extra
                .get(name)
                .is_some_and(|value| is_essential(name, value))
        })
    }
}

impl Request {
    /// The path of a member of a tool or part that a writer of `format` would have to drop, so that the client would receive something else than it
    /// requested: citations, results of a search from other domains. `None` if there is no such member.
    pub fn essential_member_unknown_to(&self, format: &str) -> Option<String> {
        let lost = |extra: &ExtraFields| {
            let mut names = extra.names_unknown_to(format);
            let name = names.find(|name| {
                !is_written_by(format, name)
                    && extra
                        .get(name)
                        .is_some_and(|value| is_essential_inside(name, value))
            });
            name.map(str::to_owned)
        };
        let lost_in = |part: &Part| match &part.kind {
            // A search result, or a document of blocks.
            PartKind::FormatSpecific { format: own, value }
                if *own != format && is_essential_inside("citations", &value["citations"]) =>
            {
                Some("citations".to_owned())
            }
            _ => lost(&part.extra),
        };
        for (at, tool) in self.tools.iter().enumerate() {
            if let Some(name) = lost(&tool.extra) {
                let tools = self.client_field_name(RequestField::Tools);
                return Some(format!("{tools}[{at}].{name}"));
            }
        }
        for (at, turn) in self.turns.iter().enumerate() {
            for (index, part) in turn.parts.iter().enumerate() {
                if let Some(name) = lost_in(part) {
                    return Some(format!("{}.{name}", self.client_part_path(at, index)));
                }
                let PartKind::ToolResult { content, .. } = &part.kind else {
                    continue;
                };
                for (inner, part) in content.iter().enumerate() {
                    if let Some(name) = lost_in(part) {
                        let result = self.client_part_path(at, index);
                        let parts = self.client_field_name(RequestField::Parts);
                        return Some(format!("{result}.{parts}[{inner}].{name}"));
                    }
                }
            }
        }
        None
    }
}

/// Whether the writer of `format` writes this member of another format's tool by another name.
fn is_written_by(format: &str, name: &str) -> bool {
    matches!(
        (format, name),
        ("responses", "allowed_domains") | ("messages", "filters")
    )
}

/// Whether dropping this member of a tool or part changes what the client receives.
fn is_essential_inside(name: &str, value: &Value) -> bool {
    match name {
        // Citations of a document; citations in the texts of the history have a separate field.
        "citations" => value.get("enabled") == Some(&Value::Bool(true)),
        "allowed_domains" | "blocked_domains" => {
            value.as_array().is_some_and(|list| !list.is_empty())
        }
        "filters" => value.as_object().is_some_and(|object| !object.is_empty()),
        // Google's search with settings that change its results.
        "googleSearch" => ["excludeDomains", "timeRangeFilter"].iter().any(|name| {
            !matches!(&value[name], Value::Null) && value[name] != Value::Array(vec![])
        }),
        _ => false,
    }
}

/// Whether dropping this member changes what the client receives.
fn is_essential(name: &str, value: &Value) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    match name {
        "previous_response_id"
        | "conversation"
        | "prompt"
        | "audio"
        | "container"
        | "thread"
        | "cachedContent"
        | "continuationToken"
        | "speechConfig" => !value.is_null(),
        "background" => value == &Value::Bool(true),
        "mcp_servers" => value.as_array().is_some_and(|list| !list.is_empty()),
        "modalities" | "responseModalities" => value.as_array().is_some_and(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .any(|m| !m.eq_ignore_ascii_case("text"))
        }),
        _ => false,
    }
}
