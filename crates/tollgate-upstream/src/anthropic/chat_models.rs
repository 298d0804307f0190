//! The capabilities of each generation of Claude models.

use tollgate_chat::hub::{Effort, ModelCapabilities, Reasoning, ReasoningControl, SamplingSupport};

use crate::chat::ChatModel;

/// The suffix of the gateway's own model ids that enable thinking.
const THINKING: &str = "-thinking";

/// The smallest budget for thinking.
const MIN_BUDGET: u32 = 1_024;

/// The major version times 100 plus the minor version: `claude-opus-4-1-20250805` is 401, `claude-3-7-sonnet-latest` 307.
type Generation = u32;

/// The properties of a model, derived from its id.
pub(super) fn model(id: &str) -> ChatModel {
    if !id.contains("claude") {
        return other_vendors_model(id);
    }
    let base_id = id.strip_suffix(THINKING);
    let reasoning = base_id.map(|_| Reasoning {
        effort: Some(Effort::Medium),
        // The client did not request to see the thinking.
        display: Some("omitted".to_owned()),
        ..Reasoning::default()
    });
    let base_id = base_id.unwrap_or(id);
    ChatModel {
        capabilities: capabilities(base_id),
        upstream_id: base_id.to_owned(),
        reasoning,
    }
}

/// Another vendor's model behind this format: every setting is sent, and the server validates it.
fn other_vendors_model(id: &str) -> ChatModel {
    ChatModel {
        upstream_id: id.to_owned(),
        capabilities: ModelCapabilities {
            thinking: ReasoningControl::Budget {
                min: MIN_BUDGET,
                max: 32_768,
                can_disable: true,
            },
            supports_json_schema: false,
            ..ModelCapabilities::default()
        },
        reasoning: None,
    }
}

fn capabilities(id: &str) -> ModelCapabilities {
    let generation = generation(id);
    let max_output = max_output(id, generation);
    ModelCapabilities {
        max_output_tokens: Some(max_output),
        context_window: Some(context_window(id, generation)),
        sampling: match generation {
            ..=400 => SamplingSupport::All,
            401..=406 => SamplingSupport::TemperatureOrTopP,
            _ => SamplingSupport::None,
        },
        thinking: match generation {
            ..=306 => ReasoningControl::Unsupported,
            307..=405 => ReasoningControl::Budget {
                min: MIN_BUDGET,
                // A budget must leave tokens for the text within the limit of output tokens.
                max: u32::try_from(max_output).unwrap_or(u32::MAX) - MIN_BUDGET,
                can_disable: true,
            },
            // From 5.1 on some models reject `disabled`; all models accept the lowest effort.
            _ => ReasoningControl::Effort {
                can_disable: generation <= 500,
            },
        },
        supports_json_schema: generation >= 405,
        supports_forced_tools: generation <= 500,
        ..ModelCapabilities::default()
    }
}

/// The context window in tokens; a million if a beta feature or the model itself allows it.
/// <https://docs.anthropic.com/en/docs/about-claude/models/overview>
fn context_window(id: &str, generation: Generation) -> u64 {
    let is_long = generation >= 406 || (generation >= 400 && id.contains("sonnet"));
    if is_long { 1_000_000 } else { 200_000 }
}

fn max_output(id: &str, generation: Generation) -> u64 {
    let is_opus = id.contains("opus");
    match generation {
        ..=300 => 4_096,
        301..=306 => 8_192,
        400 | 401 if is_opus => 32_000,
        307..=405 => 64_000,
        406 if !is_opus => 64_000,
        _ => 128_000,
    }
}

/// The first two numbers in an id that are not dates. An id without numbers belongs to a model that this code does not know, most likely a newer one
/// than those it knows.
fn generation(id: &str) -> Generation {
    let mut numbers = id
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<Generation>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) => major * 100 + minor.unwrap_or(0),
        (None, _) => Generation::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_read_from_every_kind_of_id() {
        for (id, expected) in [
            ("claude-3-opus-20240229", 300),
            ("claude-3-5-sonnet-20241022", 305),
            ("claude-3-7-sonnet-latest", 307),
            ("claude-sonnet-4-20250514", 400),
            ("claude-opus-4-1-20250805", 401),
            ("anthropic/claude-sonnet-4.5", 405),
            ("claude-opus-4-8", 408),
            ("claude-sonnet-5", 500),
            ("claude-fable-5-1", 501),
            ("claude-next", u32::MAX),
        ] {
            assert_eq!(generation(id), expected, "{id}");
        }
    }

    #[test]
    fn each_generation_has_its_own_rules() {
        use SamplingSupport::{All, None, TemperatureOrTopP as One};
        // Columns: id, sampling, budget (otherwise effort or no thinking), schema, forced tools, maximum output tokens.
        for (id, sampling, budget, schema, forced, max) in [
            ("claude-3-5-haiku-20241022", All, false, false, true, 8_192),
            ("claude-3-7-sonnet-20250219", All, true, false, true, 64_000),
            ("claude-sonnet-4-20250514", All, true, false, true, 64_000),
            ("claude-opus-4-1-20250805", One, true, false, true, 32_000),
            ("claude-sonnet-4-5-20250929", One, true, true, true, 64_000),
            ("claude-haiku-4-5-20251001", One, true, true, true, 64_000),
            ("claude-opus-4-6", One, false, true, true, 128_000),
            ("claude-opus-4-7", None, false, true, true, 128_000),
            ("claude-sonnet-5", None, false, true, true, 128_000),
            ("claude-sonnet-5-5", None, false, true, false, 128_000),
        ] {
            let capabilities = model(id).capabilities;
            assert_eq!(capabilities.sampling, sampling, "{id}");
            assert_eq!(
                matches!(capabilities.thinking, ReasoningControl::Budget { .. }),
                budget,
                "{id}"
            );
            assert_eq!(
                (
                    capabilities.supports_json_schema,
                    capabilities.supports_forced_tools
                ),
                (schema, forced),
                "{id}"
            );
            assert_eq!(capabilities.max_output_tokens, Some(max), "{id}");
            let is_long = id.contains("sonnet-4") || generation(id) >= 406;
            let window = if is_long { 1_000_000 } else { 200_000 };
            assert_eq!(capabilities.context_window, Some(window), "{id}");
        }
        assert_eq!(
            model("claude-3-5-haiku-20241022").capabilities.thinking,
            ReasoningControl::Unsupported
        );
    }

    #[test]
    fn a_thinking_suffix_enables_reasoning_and_is_not_sent() {
        let thinking = model("claude-opus-4-1-20250805-thinking");
        assert_eq!(thinking.upstream_id, "claude-opus-4-1-20250805");
        assert_eq!(thinking.reasoning.unwrap().effort, Some(Effort::Medium));
        assert_eq!(model("claude-opus-4-1-20250805").reasoning, None);
        assert_eq!(model("kimi-k2-thinking").upstream_id, "kimi-k2-thinking");
    }
}
