//! `[safety]`: the phrases that the safety review rejects, and the families whose prompts are reviewed.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// Phrases that every provider rejects. If the operator configures a list, it replaces this one.
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

/// Which prompts are rejected before submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safety {
    /// Families that are reviewed in addition to those that are always reviewed.
    pub families: Vec<String>,
    /// The blocked phrases, normalised by `fold` as prompts are.
    patterns: Vec<String>,
}

impl Safety {
    /// The blocked phrases, normalised by `fold`.
    pub(super) fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Whether a prompt contains a blocked phrase. Case, and the characters between words, are ignored; a phrase that begins or ends with a Latin
    /// letter or digit matches only where a word of the prompt begins or ends.
    pub fn blocks(&self, prompt: &str) -> bool {
        let prompt = fold(prompt);
        self.patterns
            .iter()
            .any(|pattern| contains_phrase(&prompt, pattern))
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SafetySettings {
    patterns: Vec<String>,
    families: Vec<String>,
}

impl Default for SafetySettings {
    fn default() -> Self {
        Self {
            patterns: PATTERNS.iter().map(|text| (*text).to_owned()).collect(),
            families: Vec::new(),
        }
    }
}

impl Default for Safety {
    fn default() -> Self {
        Self::from(SafetySettings::default())
    }
}

impl From<SafetySettings> for Safety {
    fn from(settings: SafetySettings) -> Self {
        Self {
            families: settings.families,
            patterns: settings.patterns.iter().map(|text| fold(text)).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Safety {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let safety = Self::from(SafetySettings::deserialize(deserializer)?);
        match safety.patterns.iter().any(String::is_empty) {
            true => Err(D::Error::custom("has a pattern without a letter or digit")),
            false => Ok(safety),
        }
    }
}

/// Converts to lower case, and replaces whatever is between words by one space.
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

fn contains_phrase(prompt: &str, pattern: &str) -> bool {
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
        for (prompt, rejected) in [
            ("a RAPE -- scene!", true),
            ("a grape scene", false),
            ("rape scenery", false),
            ("CSAM", true),
            ("csamples", false),
            ("一幅恋童画", true),
            ("a lake", false),
            ("", false),
        ] {
            assert_eq!(safety.blocks(prompt), rejected, "{prompt}");
        }
    }
}
