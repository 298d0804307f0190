//! Checks that no file imports an item that the file listing it (`mod name;`) defines: registries import members, members import types. What the
//! listing file re-exports from another file may be imported. Also checks that no chat format imports another.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::Item;

use super::source::test_lines;
use super::subject::{Subject, Violation};
use crate::repo::File;

/// The file that the folder of every chat format has, and no other folder.
const FORMAT_FILE: &str = "/field_probes.json";

/// The last name of an import of everything.
const GLOB: &str = "*";

/// A path that begins with `super` or `crate`, in a `use` or elsewhere.
struct Import {
    /// Its names; the first is `super` or `crate`.
    names: Vec<String>,
    /// The line of its last name.
    line: usize,
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let paths = subject.tree.paths.iter();
    let formats: Vec<&str> = paths.filter_map(|p| p.strip_suffix(FORMAT_FILE)).collect();
    let mut found = Vec::new();
    for file in subject.tree.rust() {
        if !subject.modules.is_test(&file.path) {
            found.extend(check_file(subject, file).unwrap_or_default());
        }
        found.extend(check_format(&formats, file).unwrap_or_default());
    }
    found
}

/// Finds imports from another chat format, also in tests. `formats` are the folders of the formats. `None` if the file is in none of them or is not
/// valid Rust.
fn check_format(formats: &[&str], file: &File) -> Option<Vec<Violation>> {
    let is_inside = |folder: &str| {
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let own = formats.iter().copied().find(|folder| is_inside(folder))?;
    let (source, _) = own.rsplit_once('/')?;
    let mut imports = Vec::new();
    collect_imports(file.text.parse().ok()?, &mut imports);
    let found = imports.iter().filter_map(|import| {
        let [root, name, ..] = import.names.as_slice() else {
            return None;
        };
        let folder = format!("{source}/{name}");
        let is_other = root == "crate" && folder != own && formats.contains(&folder.as_str());
        is_other.then(|| {
            let what = format!(
                "imports from {folder}, another chat format: move what both use out of the formats' folders"
            );
            Violation::new(&file.path, import.line, what)
        })
    });
    Some(found.collect())
}

/// `None` if no file lists this one, or one of the two is not valid Rust.
fn check_file(subject: &Subject<'_>, file: &File) -> Option<Vec<Violation>> {
    let listing_path = subject.modules.listed_by.get(&file.path)?;
    let listing = subject.tree.file(listing_path)?;
    let defined = defined_names(&listing.syntax().ok()?.items);
    let module = subject.modules.module_path(listing_path);
    let tests = test_lines(file.syntax().ok()?);
    let mut imports = Vec::new();
    collect_imports(file.text.parse().ok()?, &mut imports);
    let found = imports.iter().filter_map(|import| {
        let name = name_in_listing(&import.names, &module)?;
        let is_defined = defined.contains(name) || (name == GLOB && !defined.is_empty());
        let is_test = tests.iter().any(|range| range.contains(&import.line));
        (is_defined && !is_test).then(|| {
            let what = format!(
                "imports `{name}`, which {listing_path} defines, the file that lists this one: move it to a file beside this one"
            );
            Violation::new(&file.path, import.line, what)
        })
    });
    Some(found.collect())
}

/// The names of the items that a file defines itself: neither its modules nor what it re-exports.
fn defined_names(items: &[Item]) -> BTreeSet<String> {
    let names = items.iter().filter_map(|item| match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    });
    names.map(ToString::to_string).collect()
}

/// The name that an import takes from the listing file, whose module is `module`. `None` if it imports from another file.
fn name_in_listing<'a>(names: &'a [String], module: &[String]) -> Option<&'a str> {
    let (start, rest) = names.split_first()?;
    let rest = match start.as_str() {
        "super" => rest,
        _ => rest.strip_prefix(module)?,
    };
    rest.first().map(String::as_str)
}

