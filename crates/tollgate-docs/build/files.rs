//! Reads the Markdown files and assets, and writes the assets: compressed with gzip, with a hash in their names.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// Folders and files from which the site is generated, relative to the root of the repository.
pub(crate) const SOURCES: &[&str] = &["docs", "CHANGELOG.md", "SECURITY.md"];
/// The path under which the assets are served.
const PREFIX: &str = "/docs/assets/";
/// Content types by extension. HTML files are templates of pages and not served as assets.
const TYPES: &[(&str, &str)] = &[
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
];

/// The Markdown files of [`SOURCES`], by their paths from `root`.
pub(crate) fn read_markdown(root: &Path) -> io::Result<BTreeMap<String, String>> {
    fn walk(path: &Path, name: &str, found: &mut BTreeMap<String, String>) -> io::Result<()> {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let name = format!("{name}/{}", entry.file_name().to_string_lossy());
                walk(&entry.path(), &name, found)?;
            }
        } else if name.ends_with(".md") {
            found.insert(name.to_owned(), fs::read_to_string(path)?);
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    for source in SOURCES {
        walk(&root.join(source), source, &mut found)?;
    }
    Ok(found)
}

/// The texts of all assets by their names: the files of assets/ and the generated ones.
pub(crate) struct Assets {
    texts: BTreeMap<String, String>,
}

impl Assets {
    /// Reads the files of `folder`, which has no subfolders.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let mut texts = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            texts.insert(name, fs::read_to_string(entry.path())?);
        }
        Ok(Self { texts })
    }

    /// Adds a generated file.
    pub(crate) fn add(&mut self, name: &str, text: String) {
        self.texts.insert(name.to_owned(), text);
    }

    /// The URL path of the asset; its file name contains the hash of its text.
    pub(crate) fn address(&self, name: &str) -> String {
        format!("{PREFIX}{}", hashed_name(name, &self.texts[name]))
    }

    /// The template with `{{name}}` replaced by the address of each asset. Fails if one names an asset that does not exist.
    pub(crate) fn fill_template(&self, template: &str) -> Result<String, String> {
        let mut page = self.texts[template].clone();
        for name in self.texts.keys() {
            page = page.replace(&format!("{{{{{name}}}}}"), &self.address(name));
        }
        match page.split_once("{{") {
            Some((_, rest)) => {
                let name = rest.split("}}").next().unwrap_or_default();
                Err(format!(
                    "assets/{template} names {name}, which is not there"
                ))
            }
            None => Ok(page),
        }
    }

    /// Writes all assets to `out`, compressed, and returns the table of them as Rust code.
    pub(crate) fn write(&self, out: &Path) -> Result<String, Box<dyn Error>> {
        let mut table = String::from("&[\n");
        for (name, text) in &self.texts {
            let found = TYPES
                .iter()
                .find(|(extension, _)| name.rsplit('.').next() == Some(extension));
            let Some((_, content_type)) = found else {
                continue;
            };
            let name = hashed_name(name, text);
            let file = out.join(format!("{name}.gz"));
            fs::write(&file, gzip(text.as_bytes())?)?;
            let _ = writeln!(
                table,
                "    Asset {{ name: {name:?}, content_type: {content_type:?}, gzip: include_bytes!({file:?}) }},"
            );
        }
        table.push_str("]\n");
        Ok(table)
    }
}

/// `docs.css` as `docs.HASH.css`.
fn hashed_name(name: &str, text: &str) -> String {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{stem}.{}.{extension}", hash_texts([text]))
}

/// The first 16 hexadecimal digits of the SHA-256 of the texts.
pub(crate) fn hash_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
    }
    let digest = hasher.finalize();
    digest.iter().take(8).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
