//! Writes `tools`.

use serde_json::{Map, Value, json};

use super::output_schema;
use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::hub::{PartKind, RequestField, Tool, ToolChoice, ToolKind};
use crate::messages::constants::NAME;
use crate::messages::fields::write_extra_fields;
use crate::messages::notes::NOTE_TOOL_TYPE;

/// The version of web search that is requested if the client gave none.
const WEB_SEARCH: &str = "web_search_20250305";

impl RequestWriter<'_> {
    /// Writes the tools.
    pub(crate) fn write_tools(&mut self) -> Result<Vec<Value>, InvalidRequest> {
        let among = match &self.request.tool_choice {
            Some(ToolChoice::AllowedTools { names, .. }) => Some(names),
            _ => None,
        };
        let request = self.request;
        let mut out = Vec::with_capacity(request.tools.len());
        for (index, tool) in request.tools.iter().enumerate() {
            if let (Some(names), ToolKind::Function { name, .. } | ToolKind::Custom { name, .. }) =
                (among, &tool.kind)
                && !names.contains(name)
            {
                continue;
            }
            out.push(self.write_tool(index, tool)?);
        }
        if out.is_empty() && !self.is_native {
            out = self.define_history_tools();
        }
        Ok(out)
    }

    fn write_tool(&mut self, index: usize, tool: &Tool) -> Result<Value, InvalidRequest> {
        let mut out = match &tool.kind {
            ToolKind::Function {
                name,
                description,
                parameters,
                strict,
            } => {
                // Models support `strict` if they support structured output.
                let is_foreign = !self.is_native && *strict == Some(true);
                // A strict schema of another format is closed; one that cannot be kept as it is makes the function not strict.
                let closed = parameters
                    .as_ref()
                    .filter(|_| is_foreign && self.capabilities.supports_json_schema)
                    .map(output_schema::convert_schema)
                    .filter(|(_, is_changed)| !is_changed)
                    .map(|(schema, _)| schema);
                if is_foreign && closed.is_none() {
                    self.drop_name("strict");
                }
                let strict = strict.filter(|_| self.is_native || closed.is_some());
                let parameters = closed.as_ref().or(parameters.as_ref());
                let name = self.names.upstream_name(name).to_owned();
                let description = description.as_deref();
                write_function(&name, description, parameters, strict)
            }
            ToolKind::Custom {
                name,
                description,
                format,
            } => {
                let name = self.names.upstream_name(name).to_owned();
                write_custom_tool(&name, description.as_deref(), format.as_ref())
            }
            ToolKind::WebSearch { location } => {
                let mut search = write_web_search(tool, location.as_ref());
                self.write_filters(tool, &mut search);
                search
            }
            ToolKind::FormatSpecific { format, value } if *format == NAME => {
                return Ok(value.clone());
            }
            ToolKind::FormatSpecific { value, .. } => {
                // The tool's type is the value of `type`, or the name of its only member.
                let kind = value.get("type").and_then(Value::as_str);
                let only = value.as_object().and_then(|members| members.keys().next());
                let kind = kind.or(only.map(String::as_str)).unwrap_or_default();
                let field = format!(
                    "{}[{index}]",
                    self.request.client_field_name(RequestField::Tools)
                );
                let why = format!("of type `{kind}` is not available for this model");
                return Err(InvalidRequest::new(field, why));
            }
        };
        if let Some(marker) = self.cache_control(tool.cache_ttl.as_deref()) {
            out.insert("cache_control".to_owned(), marker);
        }
        self.drop_extra(&tool.extra);
        Ok(write_extra_members(out, tool))
    }

    /// Writes the domains in the `filters` of a search. The API rejects allowed together with blocked domains; the allowed ones restrict more.
    fn write_filters(&mut self, tool: &Tool, search: &mut Map<String, Value>) {
        let filters = tool.extra.get("filters").and_then(Value::as_object);
        let is_set = |value: &Value| {
            !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
        };
        let mut rest = filters
            .into_iter()
            .flatten()
            .filter(|(_, value)| is_set(value));
        let written = ["allowed_domains", "blocked_domains"]
            .into_iter()
            .find_map(|name| {
                let domains = filters?.get(name)?;
                (domains.is_array() && is_set(domains)).then_some((name, domains))
            });
        if let Some((name, domains)) = written {
            search.insert(name.to_owned(), domains.clone());
        }
        if rest.any(|(name, _)| written.is_none_or(|(written, _)| name != written)) {
            self.drop_name("filters");
        }
    }

    /// Definitions of the tools that the history calls: the API requires them even if no tool may be called.
    fn define_history_tools(&self) -> Vec<Value> {
        let mut names: Vec<&str> = Vec::new();
        for part in self.request.turns.iter().flat_map(|turn| &turn.parts) {
            if let PartKind::ToolCall { name, .. } = &part.kind
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        let define = |name: &&str| {
            Value::Object(write_function(
                self.names.upstream_name(name),
                None,
                None,
                None,
            ))
        };
        names.iter().map(define).collect()
    }
}

