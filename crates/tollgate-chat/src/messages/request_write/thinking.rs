//! Writes reasoning as `thinking` and `output_config.effort`: by effort, by budget or not at all, depending on what the model accepts.

use serde_json::{Map, Value, json};

use crate::hub::{Effort, ExtraFields, ModelCapabilities, Reasoning, ReasoningControl};
use crate::messages::constants::{MIN_THINKING_BUDGET, NAME};
use crate::messages::fields::write_extra_fields;
use crate::messages::notes::{NOTE_EFFORT, NOTE_THINKING_TYPE};

/// The number of thinking tokens that the highest effort is expected to use.
const MAX_EFFORT_TOKENS: u64 = 32_768;

/// Whether thinking is controlled by a token budget.
pub(crate) fn is_budget_controlled(capabilities: &ModelCapabilities) -> bool {
    matches!(capabilities.thinking, ReasoningControl::Budget { .. })
}

/// The thinking settings to send.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ThinkingSettings {
    /// The member `thinking`.
    pub(crate) thinking: Option<Value>,
    /// `output_config.effort`.
    pub(crate) effort: Option<&'static str>,
    /// Whether the settings enable thinking.
    pub(crate) is_on: bool,
    /// Whether the settings are weaker than, or the opposite of, the requested ones.
    pub(crate) is_weakened: bool,
}

impl ThinkingSettings {
    /// Thinking switched off, explicitly if the model thinks by default.
    pub(crate) fn switched_off(capabilities: &ModelCapabilities) -> Self {
        let can_disable = matches!(
            capabilities.thinking,
            ReasoningControl::Effort { can_disable: true }
        );
        Self {
            thinking: can_disable.then(|| json!({"type": "disabled"})),
            is_weakened: true,
            ..Self::default()
        }
    }
}

/// Whether the model's thinking can be disabled.
pub(crate) fn can_be_disabled(capabilities: &ModelCapabilities) -> bool {
    match capabilities.thinking {
        ReasoningControl::Unsupported => true,
        ReasoningControl::Effort { can_disable } | ReasoningControl::Budget { can_disable, .. } => {
            can_disable
        }
        ReasoningControl::Level { .. } => false,
    }
}

/// Writes `reasoning` in the form that the model accepts. `is_native`: the client uses this format, and its settings are kept if the model supports
/// them.
pub(crate) fn write_thinking(
    reasoning: &Reasoning,
    capabilities: &ModelCapabilities,
    max_tokens: u64,
    is_native: bool,
) -> ThinkingSettings {
    let is_off = reasoning.effort == Some(Effort::None)
        || (reasoning.effort.is_none() && reasoning.budget == Some(0));
    match capabilities.thinking {
        ReasoningControl::Unsupported => ThinkingSettings {
            is_weakened: !is_off,
            ..ThinkingSettings::default()
        },
        ReasoningControl::Effort { can_disable } if is_off => {
            disable_by_effort(reasoning, can_disable)
        }
        ReasoningControl::Effort { .. } | ReasoningControl::Level { .. } => {
            enable_by_effort(reasoning, is_native)
        }
        ReasoningControl::Budget {
            min,
            max,
            can_disable,
        } => {
            let range = (u64::from(min).max(MIN_THINKING_BUDGET), u64::from(max));
            match is_off {
                true if can_disable => disable(reasoning),
                true => ThinkingSettings {
                    is_weakened: true,
                    ..enable_by_budget(reasoning, range.0, range, max_tokens, is_native)
                },
                false => {
                    let requested = requested_budget(reasoning, range.1);
                    enable_by_budget(reasoning, requested, range, max_tokens, is_native)
                }
            }
        }
    }
}

fn disable(reasoning: &Reasoning) -> ThinkingSettings {
    let effort = reasoning
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(NOTE_EFFORT));
    let effort = effort.and_then(|word| Effort::parse(word.as_str()?));
    ThinkingSettings {
        thinking: Some(thinking_object("disabled", None, &reasoning.extra)),
        effort: effort.map(Effort::as_str),
        ..ThinkingSettings::default()
    }
}

fn disable_by_effort(reasoning: &Reasoning, can_disable: bool) -> ThinkingSettings {
    if can_disable {
        return disable(reasoning);
    }
    ThinkingSettings {
        effort: Some(Effort::Low.as_str()),
        is_weakened: true,
        ..ThinkingSettings::default()
    }
}

