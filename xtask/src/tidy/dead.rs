//! Checks that no Rust file contains silenced warnings about unused code, unfinished code or notes to its authors.

use super::subject::{Subject, Violation};

/// Words that mark unfinished code, in halves so that this file does not contain them.
const WORDS: &[(&str, &str)] = &[
    ("dead_", "code"),
    ("to", "do!("),
    ("unimple", "mented!("),
    ("FIX", "ME"),
    ("XX", "X"),
];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let words: Vec<String> = WORDS.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut found = Vec::new();
    for file in subject.tree.rust() {
        for (at, line) in file.text.lines().enumerate() {
            let here = words.iter().filter(|word| line.contains(word.as_str()));
            found.extend(here.map(|word| {
                let what = format!("`{}` is not allowed", word.trim_end_matches('('));
                Violation::new(&file.path, at + 1, what)
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn unfinished_code_is_found() {
        let text = format!(
            "//! H.\n#[allow({}{})]\nfn f() {{ {}{}) }}\n",
            "dead_", "code", "to", "do!("
        );
        let found = subject::check(super::check, &[("crates/a/src/lib.rs", &text)]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("crates/a/src/lib.rs:2: "));
        assert!(found[1].starts_with("crates/a/src/lib.rs:3: "));
    }
}
