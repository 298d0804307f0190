//! What providers that host the models of others have in common: what a model makes, by its name,
//! and the files that it makes.

use serde_json::{Value, json};

use crate::given;
use crate::made::{Film, Picture, PictureForm, Recipe, Sound, SoundForm};
use crate::pixels;
use crate::shape::{field, list_of, text_of};
use crate::tasks::Task;

/// What a model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Picture,
    Film,
    Sound,
}

impl Family {
    /// By the words in the name of a model; none if it begins with `missing`.
    pub(crate) fn named(owner: &str, rest: &str) -> Option<Self> {
        let holds = |words: &[&str]| words.iter().any(|word| rest.contains(word));
        if rest.starts_with("missing") || owner.is_empty() || rest.is_empty() {
            None
        } else if holds(&["tts", "speech", "voice"]) {
            Some(Self::Sound)
        } else if holds(&["veo", "video", "seedance", "sora", "hailuo"]) {
            Some(Self::Film)
        } else {
            Some(Self::Picture)
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Picture => "picture",
            Self::Film => "film",
            Self::Sound => "sound",
        }
    }
}

/// The fields in which models take pictures.
const PICTURES: &[&str] = &[
    "image",
    "image_url",
    "image_urls",
    "image_input",
    "input_images",
    "reference_images",
    "end_image_url",
    "last_frame",
    "last_frame_image",
];

/// The first picture of an input that is neither a link nor a data URI that holds one: its field,
/// the rule and what is wrong.
pub(crate) fn bad_picture(input: &Value) -> Option<(&'static str, given::Wrong)> {
    for name in PICTURES {
        let one = text_of(input, name);
        let many = list_of(input, name).iter().filter_map(Value::as_str);
        for text in one.into_iter().chain(many) {
            if let Err(wrong) = given::link_or_data(text) {
                return Some((name, wrong));
            }
        }
    }
    None
}

/// What is kept of a task whose model makes this of an input.
pub(crate) fn facts(family: Family, input: &Value) -> Value {
    let text = |name: &str| text_of(input, name).unwrap_or_default();
    let count = ["num_outputs", "num_images", "max_images"]
        .iter()
        .find_map(|name| field(input, name).and_then(Value::as_u64));
    let ratio = pixels::ratio(text("aspect_ratio")).unwrap_or(match text("image_size") {
        "landscape_16_9" => 16.0 / 9.0,
        "portrait_16_9" => 9.0 / 16.0,
        "landscape_4_3" => 4.0 / 3.0,
        "portrait_4_3" => 3.0 / 4.0,
        _ => 1.0,
    });
    let tier = format!("{}{}", text("resolution"), text("size"));
    let (short, side) = match tier.to_lowercase().as_str() {
        "480p" => (480, 1024),
        "1080p" => (1080, 1024),
        "2k" => (720, 2048),
        "4k" => (2160, 4096),
        _ => (720, 1024),
    };
    let own = field(input, "image_size").unwrap_or(input);
    let side_of = |name: &str| field(own, name).and_then(Value::as_u64);
    let size = match (side_of("width"), side_of("height"), family) {
        (Some(width), Some(height), _) => (width as u32, height as u32),
        (_, _, Family::Film) => pixels::with_short_side(ratio, short),
        _ => pixels::with_area(ratio, side),
    };
    let seconds = field(input, "duration").map_or(5, |value| {
        let written = value.as_str().map(|text| text.trim_end_matches('s'));
        let written = written.and_then(|text| text.parse().ok());
        value.as_u64().or(written).unwrap_or(5)
    });
    let spoken = text_of(input, "text").or(text_of(input, "prompt"));
    json!({
        "family": family.name(), "count": count.unwrap_or(1), "width": size.0, "height": size.1,
        "seconds": seconds, "format": text("output_format"), "text": spoken.unwrap_or_default(),
    })
}

/// The files of a task that has ended well: `count` of them.
pub(crate) fn recipes(task: &Task, count: usize) -> Vec<Recipe> {
    let size = (task.count("width") as u32, task.count("height") as u32);
    let numbers = task.number..task.number + count as u64;
    let form = PictureForm::named(task.fact("format")).unwrap_or(PictureForm::Jpeg);
    let recipe = |number| match task.fact("family") {
        "film" => Recipe::Film(Film {
            size,
            seconds: task.count("seconds") as u32,
            number,
        }),
        "sound" => Recipe::Sound(Sound::of(task.fact("text"), SoundForm::Mp3, 1.0)),
        _ => Recipe::Picture(Picture { form, size, number }),
    };
    numbers.map(recipe).collect()
}
