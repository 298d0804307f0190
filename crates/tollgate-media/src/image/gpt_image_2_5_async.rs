//! GPT Image 2.5 (asynchronous): `gpt-image-2.5-async`. Docs page: docs/models/gpt-image-2.5-async.md.

use super::family::Family;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::image::format::{ImageFormat, PixelSize};
use crate::image::size::{PixelList, Sizes};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::GPT_IMAGE_ASYNC;

pub(super) static FAMILY: Family = Family {
    name: "gpt-image-2.5-async",
    title: "GPT Image 2.5 (asynchronous)",
    about: "One image from text, with receipts and records in a format of their own. Poll every 3 to 5 seconds, for at most 10 minutes; stopping to poll does not cancel the task.",
    models: &["gpt-image-2.5-async"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        // Required because no other field says what to generate.
        Field::prompt("The prompt: what to generate."),
        Field::size("One of the pixel sizes of the table."),
        // The values of OpenAI's API.
        Field::choice(
            "quality",
            &["auto", "low", "medium", "high", "xhigh", "max"],
            "The rendering quality.",
        )
        .default_to(DefaultValue::Text("auto")),
    ],
    ignored: &[],
    sizes: Sizes::Listed(PixelList {
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
    input_limits: InputLimits::NONE,
    output: ImageFormat::Png,
    rules: &[],
    reference_check: None,
    response: &GPT_IMAGE_ASYNC,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
