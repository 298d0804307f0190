//! Grok Imagine edits: `grok-imagine-1.0-edit-partner`. Docs page: docs/models/grok-imagine-edit.md.

use super::family::Family;
use crate::endpoint::Endpoint;
use crate::fields::field::Field;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "grok-imagine-edit",
    title: "Grok Imagine edits",
    about: "Edits an image as the prompt describes. The results have the ratio of the table that is nearest to that of the image.",
    models: &["grok-imagine-1.0-edit-partner"],
    one_model: false,
    endpoint: Endpoint::ImageEdits,
    fields: &[
        Field::prompt("The prompt: what to change, in Chinese or English."),
        Field::image_urls(
            "URLs or data URIs. Only the first is used; the others are listed as adjustments.",
        )
        .required(),
        Field::n(10),
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioTable {
        tiers: &[],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("16:9", &[(1280, 720)]),
            row("9:16", &[(720, 1280)]),
            row("4:3", &[(1152, 864)]),
            row("3:4", &[(864, 1152)]),
            row("3:2", &[(1248, 832)]),
            row("2:3", &[(832, 1248)]),
            row("2:1", &[(1408, 704)]),
            row("1:2", &[(704, 1408)]),
        ],
        default: DefaultSize::FollowReference("1:1"),
        auto: AutoSize::Rejected,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: InputLimits {
        data_uris: InputLimits::DEFAULT.formats,
        first_only: true,
        ..InputLimits::DEFAULT
    },
    output: ImageFormat::Jpeg,
    rules: &[],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
