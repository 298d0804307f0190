//! Tools, and which of them to use.

use serde_json::{Map, Value};

use super::super::fields::{Fields, keep_under};
use super::super::{NAME, schema};
use crate::error::Bad;
use crate::hub::{Own, Tool, ToolChoice, ToolKind};

/// Adds the tools of one tool object: its functions, and each tool of the vendor's by itself.
pub(super) fn read_tool(mut tool: Fields, tools: &mut Vec<Tool>) -> Result<(), Bad> {
    let functions = tool.list("functionDeclarations")?;
    for (at, function) in functions.into_iter().flatten().enumerate() {
        let path = format!("{}[{at}]", tool.path("functionDeclarations"));
        tools.push(read_function(Fields::of(function, path)?)?);
    }
    for name in ["googleSearch", "googleSearchRetrieval"] {
        let Some(search) = tool.object(name)? else {
            continue;
        };
        let settings = search.rest();
        let mut own = Map::new();
        if !settings.is_empty() {
            own.insert(name.to_owned(), Value::Object(settings));
        } else if name != "googleSearch" {
            own.insert(format!(".{name}"), Value::Null);
        }
        tools.push(Tool {
            kind: ToolKind::WebSearch { location: None },
            cache: None,
            own: Own::of(NAME, own),
        });
    }
    for (name, value) in tool.rest() {
        let mut members = Map::new();
        members.insert(name, value);
        tools.push(Tool {
            kind: ToolKind::Foreign {
                format: NAME,
                value: Value::Object(members),
            },
            cache: None,
            own: Own::NONE,
        });
    }
    Ok(())
}

fn read_function(mut function: Fields) -> Result<Tool, Bad> {
    let name = function.required("name")?;
    let description = function.string("description")?;
    let older = function.whole("parameters")?;
    let newer = function.whole("parametersJsonSchema")?;
    if older.is_some() && newer.is_some() {
        let why = "must not be given together with `parametersJsonSchema`";
        return Err(function.bad("parameters", why));
    }
    let mut own = Map::new();
    let parameters = older.as_ref().map(schema::to_json_schema).or(newer);
    if let Some(older) = older {
        own.insert(".parameters".to_owned(), older);
    }
    own.extend(function.rest());
    Ok(Tool {
        kind: ToolKind::Function {
            name,
            description,
            parameters,
            strict: None,
        },
        cache: None,
        own: Own::of(NAME, own),
    })
}

/// `toolConfig`.
pub(super) fn read_choice(
    mut config: Fields,
    own: &mut Map<String, Value>,
) -> Result<Option<ToolChoice>, Bad> {
    let calling = config.object("functionCallingConfig")?;
    keep_under(own, "toolConfig", config.rest());
    let Some(mut calling) = calling else {
        return Ok(None);
    };
    let mode = calling
        .string("mode")?
        .unwrap_or_default()
        .to_ascii_uppercase();
    let names = names(&mut calling)?;
    let choice = match (mode.as_str(), names.len()) {
        ("AUTO", _) => Some(ToolChoice::Auto),
        ("NONE", _) => Some(ToolChoice::None),
        ("ANY", 0) => Some(ToolChoice::Required),
        ("ANY", 1) => names.into_iter().next().map(ToolChoice::One),
        ("ANY", _) => Some(ToolChoice::Among {
            names,
            required: true,
        }),
        ("VALIDATED", 0) => {
            let path = "toolConfig.functionCallingConfig.mode";
            own.insert(path.to_owned(), Value::String(mode));
            Some(ToolChoice::Auto)
        }
        ("VALIDATED", _) => Some(ToolChoice::Among {
            names,
            required: false,
        }),
        ("" | "MODE_UNSPECIFIED", _) => None,
        _ => return Err(calling.bad("mode", "must be AUTO, ANY, NONE or VALIDATED")),
    };
    keep_under(own, "toolConfig.functionCallingConfig", calling.rest());
    Ok(choice)
}

fn names(calling: &mut Fields) -> Result<Vec<String>, Bad> {
    const FIELD: &str = "allowedFunctionNames";
    let list = calling.list(FIELD)?.unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(name) => Ok(name),
        _ => Err(calling.bad(FIELD, "must be a list of strings")),
    };
    list.into_iter().map(text).collect()
}
