//! Grok Imagine Video: `grok-imagine-video-1.5`. Docs page: docs/models/grok-imagine-video.md.

use tollgate_core::ApiError;

use super::family::Family;
use super::rules::{duration_field, tier_field};
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::row;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

static DURATIONS: Durations = Durations::Between {
    min: 1,
    max: 15,
    default: 6,
};
/// The longest video with references, in seconds.
const MAX_WITH_REFERENCES: i64 = 10;
const FORMATS: &[ImageFormat] = &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp];

pub(super) static FAMILY: Family = Family {
    name: "grok-imagine-video",
    title: "Grok Imagine Video 1.5",
    about: "Videos of 1 to 15 seconds up to 1080p, from text, from one image as the first frame, or with up to 7 images as references.",
    models: &["grok-imagine-video-1.5"],
    fields: &[
        Field::prompt("The prompt: content, motion, camera and style."),
        Field::image("The first frame.").aliases(&["input_reference"]),
        Field::images("One: the first frame. Several: references."),
        Field::seconds(&DURATIONS),
        Field::duration(
            "duration",
            &DURATIONS,
            "The same as `seconds`, as an integer.",
        ),
        Field::size("The pixel size."),
        Field::ratio("aspect_ratio", "The aspect ratio, instead of `size`."),
        Field::resolution("The resolution tier, instead of `size`."),
    ],
    ignored: &[],
    durations: &DURATIONS,
    // The provider documents ratios and lines; the long side is computed from the ratio and rounded to an even number.
    sizes: FrameSizes {
        tiers: &["480p", "720p", "1080p"],
        default_tier: 0,
        rows: &[
            row("16:9", &[(854, 480), (1280, 720), (1920, 1080)]),
            row("9:16", &[(480, 854), (720, 1280), (1080, 1920)]),
            row("1:1", &[(480, 480), (720, 720), (1080, 1080)]),
            row("4:3", &[(640, 480), (960, 720), (1440, 1080)]),
            row("3:4", &[(480, 640), (720, 960), (1080, 1440)]),
            row("3:2", &[(720, 480), (1080, 720), (1620, 1080)]),
            row("2:3", &[(480, 720), (720, 1080), (1080, 1620)]),
        ],
        default_ratio: "16:9",
        follow: FollowFirstFrame::ByDefault,
    },
    frames: 1,
    input_limits: InputLimits {
        max_count: 7,
        formats: FORMATS,
        data_uris: FORMATS,
        ..InputLimits::DEFAULT
    },
    rules: &[Rule {
        text: "With several images, the duration is at most 10 seconds and the resolution 480p or 720p.",
        apply: |draft| {
            let count = draft.references();
            if count < 2 {
                return Ok(());
            }
            let seconds = draft.int("seconds").unwrap_or_default();
            if seconds > MAX_WITH_REFERENCES {
                return Err(ApiError::invalid(format!(
                    "`{}` must be at most {MAX_WITH_REFERENCES} with several images, got {seconds} and {count} images",
                    duration_field(draft)
                )));
            }
            if draft.text("resolution") == Some("1080p") {
                return Err(ApiError::invalid(format!(
                    "`{}` must be 480p or 720p with several images, got 1080p and {count} images",
                    tier_field(draft)
                )));
            }
            Ok(())
        },
    }],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
