//! grok-imagine-1.0-partner (SPEC.md › section of that name).

use super::family::{Family, LinkLife};
use super::field::Field;
use super::input::InputRules;
use super::job::ImageFormat;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "grok-imagine",
    title: "Grok Imagine",
    about: "Up to 10 pictures from text. The sizes are of about one megapixel.",
    models: &["grok-imagine-1.0-partner"],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("What to make, in Chinese or English."),
        Field::size("A ratio."),
        Field::n(10),
    ],
    ignored: &[],
    // SPEC.md has ratios without pixels: multiples of 16 around one megapixel.
    sizes: Sizes::Ratios(RatioSizes {
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
        auto: Auto::No,
        pixels: PixelsAsked::No,
        also: &[],
        fallback: None,
    }),
    inputs: InputRules::NONE,
    output: ImageFormat::Jpeg,
    rules: &[],
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Usual,
    safety_review: false,
};
