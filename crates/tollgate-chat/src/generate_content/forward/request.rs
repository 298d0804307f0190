//! A request for an upstream of the same format. Model and stream stand in the path, so it mostly is what it was.

use bytes::Bytes;
use memchr::memmem;

use super::super::glance::{self, Config};
use super::super::{read, write};
use crate::error::Bad;
use crate::format::{Glance, Target};
use crate::hub::{Sampling, Thinking};

/// See [`crate::Format::forward_request`]. What the model refuses goes through the hub, which knows how to say it otherwise.
pub(in super::super) fn request(
    body: &Bytes,
    glance: &Glance,
    target: &Target<'_>,
) -> Result<Bytes, Bad> {
    if !needs_repair(body, glance, target) {
        return Ok(body.clone());
    }
    let request = read::read_request(body)?;
    let written = write::write_request(&request, target)?;
    Ok(Bytes::from(written.body))
}

fn needs_repair(body: &[u8], glance: &Glance, target: &Target<'_>) -> bool {
    let traits = target.traits;
    let has = |word: &str| memmem::find(body, word.as_bytes()).is_some();
    let too_long = glance.max_tokens > traits.max_output.or(Some(u64::MAX));
    let unsigned = traits.needs_signatures
        && (has("\"functionCall\"") || has("\"function_call\""))
        && !has("\"thoughtSignature\"")
        && !has("\"thought_signature\"");
    let forced = !traits.forced_tools && (has("\"ANY\"") || has("\"any\""));
    let asks_settings = traits.sampling != Sampling::All
        || !traits.tools_with_json
        || (glance.says_reasoning && !matches!(traits.thinking, Thinking::Effort { .. }));
    !glance.is_native
        || too_long
        || unsigned
        || forced
        || (asks_settings
            && glance::config(body).is_some_and(|config| is_refused(&config, target, has)))
}

/// Whether the model refuses one of these settings.
fn is_refused(config: &Config<'_>, target: &Target<'_>, has: impl Fn(&str) -> bool) -> bool {
    let traits = target.traits;
    let sampling = match traits.sampling {
        Sampling::All => false,
        Sampling::One => config.temperature.is_some() && config.top_p.is_some(),
        Sampling::None => {
            config.temperature.is_some() || config.top_p.is_some() || config.top_k.is_some()
        }
    };
    let json_beside_tools = !traits.tools_with_json
        && config
            .response_mime_type
            .is_some_and(|mime| mime.get().contains("json"))
        && has("\"tools\"");
    sampling || json_beside_tools || thinking_is_refused(config, traits.thinking)
}

fn thinking_is_refused(config: &Config<'_>, model: Thinking) -> bool {
    let Some(raw) = config.thinking_config else {
        return false;
    };
    let Ok(asked) = glance::thinking_of(raw) else {
        return false;
    };
    match model {
        Thinking::No => true,
        Thinking::Effort { .. } => false,
        // A budget is still understood by models that think by level.
        Thinking::Level { .. } => asked
            .thinking_level
            .is_some_and(|level| !level.get().contains("HIGH")),
        Thinking::Budget {
            min,
            max,
            can_disable,
        } => {
            let budget = asked
                .thinking_budget
                .and_then(|budget| budget.get().parse::<i64>().ok());
            let fits = |budget: i64| match budget {
                -1 => true,
                0 => can_disable,
                budget => (i64::from(min)..=i64::from(max)).contains(&budget),
            };
            asked.thinking_level.is_some() || budget.is_some_and(|budget| !fits(budget))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::ModelTraits;
    use serde_json::{Value, json};

    fn sent(body: &Value, traits: &ModelTraits) -> (bool, Value) {
        let body = Bytes::from(body.to_string());
        let target = Target {
            model: "m",
            stream: true,
            traits,
            default_max_tokens: 1,
        };
        let glance = glance::glance(&body).unwrap();
        let sent = request(&body, &glance, &target).unwrap();
        (
            sent.as_ptr() == body.as_ptr(),
            serde_json::from_slice(&sent).unwrap(),
        )
    }

    fn body(config: Value) -> Value {
        json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config, "safetySettings": []})
    }

    #[test]
    fn what_the_model_takes_is_passed_on_untouched() {
        let config = json!({"temperature": 1, "topP": 0.5, "thinkingConfig": {"thinkingBudget": 2000}, "maxOutputTokens": 100});
        let traits = ModelTraits {
            max_output: Some(100),
            thinking: Thinking::Budget {
                min: 128,
                max: 32768,
                can_disable: false,
            },
            needs_signatures: true,
            ..ModelTraits::default()
        };
        assert!(sent(&body(config.clone()), &traits).0);
        assert!(sent(&body(config), &ModelTraits::default()).0);
    }

    #[test]
    fn what_it_refuses_is_repaired() {
        let budget = Thinking::Budget {
            min: 512,
            max: 1000,
            can_disable: false,
        };
        let level = Thinking::Level {
            minimal: false,
            medium: false,
        };
        let with = |change: fn(&mut ModelTraits)| {
            let mut traits = ModelTraits::default();
            change(&mut traits);
            traits
        };
        let thinking = |thinking| ModelTraits {
            thinking,
            ..ModelTraits::default()
        };
        for (config, traits, expected) in [
            (
                json!({"temperature": 1, "topK": 3, "seed": 4}),
                with(|t| t.sampling = Sampling::None),
                json!({"seed": 4}),
            ),
            (
                json!({"temperature": 1, "topP": 0.5}),
                with(|t| t.sampling = Sampling::One),
                json!({"temperature": 1}),
            ),
            (
                json!({"maxOutputTokens": 9000}),
                with(|t| t.max_output = Some(100)),
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
                thinking(Thinking::No),
                json!({"seed": 1}),
            ),
        ] {
            let (same, sent) = sent(&body(config.clone()), &traits);
            assert!(!same, "{config}");
            assert_eq!(sent["generationConfig"], expected, "{config}");
            assert_eq!(sent["safetySettings"], json!([]));
        }
    }

    #[test]
    fn trap_28_calls_that_were_never_signed_say_so() {
        let traits = ModelTraits {
            needs_signatures: true,
            ..ModelTraits::default()
        };
        let history = |part: Value| {
            json!({"contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [part, {"functionCall": {"name": "g", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}, {"functionResponse": {"name": "g", "response": {}}}]},
            ]})
        };
        let unsigned = history(json!({"functionCall": {"name": "f", "args": {}}}));
        let (same, sent_body) = sent(&unsigned, &traits);
        assert!(!same);
        let mut expected = unsigned;
        expected["contents"][1]["parts"][0]["thoughtSignature"] =
            json!("skip_thought_signature_validator");
        assert_eq!(sent_body, expected);
        let signed = history(json!({"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}));
        assert!(sent(&signed, &traits).0);
    }
}
