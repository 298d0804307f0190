//! Pairs tool calls with their results: every call gets one result right behind its group of calls,
//! every result a call.
//!
//! Only for clients of other formats. A client of this format may have its calls stored at the
//! vendor (`previous_response_id`), so its items are left as they are.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use crate::hub::sanitize_id;

/// An item of `input` before pairing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputItem {
    /// A tool call.
    Call {
        /// The call's id as the client sent it.
        id: String,
        /// Whether the tool is a custom (free-text) tool.
        custom: bool,
        /// The item's JSON.
        value: Value,
    },
    /// The result of a tool call.
    Result {
        /// The call's id as the client sent it.
        id: String,
        /// The item's JSON.
        value: Value,
    },
    /// A reasoning item.
    Reasoning {
        /// Whether the vendor signed it or stores it under its id.
        is_known: bool,
        /// The item's JSON.
        value: Value,
    },
    /// Anything else.
    Other {
        /// The item's JSON.
        value: Value,
        /// Whether it is not the model's: then the results of open calls must come before it.
        ends_calls: bool,
    },
}

/// The longest `call_id` that OpenAI accepts, in characters.
const MAX_CALL_ID_LENGTH: usize = 64;

/// Output for a call without a result: upstreams reject such a call.
const NO_RESULT: &str = "Error: no result was given for this call";

/// Merges consecutive parts of one reasoning item, and drops items that the vendor does not know.
/// Returns the items and whether any was dropped.
pub(crate) fn join_reasoning(items: Vec<InputItem>) -> (Vec<InputItem>, bool) {
    let mut out: Vec<InputItem> = Vec::with_capacity(items.len());
    for item in items {
        if let InputItem::Reasoning { value, is_known } = &item
            && let Some(InputItem::Reasoning {
                value: before,
                is_known: before_known,
            }) = out.last_mut()
            && continues_item(before, value)
        {
            merge_reasoning(before, value);
            *before_known |= is_known;
            continue;
        }
        out.push(item);
    }
    let count = out.len();
    out.retain(|item| {
        !matches!(
            item,
            InputItem::Reasoning {
                is_known: false,
                ..
            }
        )
    });
    let dropped = out.len() != count;
    (out, dropped)
}

/// Whether `next` continues the item `before`: that one has no signature yet and the ids are equal.
fn continues_item(before: &Value, next: &Value) -> bool {
    before["encrypted_content"].is_null() && before["id"] == next["id"]
}

fn merge_reasoning(before: &mut Value, next: &Value) {
    for list in ["summary", "content"] {
        let Some(more) = next[list].as_array().filter(|more| !more.is_empty()) else {
            continue;
        };
        match before[list].as_array_mut() {
            Some(existing) => existing.extend(more.iter().cloned()),
            None => before[list] = Value::Array(more.clone()),
        }
    }
    if let Some(proof) = next.get("encrypted_content") {
        before["encrypted_content"] = proof.clone();
    }
}

/// The items' JSON without any changes.
pub(crate) fn item_values(items: Vec<InputItem>) -> Vec<Value> {
    let value = |item| match item {
        InputItem::Call { value, .. }
        | InputItem::Result { value, .. }
        | InputItem::Reasoning { value, .. }
        | InputItem::Other { value, .. } => value,
    };
    items.into_iter().map(value).collect()
}

/// The items with a result behind every group of calls, valid and unique call ids, and results
/// without a call as user messages.
pub(crate) fn pair_calls_with_results(mut items: Vec<InputItem>) -> Vec<Value> {
    let mut pairing = Pairing::default();
    for (at, item) in items.iter().enumerate() {
        if let InputItem::Result { id, .. } = item {
            pairing.results.entry(id.clone()).or_default().push_back(at);
        }
    }
    for at in 0..items.len() {
        match std::mem::replace(&mut items[at], MOVED_RESULT) {
            InputItem::Call { id, custom, value } => {
                pairing.pair_call(at, &id, custom, value, &mut items)
            }
            InputItem::Result { value, .. } => {
                pairing.flush_results();
                pairing.out.extend(orphan_result_message(&value));
            }
            InputItem::Reasoning { value, .. } => pairing.out.push(value),
            // A result that was moved to its call; what follows it comes after the results.
            InputItem::Other { value, .. } if value.is_null() => pairing.flush_results(),
            InputItem::Other { value, ends_calls } => {
                if ends_calls {
                    pairing.flush_results();
                }
                pairing.out.push(value);
            }
        }
    }
    pairing.flush_results();
    pairing.out
}

/// Takes the position of a result that was moved to its call.
const MOVED_RESULT: InputItem = InputItem::Other {
    value: Value::Null,
    ends_calls: false,
};

#[derive(Default)]
struct Pairing {
    /// The positions of the results of each id, in order: ids may repeat in later turns.
    results: HashMap<String, VecDeque<usize>>,
    used: HashSet<String>,
    /// The results of the open group of calls.
    pending_results: Vec<Value>,
    out: Vec<Value>,
}

impl Pairing {
    fn pair_call(
        &mut self,
        at: usize,
        id: &str,
        custom: bool,
        mut value: Value,
        items: &mut [InputItem],
    ) {
        let sent = self.unique_call_id(id, at);
        value["call_id"] = sent.as_str().into();
        self.out.push(value);
        let positions = self.results.get_mut(id);
        let position = positions.and_then(|positions| {
            let next = positions.iter().position(|position| *position > at)?;
            positions.remove(next)
        });
        let result = position.map(|position| std::mem::replace(&mut items[position], MOVED_RESULT));
        let kind = match custom {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        self.pending_results.push(match result {
            Some(InputItem::Result { mut value, .. }) => {
                value["call_id"] = sent.into();
                value["type"] = kind.into();
                value
            }
            _ => json!({"type": kind, "call_id": sent, "output": NO_RESULT}),
        });
    }

    /// A valid id that no call before has.
    fn unique_call_id(&mut self, id: &str, at: usize) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut sent = match id {
            "" => format!("call_{at}"),
            id => sanitize_id(id, MAX_CALL_ID_LENGTH, plain).into_owned(),
        };
        let mut more = 2;
        while !self.used.insert(sent.clone()) {
            sent = sanitize_id(&format!("{id}_{more}"), MAX_CALL_ID_LENGTH, plain).into_owned();
            more += 1;
        }
        sent
    }

    fn flush_results(&mut self) {
        self.out.append(&mut self.pending_results);
    }
}

/// A result without a call as a user message. `None` if it is empty.
fn orphan_result_message(value: &Value) -> Option<Value> {
    let content = match &value["output"] {
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => Value::String(format!("Tool result: {text}")),
        other => other.clone(),
    };
    Some(json!({"role": "user", "content": content}))
}
