//! Seedream 5.0 Lite (SPEC.md › doubao-seedream-5-0-lite family).

use super::family::{Family, LinkLife};
use super::field::{Field, Preset};
use super::input::InputRules;
use super::job::ImageFormat;
use super::seedream;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "seedream-5-lite",
    title: "Seedream 5.0 Lite",
    about: "Pictures from text or references, singly or as a group of up to 4 (with `max_images` 15) that belong together. Groups need no reference. Links last 72 hours.",
    models: &[
        "doubao-seedream-5-0-lite",
        "doubao-seedream-5.0-lite",
        "Doubao-Seedream-5.0-lite",
    ],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("What to make."),
        seedream::SIZE,
        Field::resolution("The tier. 1K and 4K are not supported."),
        Field::n(4),
        seedream::REFERENCES,
        Field::choice(
            "output_format",
            &["jpeg", "png"],
            "The format of the result files.",
        )
        .or(Preset::Text("jpeg")),
        seedream::GROUP,
        seedream::GROUP_OPTIONS,
        seedream::WATERMARK,
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioSizes {
        tiers: &["2K", "3K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(2048, 2048), (3072, 3072)]),
            row("4:3", &[(2304, 1728), (3456, 2592)]),
            row("3:4", &[(1728, 2304), (2592, 3456)]),
            row("16:9", &[(2848, 1600), (4096, 2304)]),
            row("9:16", &[(1600, 2848), (2304, 4096)]),
            row("3:2", &[(2496, 1664), (3744, 2496)]),
            row("2:3", &[(1664, 2496), (2496, 3744)]),
            row("21:9", &[(3136, 1344), (4704, 2016)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: Auto::NeedsReference,
        pixels: PixelsAsked::No,
        also: &[],
        fallback: None,
    }),
    // SPEC.md states no number; 14 is the provider's.
    inputs: InputRules {
        max_count: 14,
        ..seedream::INPUTS
    },
    output: ImageFormat::Jpeg,
    rules: &[seedream::GROUP_MODE],
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Long,
    safety_review: false,
};
