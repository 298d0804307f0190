//! Tools and how they are called.

use serde_json::{Value, json};

use super::{invalid, violation};
use super::{is_third, schema};
use crate::chat_output::{ChatPrompt, Choice, Tool};
use crate::rejection::{Checked, OrRejected};
use crate::tables::schema::{field, list_of, text_of};

/// Checks the tools, and notes them.
pub(super) fn read(body: &Value, model: &str, prompt: &mut ChatPrompt) -> Checked {
    let newer = is_third(model);
    let mut hosted = false;
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let keys = tool.as_object().into_iter().flatten().map(|(key, _)| key);
        hosted |= keys.into_iter().any(|key| !key.starts_with("function"));
        for (index, declaration) in list_of(tool, "functionDeclarations").iter().enumerate() {
            let place = format!("tools[{at}].function_declarations[{index}]");
            let tool = declared(declaration, &place, newer)?;
            if prompt.tools.iter().any(|known| known.name == tool.name) {
                let message = format!("Duplicate function declaration found: {}", tool.name);
                return Err(Box::new(invalid("duplicate-tool", message)));
            }
            prompt.tools.push(tool);
        }
    }
    let config = field(body, "toolConfig").unwrap_or(&Value::Null);
    let served = field(config, "includeServerSideToolInvocations") == Some(&Value::Bool(true));
    if hosted && !prompt.tools.is_empty() && !(newer && served) {
        let message = "Built-in tools and Function Calling cannot be combined in the same request.";
        return Err(Box::new(invalid("mixed-tools", message)));
    }
    prompt.choice = choice(config, &prompt.tools)?;
    Ok(())
}

fn declared(declaration: &Value, place: &str, newer: bool) -> OrRejected<Tool> {
    let name = text_of(declaration, "name").unwrap_or_default();
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let legal = letters.all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
    let most = if newer { 128 } else { 64 };
    if !begins || !legal || name.len() > most {
        let message = format!(
            "* GenerateContentRequest.{place}.name: Invalid function name. Must start with a \
             letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots \
             (.), colons (:), or dashes (-), with a maximum length of {most}.\n"
        );
        return Err(Box::new(invalid("tool-name", message)));
    }
    let own = field(declaration, "parameters");
    let json = field(declaration, "parametersJsonSchema");
    if own.is_some() && json.is_some() {
        let what = "parameters and parameters_json_schema are mutually exclusive";
        return Err(Box::new(violation("two-schemas", place, what)));
    }
    if let Some(own) = own {
        schema::own(own, &format!("{place}.parameters"), newer)?;
    }
    if let Some(json) = json {
        schema::json(json, &format!("{place}.parameters_json_schema"))?;
    }
    let schema = own.or(json).cloned();
    Ok(Tool {
        name: name.to_owned(),
        schema: schema.unwrap_or_else(|| json!({"type": "object"})),
        custom: false,
    })
}

fn choice(config: &Value, tools: &[Tool]) -> OrRejected<Choice> {
    let Some(calling) = field(config, "functionCallingConfig") else {
        return Ok(Choice::Auto);
    };
    let mode = text_of(calling, "mode").unwrap_or("AUTO");
    let names: Vec<&str> = list_of(calling, "allowedFunctionNames")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if !names.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        let message = "Please set allowed_function_names only when function calling mode is ANY or \
            VALIDATED.";
        return Err(Box::new(invalid("allowed-names", message)));
    }
    for name in &names {
        if !tools.iter().any(|tool| tool.name == *name) {
            let message = format!(
                "allowed_function_names should be a subset of the declared functions: `{name}` is \
                 not."
            );
            return Err(Box::new(invalid("allowed-names", message)));
        }
    }
    Ok(match (mode, names.as_slice()) {
        ("NONE", _) => Choice::Never,
        ("ANY", [one]) => Choice::One((*one).to_owned()),
        ("ANY", _) if tools.is_empty() => {
            let message = "Function calling mode is ANY but no function declarations are given.";
            return Err(Box::new(invalid("choice-without-tools", message)));
        }
        ("ANY", _) => Choice::Any,
        _ => Choice::Auto,
    })
}
