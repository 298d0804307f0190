//! Checks that documents which the code or other documents name are in the repository.

use super::subject::{Subject, Violation};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_text =
        |path: &str| path.ends_with(".rs") || path.ends_with(".md") || path.ends_with(".toml");
    for file in subject.tree.files.iter().filter(|f| is_text(&f.path)) {
        // The tests of these checks name files that do not exist.
        if file.path.starts_with("xtask/src/tidy/") {
            continue;
        }
        for (at, line) in file.text.lines().enumerate() {
            for name in named_documents(line) {
                let is_there = |path: &String| path == name || path.ends_with(&format!("/{name}"));
                if !subject.tree.paths.iter().any(is_there) {
                    let what = format!("names `{name}`, which is not in the repository");
                    found.push(Violation::new(&file.path, at + 1, what));
                }
            }
        }
    }
    found
}

/// The paths that end in `.md` in a line, except those in public URLs.
fn named_documents(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | ':');
    let tokens = line.split(move |c| !is_path(c));
    let documents = tokens.filter(|token| token.ends_with(".md") && !token.contains("://"));
    documents
        .map(|token| token.trim_start_matches("../").trim_start_matches("./"))
        // `docs/models/NAME.md` is a placeholder.
        .filter(|token| token.len() > ".md".len() && !token.ends_with("NAME.md"))
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn documents_that_are_missing_are_found() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "//! See docs/a.md and SECRET.md, https://example.com/b.md.\n",
            ),
            ("docs/a.md", "[up](../README.md)\n"),
            ("README.md", "\n"),
        ];
        let expected = ["crates/a/src/lib.rs:1: names `SECRET.md`, which is not in the repository"];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
