//! Tools and the choice among them, both ways.

use serde_json::{Map, Value, json};

use super::super::wire::NAME;
use super::value::{left, list, need_object, need_text, object, take, take_text, text};
use super::write::Dropped;
use crate::error::Bad;
use crate::hub::{Field, Own, Request, Tool, ToolChoice, ToolKind, ToolNames};

/// Reads `tools`.
pub(super) fn read(tools: Vec<Value>) -> Result<Vec<Tool>, Bad> {
    let numbered = tools.into_iter().enumerate();
    numbered
        .map(|(at, tool)| read_tool(tool, &format!("tools[{at}]")))
        .collect()
}

/// Reads the deprecated `functions`.
pub(super) fn read_functions(functions: Vec<Value>) -> Result<Vec<Tool>, Bad> {
    let numbered = functions.into_iter().enumerate();
    numbered
        .map(|(at, function)| {
            let path = format!("functions[{at}]");
            read_function(object(function, &path)?, &path, Map::new(), None)
        })
        .collect()
}

fn read_tool(value: Value, path: &str) -> Result<Tool, Bad> {
    let mut map = object(value, path)?;
    let kind = map
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("function");
    match kind {
        "function" => {
            let function = need_object(&mut map, "function", path)?;
            map.shift_remove("type");
            let cache = super::parts::take_cache(&mut map);
            read_function(function, &format!("{path}.function"), left(map), cache)
        }
        "custom" => {
            let mut custom = need_object(&mut map, "custom", path)?;
            let path = format!("{path}.custom");
            let kind = ToolKind::Custom {
                name: need_text(&mut custom, "name", &path)?,
                description: take_text(&mut custom, "description", &path)?,
                format: take(&mut custom, "format").map(flat_grammar),
            };
            Ok(Tool {
                kind,
                cache: None,
                own: Own::NONE,
            })
        }
        _ => Ok(Tool {
            kind: ToolKind::Foreign {
                format: NAME,
                value: map.into(),
            },
            cache: None,
            own: Own::NONE,
        }),
    }
}

fn read_function(
    mut function: Map<String, Value>,
    path: &str,
    mut own: Map<String, Value>,
    cache: Option<String>,
) -> Result<Tool, Bad> {
    let name = need_text(&mut function, "name", path)?;
    if name.is_empty() {
        return Err(Bad::new(format!("{path}.name"), "must not be empty"));
    }
    let parameters = take(&mut function, "parameters");
    if parameters
        .as_ref()
        .is_some_and(|schema| !schema.is_object())
    {
        return Err(Bad::new(
            format!("{path}.parameters"),
            "must be a JSON Schema object",
        ));
    }
    let kind = ToolKind::Function {
        name,
        description: take_text(&mut function, "description", path)?,
        parameters,
        strict: take(&mut function, "strict").and_then(|strict| strict.as_bool()),
    };
    let function = left(function);
    if !function.is_empty() {
        own.insert("function".to_owned(), function.into());
    }
    Ok(Tool {
        kind,
        cache,
        own: Own::of(NAME, own),
    })
}

/// `{type: grammar, grammar: {definition, syntax}}` as the hub has it: flat.
fn flat_grammar(format: Value) -> Value {
    match (format.get("type"), format.get("grammar")) {
        (Some(kind), Some(Value::Object(grammar))) => {
            let mut flat = Map::from_iter([("type".to_owned(), kind.clone())]);
            flat.extend(grammar.clone());
            flat.into()
        }
        _ => format,
    }
}

fn nested_grammar(format: &Value) -> Value {
    match format.as_object() {
        Some(flat) if flat.get("type").is_some_and(|kind| kind == "grammar") => {
            let mut inner = flat.clone();
            inner.shift_remove("type");
            json!({"type": "grammar", "grammar": inner})
        }
        _ => format.clone(),
    }
}

/// Reads `web_search_options`, which is this format's way to name the tool.
pub(super) fn read_web_search(value: Value) -> Result<Tool, Bad> {
    let mut options = object(value, "web_search_options")?;
    let mut location = take(&mut options, "user_location");
    let location = location
        .as_mut()
        .and_then(|l| l.get_mut("approximate"))
        .map(Value::take);
    Ok(Tool {
        kind: ToolKind::WebSearch { location },
        cache: None,
        own: Own::of(NAME, left(options)),
    })
}

/// Reads `tool_choice`.
pub(super) fn read_choice(value: Value) -> Result<ToolChoice, Bad> {
    const FIELD: &str = "tool_choice";
    let wrong = || {
        Bad::new(
            FIELD,
            "must be \"none\", \"auto\", \"required\" or an object that names a tool",
        )
    };
    let mut map = match value {
        Value::String(word) => return word_choice(&word).ok_or_else(wrong),
        Value::Object(map) => map,
        _ => return Err(wrong()),
    };
    let kind = need_text(&mut map, "type", FIELD)?;
    match kind.as_str() {
        "function" | "custom" => {
            // Some clients leave the name beside the type, as the responses format has it.
            if let Some(name) = take_text(&mut map, "name", FIELD)? {
                return Ok(ToolChoice::One(name));
            }
            let mut tool = need_object(&mut map, &kind, FIELD)?;
            need_text(&mut tool, "name", &format!("{FIELD}.{kind}")).map(ToolChoice::One)
        }
        "allowed_tools" => {
            let mut allowed = need_object(&mut map, "allowed_tools", FIELD)?;
            let required = take(&mut allowed, "mode").is_some_and(|mode| mode == "required");
            let path = "tool_choice.allowed_tools.tools";
            let tools = list(take(&mut allowed, "tools").unwrap_or_default(), path)?;
            let names = tools.iter().filter_map(|tool| {
                let inner = tool
                    .get("function")
                    .or_else(|| tool.get("custom"))
                    .unwrap_or(tool);
                inner.get("name").and_then(Value::as_str).map(str::to_owned)
            });
            Ok(ToolChoice::Among {
                names: names.collect(),
                required,
            })
        }
        word => word_choice(word).ok_or_else(wrong),
    }
}

