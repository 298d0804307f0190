//! Determines which Rust files are modules of a crate, and which of them are tests.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Expr, ExprLit, Item, ItemMod, Lit, Meta};
use toml::{Table, Value};

use super::source::marks_test;
use crate::repo::{File, Tree, folder};

/// The files that the compiler reaches.
pub(super) struct Modules {
    /// For each file, whether it is reached only for tests.
    pub(super) reached: BTreeMap<String, bool>,
    /// For each file that is not a root, the file that lists it (`mod name;`).
    pub(super) listed_by: BTreeMap<String, String>,
}

impl Modules {
    /// Follows every `mod name;` from the roots of every package.
    pub(super) fn from_tree(tree: &Tree) -> Self {
        let mut modules = Self {
            reached: BTreeMap::new(),
            listed_by: BTreeMap::new(),
        };
        for (root, is_test) in roots(tree) {
            modules.visit(tree, &root, is_test, true);
        }
        modules
    }

    /// Whether the file contains only tests.
    pub(super) fn is_test(&self, path: &str) -> bool {
        self.reached.get(path).copied().unwrap_or(false)
    }

    /// The names of the module and of those around it, from the root of its crate, which has none.
    pub(super) fn module_path(&self, path: &str) -> Vec<String> {
        let Some(listing) = self.listed_by.get(path) else {
            return Vec::new();
        };
        let mut names = self.module_path(listing);
        let path = path.strip_suffix("/mod.rs").unwrap_or(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        names.push(name.trim_end_matches(".rs").to_owned());
        names
    }

    fn visit(&mut self, tree: &Tree, path: &str, is_test: bool, is_root: bool) {
        let known = self.reached.get(path).copied();
        let Some(file) = tree.file(path) else { return };
        // The file was visited before, and this visit adds no information.
        if known.is_some_and(|was_test| is_test || !was_test) {
            return;
        }
        self.reached.insert(path.to_owned(), is_test);
        let Ok(parsed) = file.syntax() else {
            return;
        };
        let stem = path.rsplit('/').next().unwrap_or(path);
        let own = is_root || stem == "mod.rs";
        let children = if own {
            folder(path).to_owned()
        } else {
            path.trim_end_matches(".rs").to_owned()
        };
        for (candidates, is_test_module) in declared(&parsed.items, file, &children) {
            for candidate in candidates {
                self.listed_by.insert(candidate.clone(), path.to_owned());
                self.visit(tree, &candidate, is_test || is_test_module, false);
            }
        }
        for included in included(&file.text) {
            let path = join(folder(path), &included);
            self.visit(tree, &path, is_test, false);
        }
    }
}

/// The possible paths of each `mod name;`, and whether it is for tests only.
fn declared(items: &[Item], file: &File, folder: &str) -> Vec<(Vec<String>, bool)> {
    let mut found = Vec::new();
    for item in items {
        let Item::Mod(module) = item else { continue };
        let is_test = marks_test(&module.attrs);
        let name = module.ident.to_string();
        let name = name.trim_start_matches("r#");
        if let Some((_, inside)) = &module.content {
            let nested = declared(inside, file, &format!("{folder}/{name}"));
            found.extend(nested.into_iter().map(|(paths, t)| (paths, t || is_test)));
        } else if let Some(path) = path_attribute(module) {
            found.push((vec![join(file.folder(), &path)], is_test));
        } else {
            let paths = ["", "/mod"].map(|end| format!("{folder}/{name}{end}.rs"));
            found.push((paths.to_vec(), is_test));
        }
    }
    found
}

fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) if pair.path.is_ident("path") => Some(text.value()),
            _ => None,
        }
    })
}

