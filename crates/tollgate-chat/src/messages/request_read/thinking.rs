//! Reads `thinking` and `output_config.effort`.

use serde_json::{Map, Value, json};

use crate::hub::{Effort, ExtraFields, Reasoning};
use crate::messages::constants::NAME;
use crate::messages::notes::{NOTE_EFFORT, NOTE_THINKING_TYPE};

/// Reads `thinking` and takes the effort out of `output_config`. The summary has checked both.
pub(crate) fn read_thinking(
    mut thinking: Map<String, Value>,
    output_config: &mut Map<String, Value>,
) -> Option<Reasoning> {
    let effort = output_config.shift_remove("effort");
    let effort = effort.and_then(|word| Effort::parse(word.as_str()?));
    if thinking.is_empty() && effort.is_none() {
        return None;
    }
    let mut out = Reasoning {
        effort,
        ..Reasoning::default()
    };
    let kind = thinking.shift_remove("type");
    match kind.as_ref().and_then(Value::as_str) {
        Some("enabled") => {
            out.budget = thinking
                .shift_remove("budget_tokens")
                .and_then(|n| n.as_i64());
        }
        Some("adaptive") => out.adaptive = true,
        Some("disabled") => {
            if let Some(effort) = out.effort.replace(Effort::None) {
                thinking.insert(NOTE_EFFORT.to_owned(), json!(effort.as_str()));
            }
        }
        Some(other) => {
            thinking.insert(NOTE_THINKING_TYPE.to_owned(), json!(other));
        }
        None => {}
    }
    out.display = match thinking.shift_remove("display") {
        Some(Value::String(show)) => Some(show),
        _ => None,
    };
    thinking.retain(|_, value| !value.is_null());
    out.extra = ExtraFields::new(NAME, thinking);
    Some(out)
}
