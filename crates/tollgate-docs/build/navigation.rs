//! The sections of the site, read from docs/README.md: each is a heading and a list of links.
//!
//! A link to the README.md of a folder adds the pages of that folder that this README.md links to.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use crate::markdown::{OPTIONS, resolve};

/// The first page of the site, which lists all others.
const INDEX: &str = "docs/README.md";

pub(crate) struct Navigation {
    pub(crate) sections: Vec<Section>,
}

pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) entries: Vec<Entry>,
}

pub(crate) struct Entry {
    /// The path of the Markdown file from the root of the repository, such as `docs/tasks.md`.
    path: String,
    /// The URL path below `/docs/`, such as `tasks`. Empty for the first page.
    pub(crate) address: String,
    /// The text of the link.
    pub(crate) title: String,
}

impl Navigation {
    /// Reads docs/README.md. Fails if it lists a page that is not in `texts`, or one twice.
    pub(crate) fn read(texts: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut sections = vec![Section {
            title: String::new(),
            entries: vec![Entry::new(INDEX, "Documentation")],
        }];
        let index = texts.get(INDEX).ok_or("docs/README.md is missing")?;
        let mut in_heading = false;
        let mut in_item = false;
        let mut link: Option<Entry> = None;
        for event in Parser::new_ext(index, OPTIONS) {
            match event {
                Event::Start(Tag::Heading {
                    level: HeadingLevel::H2,
                    ..
                }) => {
                    in_heading = true;
                    sections.push(Section {
                        title: String::new(),
                        entries: Vec::new(),
                    });
                }
                Event::End(TagEnd::Heading(_)) => in_heading = false,
                Event::Start(Tag::Item) => in_item = true,
                Event::End(TagEnd::Item) => in_item = false,
                Event::Start(Tag::Link { dest_url, .. }) if in_item => {
                    link = page_of(INDEX, &dest_url).map(|path| Entry::new(&path, ""));
                }
                Event::End(TagEnd::Link) => {
                    let section = sections.last_mut().ok_or("no section")?;
                    section.entries.extend(link.take());
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(entry) = &mut link {
                        entry.title.push_str(&text);
                    } else if in_heading && let Some(section) = sections.last_mut() {
                        section.title.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        for section in &mut sections {
            add_pages_of_folders(section, texts)?;
        }
        let navigation = Self { sections };
        navigation.check(texts)?;
        Ok(navigation)
    }

    /// The path and the address of every page in the order of the site.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries()
            .map(|entry| (entry.path.as_str(), entry.address.as_str()))
    }

    /// Every page in the order of the site.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sections.iter().flat_map(|section| &section.entries)
    }

    /// The title of the section that the page is in; empty for the first page.
    pub(crate) fn section_title(&self, address: &str) -> &str {
        let has = |section: &&Section| section.entries.iter().any(|e| e.address == address);
        let section = self.sections.iter().find(has);
        section.map_or("", |section| section.title.as_str())
    }

    fn check(&self, texts: &BTreeMap<String, String>) -> Result<(), String> {
        let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
        for entry in self.entries() {
            let path = entry.path.as_str();
            if !texts.contains_key(path) {
                return Err(format!("{INDEX} lists {path}, which is not there"));
            }
            if paths.insert(&entry.address, path).is_some() {
                return Err(format!("{INDEX} lists {path} twice"));
            }
        }
        Ok(())
    }
}

impl Entry {
    fn new(path: &str, title: &str) -> Self {
        Self {
            path: path.to_owned(),
            address: address_of(path),
            title: title.to_owned(),
        }
    }
}

/// Adds after each README.md the pages of its folder that it links to and that the section does not list itself.
fn add_pages_of_folders(
    section: &mut Section,
    texts: &BTreeMap<String, String>,
) -> Result<(), String> {
    let listed = std::mem::take(&mut section.entries);
    for entry in listed {
        let path = entry.path.clone();
        section.entries.push(entry);
        let folder = path.strip_suffix("README.md");
        let Some(folder) = folder.filter(|_| path != INDEX) else {
            continue;
        };
        let text = texts
            .get(&path)
            .ok_or_else(|| format!("{INDEX} lists {path}, which is not there"))?;
        let mut link: Option<Entry> = None;
        for event in Parser::new_ext(text, OPTIONS) {
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => {
                    let page = page_of(&path, &dest_url).filter(|page| page.starts_with(folder));
                    link = page.map(|page| Entry::new(&page, ""));
                }
                Event::Text(text) => {
                    if let Some(entry) = &mut link {
                        entry.title.push_str(&text);
                    }
                }
                Event::End(TagEnd::Link) => section.entries.extend(link.take()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The page that `link` in the page `from` leads to. `None` if the link leads outside the documentation or to a heading.
fn page_of(from: &str, link: &str) -> Option<String> {
    let is_page = link.ends_with(".md") && !link.contains("://");
    is_page.then(|| resolve(from, link))
}

/// The address of a page: `tasks` for `docs/tasks.md`, `models` for `docs/models/README.md`, `about/changelog` for `CHANGELOG.md` in the root.
fn address_of(path: &str) -> String {
    let stem = path.strip_suffix(".md").unwrap_or(path);
    match stem.strip_prefix("docs/") {
        Some(stem) => {
            let stem = stem.strip_suffix("README").unwrap_or(stem);
            stem.trim_end_matches('/').to_owned()
        }
        None => format!("about/{}", stem.to_lowercase()),
    }
}
