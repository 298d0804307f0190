//! Checks that files and functions are short enough to be read in one go. Tables, snapshots and the functions of tests may have any length.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::source::marks_test;
use super::subject::{Subject, Violation};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 90;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in subject.tree.rust() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES && !is_table(&file.path) {
            let what = format!("file of {lines} lines, at most {FILE_LINES}: split it by job");
            found.push(Violation::new(&file.path, 1, what));
        }
        if subject.modules.is_test(&file.path) {
            continue;
        }
        if let Ok(parsed) = file.syntax() {
            let mut functions = Functions {
                path: &file.path,
                found: &mut found,
            };
            functions.visit_file(parsed);
        }
    }
    found
}

fn is_table(path: &str) -> bool {
    path.ends_with("_table.rs") || path.split('/').any(|part| part == "snapshots")
}

struct Functions<'a> {
    path: &'a str,
    found: &'a mut Vec<Violation>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line + 1 - first;
        if lines > FUNCTION_LINES {
            let name = &signature.ident;
            let what = format!("function `{name}` of {lines} lines, at most {FUNCTION_LINES}");
            self.found.push(Violation::new(self.path, first, what));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !marks_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !marks_test(&item.attrs) {
            self.measure(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.measure(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn long_files_and_functions_are_found_and_tests_are_not() {
        let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(89));
        let fits = long.replacen("    g();\n", "", 1);
        let test = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let huge = "//\n".repeat(801);
        let files = [
            ("crates/a/src/lib.rs", long.as_str()),
            ("crates/a/src/fits.rs", fits.as_str()),
            ("crates/a/src/test.rs", test.as_str()),
            ("crates/a/src/huge.rs", huge.as_str()),
            ("crates/a/src/huge_table.rs", huge.as_str()),
        ];
        let expected = [
            "crates/a/src/huge.rs:1: file of 801 lines, at most 800: split it by job",
            "crates/a/src/lib.rs:1: function `f` of 91 lines, at most 90",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
