//! Finds letters that a JSON text writes as `\u00..`: whoever searches the text for a name or a value does not find them.

use memchr::memmem;

/// Whether a character that can occur in a searched text is escaped (`\u0061` for `a`), which hides the text.
pub(crate) fn has_escaped_letters(body: &[u8]) -> bool {
    count_escaped_letters(body) > 0
}

/// The number of escaped letters, digits and characters of `_-./:`. Other ASCII characters are escaped by ordinary clients: .NET's by default
/// ``"&'+<>` `` and U+007F, others control characters and `=`.
pub(crate) fn count_escaped_letters(body: &[u8]) -> usize {
    let is_hidden = |at: &usize| {
        // After an odd number of backslashes, this one is escaped itself, and `u00` is a text.
        let before = body[..*at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        let digits = body
            .get(at + 4..at + 6)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        before % 2 == 0
            && byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte))
    };
    memmem::find_iter(body, b"\\u00").filter(is_hidden).count()
}