fn enable_by_effort(reasoning: &Reasoning, is_native: bool) -> ThinkingSettings {
    let effort = reasoning.as_effort().map(|effort| match effort {
        Effort::None | Effort::Minimal => Effort::Low.as_str(),
        other => other.as_str(),
    });
    let kind = reasoning
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(NOTE_THINKING_TYPE));
    let kind = kind.and_then(Value::as_str).unwrap_or("adaptive");
    let only_effort = is_native && !reasoning.adaptive && reasoning.budget.is_none();
    if only_effort && kind == "adaptive" {
        return ThinkingSettings {
            effort,
            ..ThinkingSettings::default()
        };
    }
    ThinkingSettings {
        thinking: Some(thinking_object(
            kind,
            display(reasoning, is_native),
            &reasoning.extra,
        )),
        effort,
        is_on: true,
        is_weakened: false,
    }
}

/// The number of tokens that the model may use for thinking with `reasoning`; 0 if it does not think.
pub(crate) fn expected_thinking(reasoning: &Reasoning, capabilities: &ModelCapabilities) -> u64 {
    let is_off = reasoning.effort == Some(Effort::None)
        || (reasoning.effort.is_none() && reasoning.budget == Some(0));
    match capabilities.thinking {
        ReasoningControl::Unsupported => 0,
        ReasoningControl::Budget {
            can_disable: true, ..
        } if is_off => 0,
        ReasoningControl::Budget { min, max, .. } => {
            let (min, max) = (u64::from(min).max(MIN_THINKING_BUDGET), u64::from(max));
            requested_budget(reasoning, max).max(min).min(max)
        }
        _ if is_off => 0,
        // These models are sent an effort. In most replies they use at most the budget that corresponds to it.
        _ => requested_budget(reasoning, MAX_EFFORT_TOKENS),
    }
}

/// The requested budget in tokens.
fn requested_budget(reasoning: &Reasoning, max: u64) -> u64 {
    if let Some(budget) = reasoning.budget.and_then(|n| u64::try_from(n).ok()) {
        return budget;
    }
    match reasoning.effort {
        Some(Effort::None | Effort::Minimal) => MIN_THINKING_BUDGET,
        Some(Effort::Low) => 2048,
        Some(Effort::Medium) => 8192,
        Some(Effort::High) | None => 24_576,
        Some(Effort::XHigh) => 32_768,
        Some(Effort::Max) => max,
    }
}

/// Thinking by budget. The budget must be less than `max_tokens` and leave tokens for the response. If that is below the minimum,
/// thinking is left out.
fn enable_by_budget(
    reasoning: &Reasoning,
    requested: u64,
    (min, max): (u64, u64),
    max_tokens: u64,
    is_native: bool,
) -> ThinkingSettings {
    let is_explicit = reasoning.budget.is_some_and(|n| n > 0);
    let text_tokens = if is_explicit && requested < max_tokens {
        1
    } else {
        (max_tokens / 4).max(1)
    };
    let budget = requested
        .max(min)
        .min(max)
        .min(max_tokens.saturating_sub(text_tokens));
    if budget < min {
        return ThinkingSettings {
            is_weakened: true,
            ..ThinkingSettings::default()
        };
    }
    let mut extra = reasoning.extra.clone();
    if extra
        .for_format(NAME)
        .is_some_and(|extra| extra.contains_key(NOTE_THINKING_TYPE))
    {
        extra = ExtraFields::NONE;
    }
    let mut thinking = thinking_object("enabled", display(reasoning, is_native), &extra);
    thinking["budget_tokens"] = json!(budget);
    ThinkingSettings {
        thinking: Some(thinking),
        effort: reasoning
            .effort
            .filter(|_| is_native && is_explicit)
            .map(Effort::as_str),
        is_on: true,
        is_weakened: is_explicit && budget < requested,
    }
}

fn thinking_object(kind: &str, display: Option<&str>, extra: &ExtraFields) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    if let Some(display) = display {
        out.insert("display".to_owned(), json!(display));
    }
    write_extra_fields(extra, &mut out);
    Value::Object(out)
}

/// Newer models omit their thinking unless `display` is set.
fn display(reasoning: &Reasoning, is_native: bool) -> Option<&str> {
    match reasoning.display.as_deref() {
        Some(show) if is_native => Some(show),
        Some("omitted" | "none") => Some("omitted"),
        Some(_) => Some("summarized"),
        None => None,
    }
}