/// A function's definition.
pub(crate) fn write_function(
    name: &str,
    description: Option<&str>,
    parameters: Option<&Value>,
    strict: Option<bool>,
) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(name));
    if let Some(text) = description {
        out.insert("description".to_owned(), json!(text));
    }
    out.insert("input_schema".to_owned(), object_schema(parameters));
    if let Some(strict) = strict {
        out.insert("strict".to_owned(), json!(strict));
    }
    out
}

/// A schema with `"type": "object"`. A function without parameters gets an empty one.
fn object_schema(parameters: Option<&Value>) -> Value {
    match parameters {
        Some(Value::Object(schema)) if schema.get("type").is_some_and(|kind| kind == "object") => {
            Value::Object(schema.clone())
        }
        Some(Value::Object(schema)) => {
            let mut typed = Map::from_iter([("type".to_owned(), json!("object"))]);
            let rest = schema.iter().filter(|(name, _)| *name != "type");
            typed.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
            Value::Object(typed)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// A function with one string parameter in place of a free-text tool, which the format does not have.
pub(crate) fn write_custom_tool(
    name: &str,
    description: Option<&str>,
    format: Option<&Value>,
) -> Map<String, Value> {
    let text = format
        .and_then(|format| format.get("definition"))
        .and_then(Value::as_str)
        .map(|grammar| format!("The whole input, in this grammar:\n{grammar}"));
    let text = text.unwrap_or_else(|| "The whole input.".to_owned());
    let schema = json!({
        "type": "object",
        "properties": {"input": {"type": "string", "description": text}},
        "required": ["input"],
    });
    write_function(name, description, Some(&schema), None)
}

/// Anthropic's web search tool.
pub(crate) fn write_web_search(tool: &Tool, location: Option<&Value>) -> Map<String, Value> {
    let version = tool
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(NOTE_TOOL_TYPE));
    let mut out = Map::new();
    let version = version.cloned().unwrap_or_else(|| json!(WEB_SEARCH));
    out.insert("type".to_owned(), version);
    out.insert("name".to_owned(), json!("web_search"));
    if let Some(Value::Object(members)) = location {
        let mut approximate = Map::from_iter([("type".to_owned(), json!("approximate"))]);
        approximate.extend(members.clone());
        out.insert("user_location".to_owned(), Value::Object(approximate));
    }
    out
}

/// Adds the extra fields of this format.
pub(crate) fn write_extra_members(mut out: Map<String, Value>, tool: &Tool) -> Value {
    let kind = tool
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(NOTE_TOOL_TYPE));
    if let (Some(kind), false) = (kind, out.contains_key("type")) {
        out.insert("type".to_owned(), kind.clone());
    }
    write_extra_fields(&tool.extra, &mut out);
    Value::Object(out)
}
