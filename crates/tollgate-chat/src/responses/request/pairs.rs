//! Calls and their results: every call has one result right behind its group, every result a call.
//!
//! Only conversations of clients of other formats are mended so. One of this format may have its calls at the vendor
//! (`previous_response_id`) and is left as it came.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use crate::hub::fitting_id;

/// An item of `input` before it is paired.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// A tool call.
    Call {
        /// The call's id as the client has it.
        id: String,
        /// A free-text tool.
        custom: bool,
        /// The item.
        value: Value,
    },
    /// A tool's result.
    Result {
        /// The call's id as the client has it.
        id: String,
        /// The item.
        value: Value,
    },
    /// Thinking; `is_known`: the vendor knows it.
    Reasoning {
        /// Whether the vendor signed it or has it under its id.
        is_known: bool,
        /// The item.
        value: Value,
    },
    /// Anything else.
    Other {
        /// The item.
        value: Value,
        /// Whether it is not the model's, so that results must come before it.
        ends_calls: bool,
    },
}

/// The longest id of a call that OpenAI takes.
const ID_MAX: usize = 64;

/// What a call without a result is given: upstreams refuse it otherwise.
const NO_RESULT: &str = "Error: no result was given for this call";

/// Joins the pieces of reasoning items. What no vendor knows is left out; tells whether something was.
pub(super) fn join_reasoning(items: Vec<Item>) -> (Vec<Item>, bool) {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        if let Item::Reasoning { value, is_known } = &item
            && let Some(Item::Reasoning {
                value: before,
                is_known: before_known,
            }) = out.last_mut()
            && goes_on(before, value)
        {
            join(before, value);
            *before_known |= is_known;
            continue;
        }
        out.push(item);
    }
    let count = out.len();
    out.retain(|item| {
        !matches!(
            item,
            Item::Reasoning {
                is_known: false,
                ..
            }
        )
    });
    let lost = out.len() != count;
    (out, lost)
}

/// Whether `next` is more of the item `before`: nothing has proved that one yet, and the ids agree.
fn goes_on(before: &Value, next: &Value) -> bool {
    before["encrypted_content"].is_null() && before["id"] == next["id"]
}

fn join(before: &mut Value, next: &Value) {
    for list in ["summary", "content"] {
        let Some(more) = next[list].as_array().filter(|more| !more.is_empty()) else {
            continue;
        };
        match before[list].as_array_mut() {
            Some(there) => there.extend(more.iter().cloned()),
            None => before[list] = Value::Array(more.clone()),
        }
    }
    if let Some(proof) = next.get("encrypted_content") {
        before["encrypted_content"] = proof.clone();
    }
}

/// The items as they are.
pub(super) fn unpaired(items: Vec<Item>) -> Vec<Value> {
    let value = |item| match item {
        Item::Call { value, .. }
        | Item::Result { value, .. }
        | Item::Reasoning { value, .. }
        | Item::Other { value, .. } => value,
    };
    items.into_iter().map(value).collect()
}

/// The items with every call answered right behind its group, ids made fitting and unique, and results without a call turned into
/// words of the user.
pub(super) fn paired(mut items: Vec<Item>) -> Vec<Value> {
    let mut pairing = Pairing::default();
    for (at, item) in items.iter().enumerate() {
        if let Item::Result { id, .. } = item {
            pairing.results.entry(id.clone()).or_default().push_back(at);
        }
    }
    for at in 0..items.len() {
        match std::mem::replace(&mut items[at], TAKEN) {
            Item::Call { id, custom, value } => pairing.call(at, &id, custom, value, &mut items),
            Item::Result { value, .. } => {
                pairing.answer();
                pairing.out.extend(orphan(&value));
            }
            Item::Reasoning { value, .. } => pairing.out.push(value),
            // A result that went to its call: what follows comes after it.
            Item::Other { value, .. } if value.is_null() => pairing.answer(),
            Item::Other { value, ends_calls } => {
                if ends_calls {
                    pairing.answer();
                }
                pairing.out.push(value);
            }
        }
    }
    pairing.answer();
    pairing.out
}

/// Stands where a result was that went to its call.
const TAKEN: Item = Item::Other {
    value: Value::Null,
    ends_calls: false,
};

#[derive(Default)]
struct Pairing {
    /// Where the results of each id stand, first come first served: ids may repeat from turn to turn.
    results: HashMap<String, VecDeque<usize>>,
    used: HashSet<String>,
    /// The results of the group of calls that is open.
    waiting: Vec<Value>,
    out: Vec<Value>,
}

impl Pairing {
    fn call(&mut self, at: usize, id: &str, custom: bool, mut value: Value, items: &mut [Item]) {
        let sent = self.unique(id, at);
        value["call_id"] = sent.as_str().into();
        self.out.push(value);
        let places = self.results.get_mut(id);
        let place = places.and_then(|places| {
            let next = places.iter().position(|place| *place > at)?;
            places.remove(next)
        });
        let result = place.map(|place| std::mem::replace(&mut items[place], TAKEN));
        let kind = match custom {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        self.waiting.push(match result {
            Some(Item::Result { mut value, .. }) => {
                value["call_id"] = sent.into();
                value["type"] = kind.into();
                value
            }
            _ => json!({"type": kind, "call_id": sent, "output": NO_RESULT}),
        });
    }

    /// An id that fits and that no call before has.
    fn unique(&mut self, id: &str, at: usize) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut sent = match id {
            "" => format!("call_{at}"),
            id => fitting_id(id, ID_MAX, plain).into_owned(),
        };
        let mut more = 2;
        while !self.used.insert(sent.clone()) {
            sent = fitting_id(&format!("{id}_{more}"), ID_MAX, plain).into_owned();
            more += 1;
        }
        sent
    }

    fn answer(&mut self) {
        self.out.append(&mut self.waiting);
    }
}

/// A result whose call is nowhere, as words of the user; nothing where it is empty.
fn orphan(value: &Value) -> Option<Value> {
    let content = match &value["output"] {
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => Value::String(format!("Tool result: {text}")),
        other => other.clone(),
    };
    Some(json!({"role": "user", "content": content}))
}
