//! Checks that every metric is described on the operators' page, that every metric in a dashboard, an alert or a document exists, and that every
//! alert has a runbook.

use std::collections::BTreeSet;

use super::subject::{Subject, Violation};
use crate::repo::File;

/// The folder in which the metrics are registered.
const SOURCE: &str = "crates/tollgate-server/src/metrics/";
/// The page that describes the metrics.
const PAGE: &str = "docs/operating.md";
const ALERTS: &str = "packaging/prometheus/alerts.yaml";
/// The page with one heading of the second level for each alert.
const RUNBOOKS: &str = "docs/runbooks.md";
/// What Prometheus appends to the name of a histogram.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];
/// Names that begin like a metric but are cookies.
const OTHERS: &[&str] = &["tollgate_portal", "tollgate_session"];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let files = &subject.tree.files;
    let sources = files.iter().filter(|f| f.path.starts_with(SOURCE));
    let registered: BTreeSet<&str> = sources.flat_map(registered_names).collect();
    if registered.is_empty() {
        return vec![Violation::new(SOURCE, 1, "registers no metric")];
    }
    let is_reader = |path: &str| path.starts_with("packaging/") || path.starts_with("docs/");
    let mut found = Vec::new();
    for file in files.iter().filter(|f| is_reader(&f.path)) {
        for (line, name) in names(&file.text) {
            let base = SUFFIXES.iter().find_map(|s| name.strip_suffix(s));
            let exists = [Some(name), base].into_iter().flatten();
            if !exists.clone().any(|name| registered.contains(name)) && !OTHERS.contains(&name) {
                let what = format!("names the metric `{name}`, which does not exist");
                found.push(Violation::new(&file.path, line, what));
            }
        }
    }
    let page = subject.tree.file(PAGE).map_or("", |file| &file.text);
    let described: BTreeSet<&str> = names(page).map(|(_, name)| name).collect();
    let missing = registered.difference(&described);
    found.extend(missing.map(|name| Violation::new(PAGE, 1, format!("leaves out `{name}`"))));
    found.extend(unmatched_alerts(subject));
    found
}

/// Alerts without a heading in the runbooks, and headings without an alert.
fn unmatched_alerts(subject: &Subject<'_>) -> Vec<Violation> {
    let lines = |path, prefix: &'static str| -> BTreeSet<&str> {
        let text = subject.tree.file(path).map_or("", |file| &file.text);
        let lines = text.lines().map(str::trim);
        lines.filter_map(|line| line.strip_prefix(prefix)).collect()
    };
    let (alerts, runbooks) = (lines(ALERTS, "- alert: "), lines(RUNBOOKS, "## "));
    let no_runbook = alerts.difference(&runbooks);
    let no_runbook =
        no_runbook.map(|name| Violation::new(ALERTS, 1, format!("no runbook for `{name}`")));
    let no_alert = runbooks.difference(&alerts);
    let no_alert = no_alert.map(|name| Violation::new(RUNBOOKS, 1, format!("no alert `{name}`")));
    no_runbook.chain(no_alert).collect()
}

/// The string literals that are names of metrics; those in tests are followed by labels.
fn registered_names(file: &File) -> impl Iterator<Item = &str> {
    let literals = file.text.split('"').skip(1).step_by(2);
    literals.filter(|text| {
        let rest = text.strip_prefix("tollgate_");
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_name_byte))
    })
}

/// The names of metrics in a text, with their lines, except those of files such as `tollgate_*.deb`.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        let tokens = line.split(|c: char| !c.is_ascii() || !is_name_byte(c as u8));
        let names = tokens.filter(|token| token.len() > 9 && token.starts_with("tollgate_"));
        names.map(move |name| (at + 1, name))
    })
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn names_that_do_not_exist_and_missing_runbooks_are_found() {
        let files = [
            (
                "crates/tollgate-server/src/metrics/mod.rs",
                "f(\"tollgate_a_seconds\", \"A\"); f(\"tollgate_b_total\", \"B\");\n",
            ),
            (
                "docs/operating.md",
                "`tollgate_a_seconds`, `tollgate_session`\n",
            ),
            ("docs/runbooks.md", "# Runbooks\n## Old\n## Slow\n"),
            (
                "packaging/grafana/a.json",
                "\"rate(tollgate_b_total[5m])\"\n",
            ),
            (
                "packaging/prometheus/alerts.yaml",
                "  - alert: Slow\n  expr: tollgate_a_seconds_bucket\n  - alert: Gone\n  expr: tollgate_c_total > 1\n",
            ),
        ];
        let expected = [
            "packaging/prometheus/alerts.yaml:4: names the metric `tollgate_c_total`, which does not exist",
            "docs/operating.md:1: leaves out `tollgate_b_total`",
            "packaging/prometheus/alerts.yaml:1: no runbook for `Gone`",
            "docs/runbooks.md:1: no alert `Old`",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
