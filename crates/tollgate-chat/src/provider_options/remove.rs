//! Removes options that are not allowed from a request.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::find::{is_cache_member_name, is_long, untyped_tool};
use super::option::{FoundOption, ProviderOption};
use crate::error::InvalidRequest;
use crate::output_cap::append_member;

/// The body without those options. `store` becomes `false` if the provider would store the response without it (the responses format).
///
/// # Errors
/// If the body is not JSON; if no tools remain, or the model is forced to call a tool that is removed: the response would differ.
pub fn remove_options(body: &[u8], options: &[&FoundOption]) -> Result<Bytes, InvalidRequest> {
    let mut request: Value = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let is_responses = request.get("input").is_some();
    remove_tools(&mut request, options)?;
    for found in options.iter().filter(|found| !found.is_tool()) {
        if found.option == ProviderOption::CacheWrite1h {
            shorten_cache_writes(&mut request, false);
            continue;
        }
        let Some(members) = request.as_object_mut() else {
            continue;
        };
        match found.option {
            ProviderOption::Store if is_responses => {
                members.insert(found.field.clone(), false.into())
            }
            _ => members.shift_remove(&found.field),
        };
    }
    Ok(Bytes::from(request.to_string()))
}

/// Adds `store: false` to a request of the responses format whose `store` is missing or null, because the provider stores responses by default.
/// `None` if `store` has a value, or the body is not a JSON object.
pub fn add_store_false(body: &[u8]) -> Option<Bytes> {
    if memchr::memmem::find(body, b"\"store\"").is_some() {
        // `store` occurs in the body, as a member or only in a text.
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        if members.get("store").is_some_and(|store| !store.is_null()) {
            return None;
        }
        members.insert("store".to_owned(), false.into());
        return serde_json::to_vec(&members).ok().map(Bytes::from);
    }
    append_member(body, "\"store\":false")
}

/// Removes the tools among `options`, and their names from a tool choice that lists allowed tools. The last tool is removed first, so that the
/// indices of the others stay valid; tools within a removed one are removed with it.
fn remove_tools(request: &mut Value, options: &[&FoundOption]) -> Result<(), InvalidRequest> {
    let mut removed: Vec<&str> = Vec::new();
    for found in options.iter().rev().filter(|found| found.is_tool()) {
        let is_within = |outer: &&str| {
            let rest = found.field.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if removed.iter().any(is_within) {
            continue;
        }
        // The field is `tools[2]`, or `tools[1].tools[2]` within a namespace.
        let pointer = format!("/{}", found.field.replace(['.', '['], "/").replace(']', ""));
        let (list, index) = pointer.rsplit_once('/').unwrap_or_default();
        let list = request.pointer_mut(list).and_then(Value::as_array_mut);
        let (Some(list), Ok(index)) = (list, index.parse::<usize>()) else {
            continue;
        };
        if index >= list.len() {
            continue;
        }
        if remove_untyped_tool(&mut list[index], found.option) {
            continue;
        }
        let tool = list.remove(index);
        removed.push(&found.field);
        let is_last = list.is_empty();
        let choice = request.get_mut("tool_choice");
        let is_required =
            |choice: &mut Value| is_forced(choice, &tool) || !remove_allowed_tool(choice, &tool);
        if is_last || choice.is_some_and(is_required) {
            return Err(found.not_available());
        }
    }
    Ok(())
}

/// Removes the members of an option from a tool without a type, which may contain several tools. Returns whether any other tool is left in it; false
/// for a tool with a type, which is removed as a whole.
fn remove_untyped_tool(tool: &mut Value, option: ProviderOption) -> bool {
    let Some(members) = tool.as_object_mut() else {
        return false;
    };
    members.retain(|_, value| !value.is_null());
    let names: Vec<String> = members
        .keys()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    if names.iter().any(|name| name == "type") {
        return false;
    }
    let option_of = |name: &str| untyped_tool(&name.to_ascii_lowercase(), &names);
    if members.keys().all(|name| option_of(name) == Some(option)) {
        return false;
    }
    members.retain(|name, _| option_of(name) != Some(option));
    true
}

/// Removes a tool from a tool choice of type `allowed_tools`. Returns whether any allowed tool is left, and true for another choice.
fn remove_allowed_tool(choice: &mut Value, tool: &Value) -> bool {
    // The responses format lists them in `tools`, chat-completions in `allowed_tools.tools`.
    let pointers = ["/tools", "/allowed_tools/tools"];
    let pointer = pointers.into_iter().find(|p| choice.pointer(p).is_some());
    let list = pointer.and_then(|pointer| choice.pointer_mut(pointer)?.as_array_mut());
    let Some(list) = list else {
        return true;
    };
    let is_same = |named: &Value| {
        let members = ["type", "name", "server_label"];
        let is_equal = |member| named[member].is_null() || named[member] == tool[member];
        !named["type"].is_null() && members.into_iter().all(is_equal)
    };
    list.retain(|named| !is_same(named));
    !list.is_empty()
}

/// Whether the tool choice forces that tool, by its type or name.
fn is_forced(choice: &Value, tool: &Value) -> bool {
    let is_same = |member: &str| choice[member].is_string() && choice[member] == tool[member];
    is_same("type") || is_same("name")
}

/// Removes ttls of cache writes that are longer than the provider's default.
fn shorten_cache_writes(value: &mut Value, is_cache_member: bool) {
    match value {
        Value::Array(list) => list
            .iter_mut()
            .for_each(|item| shorten_cache_writes(item, false)),
        Value::Object(members) => {
            if is_cache_member {
                members.retain(|name, ttl| {
                    !(name.eq_ignore_ascii_case("ttl") && ttl.as_str().is_some_and(is_long))
                });
            }
            for (name, member) in members.iter_mut() {
                shorten_cache_writes(member, is_cache_member_name(name));
            }
        }
        _ => {}
    }
}
