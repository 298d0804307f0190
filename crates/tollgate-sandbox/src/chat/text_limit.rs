//! Truncates generated text at the token limit or at a stop sequence.

use tollgate_chat::hub::FinishReason;
use tollgate_chat::tokens::{self, TokenEstimator};

/// The maximum number of tokens of one response.
pub(super) const MAX_OUTPUT: u64 = 128_000;

/// Truncates `text` to `max_tokens` tokens. Returns whether anything was removed.
pub(super) fn truncate_to_tokens(text: &mut String, max_tokens: u64) -> bool {
    let mut counter = TokenEstimator::default();
    // Most texts are short enough, and counting a complete text is faster than counting by character.
    if tokens::estimate_text(text) <= max_tokens {
        return false;
    }
    let mut letter = [0; 4];
    let end = text.char_indices().find(|(_, c)| {
        counter.add(c.encode_utf8(&mut letter));
        counter.tokens() > max_tokens
    });
    truncate(text, end.map_or(text.len(), |(at, _)| at));
    true
}

/// Truncates `text` at the first stop sequence or at the token limit, whichever comes first. Returns the finish reason and
/// the stop sequence found.
pub(super) fn apply_limits(
    text: &mut String,
    max_tokens: u64,
    stop: &[String],
) -> (FinishReason, Option<String>) {
    let found = stop
        .iter()
        .filter(|sequence| !sequence.is_empty())
        .filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)))
        .min_by_key(|(at, _)| *at);
    if let Some((at, sequence)) = found {
        // The tokens of the stop sequence count too: a model generates them.
        if tokens::estimate_text(&text[..at + sequence.len()]) <= max_tokens {
            truncate(text, at);
            return (FinishReason::StopSequence, Some(sequence.clone()));
        }
    }
    if truncate_to_tokens(text, max_tokens) {
        return (FinishReason::Length, None);
    }
    (FinishReason::EndTurn, None)
}

/// Truncates `text` to `length` bytes and frees the memory of the rest: a response keeps up to 128 texts.
fn truncate(text: &mut String, length: usize) {
    text.truncate(length);
    text.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_stop_sequence_or_at_the_token_limit() {
        use FinishReason::{EndTurn, Length, StopSequence};
        type Case = (
            &'static str,
            u64,
            &'static [&'static str],
            &'static str,
            FinishReason,
            Option<&'static str>,
        );
        let cases: [Case; 9] = [
            ("one two", 9, &[], "one two", EndTurn, None),
            ("one two", 9, &["three", ""], "one two", EndTurn, None),
            ("one two", 9, &["two", "one"], "", StopSequence, Some("one")),
            ("one two three", 1, &[], "one ", Length, None),
            ("one two three", 0, &[], "", Length, None),
            ("one two three", 1, &["three"], "one ", Length, None),
            (
                "one two three",
                9,
                &["three"],
                "one two ",
                StopSequence,
                Some("three"),
            ),
            ("猫が好き", 2, &[], "猫が", Length, None),
            ("abcd", 1, &[], "abcd", EndTurn, None),
        ];
        for (text, max_tokens, stop, expected, finish, sequence) in cases {
            let mut limited = text.to_owned();
            let stop: Vec<String> = stop.iter().map(|stop| (*stop).to_owned()).collect();
            let (found, by) = apply_limits(&mut limited, max_tokens, &stop);
            assert_eq!(
                (limited.as_str(), found, by.as_deref()),
                (expected, finish, sequence),
                "{text}"
            );
        }
    }

    #[test]
    fn memory_of_removed_text_is_freed() {
        for (max_tokens, stop) in [(2, None), (MAX_OUTPUT, Some("dawn"))] {
            let mut text = "before dawn ".repeat(1_000);
            let stop = Vec::from_iter(stop.map(str::to_owned));
            apply_limits(&mut text, max_tokens, &stop);
            assert!(text.capacity() < 100, "{}", text.capacity());
        }
    }
}
