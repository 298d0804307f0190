//! Veo 3.1: `veo-3.1-flash` and `veo-3.1-pro`. Docs page: docs/models/veo-3.1.md.

use tollgate_core::ApiError;

use super::family::Family;
use super::rules::duration_field;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::duration::Durations;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::row;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

static DURATIONS: Durations = Durations::Listed {
    values: &[4, 6, 8],
    default: 8,
};
/// The only duration of videos above 720p, in seconds.
const FULL_LENGTH: i64 = 8;
const FORMATS: &[ImageFormat] = &[ImageFormat::Jpeg, ImageFormat::Png];

const METADATA: &[Field] = &[
    Field::duration(
        "durationSeconds",
        &DURATIONS,
        "Takes precedence over `seconds` and `duration`.",
    ),
    Field::ratio(
        "aspectRatio",
        "Takes precedence over `aspect_ratio` and `size`.",
    ),
    Field::tier(
        "resolution",
        "Takes precedence over the top-level `resolution` and `size`.",
    ),
    Field::text("negativePrompt", "What the result must not show."),
    Field::choice(
        "personGeneration",
        &["allow_all", "allow_adult", "dont_allow"],
        "Which people may appear. Default: the provider's rule.",
    ),
    Field::int(
        "seed",
        0,
        4_294_967_295,
        "The same seed and parameters give similar results, if the channel supports it.",
    ),
    Field::flag(
        "generateAudio",
        "Whether the video has audio, if the channel supports the choice.",
    )
    .default_to(DefaultValue::Flag(true)),
];

pub(super) static FAMILY: Family = Family {
    name: "veo-3.1",
    title: "Veo 3.1",
    about: "Videos of 4, 6 or 8 seconds with audio, up to 4k, from text or from one image.",
    models: &["veo-3.1-flash", "veo-3.1-pro"],
    fields: &[
        Field::prompt("The prompt: content, motion, camera and style."),
        Field::image("The first frame.").aliases(&["input_reference"]),
        Field::images("The same as `image`, as a list. Only the first image is used."),
        Field::seconds(&DURATIONS),
        Field::duration(
            "duration",
            &DURATIONS,
            "The same as `seconds`, as an integer.",
        ),
        Field::size("The pixel size."),
        Field::ratio("aspect_ratio", "The aspect ratio, instead of `size`."),
        Field::resolution("The resolution tier, instead of `size`."),
        Field::object("metadata", METADATA, "Parameters of the provider."),
    ],
    ignored: &[
        ("negative_prompt", "send `metadata.negativePrompt`"),
        ("seed", "send `metadata.seed`"),
        ("generate_audio", "send `metadata.generateAudio`"),
        ("metadata.generate_audio", "send `metadata.generateAudio`"),
    ],
    durations: &DURATIONS,
    sizes: FrameSizes {
        tiers: &["720p", "1080p", "4k"],
        default_tier: 0,
        rows: &[
            row("16:9", &[(1280, 720), (1920, 1080), (3840, 2160)]),
            row("9:16", &[(720, 1280), (1080, 1920), (2160, 3840)]),
        ],
        default_ratio: "16:9",
        follow: FollowFirstFrame::Never,
    },
    frames: 1,
    input_limits: InputLimits {
        formats: FORMATS,
        data_uris: FORMATS,
        first_only: true,
        ..InputLimits::DEFAULT
    },
    rules: &[Rule {
        text: "The duration must be 8 seconds at 1080p and 4k.",
        apply: |draft| {
            let tier = draft.text("resolution").unwrap_or_default();
            match draft.int("seconds") {
                Some(seconds) if tier != "720p" && seconds != FULL_LENGTH => {
                    Err(ApiError::invalid(format!(
                        "`{}` must be {FULL_LENGTH} at {tier}, got {seconds}",
                        duration_field(draft)
                    )))
                }
                _ => Ok(()),
            }
        },
    }],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
