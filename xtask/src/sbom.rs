//! `cargo xtask sbom`: the packages that are compiled into the gateway, as a CycloneDX document (<https://cyclonedx.org/docs/1.6/json/>). The
//! same commit gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::outcome::Outcome;
use crate::process::{self, output};
use crate::{gateway, repo};

/// The package that contains the program.
const PROGRAM: &str = "tollgate-cli";
/// The prefix of the sources of published packages in cargo's metadata.
const REGISTRY: &str = "registry+";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file to write [default: target/dist/tollgate.cdx.json]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Writes the document.
pub(crate) fn run(options: Options) -> Outcome {
    let default = || gateway::target_folder().join("dist/tollgate.cdx.json");
    let out = options.out.unwrap_or_else(default);
    write(&out)?;
    println!("{}", out.display());
    Ok(())
}

/// Writes the document to `out`.
pub(crate) fn write(out: &Path) -> Outcome {
    let text = format!("{:#}\n", document()?);
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::write(out, text).map_err(|e| format!("{}: {e}", out.display()))
}

/// The document for this repository and this machine.
fn document() -> Result<Value, String> {
    let host = crate::rustc::host_triple()?;
    let mut cargo = process::cargo();
    cargo.current_dir(repo::root());
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    let metadata = output(cargo.args(["--filter-platform", &host]))?;
    let metadata = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let lock = repo::root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let mut git = Command::new("git");
    git.current_dir(repo::root());
    let committed = output(
        git.args([
            "log",
            "-1",
            "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
            "--format=%cd",
        ])
        .env("TZ", "UTC"),
    )?;
    render(&metadata, &checksums(&lock)?, committed.trim())
}

/// The SHA-256 checksums of the lock file, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let lock: toml::Table = toml::from_str(lock).map_err(|e| format!("Cargo.lock: {e}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let text = |package: &toml::Value, name: &str| Some(package.get(name)?.as_str()?.to_owned());
    let packages = packages.into_iter().flatten();
    let entry = |package| {
        let id = (text(package, "name")?, text(package, "version")?);
        Some((id, text(package, "checksum")?))
    };
    Ok(packages.filter_map(entry).collect())
}

/// The packages that `program` is built from, by their ids, each with the packages that it uses; packages that only tests use are excluded.
fn used_packages(metadata: &Value, program: &str) -> BTreeMap<String, BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array();
    let nodes: BTreeMap<&str, &Value> = nodes
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let mut used = BTreeMap::new();
    let mut waiting = vec![program.to_owned()];
    while let Some(id) = waiting.pop() {
        if used.contains_key(&id) {
            continue;
        }
        let dependencies = nodes
            .get(id.as_str())
            .and_then(|node| node["deps"].as_array());
        let is_used = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
        };
        let dependencies = dependencies.into_iter().flatten().filter(is_used);
        let dependencies: BTreeSet<String> = dependencies
            .filter_map(|dependency| Some(dependency["pkg"].as_str()?.to_owned()))
            .collect();
        waiting.extend(dependencies.iter().cloned());
        used.insert(id, dependencies);
    }
    used
}

fn render(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    committed: &str,
) -> Result<Value, String> {
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let packages: BTreeMap<&str, &Value> = packages
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let program = packages
        .iter()
        .find(|(_, package)| package["name"] == PROGRAM);
    let (program, package) = program.ok_or_else(|| format!("there is no package {PROGRAM}"))?;
    let used = used_packages(metadata, program);
    let reference = |id: &str| packages.get(id).map(|package| purl(package));
    let mut components: Vec<Value> = used
        .keys()
        .filter(|id| id != program)
        .filter_map(|id| packages.get(id.as_str()))
        .map(|package| component(package, "library", checksums))
        .collect();
    let mut dependencies: Vec<Value> = used
        .iter()
        .filter_map(|(id, uses)| {
            let uses: BTreeSet<String> = uses.iter().filter_map(|id| reference(id)).collect();
            Some(json!({ "ref": reference(id)?, "dependsOn": uses }))
        })
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    let mut application = component(package, "application", checksums);
    application["name"] = "tollgate".into();
    let digest = Sha256::digest(json!([application, components, committed]).to_string());
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": format!("urn:uuid:{}", uuid(&digest)),
        "version": 1,
        "metadata": { "timestamp": committed, "component": application },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, kind: &str, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut component = json!({
        "type": kind, "bom-ref": purl(package), "name": name, "version": version, "purl": purl(package),
    });
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    // Old packages write `MIT/Apache-2.0`, which is not a valid SPDX expression.
    if let Some(license) = package["license"].as_str() {
        let expression = license
            .split('/')
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    component
}

/// The package's URL (<https://github.com/package-url/purl-spec>). Packages of this workspace are in no registry.
fn purl(package: &Value) -> String {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version").replace('+', "%2B"));
    let is_published = text("source").starts_with(REGISTRY);
    let origin = if is_published { "cargo" } else { "generic" };
    format!("pkg:{origin}/{name}@{version}")
}

/// A UUID of version 8 (RFC 9562, 5.8) with bits of `digest`.
fn uuid(digest: &[u8]) -> String {
    let mut bytes: Vec<u8> = digest.iter().copied().take(16).collect();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| -> String {
        bytes[range]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    let parts = [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_what_is_compiled_in_and_nothing_else() {
        let document = document().unwrap();
        let list = |name: &str| document[name].as_array().unwrap();
        let names: BTreeSet<&str> = list("components")
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        for name in [
            "tokio",
            "hyper",
            "libsqlite3-sys",
            "tollgate-store",
            "serde_derive",
        ] {
            assert!(names.contains(name), "{name} is missing");
        }
        for name in ["tollgate-fakes", "rcgen", "xtask", PROGRAM] {
            assert!(!names.contains(name), "{name} is not compiled in");
        }
        let program = &document["metadata"]["component"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut references: BTreeSet<String> = list("components")
            .iter()
            .map(|component| text(&component["bom-ref"]))
            .collect();
        references.insert(text(&program["bom-ref"]));
        assert_eq!(
            references.len(),
            list("components").len() + 1,
            "each is listed once"
        );
        let mut with_dependencies = BTreeSet::new();
        for dependency in list("dependencies") {
            with_dependencies.insert(text(&dependency["ref"]));
            for used in dependency["dependsOn"].as_array().unwrap() {
                assert!(references.contains(&text(used)), "{used}");
            }
        }
        assert_eq!(with_dependencies, references);
        for component in list("components") {
            let is_ours = component["name"].as_str().unwrap().starts_with("tollgate-");
            let has_hash = component["hashes"][0]["content"]
                .as_str()
                .is_some_and(|h| h.len() == 64);
            assert_eq!(has_hash, !is_ours, "{component}");
            assert!(!component["licenses"].is_null(), "{component}");
        }
        assert_eq!(document, super::document().unwrap(), "the same each time");
    }
}
