//! Truncates generated text at the token limit or at a stop sequence.

use tollgate_chat::hub::FinishReason;
use tollgate_chat::tokens::{self, TokenEstimator};

/// Truncates `text` to `max_tokens` tokens. Returns whether anything was removed.
pub(super) fn truncate_to_tokens(text: &mut String, max_tokens: u64) -> bool {
    let mut counter = TokenEstimator::default();
    // Most texts fit, and counting a text at once is faster than by character.
    if tokens::estimate_text(text) <= max_tokens {
        return false;
    }
    let mut letter = [0; 4];
    let end = text.char_indices().find(|(_, c)| {
        counter.add(c.encode_utf8(&mut letter));
        counter.tokens() > max_tokens
    });
    text.truncate(end.map_or(text.len(), |(at, _)| at));
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
            text.truncate(at);
            return (FinishReason::StopSequence, Some(sequence.clone()));
        }
    }
    if truncate_to_tokens(text, max_tokens) {
        return (FinishReason::Length, None);
    }
    (FinishReason::EndTurn, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max_tokens: u64, stop: &[&str]) -> (String, FinishReason, Option<String>) {
        let mut text = text.to_owned();
        let stop: Vec<String> = stop.iter().map(|s| (*s).to_owned()).collect();
        let (finish, sequence) = apply_limits(&mut text, max_tokens, &stop);
        (text, finish, sequence)
    }

    #[test]
    fn text_ends_at_the_stop_sequence_or_at_the_token_limit() {
        let of = |text: &str, finish, sequence: Option<&str>| {
            (text.to_owned(), finish, sequence.map(str::to_owned))
        };
        use FinishReason::{EndTurn, Length, StopSequence};
        assert_eq!(check("one two", 9, &[]), of("one two", EndTurn, None));
        assert_eq!(
            check("one two", 9, &["three", ""]),
            of("one two", EndTurn, None)
        );
        assert_eq!(
            check("one two", 9, &["two", "one"]),
            of("", StopSequence, Some("one"))
        );
        assert_eq!(check("one two three", 1, &[]), of("one ", Length, None));
        assert_eq!(check("one two three", 0, &[]), of("", Length, None));
        assert_eq!(
            check("one two three", 1, &["three"]),
            of("one ", Length, None)
        );
        assert_eq!(
            check("one two three", 9, &["three"]),
            of("one two ", StopSequence, Some("three"))
        );
        assert_eq!(check("猫が好き", 2, &[]), of("猫が", Length, None));
        assert_eq!(check("abcd", 1, &[]), of("abcd", EndTurn, None));
    }
}
