//! Which models there are, and what their names say about them.

use serde_json::{Value, json};

const MODELS: &[(&str, &str)] = &[
    ("claude-opus-4-8", "Claude Opus 4.8"),
    ("claude-sonnet-5", "Claude Sonnet 5"),
    ("claude-sonnet-4-6", "Claude Sonnet 4.6"),
    ("claude-haiku-4-5", "Claude Haiku 4.5"),
];

pub(super) fn list() -> Value {
    let data: Vec<Value> = MODELS.iter().filter_map(|(id, _)| entry(id)).collect();
    json!({
        "data": data, "has_more": false,
        "first_id": MODELS.first().map(|(id, _)| id), "last_id": MODELS.last().map(|(id, _)| id),
    })
}

pub(super) fn entry(id: &str) -> Option<Value> {
    let (id, name) = MODELS.iter().find(|(known, _)| *known == id)?;
    let created = "2026-02-04T00:00:00Z";
    Some(json!({"id": id, "type": "model", "display_name": name, "created_at": created}))
}

/// Requests may name any model but those that begin so.
pub(super) fn is_missing(model: &str) -> bool {
    model.starts_with("missing") || model.is_empty()
}

/// What a model takes, by its generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    generation: (u32, u32),
    /// Refuses forced tools altogether.
    pub(super) never_forced: bool,
}

impl Model {
    /// Reads `claude-FAMILY-4-6…`, `claude-3-5-FAMILY…` and the like. A name without numbers is
    /// taken for a model of generation 4.5.
    pub(super) fn of(name: &str) -> Self {
        let numbers: Vec<u32> = name
            .split(['-', '.'])
            .filter(|part| part.len() <= 2)
            .filter_map(|part| part.parse().ok())
            .collect();
        let generation = match numbers.as_slice() {
            [] => (4, 5),
            [major] => (*major, 0),
            [major, minor, ..] => (*major, *minor),
        };
        let forced_never = ["sonnet-5-5", "opus-5-5", "fable-5-1"];
        Self {
            generation,
            never_forced: forced_never.iter().any(|part| name.contains(part)),
        }
    }

    /// `temperature`, `top_p` and `top_k` are refused.
    pub(super) fn never_samples(self) -> bool {
        self.generation >= (4, 7)
    }

    /// `temperature` and `top_p` are refused together.
    pub(super) fn samples_by_one(self) -> bool {
        self.generation >= (4, 1)
    }

    pub(super) fn thinks(self) -> bool {
        self.generation >= (3, 7)
    }

    /// Takes a budget for thinking.
    pub(super) fn takes_budget(self) -> bool {
        self.thinks() && self.generation < (4, 7)
    }

    /// Decides itself how much to think.
    pub(super) fn adapts(self) -> bool {
        self.generation >= (4, 6)
    }

    /// Thinks if it is not told otherwise.
    pub(super) fn thinks_by_default(self) -> bool {
        self.generation >= (4, 7)
    }

    /// Goes on with a last message of its own.
    pub(super) fn takes_prefill(self) -> bool {
        self.generation < (4, 6)
    }

    /// Takes system turns in the middle of the messages.
    pub(super) fn takes_system_turns(self) -> bool {
        self.generation >= (4, 7)
    }

    pub(super) fn most_tokens(self) -> u64 {
        match self.generation {
            g if g < (3, 5) => 4096,
            g if g < (3, 7) => 8192,
            g if g < (4, 6) => 64_000,
            _ => 128_000,
        }
    }
}
