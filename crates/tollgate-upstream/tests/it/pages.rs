//! The providers' pages tell what becomes of every field: their tables are written from the adapters' declarations.
//!
//! `TOLLGATE_BLESS=1 cargo test -p tollgate-upstream --test it pages` writes them anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tollgate_media::AnyFamily;
use tollgate_upstream::{FieldSupport, PROVIDERS};

const BEGIN: &str = "<!-- fields -->";
const END: &str = "<!-- /fields -->";

fn page(kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers");
    folder.join(format!("{kind}.md"))
}

/// The part between the marks.
fn tables(carries: &[FieldSupport]) -> String {
    let mut text = format!("{BEGIN}\n");
    for of_family in carries {
        let family = AnyFamily::by_name(of_family.family).expect(of_family.family);
        let (title, name) = (family.title(), family.name());
        let _ = write!(
            text,
            "\n### [{title}](../models/{name}.md)\n\n| Field | What becomes of it |\n|---|---|\n"
        );
        for (field, what) in of_family.fields {
            let _ = writeln!(text, "| `{field}` | {what} |");
        }
    }
    text + END
}

fn with_tables(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let after = rest.split_once(END).map_or(rest, |(_, after)| after);
    Some(format!("{before}{tables}{after}"))
}

#[test]
fn every_page_has_the_tables_of_its_adapter() {
    let bless = std::env::var_os("TOLLGATE_BLESS").is_some();
    for provider in PROVIDERS.iter().filter(|p| !p.field_support.is_empty()) {
        let path = page(provider.kind);
        let is = std::fs::read_to_string(&path).expect(provider.kind);
        let wanted = with_tables(&is, &tables(provider.field_support));
        let wanted = wanted.unwrap_or_else(|| panic!("{}: no {BEGIN}", provider.kind));
        if bless {
            std::fs::write(&path, wanted).unwrap();
        } else {
            assert!(
                is == wanted,
                "docs/providers/{}.md: its tables are not the adapter's; write them with TOLLGATE_BLESS=1",
                provider.kind
            );
        }
    }
}

#[test]
fn every_field_of_a_family_is_spoken_of_once() {
    for provider in PROVIDERS {
        for of_family in provider.field_support {
            let family = AnyFamily::by_name(of_family.family).expect(of_family.family);
            let home = family.endpoint().request_layout();
            let mut fields: Vec<&str> = family.fields(home).iter().map(|f| f.name).collect();
            let mut told: Vec<&str> = of_family.fields.iter().map(|(field, _)| *field).collect();
            told.retain(|field| !field.contains('.'));
            fields.sort_unstable();
            told.sort_unstable();
            assert_eq!(told, fields, "{}: {}", provider.kind, of_family.family);
        }
    }
}
