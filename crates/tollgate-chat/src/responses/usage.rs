//! Converts token counts between the `usage` object of a response and the hub's [`Usage`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::hub::Usage;
use crate::operator_costs::remove_costs;

/// The `usage` object of a response. Missing counts are 0.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    image_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
    image_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let input = wire.input_tokens_details.unwrap_or_default();
        let output = wire.output_tokens_details.unwrap_or_default();
        Self {
            input: wire.input_tokens.unwrap_or(0),
            cache_read: input.cached_tokens.unwrap_or(0),
            cache_write: input.cache_write_tokens.unwrap_or(0),
            input_image: input.image_tokens.unwrap_or(0),
            input_audio: input.audio_tokens.unwrap_or(0),
            output: wire.output_tokens.unwrap_or(0),
            reasoning: output.reasoning_tokens.unwrap_or(0),
            output_image: output.image_tokens.unwrap_or(0),
            output_audio: output.audio_tokens.unwrap_or(0),
            ..Self::default()
        }
    }
}

/// The type of the output items of web searches that the provider ran.
const WEB_SEARCH_CALL: &str = "web_search_call";

/// The number of web searches that the provider ran for a response: the output items of their type whose action is a search. OpenAI charges searches,
/// not the pages that the model opens or searches in: <https://developers.openai.com/api/docs/guides/tools-web-search>.
pub(super) fn count_web_searches(response: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow, default)]
        output: Vec<Item<'a>>,
    }
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Cow<'a, str>>,
        #[serde(borrow)]
        action: Option<Action<'a>>,
    }
    #[derive(Deserialize)]
    struct Action<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Cow<'a, str>>,
    }
    // Most responses have none, and their items are not parsed.
    if memchr::memmem::find(response, WEB_SEARCH_CALL.as_bytes()).is_none() {
        return 0;
    }
    let Ok(response) = serde_json::from_slice::<Response<'_>>(response) else {
        return 0;
    };
    let items = response.output.iter();
    items
        .filter(|item| {
            let action = item
                .action
                .as_ref()
                .and_then(|action| action.kind.as_deref());
            item.kind.as_deref() == Some(WEB_SEARCH_CALL)
                && action.is_none_or(|kind| kind == "search")
        })
        .count() as u64
}

/// Reads `usage`. `None` if it is missing or not an object; all counts are missing if one of them is not an unsigned integer.
pub(super) fn read_usage(usage: &Value) -> Option<WireUsage> {
    usage
        .is_object()
        .then(|| serde_json::from_value(usage.clone()).unwrap_or_default())
}

/// Parses the JSON of `usage`. `None` if it is null, or a count is not an unsigned integer.
pub(super) fn parse_usage(raw: &RawValue) -> Option<Usage> {
    let wire: Option<WireUsage> = serde_json::from_str(raw.get()).ok()?;
    wire.map(Usage::from)
}

/// The `usage` of a forwarded response with the members that the vendor's schema requires, and without costs. `None` if nothing
/// has to change, or if `usage` cannot be parsed.
pub(super) fn complete_usage(raw: &RawValue) -> Option<String> {
    let usage = parse_usage(raw)?;
    let mut value: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    let mut is_changed = remove_costs(&mut value);
    let Value::Object(required) = write_usage(&usage) else {
        return None;
    };
    for (name, default) in required {
        match (value.get_mut(&name), default) {
            (Some(Value::Object(details)), Value::Object(more)) => {
                // OpenAI itself omits `cache_write_tokens` if nothing was written to the cache.
                for (name, count) in more.into_iter().filter(|m| m.0 != "cache_write_tokens") {
                    is_changed |= !details.contains_key(&name);
                    details.entry(name).or_insert(count);
                }
            }
            (Some(Value::Number(_)), _) => {}
            (_, default) => {
                is_changed = true;
                value.insert(name, default);
            }
        }
    }
    is_changed.then(|| Value::Object(value).to_string())
}

/// Writes `usage`. Clients need both details objects, so they are always written.
pub(super) fn write_usage(usage: &Usage) -> Value {
    let mut input =
        json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write});
    for (name, count) in [
        ("image_tokens", usage.input_image),
        ("audio_tokens", usage.input_audio),
    ] {
        if count > 0 {
            input[name] = count.into();
        }
    }
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": input,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_output_items_are_counted_as_web_searches() {
        for (response, expected) in [
            (
                r#"{"output":[{"type":"web_search_call"},{"type":"message"}]}"#,
                1,
            ),
            (
                r#"{"output":[{"type":"web\u005fsearch_call"},{"type":"web_search_call"}]}"#,
                2,
            ),
            (
                r#"{"output":[{"type":"function_call","name":"web_search_call"}]}"#,
                0,
            ),
            (
                r#"{"tools":[{"type":"function","name":"web_search_call"}],"output":[]}"#,
                0,
            ),
            (r#"{"note":"web_search_call"}"#, 0),
            (
                r#"{"output":[{"type":"web_search_call","action":{"type":"search"}},{"type":"web_search_call","action":{"type":"open_page"}}]}"#,
                1,
            ),
        ] {
            assert_eq!(
                count_web_searches(response.as_bytes()),
                expected,
                "{response}"
            );
        }
    }
}
