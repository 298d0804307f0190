//! Checks that every Rust file is reached from a crate, otherwise the compiler never reads it, and that it is valid Rust.

use super::subject::{Subject, Violation};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let reached = &subject.modules.reached;
    let mut found = Vec::new();
    for file in subject.tree.rust() {
        if let Err(e) = file.syntax() {
            let line = e.span().start().line;
            found.push(Violation::new(&file.path, line, format!("not Rust: {e}")));
        } else if !reached.contains_key(&file.path) {
            let what = "no module of any crate: declare it or delete it";
            found.push(Violation::new(&file.path, 1, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn an_orphan_and_a_broken_file_are_found() {
        let files = [
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/orphan.rs", ""),
            ("crates/a/src/broken.rs", "fn ("),
        ];
        let found = subject::check(super::check, &files);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("crates/a/src/broken.rs:1: not Rust"));
        assert!(found[1].starts_with("crates/a/src/orphan.rs:1: no module"));
    }
}
