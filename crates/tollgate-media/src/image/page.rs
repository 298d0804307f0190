//! The docs page of a family, in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::family::Family;
use super::field::{Field, Kind};
use super::input::{InputRules, MB, names};
use super::schema::default;
use super::size::{
    Auto, DefaultSize, FreeSizes, ListedSizes, PixelsAsked, RatioSizes, Scene, Sizes,
};
use crate::Endpoint;

/// The docs page of `family`: fields, sizes, limits, odd rules, answers, an example.
pub fn page(family: &Family) -> String {
    let mut page = format!("# {}\n\n{}\n\n", family.title, family.about);
    let models: Vec<String> = family.models.iter().map(|id| format!("`{id}`")).collect();
    let _ = writeln!(page, "| | |\n|---|---|");
    let _ = writeln!(page, "| Endpoint | `{}` |", family.endpoint);
    let _ = writeln!(page, "| Models | {} |", models.join(", "));
    let _ = writeln!(
        page,
        "| Family | `{}` (for `like` in the configuration) |",
        family.name
    );
    let _ = writeln!(page, "| Links | work for {} hours |", family.links.hours());
    let review = if family.safety_review {
        "every prompt"
    } else {
        "only when configured"
    };
    let _ = writeln!(page, "| Safety review | {review} |\n");
    fields(&mut page, family);
    sizes(&mut page, &family.sizes);
    inputs(&mut page, &family.inputs);
    rules(&mut page, family);
    let _ = writeln!(page, "## Answers\n\n{}\n", family.shape.about);
    example(&mut page, family);
    page
}

fn fields(page: &mut String, family: &Family) {
    page.push_str("## Fields\n\n| Field | Type | Values | Default | |\n|---|---|---|---|---|\n");
    page.push_str("| `model` | string, required | a model id from above | | |\n");
    for field in family.fields {
        field_row(page, family, field, field.name);
        if let Kind::Object(members) = field.kind {
            for member in members {
                field_row(
                    page,
                    family,
                    member,
                    &format!("{}.{}", field.name, member.name),
                );
            }
        }
    }
    page.push_str("\nNumbers are JSON numbers without quotes; `null` counts as absent. Other fields are ignored and listed as `adjustments`; with the header `x-tollgate-strict: true` they are an error.\n\n");
}

fn field_row(page: &mut String, family: &Family, field: &Field, name: &str) {
    let mut names = format!("`{name}`");
    for alias in field.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    let (kind, values) = kind(family, field);
    let required = if field.required { ", required" } else { "" };
    let default = match default(family, field) {
        Some(Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
        None => String::new(),
    };
    let doc = field.doc;
    let _ = writeln!(
        page,
        "| {names} | {kind}{required} | {values} | {default} | {doc} |"
    );
}

/// A field's JSON type and its values, in words.
fn kind(family: &Family, field: &Field) -> (&'static str, String) {
    match field.kind {
        Kind::Text {
            max_chars: Some(max),
        } => ("string", format!("at most {max} characters")),
        Kind::Text { max_chars: None } => ("string", String::new()),
        Kind::Choice(values) => ("string", code_list(values.iter().copied())),
        Kind::Int { min, max, .. } if min == max => ("integer", format!("only {min}")),
        Kind::Int { min, max, clamp } => {
            let others = if clamp {
                "; other numbers become the nearest"
            } else {
                ""
            };
            ("integer", format!("{min} to {max}{others}"))
        }
        Kind::Flag => ("boolean", String::new()),
        Kind::Size => ("string", "see [Sizes](#sizes)".to_owned()),
        Kind::Tier => ("string", code_list(family.sizes.tiers().0.iter().copied())),
        Kind::References => (
            "array of string",
            format!("at most {} images", family.inputs.max_count),
        ),
        Kind::Mask => ("string", "a URL".to_owned()),
        Kind::Object(_) => ("object", String::new()),
        Kind::Special(special) => (special.json_type, special.what.to_owned()),
    }
}

fn code_list<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = values.map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
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

fn inputs(page: &mut String, rules: &InputRules) {
    if rules.max_count == 0 {
        return;
    }
    page.push_str("## Reference images\n\n| | |\n|---|---|\n");
    let _ = writeln!(page, "| Images | at most {} |", rules.max_count);
    let _ = writeln!(page, "| Formats | {} |", names(rules.formats));
    let data = if rules.data_uris.is_empty() {
        "not taken: upload with `POST /v1/uploads/images` first".to_owned()
    } else {
        names(rules.data_uris)
    };
    let _ = writeln!(page, "| Data URIs | {data} |");
    let _ = writeln!(page, "| File size | at most {} MB |", rules.max_bytes / MB);
    let _ = writeln!(
        page,
        "| Each side | {} to {} pixels |",
        rules.min_side, rules.max_side
    );
    let _ = writeln!(
        page,
        "| Width × height | at most {} pixels |",
        rules.max_pixels
    );
    if rules.max_ratio < u32::MAX {
        let _ = writeln!(page, "| Ratio | 1:{k} to {k}:1 |", k = rules.max_ratio);
    }
    page.push_str("\nUploads and data URIs are checked when the request is taken; other URLs when the task runs, and a limit broken then fails the task free of charge.\n\n");
}

fn rules(page: &mut String, family: &Family) {
    if family.rules.is_empty() && family.ignored.is_empty() {
        return;
    }
    page.push_str("## Rules\n\n");
    for rule in family.rules {
        let _ = writeln!(page, "- {}", rule.text);
    }
    for (field, why) in family.ignored {
        let _ = writeln!(page, "- `{field}` is ignored: {why}.");
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
    let body = serde_json::to_string_pretty(&body).unwrap_or_default();
    let _ = writeln!(
        page,
        "## Example\n\n```sh\ncurl \"$TOLLGATE_BASE_URL{}\" \\\n  -H \"Authorization: Bearer $TOLLGATE_API_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'\n```",
        family.endpoint.path(),
    );
}
