//! `namespace` tools: functions of the client under a common name. Only a format with a [`super::ClientFormat::read_namespaced_tool`] has them.
//! In other formats each function gets the name `namespace__function`; in calls that a client of such a format receives, both names are restored.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::extra_fields::ExtraFields;
use super::part::{Part, PartKind};
use super::request::Request;
use super::tool::{Tool, ToolChoice, ToolKind};
use crate::error::InvalidRequest;

/// The `type` of the tool, and the member of a call that names its namespace.
const TYPE: &str = "namespace";

/// A function in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespacedName {
    /// The function's name in formats without namespaces.
    pub(crate) flat: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The name of a function in formats without namespaces.
pub(crate) fn flat_name(namespace: &str, name: &str) -> String {
    format!("{namespace}__{name}")
}

/// The functions of all namespaces of a request.
pub(crate) fn namespaced_names(request: &Request) -> Vec<NamespacedName> {
    let mut names = Vec::new();
    for (namespace, functions) in namespaces(request) {
        let functions = functions.iter().filter_map(|f| f["name"].as_str());
        names.extend(functions.map(|name| NamespacedName {
            flat: flat_name(namespace, name),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }));
    }
    names
}

/// The flat names of the free-text tools in namespaces.
pub(crate) fn namespaced_custom_tools(request: &Request) -> Vec<String> {
    let mut names = Vec::new();
    for (namespace, tools) in namespaces(request) {
        let custom = tools.iter().filter(|tool| tool["type"] == "custom");
        let custom = custom.filter_map(|tool| tool["name"].as_str());
        names.extend(custom.map(|name| flat_name(namespace, name)));
    }
    names
}

/// The name and the functions of every namespace of a request.
fn namespaces(request: &Request) -> impl Iterator<Item = (&str, &[Value])> {
    let has_namespaces = request.client_format.read_namespaced_tool.is_some();
    let tools = request.tools.iter().filter(move |_| has_namespaces);
    tools.filter_map(as_namespace)
}

/// The name and the functions of a namespace. `tool` is of a format that has namespaces.
fn as_namespace(tool: &Tool) -> Option<(&str, &[Value])> {
    let ToolKind::FormatSpecific { value, .. } = &tool.kind else {
        return None;
    };
    if value["type"] != TYPE {
        return None;
    }
    Some((value["name"].as_str()?, value["tools"].as_array()?))
}

/// Converts the request for a format without namespaces: the functions of a namespace become separate tools.
///
/// # Errors
/// A tool in a namespace is malformed.
pub fn flatten_namespaces(request: &Request) -> Result<Cow<'_, Request>, InvalidRequest> {
    let Some(read_tool) = request.client_format.read_namespaced_tool else {
        return Ok(Cow::Borrowed(request));
    };
    let names = namespaced_names(request);
    let is_in_namespace = |part: &Part| part.extra.get(TYPE).is_some();
    let mut parts = request.turns.iter().flat_map(|turn| &turn.parts);
    if names.is_empty() && !parts.any(is_in_namespace) {
        return Ok(Cow::Borrowed(request));
    }
    let mut flat = request.clone();
    flat.tools.clear();
    for (at, tool) in request.tools.iter().enumerate() {
        match as_namespace(tool) {
            None => flat.tools.push(tool.clone()),
            Some((namespace, functions)) => {
                let path = |i| format!("tools[{at}].tools[{i}]");
                for (i, function) in functions.iter().enumerate() {
                    let tool = read_tool(function.clone(), &path(i))?;
                    flat.tools.push(rename(tool, namespace, &path(i))?);
                }
            }
        }
    }
    for part in flat.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        flatten_call(part, request.client_format.name);
    }
    let is_tool = |name: &str| {
        let mut tools = request.tools.iter();
        tools.any(|tool| matches!(&tool.kind, ToolKind::Function { name: own, .. } | ToolKind::Custom { name: own, .. } if own == name))
    };
    let flatten = |name: &mut String| {
        if !is_tool(name)
            && let Some(found) = names.iter().find(|n| n.name == *name)
        {
            name.clone_from(&found.flat);
        }
    };
    match &mut flat.tool_choice {
        Some(ToolChoice::Tool(name)) => flatten(name),
        Some(ToolChoice::AllowedTools { names, .. }) => names.iter_mut().for_each(flatten),
        _ => {}
    }
    Ok(Cow::Owned(flat))
}

/// A function of a namespace under its flat name.
fn rename(mut tool: Tool, namespace: &str, path: &str) -> Result<Tool, InvalidRequest> {
    match &mut tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } if !name.is_empty() => {
            *name = flat_name(namespace, name);
            Ok(tool)
        }
        ToolKind::Function { .. } | ToolKind::Custom { .. } => Err(InvalidRequest::new(
            format!("{path}.name"),
            "is required: a string",
        )),
        _ => {
            let why = "must be `function` or `custom`: this model's provider runs no other tools";
            Err(InvalidRequest::new(format!("{path}.type"), why))
        }
    }
}

/// Renames a call in the history that names its namespace to the flat name. `format` is the name of the client's format.
fn flatten_call(part: &mut Part, format: &'static str) {
    let namespace = part.extra.get(TYPE).and_then(Value::as_str);
    let PartKind::ToolCall { name, .. } = &mut part.kind else {
        return;
    };
    let Some(namespace) = namespace else { return };
    *name = flat_name(namespace, name);
    let members = part.extra.for_format(format).into_iter().flatten();
    let members = members.filter(|(name, _)| *name != TYPE);
    let members: Map<String, Value> = members.map(|(n, v)| (n.clone(), v.clone())).collect();
    part.extra = ExtraFields::new(format, members);
}
