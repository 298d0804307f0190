//! Grok Imagine: `grok-imagine-1.0-partner`. Docs page: docs/models/grok-imagine.md.

use super::family::Family;
use crate::endpoint::Endpoint;
use crate::fields::field::Field;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "grok-imagine",
    title: "Grok Imagine",
    about: "Up to 10 images from text. The sizes are of about one megapixel.",
    models: &["grok-imagine-1.0-partner"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt, in Chinese or English: what to generate."),
        Field::size("A ratio."),
        Field::n(10),
    ],
    ignored: &[],
    // The provider documents only ratios; these sizes are multiples of 16 with about one megapixel.
    sizes: Sizes::Ratios(RatioTable {
        tiers: &[],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("16:9", &[(1280, 720)]),
            row("9:16", &[(720, 1280)]),
            row("3:2", &[(1248, 832)]),
            row("2:3", &[(832, 1248)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: AutoSize::Rejected,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: InputLimits::NONE,
    output: ImageFormat::Jpeg,
    rules: &[],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
