//! Texts for responses without a `say` directive, and functions to read the texts of requests.

use tollgate_chat::hub::{Part, PartKind};

use super::text_limit::MAX_OUTPUT;

/// The words of the responses to `[[sandbox:words=N]]`.
const WORDS: &[&str] = &[
    "a", "small", "boat", "left", "the", "harbour", "before", "dawn", "and", "found", "open",
    "water", "by", "noon", "while", "gulls", "followed", "it", "for", "bread", "then", "rain",
    "came", "over", "hills", "of", "slate", "where", "sheep", "stood", "under", "old", "walls",
];

/// Sentences that are true for every response of the sandbox.
const SENTENCES: &[&str] = &[
    "No model has read this; the sandbox generated the answer.",
    "The same request will always get the same words.",
    "Nothing of it left this machine.",
    "A configured channel would answer here with a model's own words.",
    "The tokens of this answer are counted as those of any other.",
    "What you sent was read, counted and put aside.",
    "There is no more to it than these few sentences.",
];

/// `count` words, beginning at a word that `seed` selects. Fewer if the text has more than [`MAX_OUTPUT`] tokens of four characters: it is
/// truncated.
pub(super) fn filler_words(count: u32, seed: u64) -> String {
    let start = (seed % WORDS.len() as u64) as usize;
    let words = WORDS.iter().cycle().skip(start).take(count as usize);
    let mut text = String::new();
    for word in words {
        if text.len() as u64 > MAX_OUTPUT * 4 {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// One to three different sentences.
pub(super) fn sentences(seed: u64) -> impl Iterator<Item = &'static str> {
    let length = SENTENCES.len();
    let start = (seed >> 8) as usize % length;
    let count = 1 + (seed >> 16) as usize % 3;
    // Steps of 3 visit all 7 sentences before one repeats.
    (0..count).map(move |n| SENTENCES[(start + n * 3) % length])
}

/// The beginning of a text on one line: whole words of at most 80 characters together, or the first 80 characters of a longer first word, followed by
/// `…` if anything was left out.
pub(super) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            if line.chars().count() + word.chars().count() >= MAX_CHARS {
                line.push_str(" …");
                return line;
            }
            line.push(' ');
        }
        line.push_str(word);
        // A text without spaces is one long word.
        if let Some((end, _)) = line.char_indices().nth(MAX_CHARS) {
            line.truncate(end);
            line.push('…');
            return line;
        }
    }
    line
}

/// The text of a part. `None` if the part is not a text.
pub(super) fn text_of(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_has_the_requested_number_of_words() {
        for count in [0, 1, 5, 1000] {
            assert_eq!(
                filler_words(count, 7).split_whitespace().count(),
                count as usize
            );
        }
        assert_ne!(filler_words(5, 1), filler_words(5, 2));
    }

    #[test]
    fn filler_ends_after_the_token_limit() {
        let text = filler_words(1_000_000, 7);
        let tokens = tollgate_chat::tokens::estimate_text(&text);
        assert!(
            (MAX_OUTPUT + 1..MAX_OUTPUT + 10).contains(&tokens),
            "{tokens}"
        );
    }

    #[test]
    fn excerpts_are_short_and_on_one_line() {
        assert_eq!(excerpt(" hello \n world "), "hello world");
        assert_eq!(excerpt(""), "");
        let long = excerpt(&"word ".repeat(100));
        assert!(long.ends_with("word …") && long.chars().count() <= 82);
        assert_eq!(excerpt(&"猫".repeat(200)).chars().count(), 81);
    }

    #[test]
    fn sentences_do_not_repeat() {
        for seed in (0..1 << 20).step_by(4099) {
            let all: Vec<_> = sentences(seed).collect();
            let mut unique = all.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), all.len());
        }
    }
}
