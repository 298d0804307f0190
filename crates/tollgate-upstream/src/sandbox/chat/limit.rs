//! Where a text ends: at the cap on tokens, or at a stop sequence.

use tollgate_chat::hub::Finish;
use tollgate_chat::tokens::{self, Counter};

/// Cuts `text` to what `most` tokens hold; whether something was cut off.
pub(super) fn to_tokens(text: &mut String, most: u64) -> bool {
    let mut counter = Counter::default();
    // Most texts fit, and whole texts are counted faster than characters.
    if tokens::count(text) <= most {
        return false;
    }
    let mut letter = [0; 4];
    let end = text.char_indices().find(|(_, c)| {
        counter.add(c.encode_utf8(&mut letter));
        counter.tokens() > most
    });
    text.truncate(end.map_or(text.len(), |(at, _)| at));
    true
}

/// Cuts `text` at the first stop sequence or at the cap, whichever comes first: why it ends, and the sequence.
pub(super) fn apply(text: &mut String, most: u64, stop: &[String]) -> (Finish, Option<String>) {
    let found = stop
        .iter()
        .filter(|sequence| !sequence.is_empty())
        .filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)))
        .min_by_key(|(at, _)| *at);
    if let Some((at, sequence)) = found {
        // The sequence itself is generated before it is taken out.
        if tokens::count(&text[..at + sequence.len()]) <= most {
            text.truncate(at);
            return (Finish::StopSequence, Some(sequence.clone()));
        }
    }
    if to_tokens(text, most) {
        // Of a sequence that the cap cuts in two nothing is kept back: it was not seen.
        return (Finish::Length, None);
    }
    (Finish::End, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, most: u64, stop: &[&str]) -> (String, Finish, Option<String>) {
        let mut text = text.to_owned();
        let stop: Vec<String> = stop.iter().map(|s| (*s).to_owned()).collect();
        let (finish, sequence) = apply(&mut text, most, &stop);
        (text, finish, sequence)
    }

    #[test]
    fn texts_end_at_what_comes_first() {
        let of = |text: &str, finish, sequence: Option<&str>| {
            (text.to_owned(), finish, sequence.map(str::to_owned))
        };
        use Finish::{End, Length, StopSequence};
        assert_eq!(check("one two", 9, &[]), of("one two", End, None));
        assert_eq!(
            check("one two", 9, &["three", ""]),
            of("one two", End, None)
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
        assert_eq!(check("abcd", 1, &[]), of("abcd", End, None));
    }
}
