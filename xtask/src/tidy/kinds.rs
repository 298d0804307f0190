//! Checks that a provider's kind is used only in its own folder: code in other crates must not depend on which provider it uses. A kind is found by
//! its name as a complete string literal.

use super::source::{strings, test_lines};
use super::subject::{Subject, Violation};

/// The channel kinds (docs/channels.md).
const KINDS: &[&str] = &[
    "openai",
    "anthropic",
    "gemini",
    "ark",
    "dashscope",
    "xai",
    "kling",
    "replicate",
    "fal",
    "sandbox",
];

/// The crates in which the kinds are forbidden.
const CRATES: &[&str] = &[
    "tollgate-admin",
    "tollgate-cli",
    "tollgate-config",
    "tollgate-media",
    "tollgate-server",
    "tollgate-storage",
    "tollgate-store",
];

/// An exception: file, kind, reason.
type Allowed = (&'static str, &'static str, &'static str);

/// Files in which a kind is allowed nevertheless.
const ALLOWED: &[Allowed] = &[(
    "crates/tollgate-server/src/routing/mod.rs",
    "sandbox",
    "with no channel configured, the sandbox serves every model",
)];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    check_but(subject, ALLOWED)
}

fn check_but(subject: &Subject<'_>, exceptions: &[Allowed]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut used = vec![false; exceptions.len()];
    for file in subject.tree.rust() {
        let in_scope = CRATES
            .iter()
            .any(|name| file.path.starts_with(&format!("crates/{name}/src/")));
        if !in_scope || subject.modules.is_test(&file.path) {
            continue;
        }
        let Ok(parsed) = file.syntax() else {
            continue;
        };
        let tests = test_lines(parsed);
        for (line, text) in strings(&file.text) {
            let in_test = tests.iter().any(|range| range.contains(&line));
            if in_test || !KINDS.contains(&text.as_str()) {
                continue;
            }
            let allowed = |(path, kind, _): &Allowed| *path == file.path && *kind == text;
            if let Some(at) = exceptions.iter().position(allowed) {
                used[at] = true;
            } else {
                let what = format!("names provider kind \"{text}\": only its own folder may");
                found.push(Violation::new(&file.path, line, what));
            }
        }
    }
    let idle = exceptions.iter().zip(used).filter(|(_, used)| !used);
    found.extend(idle.map(|((path, kind, _), _)| {
        let what = format!("no longer names \"{kind}\": take it off the list in tidy/kinds.rs");
        Violation::new(path, 1, what)
    }));
    found
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn kinds_are_found_outside_their_folders_and_tests() {
        let code = "fn f(k: &str) { if k == \"fal\" {} g(\"a fal model\"); }\n#[cfg(test)]\nmod tests { const K: &str = \"xai\"; }";
        let files = [
            ("crates/tollgate-server/Cargo.toml", ""),
            ("crates/tollgate-server/src/lib.rs", code),
            ("crates/tollgate-upstream/src/lib.rs", code),
        ];
        let found = subject::check(|s| super::check_but(s, &[]), &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/tollgate-server/src/lib.rs:1: names"));

        const FITS: &[super::Allowed] = &[("crates/tollgate-server/src/lib.rs", "fal", "a test")];
        const IDLE: &[super::Allowed] = &[("crates/tollgate-server/src/lib.rs", "ark", "a test")];
        let found = subject::check(|s| super::check_but(s, FITS), &files);
        assert!(found.is_empty(), "{found:?}");
        let found = subject::check(|s| super::check_but(s, IDLE), &files);
        assert_eq!(found.len(), 2, "the use and the idle exception: {found:?}");
    }
}
