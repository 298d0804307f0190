//! The capabilities of each generation of Gemini chat models.

use tollgate_chat::hub::{
    Effort, ModelCapabilities, Reasoning, ReasoningControl, SearchWithFunctions,
};

use crate::chat::ChatModel;

/// The suffix of the gateway's own model ids that enable thinking.
const THINKING: &str = "-thinking";

/// The major version times 100 plus the minor version: `gemini-2.5-flash-lite` is 205.
type Generation = u32;

/// The properties of a model, derived from its id.
pub(super) fn model(id: &str) -> ChatModel {
    let base_id = id.strip_suffix(THINKING).filter(|_| is_gemini(id));
    let reasoning = base_id.map(|_| Reasoning {
        effort: Some(Effort::Medium),
        // The client did not request to see the thoughts.
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

fn is_gemini(id: &str) -> bool {
    id.rsplit('/').next().unwrap_or(id).starts_with("gemini")
}

fn capabilities(id: &str) -> ModelCapabilities {
    if !is_gemini(id) {
        // Gemma and tuned models are assumed to support what the oldest Gemini models support.
        return capabilities_of(200, id);
    }
    capabilities_of(generation(id), id)
}

fn capabilities_of(generation: Generation, id: &str) -> ModelCapabilities {
    ModelCapabilities {
        max_output_tokens: match generation {
            ..=204 => Some(8_192),
            _ => Some(65_536),
        },
        context_window: context_window(generation, id),
        thinking: thinking(generation, id),
        // Models before 2.5 support only the older dialect of schemas.
        supports_json_schema: generation >= 205,
        supports_tools_with_json: generation >= 300,
        search_with_functions: match generation {
            ..300 => SearchWithFunctions::Rejected,
            _ => SearchWithFunctions::WithServerSideInvocations,
        },
        requires_signatures: generation >= 300,
        accepts_urls: generation >= 300,
        ..ModelCapabilities::default()
    }
}

/// The context window in tokens. `None` if it is not known. <https://ai.google.dev/gemini-api/docs/models>
fn context_window(generation: Generation, id: &str) -> Option<u64> {
    match generation {
        _ if !is_gemini(id) => None,
        105 if id.contains("pro") => Some(2_097_152),
        105 | 200.. if !id.contains("image") => Some(1_048_576),
        _ => None,
    }
}

fn thinking(generation: Generation, id: &str) -> ReasoningControl {
    let is_flash = id.contains("flash");
    // Image and speech models of 2.5 do not think.
    let speaks_text = !id.contains("-image") && !id.contains("-tts");
    let budget = |min, max, can_disable| ReasoningControl::Budget {
        min,
        max,
        can_disable,
    };
    match generation {
        ..=204 => ReasoningControl::Unsupported,
        205..=209 if !speaks_text => ReasoningControl::Unsupported,
        205..=209 if id.contains("flash-lite") => budget(512, 24_576, true),
        205..=209 if is_flash => budget(1, 24_576, true),
        205..=209 => budget(128, 32_768, false),
        _ => ReasoningControl::Level {
            minimal: is_flash && generation <= 306,
            medium: is_flash || generation >= 301,
        },
    }
}

/// The first two numbers of an id. An id without numbers (`gemini-flash-latest`) counts as the newest generation.
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
    fn each_generation_has_its_reasoning_control() {
        let budget = |min, max, can_disable| ReasoningControl::Budget {
            min,
            max,
            can_disable,
        };
        let level = |minimal, medium| ReasoningControl::Level { minimal, medium };
        for (id, expected, newer) in [
            ("gemini-1.5-pro", ReasoningControl::Unsupported, false),
            ("gemini-2.0-flash", ReasoningControl::Unsupported, false),
            ("gemini-2.5-pro", budget(128, 32_768, false), false),
            ("gemini-2.5-flash", budget(1, 24_576, true), false),
            ("gemini-2.5-flash-lite", budget(512, 24_576, true), false),
            (
                "gemini-2.5-flash-image",
                ReasoningControl::Unsupported,
                false,
            ),
            ("gemini-3-pro-preview", level(false, false), true),
            ("gemini-3.1-pro", level(false, true), true),
            ("gemini-3-flash", level(true, true), true),
            ("gemini-3.7-flash", level(false, true), true),
            ("gemini-flash-latest", level(false, true), true),
            ("gemma-3-27b-it", ReasoningControl::Unsupported, false),
            ("tunedModels/mine", ReasoningControl::Unsupported, false),
        ] {
            let capabilities = model(id).capabilities;
            assert_eq!(capabilities.thinking, expected, "{id}");
            assert_eq!(capabilities.requires_signatures, newer, "{id}");
            assert_eq!(capabilities.supports_tools_with_json, newer, "{id}");
        }
    }

    #[test]
    fn a_thinking_suffix_enables_reasoning_and_is_not_sent() {
        let thinking = model("gemini-2.5-pro-thinking");
        assert_eq!(thinking.upstream_id, "gemini-2.5-pro");
        assert_eq!(thinking.capabilities, model("gemini-2.5-pro").capabilities);
        assert!(thinking.reasoning.is_some() && model("gemini-2.5-pro").reasoning.is_none());
    }
}
