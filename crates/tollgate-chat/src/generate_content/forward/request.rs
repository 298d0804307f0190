//! Forwards a request. Model and stream are in the path, so most bodies pass unchanged.

use bytes::Bytes;
use memchr::memmem;

use crate::error::InvalidRequest;
use crate::format::{RequestSummary, Target};
use crate::generate_content::request_summary::{self, GenerationConfig};
use crate::generate_content::{request_read, request_write};
use crate::hub::{ReasoningControl, SamplingSupport};

/// See [`crate::Format::forward_request`]. A request with settings that the model does not support
/// is read and written through the hub, which adapts them.
pub(crate) fn forward_request(
    body: &Bytes,
    summary: &RequestSummary,
    target: &Target<'_>,
) -> Result<Bytes, InvalidRequest> {
    if !needs_rewrite(body, summary, target) {
        return Ok(body.clone());
    }
    let request = request_read::read_request(body)?;
    let written = request_write::write_request(&request, target)?;
    Ok(Bytes::from(written.body))
}

fn needs_rewrite(body: &[u8], summary: &RequestSummary, target: &Target<'_>) -> bool {
    let capabilities = target.capabilities;
    let has = |word: &str| memmem::find(body, word.as_bytes()).is_some();
    let too_long = summary.max_tokens > capabilities.max_output_tokens.or(Some(u64::MAX));
    let unsigned = capabilities.requires_signatures
        && (has("\"functionCall\"") || has("\"function_call\""))
        && !has("\"thoughtSignature\"")
        && !has("\"thought_signature\"");
    let forced = !capabilities.supports_forced_tools && (has("\"ANY\"") || has("\"any\""));
    let asks_settings = capabilities.sampling != SamplingSupport::All
        || !capabilities.supports_tools_with_json
        || (summary.has_reasoning_settings
            && !matches!(capabilities.thinking, ReasoningControl::Effort { .. }));
    !summary.is_native
        || too_long
        || unsigned
        || forced
        || (asks_settings
            && request_summary::generation_config(body)
                .is_some_and(|config| has_unsupported_settings(&config, target, has)))
}

/// Whether the model does not support one of these settings.
fn has_unsupported_settings(
    config: &GenerationConfig<'_>,
    target: &Target<'_>,
    has: impl Fn(&str) -> bool,
) -> bool {
    let capabilities = target.capabilities;
    let sampling = match capabilities.sampling {
        SamplingSupport::All => false,
        SamplingSupport::TemperatureOrTopP => {
            config.temperature.is_some() && config.top_p.is_some()
        }
        SamplingSupport::None => {
            config.temperature.is_some() || config.top_p.is_some() || config.top_k.is_some()
        }
    };
    let json_with_tools = !capabilities.supports_tools_with_json
        && config
            .response_mime_type
            .is_some_and(|mime| mime.get().contains("json"))
        && has("\"tools\"");
    sampling || json_with_tools || has_unsupported_thinking(config, capabilities.thinking)
}

