//! The docs page of an image family, in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::family::Family;
use super::field::Kind;
use super::size::{
    Auto, DefaultSize, FreeSizes, ListedSizes, PixelsAsked, RatioSizes, Scene, Sizes,
};
use crate::form::{self, FormSizes as _};
use crate::{AnyFamily, Endpoint};

/// The docs page of `family`: fields, sizes, limits, odd rules, answers, an example.
pub fn page(family: &'static Family) -> String {
    let form = family.form();
    let mut page = String::new();
    form::front(&mut page, AnyFamily::Image(family), &[]);
    page.push_str("## Fields\n\n");
    form::field_table(&mut page, &form);
    sizes(&mut page, &family.sizes);
    form::inputs(&mut page, &family.inputs);
    form::rule_list(&mut page, family.rules, family.ignored);
    let _ = writeln!(page, "## Answers\n\n{}\n", family.shape.about);
    example(&mut page, family);
    page
}

fn sizes(page: &mut String, sizes: &Sizes) {
    page.push_str("## Sizes\n\n");
    match sizes {
        Sizes::Ratios(sizes) => ratio_sizes(page, sizes),
        Sizes::Listed(sizes) => listed_sizes(page, sizes),
        Sizes::Free(sizes) => free_sizes(page, sizes),
    }
}

fn ratio_sizes(page: &mut String, sizes: &RatioSizes) {
    let tiers = if sizes.tiers.is_empty() {
        &["pixels"]
    } else {
        sizes.tiers
    };
    let _ = writeln!(page, "| size | {} |", tiers.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(tiers.len()));
    for row in sizes.rows {
        let cells: Vec<String> = row.pixels.iter().map(|(w, h)| format!("{w}x{h}")).collect();
        let _ = writeln!(page, "| `{}` | {} |", row.ratio, cells.join(" | "));
    }
    page.push('\n');
    if sizes.auto != Auto::No {
        let alone = match sizes.auto {
            Auto::NeedsReference => "it needs one",
            Auto::Free | Auto::No => "without one it is the default",
        };
        let _ = writeln!(
            page,
            "- `auto` is the ratio nearest to the first reference's; {alone}."
        );
    }
    if let DefaultSize::Follow(ratio) = sizes.default {
        let _ = writeln!(
            page,
            "- Unless `size` says otherwise, the ratio nearest to the first reference's; without one `{ratio}`."
        );
    }
    match sizes.pixels {
        PixelsAsked::InTable => page.push_str(
            "- `size` may also be a pixel size of the table, at any tier unless `resolution` names one.\n",
        ),
        PixelsAsked::AsRatio => {
            page.push_str("- `size` may also be a pixel size of the table and then means its ratio.\n");
        }
        PixelsAsked::No => {}
    }
    for (size, level) in sizes.also {
        let _ = writeln!(
            page,
            "- `{size}` is taken too, at tier `{}`.",
            sizes.tiers[*level]
        );
    }
    if let Some(fallback) = sizes.fallback {
        let _ = writeln!(
            page,
            "- Any other ratio becomes `{fallback}` (an adjustment)."
        );
    }
    if !sizes.tiers.is_empty() {
        page.push_str("- Tier names are read without regard to case.\n");
    }
    page.push('\n');
}

fn listed_sizes(page: &mut String, sizes: &ListedSizes) {
    page.push_str("| group | sizes |\n|---|---|\n");
    for (group, sizes) in sizes.groups {
        let sizes: Vec<String> = sizes.iter().map(|(w, h)| format!("`{w}x{h}`")).collect();
        let _ = writeln!(page, "| {group} | {} |", sizes.join(", "));
    }
    page.push('\n');
}

fn free_sizes(page: &mut String, sizes: &FreeSizes) {
    for scene in sizes.scenes {
        free_scene(page, sizes, scene);
    }
    page.push_str("- A tier is a square, except in edit mode: there the size has the last picture's ratio and about the tier's area, as far as the range of sides allows, in multiples of 16.\n");
    let _ = writeln!(page, "- A ratio is made at {}.", sizes.ratio_tier);
    page.push_str(
        "- Tier names are read without regard to case; pixels are written with `x` or `*`.\n\n",
    );
}

fn free_scene(page: &mut String, sizes: &FreeSizes, scene: &Scene) {
    let (min, max) = (scene.min_side, scene.max_side);
    let _ = writeln!(page, "For {}, {min} to {max} pixels a side:\n", scene.name);
    page.push_str("| size | pixels |\n|---|---|\n");
    for (name, side) in &sizes.tiers[..scene.tiers] {
        let _ = writeln!(page, "| `{name}` | {side}x{side} |");
    }
    for (ratio, (width, height)) in scene.ratios {
        let _ = writeln!(page, "| `{ratio}` | {width}x{height} |");
    }
    page.push('\n');
}

fn example(page: &mut String, family: &Family) {
    let edits = family.endpoint == Endpoint::ImageEdits;
    let prompt = if edits {
        "Make it night"
    } else {
        "A lighthouse at dusk, oil on canvas"
    };
    let mut body = Map::new();
    body.insert("model".to_owned(), family.models[0].into());
    body.insert("prompt".to_owned(), prompt.into());
    for field in family.fields {
        match field.kind {
            Kind::References if field.required => {
                body.insert(
                    field.name.to_owned(),
                    json!(["https://example.com/photo.jpg"]),
                );
            }
            Kind::Size => {
                let value = family.sizes.default().unwrap_or_else(|| "16:9".to_owned());
                body.insert(field.name.to_owned(), value.into());
            }
            _ => {}
        }
    }
    page.push_str("## Example\n\n");
    form::curl(page, family.endpoint.path(), &body);
}
