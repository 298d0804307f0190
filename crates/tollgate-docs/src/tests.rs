//! Tests the embedded site: all pages are included, all links have a target, and no page contains what the content security policy forbids.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

/// Largest sum of all compressed pages and assets, in bytes.
const MAX_COMPRESSED: usize = 600 * 1000;

fn text(gzip: &[u8]) -> String {
    String::from_utf8(decompress(gzip).expect("gzip")).expect("UTF-8")
}

/// The values of an attribute in the page.
fn attributes<'a>(html: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    let rest = html.split(begin).skip(1);
    rest.filter_map(|rest| rest.split('"').next())
}

fn count_markdown(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("docs/");
    let count = |path: &Path| match path.is_dir() {
        true => count_markdown(path),
        false => usize::from(path.extension().is_some_and(|e| e == "md")),
    };
    entries.map(|e| count(&e.expect("an entry").path())).sum()
}

#[test]
fn all_of_it_compressed_is_small() {
    let pages: usize = PAGES.iter().map(|page| page.gzip.len()).sum();
    let assets: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
    println!("pages: {pages} bytes, assets: {assets} bytes");
    assert!(pages > 0 && assets > 0 && pages + assets < MAX_COMPRESSED);
}

#[test]
fn every_file_of_docs_is_a_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    // Plus three: the two Markdown files of the root, and the API page.
    assert_eq!(PAGES.len(), count_markdown(&docs) + 3);
    for address in [
        "",
        "tasks",
        "models",
        "models/veo-3.1",
        "about/changelog",
        "api",
    ] {
        assert!(find_page(address).is_some(), "{address}");
    }
}

#[test]
fn links_lead_to_pages_headings_and_assets() {
    let mut count = 0;
    for page in PAGES {
        let html = text(page.gzip);
        for link in attributes(&html, "href=\"").chain(attributes(&html, "src=\"")) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.contains("://") || ["/console/", "/openapi.json"].contains(&path) {
                continue;
            }
            if let Some(name) = path.strip_prefix("/docs/assets/") {
                assert!(find_asset(name).is_some(), "{}: {link}", page.address);
                continue;
            }
            let target = match path {
                "" => page,
                path => {
                    let address = path.strip_prefix("/docs").expect(link);
                    find_page(address.trim_start_matches('/')).expect(link)
                }
            };
            let id = format!("id=\"{anchor}\"");
            let is_there = anchor.is_empty() || text(target.gzip).contains(&id);
            assert!(is_there, "{}: {link}", page.address);
        }
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn pages_have_nothing_that_their_policy_forbids() {
    for page in PAGES {
        let html = text(page.gzip);
        for forbidden in ["<style", " style=\"", " onclick=", "src=\"http", "<iframe"] {
            assert!(!html.contains(forbidden), "{}: {forbidden}", page.address);
        }
        let scripts = html.matches("<script").count();
        assert_eq!(scripts, html.matches("<script src=\"/docs/").count());
        assert!(scripts > 0);
    }
}

#[test]
fn ids_of_a_page_are_unique_and_its_title_is_its_heading() {
    for page in PAGES {
        let html = text(page.gzip);
        let ids: Vec<&str> = attributes(&html, " id=\"").collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{}", page.address);
        assert_eq!(html.matches("<h1").count(), 1, "{}", page.address);
    }
}

#[test]
fn the_search_index_has_every_page_of_docs() {
    let index = ASSETS
        .iter()
        .find(|asset| asset.name.starts_with("search."));
    let index = text(index.expect("a search index").gzip);
    for page in PAGES.iter().filter(|page| page.address != "api") {
        let address = match page.address {
            "" => "/docs".to_owned(),
            address => format!("/docs/{address}"),
        };
        assert!(
            index.contains(&format!("{{\"address\":\"{address}\"")),
            "{address}"
        );
    }
}
