//! imagen-4.0-partner (SPEC.md › section of that name).

use serde_json::json;
use tollgate_core::ApiError;

use super::family::{Family, LinkLife};
use super::field::{Field, Special};
use super::input::InputRules;
use super::job::ImageFormat;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// A field that must be absent, since the model makes pictures from text alone.
static TEXT_ONLY: Special = Special {
    json_type: "none",
    what: "must be absent",
    read: |field, _| {
        Err(ApiError::invalid(format!(
            "`{field}` must be absent: this model only supports text-to-image"
        )))
    },
    schema: || json!({ "not": {} }),
};

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "imagen-4",
    title: "Imagen 4",
    about: "One picture from text, and from text only.",
    models: &["imagen-4.0-partner"],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("What to make, in Chinese or English."),
        Field::n(1),
        Field::size("A ratio. One that is not supported, such as 21:9, becomes 16:9."),
        Field::special("image", &TEXT_ONLY, "Only text-to-image is supported."),
        Field::special("image_urls", &TEXT_ONLY, "Only text-to-image is supported."),
    ],
    ignored: &[
        ("mask", "this model only supports text-to-image"),
        ("quality", "this model has no qualities"),
    ],
    // SPEC.md has ratios without pixels: these are the provider's at 1K.
    sizes: Sizes::Ratios(RatioSizes {
        tiers: &[],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("4:3", &[(1280, 896)]),
            row("3:4", &[(896, 1280)]),
            row("16:9", &[(1408, 768)]),
            row("9:16", &[(768, 1408)]),
        ],
        default: DefaultSize::Ratio("16:9"),
        auto: Auto::No,
        pixels: PixelsAsked::No,
        also: &[],
        fallback: Some("16:9"),
    }),
    inputs: InputRules::NONE,
    output: ImageFormat::Png,
    rules: &[],
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Usual,
    safety_review: false,
};
