//! Writes the page around a rendered text: header, sections, table of contents, links to the previous and the next page.

use std::fmt::Write as _;

use crate::files::Assets;
use crate::markdown::{Page, escape, page_address};
use crate::navigation::{Entry, Navigation, Section};

/// The title of the section that contains the link to the API page.
const API_SECTION: &str = "Reference";

/// The complete page. It is readable without scripts; they add search, copy buttons and the colour switch.
pub(crate) fn write_page(navigation: &Navigation, page: &Page, assets: &Assets) -> String {
    let title = if page.address.is_empty() {
        escape(&page.title)
    } else {
        format!("{} · Tollgate", escape(&page.title))
    };
    let section = match navigation.section_title(&page.address) {
        "" => String::new(),
        section => format!("<p class=\"section\">{}</p>\n", escape(section)),
    };
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{style}">
<script src="{theme}"></script>
<script src="{script}" defer></script>
</head>
<body>
<a class="skip" href="#site-content">Skip to content</a>
<header class="top">
<a class="menu" href="#site-pages">Menu</a>
<a class="brand" href="/docs">Tollgate <span>docs</span></a>
<div id="site-search" class="search" data-index="{index}"></div>
<nav class="tools" aria-label="Site"><a href="/docs/api">API</a><a href="/console/">Console</a><button type="button" id="site-theme" hidden>Dark</button></nav>
</header>
<nav id="site-pages" class="pages" aria-label="Pages">
<a class="close" href="#site-content">Close menu</a>
{pages}</nav>
<main id="site-content" tabindex="-1">
<div class="head">
{section}<h1>{heading}</h1>
</div>
{contents}<article>
{html}</article>
{turn}</main>
</body>
</html>
"##,
        icon = assets.address("icon.svg"),
        style = assets.address("docs.css"),
        theme = assets.address("theme.js"),
        script = assets.address("docs.js"),
        index = assets.address("search.json"),
        pages = write_sections(navigation, &page.address),
        heading = escape(&page.title),
        contents = write_contents(page),
        html = page.html,
        turn = write_turn(navigation, &page.address),
    )
}

/// All sections; the one with the page is open.
fn write_sections(navigation: &Navigation, address: &str) -> String {
    let mut html = String::new();
    for section in &navigation.sections {
        if section.title.is_empty() {
            continue;
        }
        let is_open = section.entries.iter().any(|e| e.address == address);
        let open = if is_open { " open" } else { "" };
        let title = escape(&section.title);
        let _ = write!(html, "<details{open}>\n<summary>{title}</summary>\n<ul>\n");
        write_entries(&mut html, section, address);
        html.push_str("</ul>\n</details>\n");
    }
    html
}

fn write_entries(html: &mut String, section: &Section, address: &str) {
    if section.title == API_SECTION {
        html.push_str("<li><a href=\"/docs/api\">API: read and try</a></li>\n");
    }
    for entry in &section.entries {
        let current = if entry.address == address {
            " aria-current=\"page\""
        } else {
            ""
        };
        let (to, title) = (page_address(&entry.address), escape(&entry.title));
        let _ = writeln!(html, "<li><a href=\"{to}\"{current}>{title}</a></li>");
    }
}

/// The headings of the second and third level; empty if there are fewer than two.
fn write_contents(page: &Page) -> String {
    let parts = page.parts.iter().filter(|p| matches!(p.level, 2 | 3));
    let mut items = String::new();
    let mut count = 0;
    for part in parts {
        let _ = writeln!(
            items,
            "<li class=\"level-{}\"><a href=\"#{}\">{}</a></li>",
            part.level,
            part.anchor,
            escape(&part.title)
        );
        count += 1;
    }
    if count < 2 || page.address.is_empty() {
        return String::new();
    }
    format!(
        "<details class=\"contents\" id=\"site-contents\">\n<summary>On this page</summary>\n<nav aria-label=\"On this page\">\n<ul>\n{items}</ul>\n</nav>\n</details>\n"
    )
}

/// Links to the pages before and after this one.
fn write_turn(navigation: &Navigation, address: &str) -> String {
    let entries: Vec<&Entry> = navigation.entries().collect();
    let Some(at) = entries.iter().position(|e| e.address == address) else {
        return String::new();
    };
    let link = |entry: &&Entry, relation: &str, word: &str| {
        let (to, title) = (page_address(&entry.address), escape(&entry.title));
        format!("<a rel=\"{relation}\" href=\"{to}\"><span>{word}</span> {title}</a>\n")
    };
    let previous = at.checked_sub(1).and_then(|at| entries.get(at));
    let next = entries.get(at + 1);
    format!(
        "<nav class=\"turn\" aria-label=\"Previous and next page\">\n{}{}</nav>\n",
        previous.map_or_else(String::new, |entry| link(entry, "prev", "Previous")),
        next.map_or_else(String::new, |entry| link(entry, "next", "Next")),
    )
}
