//! Names every file of assets/ with a hash, rewrites the imports between modules to those names, and compresses the files.
//!
//! All names contain the same hash, computed over all files: modules may import each other cyclically, and any change renames all files.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// Content types by extension. Files with another extension, such as licences, are not served.
const TYPES: &[(&str, &str)] = &[
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
];
/// The path under which the files are served.
const PREFIX: &str = "/console/assets/";
/// The beginning of a module specifier in the code, and the character that ends it.
const SPECIFIERS: &[(&str, char)] = &[("\"./", '"'), ("\"../", '"')];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("assets");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = BTreeMap::new();
    read_files(&root, "", &mut files)?;
    let hash = hash_files(&files);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("&[\n");
    let mut preload = String::new();
    for (path, text) in &files {
        let Some(content_type) = content_type(path) else {
            continue;
        };
        let name = hashed_name(path, &hash);
        let text = if path.ends_with(".js") {
            // Files that every page needs; main.js imports the pages of the portal and the console.
            if path.starts_with("lib/") || (path.starts_with("vendor/") && !path.contains("uplot"))
            {
                let _ = writeln!(
                    preload,
                    "  <link rel=\"modulepreload\" href=\"{PREFIX}{name}\">"
                );
            }
            rewrite_imports(path, text, &files, &hash)?
        } else {
            text.clone()
        };
        fs::write(out.join(&name), &text)?;
        fs::write(out.join(format!("{name}.gz")), gzip(text.as_bytes())?)?;
        let _ = writeln!(
            table,
            "    Asset {{ name: {name:?}, content_type: {content_type:?}, bytes: include_bytes!({:?}), gzip: include_bytes!({:?}) }},",
            out.join(&name),
            out.join(format!("{name}.gz")),
        );
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table)?;
    let page = write_page(&files, &hash, preload.trim())?;
    fs::write(out.join("index.html"), page)?;
    Ok(())
}

/// All files below `folder`, by their paths from assets/.
fn read_files(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|_| "a file name is not UTF-8")?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            read_files(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

/// The first 16 hexadecimal digits of the hash over all files and their paths.
fn hash_files(files: &BTreeMap<String, String>) -> String {
    let mut hasher = Sha256::new();
    for (path, text) in files {
        for part in [path, text] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let digest = hasher.finalize();
    digest.iter().take(8).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    let found = TYPES.iter().find(|(of, _)| *of == extension)?;
    Some(found.1)
}

/// `lib/api.js` as `lib-api.HASH.js`.
fn hashed_name(path: &str, hash: &str) -> String {
    let (stem, extension) = path.rsplit_once('.').unwrap_or((path, ""));
    format!("{}.{hash}.{extension}", stem.replace('/', "-"))
}

/// The module with each relative import replaced by the hashed name. Fails if a module imports a file that does not exist.
fn rewrite_imports(
    path: &str,
    text: &str,
    files: &BTreeMap<String, String>,
    hash: &str,
) -> Result<String, Box<dyn Error>> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let next = |rest: &str| {
        SPECIFIERS
            .iter()
            .filter_map(|(begin, end)| Some((rest.find(begin)?, *end)))
            .min()
    };
    while let Some((at, end)) = next(rest) {
        let (before, after) = rest.split_at(at + 1);
        let length = after.find(end).ok_or("a string without an end")?;
        let (specifier, after) = after.split_at(length);
        let target = resolve(path, specifier);
        if !files.contains_key(&target) {
            return Err(format!("assets/{path} imports {specifier}, which does not exist").into());
        }
        out.push_str(before);
        out.push_str("./");
        out.push_str(&hashed_name(&target, hash));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The path, from assets/, of the file that the module `path` imports as `specifier`.
fn resolve(path: &str, specifier: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The page with `{{path}}` replaced by the address of the file.
fn write_page(
    files: &BTreeMap<String, String>,
    hash: &str,
    preload: &str,
) -> Result<String, Box<dyn Error>> {
    let mut page = files
        .get("index.html")
        .ok_or("assets/index.html is missing")?
        .clone();
    page = page.replace("{{modulepreload}}", preload);
    for path in files.keys().filter(|path| content_type(path).is_some()) {
        page = page.replace(
            &format!("{{{{{path}}}}}"),
            &format!("{PREFIX}{}", hashed_name(path, hash)),
        );
    }
    if page.contains("{{") {
        return Err("assets/index.html names a file that does not exist".into());
    }
    Ok(page)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
