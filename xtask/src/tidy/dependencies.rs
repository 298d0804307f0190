//! Checks which crate depends on which (ARCHITECTURE.md). The allowed dependencies are [`RULES`]; a crate without a rule is a violation too.

use toml::{Table, Value};

use super::subject::{Subject, Violation};
use crate::repo::File;

/// The allowed dependencies of one crate.
struct Rule {
    name: &'static str,
    /// The crates of this workspace that it may depend on, also in its tests.
    may_use: &'static [&'static str],
    /// Whether the crate must stay free of I/O.
    pure: bool,
}

const RULES: &[Rule] = &[
    rule("tollgate-core", &[], true),
    rule("tollgate-chat", &["tollgate-core"], true),
    rule("tollgate-media", &["tollgate-core"], true),
    rule("tollgate-raster", &["tollgate-media"], true),
    rule("tollgate-store", &["tollgate-core"], false),
    rule(
        "tollgate-upstream",
        &[
            "tollgate-core",
            "tollgate-chat",
            "tollgate-media",
            "tollgate-raster",
            // Only in its tests.
            "tollgate-fakes",
        ],
        false,
    ),
    rule(
        "tollgate-sandbox",
        &[
            "tollgate-core",
            "tollgate-chat",
            "tollgate-media",
            "tollgate-upstream",
        ],
        false,
    ),
    rule(
        "tollgate-config",
        &[
            "tollgate-core",
            "tollgate-chat",
            "tollgate-media",
            "tollgate-store",
            "tollgate-upstream",
            // Only in its tests.
            "tollgate-sandbox",
        ],
        false,
    ),
    rule(
        "tollgate-storage",
        &[
            "tollgate-core",
            "tollgate-config",
            "tollgate-media",
            "tollgate-upstream",
        ],
        false,
    ),
    rule(
        "tollgate-server",
        &[
            "tollgate-core",
            "tollgate-chat",
            "tollgate-config",
            "tollgate-media",
            "tollgate-storage",
            "tollgate-store",
            "tollgate-upstream",
        ],
        false,
    ),
    rule(
        "tollgate-admin",
        &[
            "tollgate-core",
            "tollgate-config",
            "tollgate-console",
            "tollgate-docs",
            "tollgate-media",
            "tollgate-server",
            "tollgate-storage",
            "tollgate-store",
            "tollgate-upstream",
        ],
        false,
    ),
    rule(
        "tollgate-cli",
        &[
            "tollgate-admin",
            "tollgate-core",
            "tollgate-chat",
            "tollgate-config",
            "tollgate-media",
            "tollgate-sandbox",
            "tollgate-server",
            "tollgate-storage",
            "tollgate-store",
            "tollgate-upstream",
            // Only in its tests.
            "tollgate-fakes",
        ],
        false,
    ),
    rule("tollgate-console", &[], true),
    rule("tollgate-docs", &[], true),
    rule("tollgate-fakes", &[], false),
];

/// Crates that a pure crate must not use. Crates whose names begin with one of these and a dash are included.
const IMPURE: &[&str] = &[
    "tokio", "hyper", "axum", "rusqlite", "http", "deadpool", "tower",
];

/// The framework of the HTTP server, and the crates that may use it: the last one in its tests only.
const HTTP_FRAMEWORK: &[&str] = &["axum"];
const HTTP_SERVER_CRATES: &[&str] = &["tollgate-server", "tollgate-admin", "tollgate-cli"];

const fn rule(name: &'static str, may_use: &'static [&'static str], pure: bool) -> Rule {
    Rule {
        name,
        may_use,
        pure,
    }
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let files = subject.tree.files.iter();
    let manifests = files.filter(|f| is_manifest(&f.path));
    manifests.flat_map(check_manifest).collect()
}

fn is_manifest(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

fn check_manifest(file: &File) -> Vec<Violation> {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(e) => return vec![Violation::new(&file.path, 1, format!("not TOML: {e}"))],
    };
    let package = manifest.get("package").and_then(|p| p.get("name"));
    let name = package.and_then(Value::as_str).unwrap_or_default();
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        let what = format!("crate `{name}` has no rule in xtask/src/tidy/dependencies.rs");
        return vec![Violation::new(&file.path, 1, what)];
    };
    let used = dependencies(&manifest).into_iter();
    used.filter_map(|(key, crate_name)| {
        let what = objection(rule, &crate_name)?;
        Some(Violation::new(&file.path, line_of(&file.text, &key), what))
    })
    .collect()
}

/// Why `rule` forbids `used`, if it does.
fn objection(rule: &Rule, used: &str) -> Option<String> {
    let name = rule.name;
    let is = |forbidden: &&str| {
        used.strip_prefix(*forbidden)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if used.starts_with("tollgate-") && !rule.may_use.contains(&used) {
        Some(format!("`{name}` must not depend on `{used}`"))
    } else if rule.pure && IMPURE.iter().any(is) {
        Some(format!(
            "`{name}` does no I/O: it must not depend on `{used}`"
        ))
    } else if !HTTP_SERVER_CRATES.contains(&name) && HTTP_FRAMEWORK.iter().any(is) {
        Some(format!(
            "only tollgate-server and tollgate-admin may depend on `{used}`"
        ))
    } else {
        None
    }
}

/// Key and crate name of every dependency: ordinary, for tests, for build scripts, for one platform.
fn dependencies(manifest: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (section, value) in manifest {
        let Some(table) = value.as_table() else {
            continue;
        };
        if section.ends_with("dependencies") {
            found.extend(table.iter().map(|(key, value)| {
                let renamed = value.get("package").and_then(Value::as_str);
                (key.clone(), renamed.unwrap_or(key).to_owned())
            }));
        } else if section == "target" {
            let platforms = table.values().filter_map(Value::as_table);
            found.extend(platforms.flat_map(dependencies));
        }
    }
    found
}

fn line_of(text: &str, key: &str) -> usize {
    let begins = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with([' ', '.', '=', '"']))
    };
    text.lines().position(begins).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    fn found(manifest: &str) -> Vec<String> {
        subject::check(super::check, &[("crates/x/Cargo.toml", manifest)])
    }

    #[test]
    fn allowed_dependencies_pass() {
        let text = "[package]\nname = \"tollgate-store\"\n[dependencies]\ntollgate-core.workspace = true\ntokio = \"1\"\n";
        assert!(found(text).is_empty());
        let text = "[package]\nname = \"tollgate-media\"\n[dependencies]\nhttpdate = \"1\"\n";
        assert!(found(text).is_empty());
    }

    #[test]
    fn forbidden_dependencies_are_found_in_every_section() {
        let text = "[package]\nname = \"tollgate-core\"\n[dependencies]\nt = { package = \"tokio-util\", version = \"0\" }\n[dev-dependencies]\ntollgate-media = { path = \"\" }\n[target.'cfg(unix)'.dependencies]\nhttp = \"1\"\n";
        let expected = [
            "crates/x/Cargo.toml:4: `tollgate-core` does no I/O: it must not depend on `tokio-util`",
            "crates/x/Cargo.toml:6: `tollgate-core` must not depend on `tollgate-media`",
            "crates/x/Cargo.toml:8: `tollgate-core` does no I/O: it must not depend on `http`",
        ];
        assert_eq!(found(text), expected);
        let text = "[package]\nname = \"tollgate-store\"\n[dependencies]\naxum = \"0\"\n";
        assert_eq!(found(text).len(), 1);
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        assert_eq!(found("[package]\nname = \"other\"\n").len(), 1);
    }
}
