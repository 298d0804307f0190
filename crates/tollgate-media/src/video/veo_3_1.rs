//! veo-3.1-flash and veo-3.1-pro (SPEC.md › Video generation; the values are the provider's).

use tollgate_core::ApiError;

use super::family::Family;
use super::read::length_field;
use super::size::{Follow, FrameSizes};
use crate::LinkLife;
use crate::form::Rule;
use crate::form::field::{Field, Preset};
use crate::form::length::Lengths;
use crate::image::ImageFormat;
use crate::image::size::row;
use crate::input::InputRules;

static LENGTHS: Lengths = Lengths::Listed {
    values: &[4, 6, 8],
    default: 8,
};
/// The only length of films above 720p.
const FULL_LENGTH: i64 = 8;
const FORMATS: &[ImageFormat] = &[ImageFormat::Jpeg, ImageFormat::Png];

const METADATA: &[Field] = &[
    Field::length(
        "durationSeconds",
        &LENGTHS,
        "Wins over `seconds` and `duration`.",
    ),
    Field::ratio("aspectRatio", "Wins over `aspect_ratio` and `size`."),
    Field::tier(
        "resolution",
        "Wins over the `resolution` beside it and `size`.",
    ),
    Field::text("negativePrompt", "What to avoid."),
    Field::choice(
        "personGeneration",
        &["allow_all", "allow_adult", "dont_allow"],
        "Which people may appear; the provider's own rule by default.",
    ),
    Field::int(
        "seed",
        0,
        4_294_967_295,
        "The same seed and parameters give similar results, where the channel takes it.",
    ),
    Field::flag(
        "generateAudio",
        "Whether the film has sound, where the channel can choose.",
    )
    .or(Preset::Flag(true)),
];

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "veo-3.1",
    title: "Veo 3.1",
    about: "Films of 4, 6 or 8 seconds with sound, up to 4k, from text or from one image.",
    models: &["veo-3.1-flash", "veo-3.1-pro"],
    fields: &[
        Field::prompt("Content, motion, camera and style."),
        Field::picture("The first frame.").also(&["input_reference"]),
        Field::pictures("The same as a list. Only the first is used."),
        Field::seconds(&LENGTHS),
        Field::length("duration", &LENGTHS, "The same as a number."),
        Field::size("The frame, as pixels."),
        Field::ratio("aspect_ratio", "The frame's ratio, in place of `size`."),
        Field::resolution("The tier, in place of `size`."),
        Field::object("metadata", METADATA, "The provider's own parameters."),
    ],
    ignored: &[
        (
            "negative_prompt",
            "this model reads `metadata.negativePrompt`",
        ),
        ("seed", "this model reads `metadata.seed`"),
        (
            "generate_audio",
            "this model reads `metadata.generateAudio`",
        ),
        (
            "metadata.generate_audio",
            "this model reads `metadata.generateAudio`",
        ),
    ],
    lengths: &LENGTHS,
    sizes: FrameSizes {
        tiers: &["720p", "1080p", "4k"],
        default_tier: 0,
        rows: &[
            row("16:9", &[(1280, 720), (1920, 1080), (3840, 2160)]),
            row("9:16", &[(720, 1280), (1080, 1920), (2160, 3840)]),
        ],
        default_ratio: "16:9",
        follow: Follow::Never,
    },
    frames: 1,
    inputs: InputRules {
        formats: FORMATS,
        data_uris: FORMATS,
        only_first: true,
        ..InputRules::SANE
    },
    rules: &[Rule {
        text: "Films at 1080p and 4k last 8 seconds.",
        apply: |draft| {
            let tier = draft.text("resolution").unwrap_or_default();
            match draft.int("seconds") {
                Some(seconds) if tier != "720p" && seconds != FULL_LENGTH => {
                    Err(ApiError::invalid(format!(
                        "`{}` must be {FULL_LENGTH} at {tier}, got {seconds}",
                        length_field(draft)
                    )))
                }
                _ => Ok(()),
            }
        },
    }],
    links: LinkLife::Usual,
    safety_review: false,
};
