//! Writes the docs page of a video family (docs/models/*.md), in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::family::Family;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::endpoint::Endpoint;
use crate::fields::page::{
    Overview, write_example, write_field_table, write_input_limits, write_overview,
    write_responses, write_rules,
};
use crate::response::video::VIDEO;

/// The docs page of `family`.
pub fn page(family: &'static Family) -> String {
    let spec = family.request_spec();
    let endpoint = Endpoint::VideoGenerations;
    let mut page = String::new();
    let overview = Overview {
        family: family.name,
        one_model: false,
        endpoint,
        link_ttl: family.link_ttl,
        safety_review: family.safety_review,
    };
    write_overview(&mut page, &spec, &overview);
    page.push_str("## Request fields\n\n");
    write_field_table(&mut page, &spec);
    write_sizes(&mut page, &family.sizes);
    write_input_limits(&mut page, &family.input_limits);
    write_rules(&mut page, family.rules, family.ignored);
    write_responses(&mut page, VIDEO.about);
    write_example(&mut page, endpoint.path(), &example_body(family));
    page
}

fn write_sizes(page: &mut String, sizes: &FrameSizes) {
    page.push_str("## Sizes\n\n");
    let _ = writeln!(page, "| `aspect_ratio` | {} |", sizes.tiers.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(sizes.tiers.len()));
    for row in sizes.rows {
        let cells: Vec<String> = row.pixels.iter().map(|(w, h)| format!("{w}x{h}")).collect();
        let _ = writeln!(page, "| `{}` | {} |", row.ratio, cells.join(" | "));
    }
    page.push_str("\n- `size` is a pixel size from the table, or one with the ratio of a row and as many lines as the tier has (1280x720 is 16:9 at 720p). It must agree with `aspect_ratio` and `resolution` if those are sent.\n");
    let _ = match sizes.follow {
        FollowFirstFrame::Never => writeln!(page, "- Default ratio: `{}`.", sizes.default_ratio),
        FollowFirstFrame::ByDefault | FollowFirstFrame::ByValue(_) => writeln!(
            page,
            "- Default ratio: the one nearest to that of the first frame, or `{}` if no image is the first frame.",
            sizes.default_ratio
        ),
    };
    page.push_str("- Tier names are case-insensitive.\n\n");
}

fn example_body(family: &Family) -> Map<String, Value> {
    let body = json!({
        "model": family.models[0],
        "prompt": "Waves roll towards a lighthouse at dusk, the camera rises slowly",
        "duration": family.durations.default(),
        "aspect_ratio": family.sizes.default_ratio,
        "resolution": family.sizes.tiers[family.sizes.default_tier],
    });
    body.as_object().cloned().unwrap_or_default()
}