/// The Rust files named by `include!("….rs")`.
fn included(text: &str) -> Vec<String> {
    fn walk(tokens: TokenStream, found: &mut Vec<String>) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            if let TokenTree::Group(group) = tree {
                walk(group.stream(), found);
            }
            if let (TokenTree::Ident(word), Some(TokenTree::Group(inside))) =
                (tree, trees.get(at + 2))
                && word == "include"
                && let Ok(path) = syn::parse2::<syn::LitStr>(inside.stream())
            {
                found.push(path.value());
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(tokens) = text.parse() {
        walk(tokens, &mut found);
    }
    found
}

/// `path` relative to `folder`, with `..` and `.` resolved.
pub(super) fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The files at which the compiler starts in each package, and whether each is a test.
fn roots(tree: &Tree) -> BTreeSet<(String, bool)> {
    let mut found = BTreeSet::new();
    let manifests = tree.files.iter().filter(|f| f.path.ends_with("Cargo.toml"));
    for manifest in manifests {
        let package = manifest.folder();
        let prefix = format!("{package}/");
        for file in tree.rust() {
            if let Some(path) = file.path.strip_prefix(&prefix)
                && let Some(is_test) = conventional_root(path)
            {
                found.insert((file.path.clone(), is_test));
            }
        }
        let targets = named_targets(&manifest.text).into_iter();
        found.extend(targets.map(|(path, is_test)| (join(package, &path), is_test)));
    }
    found
}

/// Whether cargo treats the file as a root because of its path in the package, and if so whether it is a test.
fn conventional_root(path: &str) -> Option<bool> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => Some(false),
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => Some(false),
        ["examples", _] | ["examples", _, "main.rs"] => Some(false),
        ["tests" | "benches", _] | ["tests" | "benches", _, "main.rs"] => Some(true),
        _ => None,
    }
}

/// The roots that a manifest names explicitly.
fn named_targets(manifest: &str) -> Vec<(String, bool)> {
    let Ok(manifest) = manifest.parse::<Table>() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (section, value) in &manifest {
        let is_test = matches!(section.as_str(), "test" | "bench");
        if !(is_test || matches!(section.as_str(), "lib" | "bin" | "example")) {
            continue;
        }
        let several = value.as_array().map(Vec::as_slice);
        let targets = several.unwrap_or(std::slice::from_ref(value)).iter();
        let paths = targets.filter_map(|t| t.get("path").and_then(Value::as_str));
        found.extend(paths.map(|path| (path.to_owned(), is_test)));
    }
    let build = manifest.get("package").and_then(|p| p.get("build"));
    found.extend(
        build
            .and_then(Value::as_str)
            .map(|path| (path.to_owned(), false)),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_declare_a_module_is_followed() {
        let files = [
            (
                "crates/a/Cargo.toml",
                "[package]\nbuild = \"make/main.rs\"\n[[test]]\npath = \"odd/all.rs\"\n",
            ),
            (
                "crates/a/src/lib.rs",
                "mod b; mod c; mod d { mod e; } #[cfg(test)] mod f; #[path = \"x/y.rs\"] mod g;",
            ),
            ("crates/a/make/main.rs", "mod k;"),
            ("crates/a/make/k.rs", ""),
            ("crates/a/src/b.rs", "mod h;"),
            ("crates/a/src/b/h.rs", "const I: u8 = include!(\"i.rs\");"),
            ("crates/a/src/b/i.rs", "1"),
            ("crates/a/src/c/mod.rs", "mod j;"),
            ("crates/a/src/c/j.rs", ""),
            ("crates/a/src/d/e.rs", ""),
            ("crates/a/src/f.rs", ""),
            ("crates/a/src/x/y.rs", ""),
            ("crates/a/odd/all.rs", ""),
            ("crates/a/src/orphan.rs", ""),
        ];
        let modules = Modules::from_tree(&Tree::from_files(&files));
        let reached: Vec<&str> = modules.reached.keys().map(String::as_str).collect();
        let all_but_orphan = files[1..13].iter().map(|(path, _)| *path);
        assert_eq!(reached.len(), 12);
        assert!(all_but_orphan.clone().all(|path| reached.contains(&path)));
        assert_eq!(modules.module_path("crates/a/src/c/j.rs"), ["c", "j"]);
        assert!(modules.module_path("crates/a/src/lib.rs").is_empty());
        let tests: Vec<&str> = all_but_orphan.filter(|p| modules.is_test(p)).collect();
        assert_eq!(tests, ["crates/a/src/f.rs", "crates/a/odd/all.rs"]);
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("a/b", "../c.rs"), "a/c.rs");
        assert_eq!(join("", "./d/e"), "d/e");
    }
}
