//! Thinking: by word, by budget, or not at all, as the model takes it.

use serde_json::{Map, Value, json};

use crate::hub::{Effort, ExtraFields, ModelCapabilities, Reasoning, ReasoningControl};
use crate::messages::fields::put_back;
use crate::messages::wire::{NAME, SMALLEST_BUDGET};

/// The note of `between_tools`.
const TYPE: &str = ".type";

/// The note of an effort beside thinking that is off.
const EFFORT: &str = ".effort";

/// Reads `thinking` and takes the effort out of `output_config`. The glance has checked both.
pub(super) fn read(
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
                thinking.insert(EFFORT.to_owned(), json!(effort.as_str()));
            }
        }
        Some(other) => {
            thinking.insert(TYPE.to_owned(), json!(other));
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

/// What is sent of it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sent {
    /// The member `thinking`.
    pub(super) thinking: Option<Value>,
    /// `output_config.effort`.
    pub(super) effort: Option<&'static str>,
    /// Whether the model will think because of it.
    pub(super) is_on: bool,
    /// Whether it is less than, or the contrary of, what was asked for.
    pub(super) is_weakened: bool,
}

impl Sent {
    /// Thinking switched off, by a word where the model would think of itself.
    pub(super) fn off(capabilities: &ModelCapabilities) -> Self {
        let by_word = matches!(
            capabilities.thinking,
            ReasoningControl::Effort { can_disable: true }
        );
        Self {
            thinking: by_word.then(|| json!({"type": "disabled"})),
            is_weakened: true,
            ..Self::default()
        }
    }
}

/// Whether a model can be told not to think.
pub(super) fn can_be_off(capabilities: &ModelCapabilities) -> bool {
    match capabilities.thinking {
        ReasoningControl::Unsupported => true,
        ReasoningControl::Effort { can_disable } | ReasoningControl::Budget { can_disable, .. } => {
            can_disable
        }
        ReasoningControl::Level { .. } => false,
    }
}

/// Asks a model for `reasoning` in the way it takes. `is_native`: the client speaks this format, and what the model takes as
/// it is stays so.
pub(super) fn write(
    reasoning: &Reasoning,
    capabilities: &ModelCapabilities,
    max_tokens: u64,
    is_native: bool,
) -> Sent {
    let is_off = reasoning.effort == Some(Effort::None)
        || (reasoning.effort.is_none() && reasoning.budget == Some(0));
    match capabilities.thinking {
        ReasoningControl::Unsupported => Sent {
            is_weakened: !is_off,
            ..Sent::default()
        },
        ReasoningControl::Effort { can_disable } if is_off => by_word_off(reasoning, can_disable),
        ReasoningControl::Effort { .. } | ReasoningControl::Level { .. } => {
            by_word(reasoning, is_native)
        }
        ReasoningControl::Budget {
            min,
            max,
            can_disable,
        } => {
            let range = (u64::from(min).max(SMALLEST_BUDGET), u64::from(max));
            match is_off {
                true if can_disable => disabled(reasoning),
                true => Sent {
                    is_weakened: true,
                    ..by_budget(reasoning, range.0, range, max_tokens, is_native)
                },
                false => {
                    let wanted = wanted_budget(reasoning, range.1);
                    by_budget(reasoning, wanted, range, max_tokens, is_native)
                }
            }
        }
    }
}

fn disabled(reasoning: &Reasoning) -> Sent {
    let effort = reasoning
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(EFFORT));
    let effort = effort.and_then(|word| Effort::parse(word.as_str()?));
    Sent {
        thinking: Some(member("disabled", None, &reasoning.extra)),
        effort: effort.map(Effort::as_str),
        ..Sent::default()
    }
}

fn by_word_off(reasoning: &Reasoning, can_disable: bool) -> Sent {
    if can_disable {
        return disabled(reasoning);
    }
    Sent {
        effort: Some(Effort::Low.as_str()),
        is_weakened: true,
        ..Sent::default()
    }
}

fn by_word(reasoning: &Reasoning, is_native: bool) -> Sent {
    let effort = reasoning.as_effort().map(|effort| match effort {
        Effort::None | Effort::Minimal => Effort::Low.as_str(),
        other => other.as_str(),
    });
    let kind = reasoning
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(TYPE));
    let kind = kind.and_then(Value::as_str).unwrap_or("adaptive");
    let only_effort = is_native && !reasoning.adaptive && reasoning.budget.is_none();
    if only_effort && kind == "adaptive" {
        return Sent {
            effort,
            ..Sent::default()
        };
    }
    Sent {
        thinking: Some(member(
            kind,
            display(reasoning, is_native),
            &reasoning.extra,
        )),
        effort,
        is_on: true,
        is_weakened: false,
    }
}

/// The budget of tokens that stands for what was asked.
fn wanted_budget(reasoning: &Reasoning, largest: u64) -> u64 {
    if let Some(budget) = reasoning.budget.and_then(|n| u64::try_from(n).ok()) {
        return budget;
    }
    match reasoning.effort {
        Some(Effort::None | Effort::Minimal) => SMALLEST_BUDGET,
        Some(Effort::Low) => 2048,
        Some(Effort::Medium) => 8192,
        Some(Effort::High) | None => 24_576,
        Some(Effort::XHigh) => 32_768,
        Some(Effort::Max) => largest,
    }
}

