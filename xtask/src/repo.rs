//! The files of the repository: the root folder, and the files in it.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository that this program was built from.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A text file.
pub(crate) struct File {
    /// The path relative to the root, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The syntax tree, parsed when a check first needs it.
    syntax: OnceCell<syn::Result<syn::File>>,
}

impl File {
    fn new(path: String, text: String) -> Self {
        let syntax = OnceCell::new();
        Self { path, text, syntax }
    }

    /// The syntax tree of a Rust file, or the error of parsing it.
    pub(crate) fn syntax(&self) -> Result<&syn::File, &syn::Error> {
        let parsed = self.syntax.get_or_init(|| syn::parse_file(&self.text));
        parsed.as_ref()
    }

    /// The folder that the file is in, without a slash at the end; empty at the root.
    pub(crate) fn folder(&self) -> &str {
        folder(&self.path)
    }
}

/// The folder of `path`, without a slash at the end; empty at the root.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Every file that git would commit: paths in `.gitignore` are excluded. It walks the folder instead of calling git, so that it also works in an
/// exported tree.
pub(crate) struct Tree {
    /// The text files.
    pub(crate) files: Vec<File>,
    /// The paths of all files, including those that are not text.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    /// Reads everything below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let ignored = ignored(root);
        let mut tree = Self {
            files: Vec::new(),
            paths: BTreeSet::new(),
        };
        tree.walk(root, "", &ignored)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// The text file with that path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let found = self.files.binary_search_by(|f| f.path.as_str().cmp(path));
        found.ok().map(|at| &self.files[at])
    }

    /// The Rust files in `crates/`, `fuzz/` and `xtask/`.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        let ours = |path: &str| {
            let mut folders = ["crates/", "fuzz/", "xtask/"].into_iter();
            folders.any(|folder| path.starts_with(folder))
        };
        let files = self.files.iter();
        files.filter(move |f| f.path.ends_with(".rs") && ours(&f.path))
    }

    fn walk(&mut self, folder: &Path, prefix: &str, ignored: &[String]) -> Result<(), String> {
        let unreadable = |e| format!("cannot read {}: {e}", folder.display());
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if name == ".git" || ignored.contains(&path) {
                continue;
            }
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"), ignored)?;
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).map_err(unreadable)?;
                self.paths.insert(path.clone());
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.push(File::new(path, text));
                }
            }
        }
        Ok(())
    }
}

/// The entries of the root's `.gitignore` that are paths from the root.
fn ignored(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let entries = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('/'));
    entries
        .map(|e| e.trim_end_matches('/').to_owned())
        .collect()
}

#[cfg(test)]
impl Tree {
    /// A tree of the given paths and texts.
    pub(crate) fn from_files(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File::new((*path).to_owned(), (*text).to_owned());
        let mut files: Vec<File> = files.iter().map(file).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let paths = files.iter().map(|f| f.path.clone()).collect();
        Self { files, paths }
    }
}
