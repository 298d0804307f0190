//! Token counts, the same for whole replies and streams.

use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// Reads `usage`; none where it is no object with counts. Vendors' own spellings of cached tokens are known.
pub(super) fn read(usage: &Value) -> Option<Usage> {
    let count = |path: &[&str]| {
        let found = path.iter().try_fold(usage, |at, name| at.get(name))?;
        found
            .as_u64()
            .or_else(|| found.as_f64().filter(|x| *x >= 0.0).map(|x| x as u64))
    };
    let (input, output) = (count(&["prompt_tokens"]), count(&["completion_tokens"]));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input, mut output) = (input.unwrap_or(0), output.unwrap_or(0));
    let reasoning = count(&["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0);
    // Some vendors (xAI, Google's layer) count thinking beside the completion; the total tells.
    let total = count(&["total_tokens"]).unwrap_or(0);
    if reasoning > 0 && total == input.saturating_add(output).saturating_add(reasoning) {
        output = output.saturating_add(reasoning);
    }
    let cached = count(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&["prompt_cache_hit_tokens"]))
        .or_else(|| count(&["cached_tokens"]));
    let written = count(&["prompt_tokens_details", "cache_write_tokens"])
        .or_else(|| count(&["cache_creation_input_tokens"]));
    Some(Usage {
        input,
        output,
        reasoning: reasoning.min(output),
        cache_read: cached.unwrap_or(0).min(input),
        cache_write: written.unwrap_or(0).min(input),
        input_image: count(&["prompt_tokens_details", "image_tokens"]).unwrap_or(0),
        input_audio: count(&["prompt_tokens_details", "audio_tokens"]).unwrap_or(0),
        ..Usage::default()
    })
}

/// Writes `usage`.
pub(super) fn write(usage: &Usage) -> Value {
    let mut prompt = Map::from_iter([("cached_tokens".to_owned(), Value::from(usage.cache_read))]);
    let optional = [
        ("cache_write_tokens", usage.cache_write),
        ("audio_tokens", usage.input_audio),
        ("image_tokens", usage.input_image),
    ];
    for (name, count) in optional {
        if count > 0 {
            prompt.insert(name.to_owned(), count.into());
        }
    }
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<Usage> {
        read(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn trap_49_cached_tokens_are_part_of_the_prompt_and_survive_the_way() {
        let usage = read_text(
            r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
            "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":7},"completion_tokens_details":{"reasoning_tokens":9}}"#,
        )
        .unwrap();
        assert_eq!(
            (usage.input, usage.uncached(), usage.output, usage.reasoning),
            (100, 33, 20, 9)
        );
        assert_eq!(read(&write(&usage)), Some(usage));
    }

    #[test]
    fn vendors_spellings_are_known() {
        let hit =
            read_text(r#"{"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":4}"#);
        assert_eq!(hit.unwrap().cache_read, 4);
        let beside = read_text(
            r#"{"prompt_tokens":9,"completion_tokens":1,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":5}}"#,
        );
        assert_eq!(beside.unwrap().output, 6);
        for nothing in ["null", "{}", "[]", "3", r#"{"prompt_tokens":null}"#] {
            assert_eq!(read_text(nothing), None);
        }
    }
}
