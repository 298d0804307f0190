//! Gemini 2.5 Flash Image (SPEC.md › gemini-2.5-flash-image-preview).

use super::family::{Family, LinkLife};
use super::field::Field;
use super::gemini;
use super::job::ImageFormat;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "gemini-2.5-flash-image",
    title: "Gemini 2.5 Flash Image",
    about: "Pictures from text and up to 14 references, about one megapixel each. The `-official` model is served by the provider's own channel.",
    models: &[
        "gemini-2.5-flash-image-preview",
        "gemini-2.5-flash-image-preview-official",
    ],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("What to make.").at_most(1000),
        gemini::SIZE,
        Field::resolution("The only tier."),
        Field::n(4),
        gemini::OFFICIAL_FALLBACK,
        gemini::REFERENCES,
    ],
    ignored: &[],
    // The provider's own sizes.
    sizes: Sizes::Ratios(RatioSizes {
        tiers: &["1K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("2:3", &[(832, 1248)]),
            row("3:2", &[(1248, 832)]),
            row("3:4", &[(864, 1184)]),
            row("4:3", &[(1184, 864)]),
            row("4:5", &[(896, 1152)]),
            row("5:4", &[(1152, 896)]),
            row("9:16", &[(768, 1344)]),
            row("16:9", &[(1344, 768)]),
            row("21:9", &[(1536, 672)]),
        ],
        default: DefaultSize::Follow("1:1"),
        auto: Auto::No,
        pixels: PixelsAsked::No,
        also: &[],
        fallback: None,
    }),
    inputs: gemini::INPUTS,
    output: ImageFormat::Png,
    rules: &[gemini::FALLBACK_NOT_WITH_OFFICIAL],
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Usual,
    safety_review: false,
};
