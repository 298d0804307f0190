//! Splits long texts into parts within the provider's limit, at sentence ends or pauses.

/// Characters that end a sentence whatever follows.
const ENDS: &[char] = &['。', '！', '？', '…', '；', '\n'];
/// Characters that end a sentence if a blank follows; dots also occur within numbers and names.
const ENDS_BEFORE_BLANK: &[char] = &['.', '!', '?', ';'];
/// Characters that end a clause.
const PAUSES: &[char] = &['，', '、', '：', ','];

/// `text` in parts of at most `max_chars` characters, in order. Blanks at the cuts are dropped, blank parts too.
pub(super) fn split(text: &str, max_chars: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while let Some((limit, _)) = rest.char_indices().nth(max_chars) {
        // Includes the character after the limit, because a blank there makes the dot before it the end of a sentence.
        let (part, left) = rest.split_at(cut(rest, limit));
        parts.push(part.trim_end());
        rest = left.trim_start();
    }
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The best position for a cut at or before `limit` (a byte).
fn cut(text: &str, limit: usize) -> usize {
    let is_blank_at = |at: usize| text[at..].chars().next().is_none_or(char::is_whitespace);
    let behind = |at: usize, c: char| at + c.len_utf8();
    let last = |is_break: &dyn Fn(usize, char) -> bool| {
        let within = text[..limit].char_indices().rev();
        let mut breaks = within.filter(|(at, c)| is_break(*at, *c));
        breaks.next().map(|(at, c)| behind(at, c))
    };
    last(&|at, c| {
        ENDS.contains(&c) || (ENDS_BEFORE_BLANK.contains(&c) && is_blank_at(behind(at, c)))
    })
    .or_else(|| last(&|_, c| PAUSES.contains(&c)))
    .or_else(|| last(&|_, c| c.is_whitespace()))
    .unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn texts_are_split_at_sentence_ends_and_pauses() {
        for (text, max_chars, expected) in rows::<(String, usize, Vec<String>)>("speech_parts") {
            assert_eq!(split(&text, max_chars), expected, "{text}");
        }
    }

    #[test]
    fn parts_contain_the_complete_text_and_keep_the_limit() {
        let text = "Ein Satz, mit Pause. Noch einer! 中文也有。 3.5 km? ".repeat(80);
        for max_chars in [1, 2, 7, 60, 1000] {
            let parts = split(&text, max_chars);
            assert!(parts.iter().all(|part| part.chars().count() <= max_chars));
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&parts.concat()), bare(&text), "{max_chars}");
        }
    }
}
