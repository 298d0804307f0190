//! Checks that no file names a location that exists only on a developer's machine: the folder in which the repository was edited, or the host of a
//! package registry, which each machine configures for itself.

use super::subject::{Subject, Violation};
use crate::repo;

/// Folders of the machines on which the project is developed, in halves so that this file does not name them.
const FOLDERS: &[(&str, &str)] = &[("/wo", "rk/"), ("/fa", "rm/"), ("../sha", "red")];

/// Hosts of package registries, in halves.
const HOSTS: &[(&str, &str)] = &[
    ("crates", ".io"),
    ("npmjs", ".org"),
    ("npmjs", ".com"),
    ("pypi", ".org"),
    ("python", "hosted.org"),
    ("proxy.go", "lang.org"),
    ("deb.deb", "ian.org"),
    ("apt.postgre", "sql.org"),
    ("hub.doc", "ker.com"),
];

/// The lock file, in which cargo names its registry.
const LOCK_FILE: &str = "Cargo.lock";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let joined = |(a, b): &(&str, &str)| format!("{a}{b}");
    let mut folders: Vec<String> = FOLDERS.iter().map(joined).collect();
    folders.push(repo::root().display().to_string());
    let hosts: Vec<String> = HOSTS.iter().map(joined).collect();
    let mut found = Vec::new();
    for file in subject.tree.files.iter().filter(|f| f.path != LOCK_FILE) {
        for (at, line) in file.text.lines().enumerate() {
            if folders.iter().any(|folder| names_folder(line, folder)) {
                let what = "names a folder of one machine";
                found.push(Violation::new(&file.path, at + 1, what));
            }
            if hosts.iter().any(|host| line.contains(host.as_str())) {
                let what = "names the host of a package registry";
                found.push(Violation::new(&file.path, at + 1, what));
            }
        }
    }
    found
}

/// Whether `line` contains `folder` as the beginning of a path, not as a part of a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    let mut starts = line.match_indices(folder).map(|(at, _)| at);
    starts.any(|at| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::subject;

    #[test]
    fn places_of_one_machine_are_found() {
        let here = format!("cd {}{}main", "/wo", "rk/");
        let host = format!("https://index.{}{}/", "crates", ".io");
        let files = [
            ("a.md", here.as_str()),
            ("b/c.toml", host.as_str()),
            ("Cargo.lock", host.as_str()),
            ("d.md", "a/b is a path of anybody"),
        ];
        let expected = [
            "a.md:1: names a folder of one machine",
            "b/c.toml:1: names the host of a package registry",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }

    #[test]
    fn a_longer_path_is_another_path() {
        assert!(names_folder("at /a/b", "/a/"));
        assert!(!names_folder("at x/a/b", "/a/"));
    }
}
