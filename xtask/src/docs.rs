//! `cargo xtask docs`: writes the pages of `docs/models/` from the families' declarations, and `docs/chat/fields.md` from the chat formats' mapping
//! of each field.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tollgate_media::AnyFamily;

use crate::outcome::Outcome;
use crate::repo::root;

const FOLDER: &str = "docs/models";
const INDEX: &str = "README.md";
const NOTICE: &str =
    "<!-- Written by `cargo xtask docs` from crates/tollgate-media: change it there. -->\n\n";

/// The page with the mapping of each field to the other chat formats.
const FIELDS: &str = "docs/chat/fields.md";
const FIELDS_NOTICE: &str = "<!-- Written by `cargo xtask docs` from crates/tollgate-chat/src/field_table.rs: change it there. -->\n\n";

/// The sections of the index: the name of a kind of task, and the heading.
const KINDS: &[(&str, &str)] = &[
    ("image", "Images"),
    ("video", "Video"),
    ("speech", "Speech"),
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a page differs from what would be written
    #[arg(long)]
    check: bool,
}

/// Writes the pages, or checks them.
pub(crate) fn run(options: Options) -> Outcome {
    let folder = root().join(FOLDER);
    let wanted = pages();
    let found = read_pages(&folder).map_err(|e| format!("cannot read {FOLDER}: {e}"))?;
    let stale: Vec<&String> = found
        .keys()
        .filter(|name| !wanted.contains_key(*name))
        .collect();
    let changed = wanted
        .iter()
        .filter(|(name, text)| found.get(*name) != Some(text));
    let changed: Vec<(&String, &String)> = changed.collect();
    let fields = format!("{FIELDS_NOTICE}{}", tollgate_chat::field_table::page());
    let fields_file = root().join(FIELDS);
    let are_fields_stale = fs::read_to_string(&fields_file).ok().as_ref() != Some(&fields);
    if options.check {
        let names = changed.iter().map(|(name, _)| *name).chain(stale);
        let names = names.map(|name| format!("{FOLDER}/{name}"));
        let fields = are_fields_stale.then(|| FIELDS.to_owned());
        let names: Vec<String> = names.chain(fields).collect();
        return match names.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "not up to date, run `cargo xtask docs`: {}",
                names.join(", ")
            )),
        };
    }
    let failed = |e| format!("cannot write {FOLDER}: {e}");
    fs::create_dir_all(&folder).map_err(failed)?;
    for name in &stale {
        fs::remove_file(folder.join(name)).map_err(failed)?;
    }
    for (name, text) in &changed {
        fs::write(folder.join(name), text).map_err(failed)?;
    }
    if are_fields_stale {
        fs::write(&fields_file, fields).map_err(|e| format!("cannot write {FIELDS}: {e}"))?;
    }
    println!(
        "{FOLDER}: {} written, {} removed",
        changed.len(),
        stale.len()
    );
    Ok(())
}

/// The text of every page, by its file name.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut index = format!("{NOTICE}# Models\n");
    for (kind, heading) in KINDS {
        let _ = write!(
            index,
            "\n## {heading}\n\n| Family | Models | Endpoint |\n|---|---|---|\n"
        );
        for family in AnyFamily::all().filter(|family| family.kind().name() == *kind) {
            let models = family.models().iter().map(|model| format!("`{model}`"));
            let models = models.collect::<Vec<_>>().join(", ");
            let (title, name, endpoint) = (family.title(), family.name(), family.endpoint());
            let _ = writeln!(index, "| [{title}]({name}.md) | {models} | `{endpoint}` |");
            let text = format!("{NOTICE}{}\n", family.page().trim_end());
            pages.insert(format!("{name}.md"), text);
        }
    }
    pages.insert(INDEX.to_owned(), index);
    pages
}

fn read_pages(folder: &Path) -> std::io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        found.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_page_that_the_index_links_to() {
        let pages = pages();
        assert_eq!(pages.len(), AnyFamily::all().count() + 1);
        for family in AnyFamily::all() {
            let file = format!("{}.md", family.name());
            assert!(pages.contains_key(&file), "{file}");
            assert!(pages[INDEX].contains(&format!("({file})")), "{file}");
        }
    }
}
