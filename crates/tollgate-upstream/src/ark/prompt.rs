//! Changes a prompt before it is sent to Ark; the comments state why.

use std::borrow::Cow;

/// Number words, in addition to digits, that count as the number of images of a group.
const NUMBERS: &[&str] = &[
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen",
];
const CHINESE_NUMBERS: &[char] = &[
    '两', '二', '三', '四', '五', '六', '七', '八', '九', '十', '组',
];

/// The prompt of a group of `n` images. Ark has only a field for the maximum number: the model generates as many images as the prompt mentions, so a
/// sentence with the number is added to a prompt that mentions none.
pub(super) fn with_group_size(prompt: &str, n: u32) -> Cow<'_, str> {
    if n < 2 || names_a_number(prompt) {
        return Cow::Borrowed(prompt);
    }
    let prompt = prompt.trim_end();
    Cow::Owned(if prompt.chars().any(is_chinese) {
        format!("{prompt}\n生成{n}张图片。")
    } else {
        format!("{prompt}\nGenerate {n} pictures.")
    })
}

fn names_a_number(prompt: &str) -> bool {
    let words = prompt.split(|c: char| !c.is_alphanumeric() || is_chinese(c));
    let is_number = |word: &str| {
        let digits = word.parse::<u32>().is_ok_and(|n| (2..=15).contains(&n));
        digits || NUMBERS.iter().any(|name| word.eq_ignore_ascii_case(name))
    };
    words.into_iter().any(is_number) || prompt.contains(CHINESE_NUMBERS)
}

/// Whether the character is in the Unicode block of common Chinese characters.
fn is_chinese(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// Flags that Seedance 1.0 and 1.5 read from the text, the older form of settings that are fields now.
const FLAGS: &[&str] = &[
    "resolution",
    "rs",
    "ratio",
    "rt",
    "duration",
    "dur",
    "frames",
    "fps",
    "watermark",
    "wm",
    "seed",
    "camerafixed",
    "cf",
];

/// The prompt of a video without such flags and their values, and the removed flags: they would change length and size, but not the price.
pub(super) fn without_flags(prompt: &str) -> (Cow<'_, str>, Vec<&str>) {
    if !prompt.contains("--") {
        return (Cow::Borrowed(prompt), Vec::new());
    }
    let mut kept = String::with_capacity(prompt.len());
    let mut flags = Vec::new();
    let mut rest = prompt;
    while let Some(at) = rest.find("--") {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        match flag_length(from) {
            Some(length) => {
                flags.push(from[..length].trim_end());
                rest = &from[length..];
            }
            None => {
                kept.push_str("--");
                rest = &from[2..];
            }
        }
    }
    if flags.is_empty() {
        return (Cow::Borrowed(prompt), flags);
    }
    kept.push_str(rest);
    (Cow::Owned(kept.trim_end().to_owned()), flags)
}

/// The length of the flag, its value and the space after them at the start of `text`, which begins with `--`; `None` if it is not a flag.
fn flag_length(text: &str) -> Option<usize> {
    let name = &text[2..];
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    FLAGS.iter().find(|flag| name.eq_ignore_ascii_case(flag))?;
    let value = rest.trim_start_matches([' ', '\t', '=', ':']);
    // A flag without a value is followed by the next one, or by a new line.
    let value = if value.starts_with("--") {
        value
    } else {
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        &value[end..]
    };
    let left = value.trim_start_matches([' ', '\t']);
    Some(text.len() - left.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn the_group_size_is_added_to_prompts_without_a_number() {
        for (prompt, n, expected) in rows::<(String, u32, String)>("group_prompts") {
            assert_eq!(with_group_size(&prompt, n), expected, "{prompt}");
        }
    }

    #[test]
    fn only_flags_and_their_values_are_removed() {
        for [prompt, expected] in rows::<[String; 2]>("prompt_flags") {
            assert_eq!(without_flags(&prompt).0, expected, "{prompt}");
        }
    }
}
