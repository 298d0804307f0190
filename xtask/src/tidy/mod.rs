//! `cargo xtask tidy`: checks what the compiler does not check. Each check is a file and an entry in [`CHECKS`]; each violation is printed as one
//! line `path:line: what`.

mod dead;
mod dependencies;
mod documents;
mod errors;
mod headers;
mod imports;
mod kinds;
mod links;
mod metrics;
mod modules;
mod money;
mod orphans;
mod packaging;
mod places;
mod sizes;
mod source;
mod subject;
mod vocabulary;

use crate::outcome::Outcome;
use crate::repo::{self, Tree};
use modules::Modules;
use subject::{Check, Subject, Violation};

/// Every check.
const CHECKS: &[Check] = &[
    headers::check,
    sizes::check,
    dependencies::check,
    imports::check,
    dead::check,
    orphans::check,
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

/// Runs every check over the repository and prints the violations.
pub(crate) fn run() -> Outcome {
    let tree = Tree::read(&repo::root())?;
    let modules = Modules::from_tree(&tree);
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