fn word_choice(word: &str) -> Option<ToolChoice> {
    Some(match word {
        "none" => ToolChoice::None,
        "auto" => ToolChoice::Auto,
        // `any` is what clients of other formats write.
        "required" | "any" => ToolChoice::Required,
        _ => return None,
    })
}

/// Reads the deprecated `function_call` of a request.
pub(super) fn read_function_call(value: Value) -> Result<ToolChoice, Bad> {
    const FIELD: &str = "function_call";
    match value {
        Value::Object(mut map) => need_text(&mut map, "name", FIELD).map(ToolChoice::One),
        value => word_choice(&text(value, FIELD)?)
            .ok_or_else(|| Bad::new(FIELD, "must be \"none\", \"auto\" or an object with a name")),
    }
}

/// Writes `tools` and `web_search_options`.
pub(super) fn write(
    request: &Request,
    names: &ToolNames,
    body: &mut Map<String, Value>,
    dropped: &mut Dropped,
) -> Result<(), Bad> {
    let mut tools = Vec::new();
    for (at, tool) in request.tools.iter().enumerate() {
        match &tool.kind {
            ToolKind::Function { .. } | ToolKind::Custom { .. } => {
                tools.push(write_tool(tool, request, names, dropped));
            }
            ToolKind::WebSearch { location } => {
                let mut options = tool.own.for_format(NAME).cloned().unwrap_or_default();
                if let Some(place) = location {
                    let place = json!({"type": "approximate", "approximate": place});
                    options.insert("user_location".to_owned(), place);
                }
                body.insert("web_search_options".to_owned(), options.into());
            }
            ToolKind::Foreign { format, value } if *format == NAME => tools.push(value.clone()),
            ToolKind::Foreign { value, .. } => {
                // Where there is no type, the first member says what it is.
                let first = || value.as_object()?.keys().next().map(String::as_str);
                let kind = value["type"].as_str().or_else(first).unwrap_or_default();
                return Err(Bad::new(
                    format!("{}[{at}]", request.name_of(Field::Tools)),
                    format!("is {kind:?}, which this model's provider does not run"),
                ));
            }
        }
        dropped.extend(tool.own.lost_to(NAME));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    Ok(())
}

fn write_tool(tool: &Tool, request: &Request, names: &ToolNames, dropped: &mut Dropped) -> Value {
    let mut own = tool.own.for_format(NAME).cloned().unwrap_or_default();
    let more = own.shift_remove("function");
    let mut out = Map::new();
    let (kind, mut inner) = match &tool.kind {
        ToolKind::Custom {
            name,
            description,
            format,
        } => {
            let mut custom = Map::from_iter([("name".to_owned(), names.sent(name).into())]);
            put(&mut custom, "description", description.clone());
            put(&mut custom, "format", format.as_ref().map(nested_grammar));
            ("custom", custom)
        }
        ToolKind::Function {
            name,
            description,
            parameters,
            strict,
        } => {
            let mut function = Map::from_iter([("name".to_owned(), names.sent(name).into())]);
            put(&mut function, "description", description.clone());
            put(&mut function, "parameters", parameters.clone());
            put(&mut function, "strict", *strict);
            ("function", function)
        }
        _ => ("function", Map::new()),
    };
    if let Some(Value::Object(more)) = more {
        inner.extend(more);
    }
    out.insert("type".to_owned(), kind.into());
    out.insert(kind.to_owned(), inner.into());
    out.extend(own);
    match &tool.cache {
        Some(life) if request.client == NAME => super::parts::put_cache(&mut out, life),
        Some(_) => dropped.push(request.name_of(Field::Cache)),
        None => {}
    }
    out.into()
}

/// A member that is there only if it has a value.
pub(super) fn put(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

/// Writes `tool_choice`. Where the model cannot be forced, it is asked.
pub(super) fn write_choice(
    request: &Request,
    names: &ToolNames,
    can_force: bool,
    dropped: &mut Dropped,
) -> Option<Value> {
    let choice = request.tool_choice.as_ref()?;
    let forces = matches!(
        choice,
        ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Among { required: true, .. }
    );
    let weakened = forces && !can_force;
    if weakened {
        dropped.push(request.name_of(Field::ToolChoice));
    }
    Some(match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required | ToolChoice::One(_) if weakened => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::One(name) => named(request, names, name),
        ToolChoice::Among {
            names: some,
            required,
        } => {
            let mode = if *required && !weakened {
                "required"
            } else {
                "auto"
            };
            let tools: Vec<Value> = some
                .iter()
                .map(|name| named(request, names, name))
                .collect();
            json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}})
        }
    })
}

/// A tool by name, as `tool_choice` says it.
fn named(request: &Request, names: &ToolNames, name: &str) -> Value {
    let is_custom = request
        .tools
        .iter()
        .any(|tool| matches!(&tool.kind, ToolKind::Custom { name: custom, .. } if custom == name));
    let kind = if is_custom { "custom" } else { "function" };
    json!({"type": kind, kind: {"name": names.sent(name)}})
}
