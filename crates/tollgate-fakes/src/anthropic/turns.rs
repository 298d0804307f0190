//! The messages in their order: turns of one side taken together, calls and results in pairs.

use serde_json::Value;

use super::invalid;
use crate::rejection::{Checked, Rejection};
use crate::tables::schema::{list_of, text_of};

/// All that one side says before the other speaks.
struct Turn<'a> {
    user: bool,
    /// The number of its first message.
    at: usize,
    blocks: Vec<&'a Value>,
    /// Its last text, if the turn ends with one.
    end: Option<&'a str>,
}

/// Checks the order of the messages.
pub(super) fn check(body: &Value, generation: f64) -> Checked {
    let messages = list_of(body, "messages");
    if messages.is_empty() {
        let message = "messages: at least one message is required";
        return Err(Box::new(invalid("messages", message)));
    }
    for (at, message) in messages.iter().enumerate() {
        let content = &message["content"];
        let empty = content.as_str().is_some_and(str::is_empty)
            || content.as_array().is_some_and(Vec::is_empty);
        if empty && !(at + 1 == messages.len() && message["role"] == "assistant") {
            let message = format!(
                "messages.{at}: all messages must have non-empty content except for the optional \
                 final assistant message"
            );
            return Err(Box::new(invalid("empty-message", message)));
        }
        if message["role"] == "system" && generation < 4.7 {
            let message = "messages: Unexpected role \"system\". The Messages API accepts a \
                top-level `system` parameter, not \"system\" as an input message role.";
            return Err(Box::new(invalid("system-role", message)));
        }
    }
    let turns = turns(messages);
    if !turns.first().is_some_and(|turn| turn.user) {
        let message = "messages: first message must use the \"user\" role";
        return Err(Box::new(invalid("first-turn", message)));
    }
    calls(&turns)?;
    prefill(&turns, body, generation)
}

fn turns(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let user_and_model = messages
        .iter()
        .enumerate()
        .filter(|(_, m)| m["role"] != "system");
    for (at, message) in user_and_model {
        let user = message["role"] == "user";
        let blocks = list_of(message, "content");
        let last = blocks.last().and_then(|block| text_of(block, "text"));
        let end = last.or(message["content"].as_str());
        match turns.last_mut() {
            Some(turn) if turn.user == user => {
                turn.blocks.extend(blocks);
                turn.end = end;
            }
            _ => turns.push(Turn {
                user,
                at,
                blocks: blocks.iter().collect(),
                end,
            }),
        }
    }
    turns
}

/// The values of `field` in the blocks of this type.
fn ids<'a>(turn: &Turn<'a>, kind: &str, field: &str) -> Vec<&'a str> {
    let blocks = turn.blocks.iter().filter(|block| block["type"] == kind);
    blocks.filter_map(|block| text_of(block, field)).collect()
}

fn calls(turns: &[Turn<'_>]) -> Checked {
    let mut all: Vec<&str> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        if turn.user {
            let before = at.checked_sub(1).map(|before| &turns[before]);
            let called = before.map_or(Vec::new(), |turn| ids(turn, "tool_use", "id"));
            results(turn, &called)?;
            continue;
        }
        let called = ids(turn, "tool_use", "id");
        for id in &called {
            if all.contains(id) {
                let message = format!("messages.{}: `tool_use` ids must be unique", turn.at);
                return Err(Box::new(invalid("duplicate-id", message)));
            }
            all.push(id);
        }
        let answered = turns.get(at + 1).map_or(Vec::new(), leading_results);
        let open: Vec<&str> = called
            .into_iter()
            .filter(|id| !answered.contains(id))
            .collect();
        if !open.is_empty() {
            return Err(unanswered(turn.at, &open));
        }
    }
    Ok(())
}

/// The ids of the results that stand before all else.
fn leading_results<'a>(turn: &Turn<'a>) -> Vec<&'a str> {
    let blocks = turn.blocks.iter();
    let leading = blocks.take_while(|block| block["type"] == "tool_result");
    leading
        .filter_map(|block| text_of(block, "tool_use_id"))
        .collect()
}

fn unanswered(at: usize, open: &[&str]) -> Box<Rejection> {
    let message = format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        open.join(", ")
    );
    Box::new(invalid("missing-result", message))
}

/// Each result belongs to one call of the turn before.
fn results(turn: &Turn<'_>, called: &[&str]) -> Checked {
    let mut given: Vec<&str> = Vec::new();
    for id in ids(turn, "tool_result", "tool_use_id") {
        if !called.contains(&id) {
            let message = format!(
                "messages.{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous \
                 message.",
                turn.at
            );
            return Err(Box::new(invalid("orphan-result", message)));
        }
        if given.contains(&id) {
            let message = format!(
                "messages.{}: each tool_use must have a single result. Found multiple \
                 `tool_result` blocks with id: {id}",
                turn.at
            );
            return Err(Box::new(invalid("double-result", message)));
        }
        given.push(id);
    }
    Ok(())
}

/// The rules of a last message of the model's own, and of thought before calls.
fn prefill(turns: &[Turn<'_>], body: &Value, generation: f64) -> Checked {
    let enabled = body["thinking"]["type"] == "enabled";
    let last = turns.last();
    if let Some(turn) = last.filter(|turn| !turn.user) {
        if generation >= 4.6 || enabled {
            let message = "This model does not support assistant message prefill. The \
                conversation must end with a user message.";
            return Err(Box::new(invalid("prefill", message)));
        }
        if turn
            .end
            .is_some_and(|end| end.ends_with(char::is_whitespace))
        {
            let message = "messages: final assistant content cannot end with trailing whitespace";
            return Err(Box::new(invalid("trailing-space", message)));
        }
        return Ok(());
    }
    let goes_on = last.is_some_and(|turn| !leading_results(turn).is_empty());
    let before = turns.iter().rfind(|turn| !turn.user);
    let Some(before) = before.filter(|_| enabled && goes_on) else {
        return Ok(());
    };
    let first = before
        .blocks
        .first()
        .and_then(|block| text_of(block, "type"));
    if matches!(first, Some("thinking" | "redacted_thinking")) {
        return Ok(());
    }
    let found = first.unwrap_or("text");
    let message = format!(
        "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `{found}`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
        before.at
    );
    Err(Box::new(invalid("thinking-first", message)))
}
