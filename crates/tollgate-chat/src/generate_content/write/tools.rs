//! Tools and the choice among them.

use serde_json::{Map, Value, json};

use super::super::{NAME, schema};
use super::Writer;
use crate::error::Bad;
use crate::hub::{Field, Tool, ToolChoice, ToolKind};

impl Writer<'_> {
    /// The tool objects: all functions in one, each tool of the vendor's in its own.
    pub(super) fn tools(&mut self) -> Result<Vec<Value>, Bad> {
        let request = self.request;
        let mut tools: Vec<Value> = Vec::new();
        for (at, tool) in request.tools.iter().enumerate() {
            if tool.cache.is_some() {
                self.drop_field(Field::Cache);
            }
            match &tool.kind {
                ToolKind::Function { .. } | ToolKind::Custom { .. } => {
                    let declaration = self.declaration(tool);
                    add_declaration(&mut tools, declaration);
                }
                ToolKind::WebSearch { location } => {
                    if location.is_some() {
                        self.drop_name("user_location");
                    }
                    self.drop_own(&tool.own);
                    tools.push(web_search(tool));
                }
                ToolKind::Foreign { format, value } if *format == NAME => tools.push(value.clone()),
                ToolKind::Foreign { value, .. } => {
                    let kind = value.get("type").and_then(Value::as_str).unwrap_or("this");
                    let field = format!("{}[{at}]", request.name_of(Field::Tools));
                    let why =
                        format!("of type `{kind}` cannot be carried to this model's provider");
                    return Err(Bad::new(field, why));
                }
            }
        }
        Ok(tools)
    }

    fn declaration(&mut self, tool: &Tool) -> Map<String, Value> {
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
        out.insert("name".to_owned(), json!(self.names.sent(name)));
        if let Some(text) = description {
            out.insert("description".to_owned(), json!(text));
        }
        match &tool.kind {
            ToolKind::Function {
                parameters, strict, ..
            } => {
                out.extend(self.parameters(tool, parameters.as_ref()));
                if *strict == Some(true) {
                    self.drop_name("strict");
                }
            }
            // Free text is an object of one text here.
            _ => {
                let text = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
                out.extend(self.parameters(tool, Some(&text)));
                if matches!(&tool.kind, ToolKind::Custom { format: Some(format), .. } if format["type"] != "text")
                {
                    self.drop_name("format");
                }
            }
        }
        for (name, value) in tool.own.for_format(NAME).into_iter().flatten() {
            if !name.starts_with('.') {
                out.insert(name.clone(), value.clone());
            }
        }
        self.drop_own(&tool.own);
        out
    }

    /// The schema of the arguments under its name. A function without arguments has none: an empty object was refused.
    fn parameters(&self, tool: &Tool, parameters: Option<&Value>) -> Option<(String, Value)> {
        let older = tool
            .own
            .for_format(NAME)
            .and_then(|own| own.get(".parameters"));
        let (name, schema) = match (older, parameters) {
            (Some(older), _) => ("parameters", older.clone()),
            (None, Some(schema)) if self.native && self.traits.json_schema => {
                ("parametersJsonSchema", schema.clone())
            }
            (None, None) => return None,
            (None, Some(schema)) if schema::is_empty(schema) => return None,
            (None, Some(schema)) if self.traits.json_schema => {
                ("parametersJsonSchema", schema::narrowed(schema))
            }
            (None, Some(schema)) => ("parameters", schema::to_older(schema)),
        };
        Some((name.to_owned(), schema))
    }

    /// `functionCallingConfig`.
    pub(super) fn tool_choice(&mut self) -> Option<Value> {
        let request = self.request;
        let choice = request.tool_choice.as_ref()?;
        let is_function = |tool: &Tool| {
            matches!(
                tool.kind,
                ToolKind::Function { .. } | ToolKind::Custom { .. }
            )
        };
        if !self.native && !request.tools.iter().any(is_function) {
            return None;
        }
        let forces = matches!(
            choice,
            ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Among { required: true, .. }
        );
        if forces && !self.traits.forced_tools {
            self.drop_field(Field::ToolChoice);
            return Some(json!({"mode": "AUTO"}));
        }
        let sent = |name: &String| self.names.sent(name).to_owned();
        Some(match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::One(name) => json!({"mode": "ANY", "allowedFunctionNames": [sent(name)]}),
            ToolChoice::Among { names, required } => {
                let names: Vec<String> = names.iter().map(sent).collect();
                let mode = if *required { "ANY" } else { "VALIDATED" };
                json!({"mode": mode, "allowedFunctionNames": names})
            }
        })
    }
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
    let own = tool.own.for_format(NAME).and_then(|own| own.iter().next());
    match own {
        Some((name, _)) if name.starts_with('.') => json!({&name[1..]: {}}),
        Some((name, settings)) => json!({name.as_str(): settings}),
        None => json!({"googleSearch": {}}),
    }
}