/// Collects all imports, also those inside macros.
fn collect_imports(tokens: TokenStream, found: &mut Vec<Import>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => collect_imports(group.stream(), found),
            TokenTree::Ident(word) if word == "super" || word == "crate" => {
                let (before, after) = (&trees[..at], &trees[at + 1..]);
                // The second `super` of `super::super` begins no path.
                if !ends_with_separator(before) {
                    let line = word.span().start().line;
                    let names = vec![word.to_string()];
                    follow_path(after, Import { names, line }, found);
                }
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn ends_with_separator(trees: &[TokenTree]) -> bool {
    matches!(trees, [.., first, second] if is_punct(first, ':') && is_punct(second, ':'))
}

fn is_punct(tree: &TokenTree, sign: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Adds the paths that begin with `import` and continue with `trees`: `::name`, `::{…}`, `::*`.
fn follow_path(trees: &[TokenTree], mut import: Import, found: &mut Vec<Import>) {
    let mut rest = trees;
    while let [first, second, next, after @ ..] = rest
        && is_punct(first, ':')
        && is_punct(second, ':')
    {
        match next {
            TokenTree::Ident(name) => {
                import.names.push(name.to_string());
                import.line = name.span().start().line;
                rest = after;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let members: Vec<TokenTree> = group.stream().into_iter().collect();
                for member in members.split(|tree| is_punct(tree, ',')) {
                    let [TokenTree::Ident(name), after @ ..] = member else {
                        continue;
                    };
                    let mut names = import.names.clone();
                    names.push(name.to_string());
                    let line = name.span().start().line;
                    follow_path(after, Import { names, line }, found);
                }
                return;
            }
            next => {
                if is_punct(next, '*') {
                    import.names.push(GLOB.to_owned());
                }
                break;
            }
        }
    }
    found.push(import);
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("crates/a/Cargo.toml", "")];
        all.extend_from_slice(files);
        subject::check(super::check, &all)
    }

    #[test]
    fn items_of_the_listing_file_are_found_in_every_kind_of_path() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod b;\nmod c;\npub use c::D;\nstruct E;\nfn f() {}\nmacro_rules! k { () => {} }\n",
            ),
            (
                "crates/a/src/b.rs",
                "use super::{c, D, E as X};\nfn h() { crate::f(); g!(super::f(1)) }\n",
            ),
            (
                "crates/a/src/c/mod.rs",
                "mod i;\npub struct D;\nfn j() {}\n",
            ),
            (
                "crates/a/src/c/i.rs",
                "use crate::{\n    E,\n    c::{\n        D,\n        l,\n    },\n};\nuse super::super::j;\nuse super::*;\n",
            ),
        ];
        let what = |name: &str, path: &str| {
            format!(
                "imports `{name}`, which {path} defines, the file that lists this one: move it to a file beside this one"
            )
        };
        let (root, folder) = ("crates/a/src/lib.rs", "crates/a/src/c/mod.rs");
        let expected = [
            format!("crates/a/src/b.rs:1: {}", what("E", root)),
            format!("crates/a/src/b.rs:2: {}", what("f", root)),
            format!("crates/a/src/b.rs:2: {}", what("f", root)),
            format!("crates/a/src/c/i.rs:4: {}", what("D", folder)),
            format!("crates/a/src/c/i.rs:9: {}", what("*", folder)),
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn imports_of_another_format_are_found_also_in_tests() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\nmod c;\nmod d;\n"),
            ("crates/a/src/b/field_probes.json", "{}"),
            (
                "crates/a/src/b/mod.rs",
                "mod e;\nuse crate::b::e::F;\nuse crate::{c::G, d::H};\n",
            ),
            (
                "crates/a/src/b/e.rs",
                "pub(crate) struct F;\n#[cfg(test)]\nmod tests {\n    use crate::c::G;\n}\n",
            ),
            ("crates/a/src/c/field_probes.json", "{}"),
            ("crates/a/src/c/mod.rs", "mod g;\npub(crate) use g::G;\n"),
            ("crates/a/src/c/g.rs", "pub(crate) struct G;\n"),
            (
                "crates/a/src/d.rs",
                "use crate::c::G;\npub(crate) struct H;\n",
            ),
        ];
        let what = "imports from crates/a/src/c, another chat format: move what both use out of the formats' folders";
        let expected = [
            format!("crates/a/src/b/e.rs:4: {what}"),
            format!("crates/a/src/b/mod.rs:3: {what}"),
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn tests_and_items_of_other_files_pass() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod b;\n#[cfg(test)]\nmod t;\nfn f() {}\n",
            ),
            (
                "crates/a/src/b.rs",
                "pub(crate) struct F;\n#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::f;\n}\n",
            ),
            ("crates/a/src/t.rs", "use super::*;\nuse crate::f;\n"),
        ];
        assert!(found(&files).is_empty());
    }
}
