//! The docs page of a video family, in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::family::Family;
use super::size::{Follow, FrameSizes};
use crate::{AnyFamily, form, shape};

/// The docs page of `family`: fields, lengths, sizes, limits, odd rules, answers, an example.
pub fn page(family: &'static Family) -> String {
    let form = family.form();
    let any = AnyFamily::Video(family);
    let mut page = String::new();
    form::front(&mut page, any, any.endpoint().also());
    page.push_str("## Fields\n\n");
    form::field_table(&mut page, &form);
    sizes(&mut page, &family.sizes);
    form::inputs(&mut page, &family.inputs);
    form::rule_list(&mut page, family.rules, family.ignored);
    let _ = writeln!(page, "## Answers\n\n{}\n", shape::VIDEO.about);
    page.push_str("## Example\n\n");
    form::curl(&mut page, any.endpoint().path(), &example(family));
    page
}

fn sizes(page: &mut String, sizes: &FrameSizes) {
    page.push_str("## Sizes\n\n");
    let _ = writeln!(page, "| aspect_ratio | {} |", sizes.tiers.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(sizes.tiers.len()));
    for row in sizes.rows {
        let cells: Vec<String> = row.pixels.iter().map(|(w, h)| format!("{w}x{h}")).collect();
        let _ = writeln!(page, "| `{}` | {} |", row.ratio, cells.join(" | "));
    }
    page.push_str("\n- `size` is a size of the table, or one of a ratio of the table with the tier's number of lines (1280x720 is 16:9 at 720p); it must not contradict `aspect_ratio` and `resolution`.\n");
    let _ = match sizes.follow {
        Follow::Never => writeln!(page, "- Without a ratio it is `{}`.", sizes.default_ratio),
        Follow::Unasked | Follow::Named(_) => writeln!(
            page,
            "- Without a ratio it is the one of the table nearest to the first frame's, or `{}` where no image is the first frame.",
            sizes.default_ratio
        ),
    };
    page.push_str("- Tier names are read without regard to case.\n\n");
}

fn example(family: &Family) -> Map<String, Value> {
    let body = json!({
        "model": family.models[0],
        "prompt": "Waves roll towards a lighthouse at dusk, the camera rises slowly",
        "duration": family.lengths.default(),
        "aspect_ratio": family.sizes.default_ratio,
        "resolution": family.sizes.tiers[family.sizes.default_tier],
    });
    body.as_object().cloned().unwrap_or_default()
}
