//! Renders the pages that docs/README.md lists, writes their search index, and compresses everything together with assets/.
//!
//! The build fails if a page of docs/ is not listed, or if a link leads to no page or heading. The error names the page or link.

mod files;
mod layout;
mod markdown;
mod navigation;
mod search_index;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use files::{Assets, SOURCES, gzip, hash_texts};
use markdown::{Page, Target};
use navigation::Navigation;

/// The API page, which is written by hand; its script reads `/openapi.json`.
const API_PAGE: &str = "api.html";

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here
        .ancestors()
        .nth(2)
        .ok_or("the crate is not in the repository")?;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    for folder in ["assets", "build"] {
        println!("cargo::rerun-if-changed={}", here.join(folder).display());
    }
    let texts = files::read_markdown(root)?;
    let navigation = Navigation::read(&texts)?;
    let pages = render_pages(&navigation, &texts)?;

    let mut assets = Assets::read(&here.join("assets"))?;
    let index = search_index::write(&navigation, &pages);
    assets.add("search.json", index);

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("&[\n");
    for page in &pages {
        let html = layout::write_page(&navigation, page, &assets);
        add_page(&mut table, &out, &page.address, &html)?;
    }
    let api = assets.fill_template(API_PAGE)?;
    add_page(&mut table, &out, "api", &api)?;
    table.push_str("]\n");
    fs::write(out.join("pages.rs"), table)?;
    fs::write(out.join("assets.rs"), assets.write(&out)?)?;
    Ok(())
}

/// Every page of the navigation in its order, with its links resolved.
fn render_pages(
    navigation: &Navigation,
    texts: &BTreeMap<String, String>,
) -> Result<Vec<Page>, String> {
    let addresses: BTreeMap<&str, &str> = navigation.addresses().collect();
    let mut unlisted = texts
        .keys()
        .filter(|path| path.starts_with("docs/") && !addresses.contains_key(path.as_str()));
    if let Some(path) = unlisted.next() {
        return Err(format!("{path} is not listed in docs/README.md"));
    }
    let pages: Vec<Page> = navigation
        .addresses()
        .map(|(path, address)| markdown::render(path, address, &texts[path], &addresses))
        .collect();
    let anchors: BTreeMap<&str, &Page> = pages.iter().map(|p| (p.address.as_str(), p)).collect();
    let mut broken = String::new();
    for page in &pages {
        for link in &page.links {
            let is_there = match link {
                Target::Heading { address, anchor } => anchors[address.as_str()].has(anchor),
                Target::Missing(_) => false,
            };
            if !is_there {
                let _ = write!(broken, "\n{}: link to {link}", page.path);
            }
        }
    }
    if broken.is_empty() {
        Ok(pages)
    } else {
        Err(format!("links of the documentation lead nowhere:{broken}"))
    }
}

/// Writes the page to `out`, compressed, and its line to the table.
fn add_page(
    table: &mut String,
    out: &Path,
    address: &str,
    html: &str,
) -> Result<(), Box<dyn Error>> {
    // No address contains a percent sign, so no two pages get the same file name.
    let file = out.join(format!("page-{}.html.gz", address.replace('/', "%")));
    fs::write(&file, gzip(html.as_bytes())?)?;
    let etag = format!("\"{}\"", hash_texts([html]));
    let _ = writeln!(
        table,
        "    Page {{ address: {address:?}, etag: {etag:?}, gzip: include_bytes!({file:?}) }},"
    );
    Ok(())
}
