//! Checks that the providers' pages list the support of every field: their tables are generated from the adapters' declarations.
//!
//! `TOLLGATE_BLESS=1 cargo test -p tollgate-upstream --test it field_support` updates them.

use std::fmt::Write as _;
use std::path::Path;

use tollgate_media::AnyFamily;
use tollgate_upstream::{FieldSupport, PROVIDERS};

const BEGIN: &str = "<!-- fields -->";
const END: &str = "<!-- /fields -->";

/// The part of a page between the markers.
fn tables(families: &[FieldSupport]) -> String {
    let mut text = format!("{BEGIN}\n");
    for support in families {
        let family = AnyFamily::by_name(support.family).expect(support.family);
        let (title, name) = (family.title(), family.name());
        let _ = write!(
            text,
            "\n### [{title}](../models/{name}.md)\n\n| Field | Sent as |\n|---|---|\n"
        );
        for (field, what) in support.fields {
            let _ = writeln!(text, "| `{field}` | {what} |");
        }
    }
    text + END
}

fn with_tables(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{tables}{after}"))
}

#[test]
fn every_page_has_the_tables_of_its_adapter() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers");
    for provider in PROVIDERS.iter().filter(|p| !p.field_support.is_empty()) {
        let kind = provider.kind;
        let path = folder.join(format!("{kind}.md"));
        let page = std::fs::read_to_string(&path).expect(kind);
        let expected = with_tables(&page, &tables(provider.field_support)).expect(kind);
        if std::env::var_os("TOLLGATE_BLESS").is_some() {
            std::fs::write(&path, expected).unwrap();
        } else {
            assert!(
                page == expected,
                "docs/providers/{kind}.md: its tables are not the adapter's; write them with TOLLGATE_BLESS=1"
            );
        }
    }
}

#[test]
fn every_field_of_a_family_is_declared_once_and_in_its_order() {
    for provider in PROVIDERS {
        for support in provider.field_support {
            let family = AnyFamily::by_name(support.family).expect(support.family);
            let layout = family.endpoint().request_layout();
            let fields: Vec<&str> = family.fields(layout).iter().map(|f| f.name).collect();
            let mut declared: Vec<&str> = support.fields.iter().map(|(name, _)| *name).collect();
            declared.retain(|field| !field.contains('.'));
            assert_eq!(declared, fields, "{}: {}", provider.kind, support.family);
        }
    }
}
