//! Reads `tools` and `toolConfig`.

use serde_json::{Map, Value};

use crate::error::InvalidRequest;
use crate::generate_content::constants::NAME;
use crate::generate_content::fields::{Fields, insert_with_prefix};
use crate::generate_content::schema;
use crate::hub::{ExtraFields, Tool, ToolChoice, ToolKind};

/// Adds the tools of one tool object: all its functions, and each hosted tool separately.
pub(crate) fn read_tool(mut tool: Fields, tools: &mut Vec<Tool>) -> Result<(), InvalidRequest> {
    let functions = tool.take_array("functionDeclarations")?;
    for (at, function) in functions.into_iter().flatten().enumerate() {
        let path = format!("{}[{at}]", tool.member_path("functionDeclarations"));
        tools.push(read_function(Fields::new(function, path)?)?);
    }
    for name in ["googleSearch", "googleSearchRetrieval"] {
        let Some(search) = tool.take_object(name)? else {
            continue;
        };
        let settings = search.into_rest();
        let mut extra = Map::new();
        if !settings.is_empty() {
            extra.insert(name.to_owned(), Value::Object(settings));
        } else if name != "googleSearch" {
            extra.insert(format!(".{name}"), Value::Null);
        }
        tools.push(Tool {
            kind: ToolKind::WebSearch { location: None },
            cache_ttl: None,
            extra: ExtraFields::new(NAME, extra),
        });
    }
    for (name, value) in tool.into_rest() {
        let mut members = Map::new();
        members.insert(name, value);
        tools.push(Tool {
            kind: ToolKind::FormatSpecific {
                format: NAME,
                value: Value::Object(members),
            },
            cache_ttl: None,
            extra: ExtraFields::NONE,
        });
    }
    Ok(())
}

fn read_function(mut function: Fields) -> Result<Tool, InvalidRequest> {
    let name = function.take_required_string("name")?;
    let description = function.take_string("description")?;
    let openapi = function.take_raw_object("parameters")?;
    let json_schema = function.take_raw_object("parametersJsonSchema")?;
    if openapi.is_some() && json_schema.is_some() {
        let why = "must not be given together with `parametersJsonSchema`";
        return Err(function.invalid("parameters", why));
    }
    let mut extra = Map::new();
    let parameters = openapi.as_ref().map(schema::to_json_schema).or(json_schema);
    if let Some(openapi) = openapi {
        extra.insert(".parameters".to_owned(), openapi);
    }
    extra.extend(function.into_rest());
    Ok(Tool {
        kind: ToolKind::Function {
            name,
            description,
            parameters,
            strict: None,
        },
        cache_ttl: None,
        extra: ExtraFields::new(NAME, extra),
    })
}

/// Reads `toolConfig`.
pub(crate) fn read_choice(
    mut config: Fields,
    extra: &mut Map<String, Value>,
) -> Result<Option<ToolChoice>, InvalidRequest> {
    let calling = config.take_object("functionCallingConfig")?;
    insert_with_prefix(extra, "toolConfig", config.into_rest());
    let Some(mut calling) = calling else {
        return Ok(None);
    };
    let mode = calling
        .take_string("mode")?
        .unwrap_or_default()
        .to_ascii_uppercase();
    let names = read_allowed_names(&mut calling)?;
    let choice = match (mode.as_str(), names.len()) {
        ("AUTO", _) => Some(ToolChoice::Auto),
        ("NONE", _) => Some(ToolChoice::None),
        ("ANY", 0) => Some(ToolChoice::Required),
        ("ANY", 1) => names.into_iter().next().map(ToolChoice::Tool),
        ("ANY", _) => Some(ToolChoice::AllowedTools {
            names,
            required: true,
        }),
        ("VALIDATED", 0) => {
            let path = "toolConfig.functionCallingConfig.mode";
            extra.insert(path.to_owned(), Value::String(mode));
            Some(ToolChoice::Auto)
        }
        ("VALIDATED", _) => Some(ToolChoice::AllowedTools {
            names,
            required: false,
        }),
        ("" | "MODE_UNSPECIFIED", _) => None,
        _ => return Err(calling.invalid("mode", "must be AUTO, ANY, NONE or VALIDATED")),
    };
    insert_with_prefix(
        extra,
        "toolConfig.functionCallingConfig",
        calling.into_rest(),
    );
    Ok(choice)
}

fn read_allowed_names(calling: &mut Fields) -> Result<Vec<String>, InvalidRequest> {
    const FIELD: &str = "allowedFunctionNames";
    let list = calling.take_array(FIELD)?.unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(name) => Ok(name),
        _ => Err(calling.invalid(FIELD, "must be a list of strings")),
    };
    list.into_iter().map(text).collect()
}
