//! Writes the docs page of an image family (docs/models/*.md), in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::family::Family;
use super::size::{
    AutoSize, DefaultSize, PixelList, PixelRangeSizes, PixelSizes, RatioTable, SizeMode, Sizes,
};
use crate::endpoint::Endpoint;
use crate::fields::field::FieldKind;
use crate::fields::page::{
    Overview, write_example, write_field_table, write_input_limits, write_overview,
    write_responses, write_rules,
};
use crate::fields::spec::SizeSpec as _;

/// The docs page of `family`.
pub fn page(family: &'static Family) -> String {
    let spec = family.request_spec();
    let mut page = String::new();
    let overview = Overview {
        family: family.name,
        one_model: family.one_model,
        endpoint: family.endpoint,
        link_ttl: family.link_ttl,
        safety_review: family.safety_review,
    };
    write_overview(&mut page, &spec, &overview);
    page.push_str("## Request fields\n\n");
    write_field_table(&mut page, &spec);
    write_sizes(&mut page, &family.sizes);
    write_input_limits(&mut page, &family.input_limits);
    write_rules(&mut page, family.rules, family.ignored);
    write_responses(&mut page, family.response.about);
    let body = example_body(family);
    write_example(&mut page, family.endpoint.path(), &body);
    page
}

fn write_sizes(page: &mut String, sizes: &Sizes) {
    page.push_str("## Sizes\n\n");
    match sizes {
        Sizes::Ratios(sizes) => write_ratio_table(page, sizes),
        Sizes::Listed(sizes) => write_pixel_list(page, sizes),
        Sizes::PixelRange(sizes) => write_pixel_ranges(page, sizes),
    }
}

fn write_ratio_table(page: &mut String, sizes: &RatioTable) {
    let tiers = if sizes.tiers.is_empty() {
        &["pixels"]
    } else {
        sizes.tiers
    };
    let _ = writeln!(page, "| `size` | {} |", tiers.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(tiers.len()));
    for row in sizes.rows {
        let cells: Vec<String> = row.pixels.iter().map(|(w, h)| format!("{w}x{h}")).collect();
        let _ = writeln!(page, "| `{}` | {} |", row.ratio, cells.join(" | "));
    }
    page.push('\n');
    if sizes.auto != AutoSize::Rejected {
        let alone = match sizes.auto {
            AutoSize::NeedsReference => "without one it is an error",
            AutoSize::OptionalReference | AutoSize::Rejected => "without one, the default ratio",
        };
        let _ = writeln!(
            page,
            "- `auto` selects the ratio nearest to that of the first reference image; {alone}."
        );
    }
    if let DefaultSize::FollowReference(ratio) = sizes.default {
        let _ = writeln!(
            page,
            "- Default: the ratio nearest to that of the first reference image, or `{ratio}` without references."
        );
    }
    match sizes.pixels {
        PixelSizes::InTable => page.push_str(
            "- `size` may also be a pixel size from the table. Its tier must be the value of `resolution`, if that is sent.\n",
        ),
        PixelSizes::AsRatio => {
            page.push_str("- `size` may also be a pixel size from the table, which means the same as its ratio.\n");
        }
        PixelSizes::Rejected => {}
    }
    for (size, level) in sizes.extra_sizes {
        let _ = writeln!(
            page,
            "- `{size}` is accepted too, at tier `{}`.",
            sizes.tiers[*level]
        );
    }
    if let Some(fallback) = sizes.fallback {
        let _ = writeln!(
            page,
            "- Any other ratio is replaced by `{fallback}` and reported in `adjustments`."
        );
    }
    if !sizes.tiers.is_empty() {
        page.push_str("- Tier names are case-insensitive.\n");
    }
    page.push('\n');
}

fn write_pixel_list(page: &mut String, sizes: &PixelList) {
    page.push_str("| Group | `size` |\n|---|---|\n");
    for (group, sizes) in sizes.groups {
        let sizes: Vec<String> = sizes.iter().map(|(w, h)| format!("`{w}x{h}`")).collect();
        let _ = writeln!(page, "| {group} | {} |", sizes.join(", "));
    }
    page.push('\n');
}

fn write_pixel_ranges(page: &mut String, sizes: &PixelRangeSizes) {
    page.push_str("| `size` | Pixels |\n|---|---|\n");
    for (name, side) in sizes.tiers {
        let _ = writeln!(page, "| `{name}` | {side}x{side} |");
    }
    for (ratio, (width, height)) in sizes.ratios {
        let _ = writeln!(page, "| `{ratio}` | {width}x{height} |");
    }
    page.push_str(
        "\n| Use | Tiers | Product of width and height of a pixel size |\n|---|---|---|\n",
    );
    for mode in sizes.modes {
        write_size_mode(page, sizes, mode);
    }
    let _ = writeln!(
        page,
        "\n- A pixel size has a ratio from 1:{k} to {k}:1.",
        k = sizes.max_ratio
    );
    page.push_str("- A tier means a square image. With reference images it means an image with the aspect ratio of the last one and at most the area of the tier, with sides in multiples of 16.\n");
    let _ = writeln!(page, "- A ratio means the tier {}.", sizes.ratio_tier);
    page.push_str(
        "- Tier names are case-insensitive. Width and height are separated by `x`, `X` or `*`.\n\n",
    );
}

fn write_size_mode(page: &mut String, sizes: &PixelRangeSizes, mode: &SizeMode) {
    let tiers = &sizes.tiers[..mode.tiers];
    let tiers: Vec<String> = tiers.iter().map(|(name, _)| format!("`{name}`")).collect();
    let (min, max) = (mode.min_square, mode.max_square);
    let _ = writeln!(
        page,
        "| {} | {} | {min}x{min} to {max}x{max} |",
        mode.name,
        tiers.join(", ")
    );
}

fn example_body(family: &Family) -> Map<String, serde_json::Value> {
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
            FieldKind::ImageUrls if field.required => {
                body.insert(
                    field.name.to_owned(),
                    json!(["https://example.com/photo.jpg"]),
                );
            }
            FieldKind::Size => {
                let value = family.sizes.default().unwrap_or_else(|| "16:9".to_owned());
                body.insert(field.name.to_owned(), value.into());
            }
            _ => {}
        }
    }
    body
}
