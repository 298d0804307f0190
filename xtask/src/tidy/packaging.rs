//! Checks that the sources of packages agree: the version in the workspace, the changelog and the chart; and that the image is built from every file
//! that the build reads.

use toml::{Table, Value};

use super::subject::{Subject, Violation};

const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";
const CHART: &str = "packaging/helm/tollgate/Chart.yaml";
/// The list of files that are not copied into the image's build: all files except the paths after `!`.
const IGNORED: &str = "packaging/container/Containerfile.dockerignore";
/// The file whose constant `SOURCES` lists what the documentation is rendered from.
const DOCS_BUILD: &str = "crates/tollgate-docs/build/main.rs";
/// The folder of cargo's settings, which change the program.
const CARGO_SETTINGS: &str = ".cargo";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let text = |path: &str| {
        subject
            .tree
            .file(path)
            .map_or("", |file| file.text.as_str())
    };
    let manifest: Table = text(MANIFEST).parse().unwrap_or_default();
    let Some(workspace) = manifest.get("workspace") else {
        return vec![Violation::new(MANIFEST, 1, "has no workspace")];
    };
    let version = workspace.get("package").and_then(|p| p.get("version"));
    let version = version.and_then(Value::as_str).unwrap_or_default();
    let mut found = Vec::new();
    if !text(CHANGELOG)
        .lines()
        .any(|line| line == format!("## {version}"))
    {
        let what = format!("has no heading `## {version}`, the version in {MANIFEST}");
        found.push(Violation::new(CHANGELOG, 1, what));
    }
    if !text(CHART)
        .lines()
        .any(|line| line == format!("appVersion: \"{version}\""))
    {
        let what = format!("its appVersion is not \"{version}\", the version in {MANIFEST}");
        found.push(Violation::new(CHART, 1, what));
    }
    let members = workspace.get("members").and_then(Value::as_array);
    let members = members.into_iter().flatten().filter_map(Value::as_str);
    let members = members.map(|member| member.trim_end_matches("/*"));
    let copied: Vec<&str> = text(IGNORED)
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let sources = members.chain(documentation_sources(text(DOCS_BUILD)));
    for path in sources.chain([CARGO_SETTINGS]) {
        if !copied.contains(&path) {
            let what = format!("leaves out `{path}`, which the build reads");
            found.push(Violation::new(IGNORED, 1, what));
        }
    }
    found
}

/// The string literals of the constant `SOURCES`.
fn documentation_sources(code: &str) -> impl Iterator<Item = &str> {
    let constant = code
        .split_once("const SOURCES")
        .map_or("", |(_, rest)| rest);
    let constant = constant.split(';').next().unwrap_or_default();
    constant.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    #[test]
    fn other_versions_and_paths_that_the_image_lacks_are_found() {
        let manifest = "[workspace]\nmembers = [\"crates/*\", \"fuzz\"]\n[workspace.package]\nversion = \"1.2.0\"\n";
        let files = [
            ("Cargo.toml", manifest),
            ("CHANGELOG.md", "# Changelog\n\n## 1.1.0\n"),
            (
                "packaging/helm/tollgate/Chart.yaml",
                "appVersion: \"1.2.0\"\n",
            ),
            (super::IGNORED, "*\n!crates\n!docs\n"),
            (
                super::DOCS_BUILD,
                "const SOURCES: &[&str] = &[\"docs\", \"CHANGELOG.md\"];\n",
            ),
        ];
        let expected = [
            "CHANGELOG.md:1: has no heading `## 1.2.0`, the version in Cargo.toml",
            "packaging/container/Containerfile.dockerignore:1: leaves out `fuzz`, which the build reads",
            "packaging/container/Containerfile.dockerignore:1: leaves out `CHANGELOG.md`, which the build reads",
            "packaging/container/Containerfile.dockerignore:1: leaves out `.cargo`, which the build reads",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
