//! Checks that every Rust file begins with a `//!` comment that states its purpose.

use super::subject::{Subject, Violation};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let bare = subject.tree.rust().filter(|f| !f.text.starts_with("//!"));
    bare.map(|f| Violation::new(&f.path, 1, "begins without a `//!` header"))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn a_file_without_a_header_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "//! Says it.\n"),
            ("crates/a/src/b.rs", "// Says nothing.\n"),
            ("elsewhere/c.rs", "fn c() {}\n"),
            ("fuzz/src/d.rs", "fn d() {}\n"),
        ];
        let found = subject::check(super::check, &files);
        assert_eq!(
            found,
            [
                "crates/a/src/b.rs:1: begins without a `//!` header",
                "fuzz/src/d.rs:1: begins without a `//!` header"
            ]
        );
    }
}