fn has_unsupported_thinking(config: &GenerationConfig<'_>, model: ReasoningControl) -> bool {
    let Some(raw) = config.thinking_config else {
        return false;
    };
    let Ok(requested) = request_summary::parse_thinking_config(raw) else {
        return false;
    };
    match model {
        ReasoningControl::Unsupported => true,
        ReasoningControl::Effort { .. } => false,
        // Models with thinking levels still understand a budget.
        ReasoningControl::Level { .. } => requested
            .thinking_level
            .is_some_and(|level| !level.get().contains("HIGH")),
        ReasoningControl::Budget {
            min,
            max,
            can_disable,
        } => {
            let budget = requested
                .thinking_budget
                .and_then(|budget| budget.get().parse::<i64>().ok());
            let fits = |budget: i64| match budget {
                -1 => true,
                0 => can_disable,
                budget => (i64::from(min)..=i64::from(max)).contains(&budget),
            };
            requested.thinking_level.is_some() || budget.is_some_and(|budget| !fits(budget))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::ModelCapabilities;
    use serde_json::{Value, json};

    fn sent(body: &Value, capabilities: &ModelCapabilities) -> (bool, Value) {
        let body = Bytes::from(body.to_string());
        let target = Target {
            model: "m",
            stream: true,
            capabilities,
            default_max_tokens: 1,
        };
        let summary = request_summary::summarize_request(&body).unwrap();
        let sent = forward_request(&body, &summary, &target).unwrap();
        (
            sent.as_ptr() == body.as_ptr(),
            serde_json::from_slice(&sent).unwrap(),
        )
    }

    fn body(config: Value) -> Value {
        json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config, "safetySettings": []})
    }

    #[test]
    fn supported_settings_are_forwarded_unchanged() {
        let config = json!({"temperature": 1, "topP": 0.5, "thinkingConfig": {"thinkingBudget": 2000}, "maxOutputTokens": 100});
        let capabilities = ModelCapabilities {
            max_output_tokens: Some(100),
            thinking: ReasoningControl::Budget {
                min: 128,
                max: 32768,
                can_disable: false,
            },
            requires_signatures: true,
            ..ModelCapabilities::default()
        };
        assert!(sent(&body(config.clone()), &capabilities).0);
        assert!(sent(&body(config), &ModelCapabilities::default()).0);
    }

    #[test]
    fn unsupported_settings_are_adapted() {
        let budget = ReasoningControl::Budget {
            min: 512,
            max: 1000,
            can_disable: false,
        };
        let level = ReasoningControl::Level {
            minimal: false,
            medium: false,
        };
        let with = |change: fn(&mut ModelCapabilities)| {
            let mut capabilities = ModelCapabilities::default();
            change(&mut capabilities);
            capabilities
        };
        let thinking = |thinking| ModelCapabilities {
            thinking,
            ..ModelCapabilities::default()
        };
        for (config, capabilities, expected) in [
            (
                json!({"temperature": 1, "topK": 3, "seed": 4}),
                with(|t| t.sampling = SamplingSupport::None),
                json!({"seed": 4}),
            ),
            (
                json!({"temperature": 1, "topP": 0.5}),
                with(|t| t.sampling = SamplingSupport::TemperatureOrTopP),
                json!({"temperature": 1}),
            ),
            (
                json!({"maxOutputTokens": 9000}),
                with(|t| t.max_output_tokens = Some(100)),
                json!({"maxOutputTokens": 100}),
            ),
            (
                json!({"thinkingConfig": {"thinkingBudget": 5000}}),
                thinking(budget),
                json!({"thinkingConfig": {"thinkingBudget": 1000}}),
            ),
            (
                json!({"thinkingConfig": {"thinkingBudget": 0}}),
                thinking(budget),
                json!({"thinkingConfig": {"thinkingBudget": 512}}),
            ),
            (
                json!({"thinkingConfig": {"thinkingLevel": "LOW"}}),
                thinking(budget),
                json!({"thinkingConfig": {"thinkingBudget": 1000}}),
            ),
            (
                json!({"thinkingConfig": {"thinkingLevel": "MINIMAL"}}),
                thinking(level),
                json!({"thinkingConfig": {"thinkingLevel": "LOW"}}),
            ),
            (
                json!({"thinkingConfig": {"thinkingBudget": 5}, "seed": 1}),
                thinking(ReasoningControl::Unsupported),
                json!({"seed": 1}),
            ),
        ] {
            let (same, sent) = sent(&body(config.clone()), &capabilities);
            assert!(!same, "{config}");
            assert_eq!(sent["generationConfig"], expected, "{config}");
            assert_eq!(sent["safetySettings"], json!([]));
        }
    }

    #[test]
    fn unsigned_calls_get_the_placeholder_signature() {
        let capabilities = ModelCapabilities {
            requires_signatures: true,
            ..ModelCapabilities::default()
        };
        let history = |part: Value| {
            json!({"contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [part, {"functionCall": {"name": "g", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}, {"functionResponse": {"name": "g", "response": {}}}]},
            ]})
        };
        let unsigned = history(json!({"functionCall": {"name": "f", "args": {}}}));
        let (same, sent_body) = sent(&unsigned, &capabilities);
        assert!(!same);
        let mut expected = unsigned;
        expected["contents"][1]["parts"][0]["thoughtSignature"] =
            json!("skip_thought_signature_validator");
        assert_eq!(sent_body, expected);
        let signed = history(json!({"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}));
        assert!(sent(&signed, &capabilities).0);
    }
}
