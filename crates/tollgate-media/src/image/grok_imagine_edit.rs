//! grok-imagine-1.0-edit-partner (SPEC.md › Image editing).

use super::family::{Family, LinkLife};
use super::field::Field;
use super::input::InputRules;
use super::job::ImageFormat;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "grok-imagine-edit",
    title: "Grok Imagine edits",
    about: "Changes a picture as the prompt says. The results have the ratio of the table nearest to the picture's own.",
    models: &["grok-imagine-1.0-edit-partner"],
    endpoint: Endpoint::ImageEdits,
    fields: &[
        Field::prompt("What to change, in Chinese or English."),
        Field::references(
            "URLs or data URIs. Only the first is used; the others are listed as adjustments.",
        )
        .required(),
        Field::n(10),
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioSizes {
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
        default: DefaultSize::Follow("1:1"),
        auto: Auto::No,
        pixels: PixelsAsked::No,
        also: &[],
        fallback: None,
    }),
    inputs: InputRules {
        data_uris: InputRules::SANE.formats,
        only_first: true,
        ..InputRules::SANE
    },
    output: ImageFormat::Jpeg,
    rules: &[],
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Usual,
    safety_review: false,
};
