//! Checks that links between documents have a target, and that every document is linked to.

use std::collections::BTreeSet;

use super::modules::join;
use super::subject::{Subject, Violation};
use crate::repo::File;

/// A link of a document: its line and its target.
type Link = (usize, String);

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let tree = subject.tree;
    let documents = tree.files.iter().filter(|f| f.path.ends_with(".md"));
    let mut found = Vec::new();
    let mut linked = BTreeSet::new();
    for document in documents {
        for (line, target) in links(&document.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() {
                document.path.clone()
            } else {
                join(document.folder(), path)
            };
            if path != document.path {
                linked.insert(path.clone());
            }
            let is_folder = tree
                .paths
                .iter()
                .any(|p| p.starts_with(&format!("{path}/")));
            let missing_heading = || {
                let there = tree.file(&path).filter(|_| !heading.is_empty());
                there.is_some_and(|file| !has_heading(file, heading))
            };
            if !is_folder && !tree.paths.contains(&path) {
                let what = format!("link to `{target}`, which is not there");
                found.push(Violation::new(&document.path, line, what));
            } else if missing_heading() {
                let what = format!("link to `{target}`: no such heading there");
                found.push(Violation::new(&document.path, line, what));
            }
        }
    }
    let docs = tree.paths.iter().filter(|p| p.starts_with("docs/"));
    let unlinked = docs.filter(|path| !linked.contains(*path));
    found.extend(unlinked.map(|p| Violation::new(p, 1, "no document links here")));
    found
}

/// The links of a Markdown text, except those in code.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let mut rest = prose.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let end = rest.find(')').unwrap_or(rest.len());
            let target = rest[..end].split_whitespace().next().unwrap_or_default();
            found.push((line, target.to_owned()));
        }
        if let Some((name, target)) = prose.split_once("]: ")
            && name.starts_with('[')
        {
            found.push((line, target.trim().to_owned()));
        }
    }
    found
}

/// The lines of a Markdown text outside code fences, without the text between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_fence = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            found.push((at + 1, outside));
        }
    }
    found
}

/// Whether `file` has a heading with the anchor `anchor`, derived as GitHub derives it.
fn has_heading(file: &File, anchor: &str) -> bool {
    let mut in_fence = false;
    file.text.lines().any(|line| {
        in_fence ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        title.len() < line.len() && !in_fence && slug(title.trim()) == anchor
    })
}

fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::subject;

    #[test]
    fn links_in_code_are_no_links() {
        let text = "[a](b.md) and `[c](d.md)`\n```\n[e](f.md)\n```\n[g]: h.md\n";
        let expected = [(1, "b.md"), (5, "h.md")].map(|(l, t)| (l, t.to_owned()));
        assert_eq!(links(text), expected);
    }

    #[test]
    fn broken_links_and_unlinked_documents_are_found() {
        let files = [
            (
                "README.md",
                "[x](docs/a.md#the-title) [y](docs/a.md#no) [z](https://example.com)\n[f](docs)",
            ),
            ("docs/a.md", "# The title!\n[gone](gone.md) [self](a.md)\n"),
            ("docs/b.md", "[up](../README.md)\n"),
        ];
        let expected = [
            "README.md:1: link to `docs/a.md#no`: no such heading there",
            "docs/a.md:2: link to `gone.md`, which is not there",
            "docs/b.md:1: no document links here",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
