//! `cargo xtask tidy`: what the compiler does not check. Each check is a file of its own and a
//! line in [`CHECKS`]; each finding is one line `path:line: what`.

mod dead;
mod dependencies;
mod documents;
mod errors;
mod headers;
mod kinds;
mod links;
mod metrics;
mod modules;
mod money;
mod packaging;
mod places;
mod sizes;
mod source;
mod vocabulary;

use crate::Outcome;
use crate::repo::{self, Tree};
use modules::Modules;

/// One finding.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// What a check looks at: all files, and which of the Rust files are modules, tests or orphans.
struct Subject<'a> {
    tree: &'a Tree,
    modules: &'a Modules,
}

type Check = fn(&Subject<'_>) -> Vec<Violation>;

/// Every check.
const CHECKS: &[Check] = &[
    headers::check,
    sizes::check,
    dependencies::check,
    dead::check,
    modules::check,
    links::check,
    metrics::check,
    money::check,
    packaging::check,
    places::check,
    kinds::check,
    documents::check,
    errors::check,
    vocabulary::check,
];

/// Runs every check over the repository and prints what they find.
pub(crate) fn run() -> Outcome {
    let tree = Tree::read(&repo::root())?;
    let modules = Modules::of(&tree);
    let subject = Subject {
        tree: &tree,
        modules: &modules,
    };
    let mut found: Vec<Violation> = CHECKS.iter().flat_map(|check| check(&subject)).collect();
    found.sort();
    for Violation { path, line, what } in &found {
        println!("{path}:{line}: {what}");
    }
    match found.len() {
        0 => {
            println!("tidy: {} files, nothing to say", tree.paths.len());
            Ok(())
        }
        n => Err(format!("tidy: {n} to mend")),
    }
}

/// Runs one check over files made up by a test.
#[cfg(test)]
fn check(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    let tree = Tree::of(files);
    let modules = Modules::of(&tree);
    let subject = Subject {
        tree: &tree,
        modules: &modules,
    };
    let found = check(&subject).into_iter();
    found
        .map(|v| format!("{}:{}: {}", v.path, v.line, v.what))
        .collect()
}
