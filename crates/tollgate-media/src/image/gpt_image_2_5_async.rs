//! gpt-image-2.5-async (SPEC.md › section of that name).

use super::family::{Family, LinkLife};
use super::field::{Field, Preset};
use super::input::InputRules;
use super::job::{ImageFormat, PixelSize};
use super::shape::GPT_ASYNC;
use super::size::{ListedSizes, Sizes};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "gpt-image-2.5-async",
    title: "GPT Image 2.5 (asynchronous)",
    about: "One picture from text, with receipts and records of their own shape. Poll every 3 to 5 seconds, for at most 10 minutes; to stop polling does not cancel the task.",
    models: &["gpt-image-2.5-async"],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        // SPEC.md does not mark it required, but nothing else says what to draw.
        Field::prompt("What to make."),
        Field::size("One of the pixel sizes of the table."),
        // SPEC.md shows `medium` alone; the values are the provider's.
        Field::choice(
            "quality",
            &["auto", "low", "medium", "high", "xhigh", "max"],
            "How carefully to draw.",
        )
        .or(Preset::Text("auto")),
    ],
    ignored: &[],
    sizes: Sizes::Listed(ListedSizes {
        groups: &[
            (
                "standard",
                &[
                    (1024, 1024),
                    (1536, 1024),
                    (1024, 1536),
                    (1024, 1365),
                    (1365, 1024),
                    (1088, 1920),
                    (1920, 1088),
                ],
            ),
            (
                "high resolution",
                &[
                    (2048, 2048),
                    (1712, 2560),
                    (2560, 1712),
                    (2048, 1536),
                    (1152, 2048),
                    (2048, 1152),
                    (2880, 2880),
                    (2560, 3840),
                    (3840, 2560),
                    (3840, 2880),
                    (2160, 3840),
                    (3840, 2160),
                ],
            ),
        ],
        default: PixelSize::new(1024, 1024),
    }),
    inputs: InputRules::NONE,
    output: ImageFormat::Png,
    rules: &[],
    with_facts: None,
    shape: &GPT_ASYNC,
    links: LinkLife::Usual,
    safety_review: false,
};
