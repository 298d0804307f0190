//! `[safety]`: phrases that a prompt must not hold, and further families whose prompts are looked at.

use super::ConfigError;
use super::field::Field;

/// What no provider will draw. An operator's own list takes the place of this one.
const PATTERNS: &[&str] = &[
    "beheading video",
    "bestiality",
    "child porn",
    "child pornography",
    "child sexual",
    "csam",
    "naked child",
    "naked children",
    "nude child",
    "nude children",
    "nude minor",
    "rape scene",
    "sexualized child",
    "sexualized minor",
    "underage nude",
    "underage sex",
    "儿童色情",
    "恋童",
    "未成年色情",
];

/// Which prompts are refused before submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safety {
    /// Families that are reviewed beside those that SPEC.md says are.
    pub families: Vec<String>,
    /// Phrases, folded as prompts are.
    patterns: Vec<String>,
}

impl Safety {
    /// Whether a prompt holds a blocked phrase. A phrase is found without regard to case and to what
    /// stands between its words; where it begins or ends in a Latin letter or digit, so must a word
    /// of the prompt.
    pub fn blocks(&self, prompt: &str) -> bool {
        let prompt = fold(prompt);
        self.patterns.iter().any(|pattern| holds(&prompt, pattern))
    }
}

/// Reads the list. `field` is the setting `safety`.
pub(super) fn read(field: &Field<'_>) -> Result<Safety, ConfigError> {
    let list = |name: &str, default: &[&str]| {
        let field = field.at(name);
        if !field.is_given() {
            return Ok(default.iter().map(|text| (*text).to_owned()).collect());
        }
        let items = field.items().into_iter();
        items
            .map(|item| item.required())
            .collect::<Result<Vec<_>, _>>()
    };
    let patterns = list("patterns", PATTERNS)?
        .iter()
        .map(|text| fold(text))
        .collect::<Vec<_>>();
    if patterns.iter().any(String::is_empty) {
        return Err(field
            .at("patterns")
            .error("holds a phrase without a letter or digit"));
    }
    Ok(Safety {
        patterns,
        families: list("families", &[])?,
    })
}

/// Lower case, with one space for whatever stands between words.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            folded.push(c);
        } else if !folded.is_empty() && !folded.ends_with(' ') {
            folded.push(' ');
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

fn holds(prompt: &str, pattern: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let inside =
        |a: Option<char>, b: Option<char>| a.is_some_and(is_word) && b.is_some_and(is_word);
    prompt.match_indices(pattern).any(|(at, found)| {
        let before = prompt[..at].chars().next_back();
        let after = prompt[at + found.len()..].chars().next();
        !inside(before, found.chars().next()) && !inside(found.chars().next_back(), after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_words() {
        let safety = Safety {
            patterns: ["csam", "rape scene", "恋童"].map(str::to_owned).to_vec(),
            families: Vec::new(),
        };
        for (prompt, refused) in [
            ("a RAPE -- scene!", true),
            ("a grape scene", false),
            ("rape scenery", false),
            ("CSAM", true),
            ("csamples", false),
            ("一幅恋童画", true),
            ("a lake", false),
            ("", false),
        ] {
            assert_eq!(safety.blocks(prompt), refused, "{prompt}");
        }
    }
}
