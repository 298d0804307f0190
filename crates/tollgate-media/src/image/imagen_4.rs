//! Imagen 4: `imagen-4.0-partner`. Docs page: docs/models/imagen-4.md.

use serde_json::json;
use tollgate_core::ApiError;

use super::family::Family;
use crate::endpoint::Endpoint;
use crate::fields::field::{CustomField, Field};
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

/// A field that must be absent, because the model generates images from text only.
static TEXT_ONLY: CustomField = CustomField {
    json_type: "none",
    values: "must be absent",
    parse: |field, _| {
        Err(ApiError::invalid(format!(
            "`{field}` must be absent: this model only supports text-to-image"
        )))
    },
    schema: || json!({ "not": {} }),
};

pub(super) static FAMILY: Family = Family {
    name: "imagen-4",
    title: "Imagen 4",
    about: "One image from text, and from text only.",
    models: &["imagen-4.0-partner"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt, in Chinese or English: what to generate."),
        Field::n(1),
        Field::size("A ratio. One that is not supported, such as 21:9, is replaced by 16:9."),
        Field::custom("image", &TEXT_ONLY, "Only text-to-image is supported."),
        Field::custom("image_urls", &TEXT_ONLY, "Only text-to-image is supported."),
    ],
    ignored: &[
        ("mask", "this model only supports text-to-image"),
        ("quality", "this model has no quality setting"),
    ],
    // The provider's sizes at 1K.
    sizes: Sizes::Ratios(RatioTable {
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
        auto: AutoSize::Rejected,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: Some("16:9"),
    }),
    input_limits: InputLimits::NONE,
    output: ImageFormat::Png,
    rules: &[],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
