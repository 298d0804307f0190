//! Writes `tools` and `toolConfig`.

use serde_json::{Map, Value, json};

use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::generate_content::constants::NAME;
use crate::generate_content::schema;
use crate::hub::{RequestField, SearchWithFunctions, Tool, ToolChoice, ToolKind};

impl RequestWriter<'_> {
    /// The tool objects: all functions in one, each hosted tool in its own.
    pub(crate) fn write_tools(&mut self) -> Result<Vec<Value>, InvalidRequest> {
        let request = self.request;
        let mut tools: Vec<Value> = Vec::new();
        for (at, tool) in request.tools.iter().enumerate() {
            if tool.cache_ttl.is_some() {
                self.drop_field(RequestField::Cache);
            }
            match &tool.kind {
                ToolKind::Function { .. } | ToolKind::Custom { .. } => {
                    let declaration = self.function_declaration(tool);
                    add_declaration(&mut tools, declaration);
                }
                ToolKind::WebSearch { location } => {
                    if location.is_some() {
                        self.drop_name("user_location");
                    }
                    self.drop_extra(&tool.extra);
                    tools.push(web_search(tool));
                }
                ToolKind::FormatSpecific { format, value } if *format == NAME => {
                    tools.push(value.clone())
                }
                ToolKind::FormatSpecific { value, .. } => {
                    let kind = value.get("type").and_then(Value::as_str).unwrap_or("this");
                    let field = format!("{}[{at}]", request.client_field_name(RequestField::Tools));
                    let why = format!("of type `{kind}` is not supported by this model's provider");
                    return Err(InvalidRequest::new(field, why));
                }
            }
        }
        self.check_search(&tools)?;
        Ok(tools)
    }

    /// Whether the request has both search and functions; some models need a setting for that combination.
    pub(crate) fn has_search_and_functions(&self) -> bool {
        let has = |is: fn(&ToolKind) -> bool| self.request.tools.iter().any(|t| is(&t.kind));
        has(|kind| matches!(kind, ToolKind::WebSearch { .. }))
            && has(|kind| matches!(kind, ToolKind::Function { .. } | ToolKind::Custom { .. }))
    }

    /// Rejects search beside functions for Gemini 2.x, which returns 400. For a client of this format, Google's own error is passed on.
    fn check_search(&self, tools: &[Value]) -> Result<(), InvalidRequest> {
        if self.is_native_client
            || self.capabilities.search_with_functions != SearchWithFunctions::Rejected
            || tools.is_empty()
            || !self.has_search_and_functions()
        {
            return Ok(());
        }
        let field = self.request.client_field_name(RequestField::Tools);
        let why = "has web search beside functions, which this model does not take together: leave out one of them";
        Err(InvalidRequest::new(field, why))
    }

    fn function_declaration(&mut self, tool: &Tool) -> Map<String, Value> {
        let mut out = Map::new();
        let (name, description) = match &tool.kind {
            ToolKind::Function {
                name, description, ..
            }
            | ToolKind::Custom {
                name, description, ..
            } => (name, description),
            _ => return out,
        };
        out.insert("name".to_owned(), json!(self.names.upstream_name(name)));
        if let Some(text) = description {
            out.insert("description".to_owned(), json!(text));
        }
        match &tool.kind {
            ToolKind::Function {
                parameters, strict, ..
            } => {
                out.extend(self.parameters_schema(tool, parameters.as_ref()));
                if *strict == Some(true) {
                    self.drop_name("strict");
                }
            }
            // A custom tool becomes a function with one string argument.
            _ => {
                let schema = custom_tool_schema(&tool.kind);
                out.extend(self.parameters_schema(tool, Some(&schema)));
            }
        }
        for (name, value) in tool.extra.for_format(NAME).into_iter().flatten() {
            if !name.starts_with('.') {
                out.insert(name.clone(), value.clone());
            }
        }
        self.drop_extra(&tool.extra);
        out
    }

    /// The member for the schema of a function's arguments. `None` for a function without
    /// arguments: some upstreams reject an empty object.
    fn parameters_schema(
        &self,
        tool: &Tool,
        parameters: Option<&Value>,
    ) -> Option<(String, Value)> {
        let openapi = tool
            .extra
            .for_format(NAME)
            .and_then(|extra| extra.get(".parameters"));
        let (name, schema) = match (openapi, parameters) {
            (Some(openapi), _) => ("parameters", openapi.clone()),
            (None, Some(schema))
                if self.is_native_client && self.capabilities.supports_json_schema =>
            {
                ("parametersJsonSchema", schema.clone())
            }
            (None, None) => return None,
            (None, Some(schema)) if schema::is_empty(schema) => return None,
            (None, Some(schema)) if self.capabilities.supports_json_schema => (
                "parametersJsonSchema",
                schema::narrow_to_supported(schema).0,
            ),
            (None, Some(schema)) => ("parameters", schema::to_openapi_schema(schema)),
        };
        Some((name.to_owned(), schema))
    }

    /// `functionCallingConfig`.
    pub(crate) fn write_tool_choice(&mut self) -> Option<Value> {
        let request = self.request;
        let choice = request.tool_choice.as_ref()?;
        let is_function = |tool: &Tool| {
            matches!(
                tool.kind,
                ToolKind::Function { .. } | ToolKind::Custom { .. }
            )
        };
        if !self.is_native_client && !request.tools.iter().any(is_function) {
            let has_tools = !request.tools.is_empty();
            if choice.forces_call() || (*choice == ToolChoice::None && has_tools) {
                self.drop_field(RequestField::ToolChoice);
            }
            return None;
        }
        let forces_search = !self.is_native_client
            && matches!(choice, ToolChoice::Tool(name) if request.is_web_search(name));
        if forces_search || (choice.forces_call() && !self.capabilities.supports_forced_tools) {
            self.drop_field(RequestField::ToolChoice);
            return Some(json!({"mode": "AUTO"}));
        }
        let sent = |name: &String| self.names.upstream_name(name).to_owned();
        Some(match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [sent(name)]}),
            ToolChoice::AllowedTools { names, required } => {
                let names: Vec<String> = names.iter().map(sent).collect();
                let mode = if *required { "ANY" } else { "VALIDATED" };
                json!({"mode": mode, "allowedFunctionNames": names})
            }
        })
    }
}

/// The schema of the function that replaces a free-text tool. Its description contains the tool's grammar.
fn custom_tool_schema(kind: &ToolKind) -> Value {
    let grammar = match kind {
        ToolKind::Custom {
            format: Some(format),
            ..
        } => format["definition"].as_str(),
        _ => None,
    };
    let mut input = json!({"type": "string"});
    if let Some(grammar) = grammar {
        let text = format!("The whole input, in this grammar:\n{grammar}");
        input["description"] = json!(text);
    }
    json!({"type": "object", "properties": {"input": input}, "required": ["input"]})
}

fn add_declaration(tools: &mut Vec<Value>, declaration: Map<String, Value>) {
    let there = tools
        .iter_mut()
        .find_map(|tool| tool.get_mut("functionDeclarations"));
    match there.and_then(Value::as_array_mut) {
        Some(declarations) => declarations.push(Value::Object(declaration)),
        None => tools.push(json!({"functionDeclarations": [declaration]})),
    }
}

fn web_search(tool: &Tool) -> Value {
    let extra = tool
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.iter().next());
    match extra {
        Some((name, _)) if name.starts_with('.') => json!({&name[1..]: {}}),
        Some((name, settings)) => json!({name.as_str(): settings}),
        None => json!({"googleSearch": {}}),
    }
}
