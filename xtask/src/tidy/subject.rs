//! The input and output of a check: files and violations.

use super::modules::Modules;
use crate::repo::Tree;

/// A violation that a check found.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) what: String,
}

impl Violation {
    pub(super) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// The input of a check: all files, and which of the Rust files are modules, tests or orphans.
pub(super) struct Subject<'a> {
    pub(super) tree: &'a Tree,
    pub(super) modules: &'a Modules,
}

/// A check.
pub(super) type Check = fn(&Subject<'_>) -> Vec<Violation>;

/// Runs one check over files that a test specifies.
#[cfg(test)]
pub(super) fn check(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    let tree = Tree::from_files(files);
    let modules = Modules::from_tree(&tree);
    let subject = Subject {
        tree: &tree,
        modules: &modules,
    };
    let found = check(&subject).into_iter();
    found
        .map(|v| format!("{}:{}: {}", v.path, v.line, v.what))
        .collect()
}
