//! Why a reply ended: this format's words and the hub's.

use crate::hub::Finish;

/// Every word of the wire. The first of a kind is the one that is written for it.
const WORDS: &[(&str, Finish)] = &[
    ("STOP", Finish::End),
    ("MAX_TOKENS", Finish::Length),
    ("SAFETY", Finish::Refusal),
    ("RECITATION", Finish::Refusal),
    ("BLOCKLIST", Finish::Refusal),
    ("PROHIBITED_CONTENT", Finish::Refusal),
    ("SPII", Finish::Refusal),
    ("IMAGE_SAFETY", Finish::Refusal),
    ("IMAGE_PROHIBITED_CONTENT", Finish::Refusal),
    ("IMAGE_RECITATION", Finish::Refusal),
    ("MODEL_ARMOR", Finish::Refusal),
    ("MALFORMED_FUNCTION_CALL", Finish::BadToolCall),
    ("UNEXPECTED_TOOL_CALL", Finish::BadToolCall),
    ("TOO_MANY_TOOL_CALLS", Finish::BadToolCall),
    ("CONTINUATION", Finish::Pause),
    ("OTHER", Finish::Other),
];

/// What `word` means; a word that is not known means [`Finish::Other`].
pub(super) fn read(word: &str) -> Finish {
    WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map_or(Finish::Other, |(_, finish)| *finish)
}

/// The word for `finish`. There is none for a tool call: it ends with STOP. A pause cannot be taken up again by a client that has no
/// token for it, so it is a cut.
pub(super) fn write(finish: Finish) -> &'static str {
    match finish {
        Finish::StopSequence | Finish::ToolCall => "STOP",
        Finish::ContextFull | Finish::Pause => "MAX_TOKENS",
        Finish::PromptBlocked => "SAFETY",
        finish => WORDS
            .iter()
            .find(|(_, known)| *known == finish)
            .map_or("OTHER", |(word, _)| word),
    }
}

/// Whether a reply that ends so was cut: a call at its end may be half of one.
pub(super) fn is_cut(finish: Finish) -> bool {
    matches!(
        finish,
        Finish::Length
            | Finish::ContextFull
            | Finish::Refusal
            | Finish::Pause
            | Finish::BadToolCall
    )
}

/// Of two words for one reply, given at different times, the one that counts: a late STOP takes nothing back.
pub(super) fn stronger(before: Finish, after: Finish) -> Finish {
    if after == Finish::End { before } else { after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_30_every_word_has_its_meaning() {
        for (word, finish, written) in [
            ("STOP", Finish::End, "STOP"),
            ("MAX_TOKENS", Finish::Length, "MAX_TOKENS"),
            ("RECITATION", Finish::Refusal, "SAFETY"),
            ("SPII", Finish::Refusal, "SAFETY"),
            (
                "MALFORMED_FUNCTION_CALL",
                Finish::BadToolCall,
                "MALFORMED_FUNCTION_CALL",
            ),
            ("CONTINUATION", Finish::Pause, "MAX_TOKENS"),
            ("LANGUAGE", Finish::Other, "OTHER"),
            ("SOMETHING_NEW", Finish::Other, "OTHER"),
        ] {
            assert_eq!(read(word), finish, "{word}");
            assert_eq!(write(finish), written, "{word}");
        }
        for finish in [Finish::StopSequence, Finish::ToolCall, Finish::End] {
            assert_eq!(write(finish), "STOP");
        }
        assert_eq!(stronger(Finish::Length, Finish::End), Finish::Length);
        assert_eq!(stronger(Finish::End, Finish::Refusal), Finish::Refusal);
    }
}
