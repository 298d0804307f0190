//! Converts one page from Markdown to HTML, with anchors at its headings and links to other pages of the site, and collects the texts for the search.

use std::collections::BTreeMap;
use std::fmt;

use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The Markdown extensions that the pages use.
pub(crate) const OPTIONS: Options = Options::ENABLE_TABLES;

pub(crate) struct Page {
    /// The path of the Markdown file, relative to the root of the repository.
    pub(crate) path: String,
    /// The URL path below `/docs/`; empty for the first page.
    pub(crate) address: String,
    /// The text of its first heading.
    pub(crate) title: String,
    /// The HTML of everything after the first heading.
    pub(crate) html: String,
    /// The parts of the page, one per heading. The first has the page's title and no anchor.
    pub(crate) parts: Vec<Part>,
    /// The targets of links to pages of the site, including headings of this page.
    pub(crate) links: Vec<Target>,
}

/// A heading and the text below it, up to the next heading.
pub(crate) struct Part {
    /// The heading's level, 1 to 6.
    pub(crate) level: u8,
    pub(crate) anchor: String,
    pub(crate) title: String,
    /// The text of the part, without markup.
    pub(crate) text: String,
}

/// The target of a link.
pub(crate) enum Target {
    /// A heading of a page of the site; the page itself if `anchor` is empty.
    Heading { address: String, anchor: String },
    /// A file that is not a page of the site.
    Missing(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heading { address, anchor } => {
                write!(f, "#{anchor} of /docs/{address}: no such heading there")
            }
            Self::Missing(path) => write!(f, "{path}, which docs/README.md does not list"),
        }
    }
}

impl Page {
    /// Whether one of the page's headings has that anchor. True for the empty anchor.
    pub(crate) fn has(&self, anchor: &str) -> bool {
        anchor.is_empty() || self.parts.iter().any(|part| part.anchor == anchor)
    }
}

/// Renders `text`, the page at `path`. `addresses` has the address of every page by its path.
pub(crate) fn render(
    path: &str,
    address: &str,
    text: &str,
    addresses: &BTreeMap<&str, &str>,
) -> Page {
    let mut page = Page {
        path: path.to_owned(),
        address: address.to_owned(),
        title: String::new(),
        html: String::new(),
        parts: Vec::new(),
        links: Vec::new(),
    };
    let events: Vec<Event<'_>> = Parser::new_ext(text, OPTIONS).collect();
    page.parts = read_parts(&events);
    page.title = page
        .parts
        .first()
        .map_or_else(String::new, |part| part.title.clone());
    let mut headings = page.parts.iter();
    let mut heading = None;
    let mut in_title = false;
    let mut written: Vec<Event<'_>> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Event::Start(Tag::Heading {
                level: HeadingLevel::H1,
                ..
            }) => {
                headings.next();
                in_title = true;
            }
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => in_title = false,
            _ if in_title => {}
            Event::Start(Tag::Heading { level, .. }) => {
                heading = headings.next();
                let anchor = heading.map_or("", |part| part.anchor.as_str());
                written.push(raw(format!("<{level} id=\"{anchor}\">")));
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some(part) = heading.take() {
                    let (anchor, title) = (&part.anchor, escape(&part.title));
                    written.push(raw(format!(
                        " <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to: {title}\">#</a></{level}>\n"
                    )));
                }
            }
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let dest_url = resolve_link(path, &dest_url, addresses, &mut page.links);
                written.push(Event::Start(Tag::Link {
                    link_type,
                    dest_url: dest_url.into(),
                    title,
                    id,
                }));
            }
            // A table wider than the window scrolls, and the scrolled element can take the keyboard focus.
            Event::Start(Tag::Table(alignments)) => {
                written.push(raw(
                    "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">"
                        .to_owned(),
                ));
                // Alignment would need inline styles, which the content security policy forbids.
                let alignments = vec![Alignment::None; alignments.len()];
                written.push(Event::Start(Tag::Table(alignments)));
            }
            Event::End(TagEnd::Table) => {
                written.push(Event::End(TagEnd::Table));
                written.push(raw("</div>\n".to_owned()));
            }
            Event::Start(Tag::CodeBlock(_)) => {
                written.push(raw("<pre tabindex=\"0\"><code>".to_owned()))
            }
            Event::End(TagEnd::CodeBlock) => written.push(raw("</code></pre>\n".to_owned())),
            // HTML comments, such as the notices of generated pages, are left out.
            Event::Html(_) | Event::InlineHtml(_) => {}
            event => written.push(event),
        }
    }
    html::push_html(&mut page.html, written.into_iter());
    // An empty header cell describes no column, so it is written as an ordinary cell.
    page.html = page.html.replace("<th></th>", "<td></td>");
    page
}

fn raw(html: String) -> Event<'static> {
    Event::Html(CowStr::from(html))
}

/// Splits the page at its headings; anchors are derived from headings as GitHub derives them.
fn read_parts(events: &[Event<'_>]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut in_heading = false;
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                parts.push(Part {
                    level: *level as u8,
                    anchor: String::new(),
                    title: String::new(),
                    text: String::new(),
                });
            }
            Event::End(TagEnd::Heading(_)) => {
                in_heading = false;
                if let Some(part) = parts.last_mut() {
                    let slug = slug(&part.title);
                    let times = seen.entry(slug.clone()).or_default();
                    part.anchor = match *times {
                        0 => slug,
                        n => format!("{slug}-{n}"),
                    };
                    *times += 1;
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(part) = parts.last_mut() {
                    let to = if in_heading {
                        &mut part.title
                    } else {
                        &mut part.text
                    };
                    to.push_str(text);
                }
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock,
            ) => {
                if let Some(part) = parts.last_mut() {
                    part.text.push(' ');
                }
            }
            _ => {}
        }
    }
    parts
}

fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
        _ => None,
    });
    kept.collect()
}

/// The address that `link` in the page `from` leads to; a link between pages is added to `links`.
fn resolve_link(
    from: &str,
    link: &str,
    addresses: &BTreeMap<&str, &str>,
    links: &mut Vec<Target>,
) -> String {
    if link.contains("://") || link.starts_with("mailto:") {
        return link.to_owned();
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut path = match file {
        "" => from.to_owned(),
        file => resolve(from, file),
    };
    if file.ends_with('/') {
        path.push('/');
        path.push_str("README.md");
    }
    let Some(address) = addresses.get(path.as_str()) else {
        links.push(Target::Missing(path));
        return String::new();
    };
    links.push(Target::Heading {
        address: (*address).to_owned(),
        anchor: anchor.to_owned(),
    });
    match (file, anchor) {
        ("", anchor) => format!("#{anchor}"),
        (_, "") => page_address(address),
        (_, anchor) => format!("{}#{anchor}", page_address(address)),
    }
}

/// The path, from the root of the repository, of the target of `link` in the file `from`.
pub(crate) fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
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

/// The URL path of a page: `/docs/tasks`; `/docs` for the first page.
pub(crate) fn page_address(address: &str) -> String {
    if address.is_empty() {
        "/docs".to_owned()
    } else {
        format!("/docs/{address}")
    }
}

/// Escapes the text for HTML, also inside quoted attribute values.
pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