/// A budget must be smaller than the cap on all tokens, and an answer must fit behind the thinking; where that leaves less
/// than the smallest budget, there is no thinking at all.
fn by_budget(
    reasoning: &Reasoning,
    wanted: u64,
    (least, most): (u64, u64),
    max_tokens: u64,
    is_native: bool,
) -> Sent {
    let is_explicit = reasoning.budget.is_some_and(|n| n > 0);
    let room = if is_explicit {
        1
    } else {
        (max_tokens / 4).max(1)
    };
    let budget = wanted
        .max(least)
        .min(most)
        .min(max_tokens.saturating_sub(room));
    if budget < least {
        return Sent {
            is_weakened: true,
            ..Sent::default()
        };
    }
    let mut extra = reasoning.extra.clone();
    if extra
        .for_format(NAME)
        .is_some_and(|extra| extra.contains_key(TYPE))
    {
        extra = ExtraFields::NONE;
    }
    let mut thinking = member("enabled", display(reasoning, is_native), &extra);
    thinking["budget_tokens"] = json!(budget);
    Sent {
        thinking: Some(thinking),
        effort: reasoning
            .effort
            .filter(|_| is_native && is_explicit)
            .map(Effort::as_str),
        is_on: true,
        is_weakened: is_explicit && budget < wanted,
    }
}

fn member(kind: &str, display: Option<&str>, extra: &ExtraFields) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    if let Some(display) = display {
        out.insert("display".to_owned(), json!(display));
    }
    put_back(extra, &mut out);
    Value::Object(out)
}

/// Newer models hide their thinking unless they are told to show it.
fn display(reasoning: &Reasoning, is_native: bool) -> Option<&str> {
    match reasoning.display.as_deref() {
        Some(show) if is_native => Some(show),
        Some("omitted" | "none") => Some("omitted"),
        Some(_) => Some("summarized"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(thinking: ReasoningControl) -> ModelCapabilities {
        ModelCapabilities {
            thinking,
            ..ModelCapabilities::default()
        }
    }

    const BUDGET: ReasoningControl = ReasoningControl::Budget {
        min: 1024,
        max: 32_000,
        can_disable: true,
    };

    fn effort(effort: Effort) -> Reasoning {
        Reasoning {
            effort: Some(effort),
            ..Reasoning::default()
        }
    }

    #[test]
    fn efforts_become_what_the_model_takes() {
        let word = capabilities(ReasoningControl::Effort { can_disable: true });
        for (asked, thinking, said) in [
            (Effort::None, json!({"type": "disabled"}), None),
            (Effort::Minimal, json!({"type": "adaptive"}), Some("low")),
            (Effort::XHigh, json!({"type": "adaptive"}), Some("xhigh")),
        ] {
            let sent = write(&effort(asked), &word, 8192, false);
            assert_eq!((sent.thinking, sent.effort), (Some(thinking), said));
        }
        let always = capabilities(ReasoningControl::Effort { can_disable: false });
        let sent = write(&effort(Effort::None), &always, 8192, false);
        assert_eq!((sent.thinking, sent.effort), (None, Some("low")));
        let sent = write(
            &effort(Effort::High),
            &capabilities(ReasoningControl::Unsupported),
            8192,
            false,
        );
        assert!(sent.is_weakened && sent.thinking.is_none());
    }

    #[test]
    fn trap_23_a_budget_stays_below_the_cap() {
        let budget = |asked, max_tokens| {
            let sent = write(&effort(asked), &capabilities(BUDGET), max_tokens, false);
            sent.thinking.map(|t| t["budget_tokens"].as_u64().unwrap())
        };
        assert_eq!(budget(Effort::Low, 64_000), Some(2048));
        assert_eq!(budget(Effort::High, 64_000), Some(24_576));
        assert_eq!(budget(Effort::Max, 64_000), Some(32_000));
        assert_eq!(budget(Effort::High, 8192), Some(6144));
        assert_eq!(budget(Effort::High, 1366), Some(1025));
        assert_eq!(budget(Effort::High, 1300), None);
        let off = write(&effort(Effort::None), &capabilities(BUDGET), 64, false);
        assert_eq!(off.thinking, Some(json!({"type": "disabled"})));
    }

    #[test]
    fn what_the_client_wrote_stays_where_the_model_takes_it() {
        for (thinking, config, model) in [
            (
                json!({"type": "enabled", "budget_tokens": 4000, "display": "omitted"}),
                json!({}),
                BUDGET,
            ),
            (
                json!({"type": "enabled", "budget_tokens": 4000}),
                json!({"effort": "medium"}),
                BUDGET,
            ),
            (
                json!({"type": "adaptive", "display": "summarized"}),
                json!({"effort": "high"}),
                ReasoningControl::Effort { can_disable: true },
            ),
            (
                json!({"type": "disabled"}),
                json!({"effort": "high"}),
                ReasoningControl::Effort { can_disable: true },
            ),
            (
                json!({"type": "between_tools"}),
                json!({}),
                ReasoningControl::Effort { can_disable: true },
            ),
            (
                json!({}),
                json!({"effort": "max"}),
                ReasoningControl::Effort { can_disable: true },
            ),
        ] {
            let mut left = config.as_object().unwrap().clone();
            let read = read(thinking.as_object().unwrap().clone(), &mut left).unwrap();
            let sent = write(&read, &capabilities(model), 8192, true);
            assert_eq!(sent.thinking.unwrap_or(json!({})), thinking);
            assert_eq!(json!(sent.effort), config["effort"]);
            assert!(!sent.is_weakened && left.is_empty());
        }
    }
}
