//! The words in which a family declares its request fields.

use serde_json::Value;
use tollgate_core::ApiError;

use super::length::Lengths;

/// One field of a request body (or, within [`Kind::Object`], one member).
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name in SPEC.md.
    pub name: &'static str,
    /// Other names that are read as this one.
    pub aliases: &'static [&'static str],
    /// What it may hold.
    pub kind: Kind,
    /// Whether it may stand in the object `metadata` too, under its name.
    pub in_metadata: bool,
    /// Whether a request without it is refused.
    pub required: bool,
    /// What its absence means. None: nothing, or what `doc` says.
    pub default: Option<Preset>,
    /// One or two sentences for a caller.
    pub doc: &'static str,
}

/// What a field may hold.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A string, at most that many Unicode scalar values long.
    Text {
        /// None: only the body's limit.
        max_chars: Option<usize>,
    },
    /// One of these strings, as written.
    Choice(&'static [&'static str]),
    /// A whole number within these bounds.
    Int {
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
        /// Whether a number outside becomes the nearest one inside (an adjustment), not an error.
        clamp: bool,
    },
    /// A number within these bounds.
    Number {
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// `true` or `false`.
    Flag,
    /// How long a film lasts, in whole seconds.
    Length {
        /// The lengths there are.
        lengths: &'static Lengths,
        /// Whether it is written as a string of digits; a JSON integer is taken too then.
        text: bool,
    },
    /// A size of the family's sizes.
    Size,
    /// A ratio of the family's sizes.
    Ratio,
    /// A tier of the family's sizes, read without regard to case.
    Tier,
    /// Reference images as an array of URL strings, within the family's [`InputRules`](crate::input::InputRules).
    References,
    /// The http or https URL that is told of the task's end.
    Callback,
    /// One reference image in any form: URL, data URI, base64, or an object that holds one.
    Picture,
    /// Reference images, each in any of those forms.
    Pictures,
    /// The inpainting mask.
    Mask,
    /// An object of these members.
    Object(&'static [Field]),
    /// What only one family has.
    Special(&'static Special),
}

/// A field that no other kind describes.
pub struct Special {
    /// The JSON type of its value, for the documents.
    pub json_type: &'static str,
    /// What it holds, in words.
    pub what: &'static str,
    /// Checks a value (not null) of the field of that name and returns what the job keeps.
    pub(crate) read: fn(&str, &Value) -> Result<Value, ApiError>,
    /// Its JSON Schema.
    pub(crate) schema: fn() -> Value,
}

/// What a field's absence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// That string.
    Text(&'static str),
    /// That number.
    Int(i64),
    /// That truth value.
    Flag(bool),
}

impl Preset {
    /// As JSON.
    pub fn value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Int(number) => number.into(),
            Self::Flag(flag) => flag.into(),
        }
    }
}

impl Field {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            kind,
            in_metadata: false,
            required: false,
            default: None,
            doc,
        }
    }

    /// `callback_url`, which every family takes.
    pub const CALLBACK: Self = Self::new(
        "callback_url",
        Kind::Callback,
        "An http or https URL of at most 2048 bytes: the task's record is POSTed there when the task ends.",
    )
    .or_in_metadata();

    /// Whether `name` is one of its names.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The prompt of a family that requires one.
    pub const fn prompt(doc: &'static str) -> Self {
        Self::text("prompt", doc).required()
    }

    /// A string.
    pub const fn text(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Text { max_chars: None }, doc)
    }

    /// One of `values`.
    pub const fn choice(
        name: &'static str,
        values: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(values), doc)
    }

    /// A whole number from `min` to `max`.
    pub const fn int(name: &'static str, min: i64, max: i64, doc: &'static str) -> Self {
        let clamp = false;
        Self::new(name, Kind::Int { min, max, clamp }, doc)
    }

    /// `n`, how many pictures: 1 to `max`, 1 by default.
    pub const fn n(max: i64) -> Self {
        Self::int("n", 1, max, "How many pictures to make.").or(Preset::Int(1))
    }

    /// A number from `min` to `max`.
    pub const fn number(name: &'static str, min: f64, max: f64, doc: &'static str) -> Self {
        Self::new(name, Kind::Number { min, max }, doc)
    }

    /// `seconds`, a length as a string.
    pub const fn seconds(lengths: &'static Lengths) -> Self {
        let text = true;
        let doc = "How long the film lasts, in seconds; a string, or a JSON integer.";
        Self::new("seconds", Kind::Length { lengths, text }, doc)
    }

    /// A length as a number.
    pub const fn length(name: &'static str, lengths: &'static Lengths, doc: &'static str) -> Self {
        let text = false;
        Self::new(name, Kind::Length { lengths, text }, doc)
    }

    /// `true` or `false`.
    pub const fn flag(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Flag, doc)
    }

    /// `size`, as the family's sizes say.
    pub const fn size(doc: &'static str) -> Self {
        Self::new("size", Kind::Size, doc)
    }

    /// `resolution`, as the family's tiers say.
    pub const fn resolution(doc: &'static str) -> Self {
        Self::tier("resolution", doc)
    }

    /// A ratio of the family's sizes.
    pub const fn ratio(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Ratio, doc)
    }

    /// A tier of the family's sizes.
    pub const fn tier(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Kind::Tier, doc)
    }

    /// `image`, one reference image.
    pub const fn picture(doc: &'static str) -> Self {
        Self::new("image", Kind::Picture, doc)
    }

    /// `images`, any number of them.
    pub const fn pictures(doc: &'static str) -> Self {
        Self::new("images", Kind::Pictures, doc)
    }

    /// `image_urls`, as the family's input rules say.
    pub const fn references(doc: &'static str) -> Self {
        Self::new("image_urls", Kind::References, doc)
    }

    /// `mask_url`.
    pub const fn mask(doc: &'static str) -> Self {
        Self::new("mask_url", Kind::Mask, doc)
    }

    /// An object of `members`.
    pub const fn object(name: &'static str, members: &'static [Field], doc: &'static str) -> Self {
        Self::new(name, Kind::Object(members), doc)
    }

    /// A field of a kind of its own.
    pub const fn special(name: &'static str, special: &'static Special, doc: &'static str) -> Self {
        Self::new(name, Kind::Special(special), doc)
    }

    /// The same field, required.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same field with a default.
    pub const fn or(mut self, default: Preset) -> Self {
        self.default = Some(default);
        self
    }

    /// The same field under further names.
    pub const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The same field, which may stand in the object `metadata` too.
    pub const fn or_in_metadata(mut self) -> Self {
        self.in_metadata = true;
        self
    }

    /// The same text field with a greatest length in characters.
    pub const fn at_most(mut self, chars: usize) -> Self {
        self.kind = Kind::Text {
            max_chars: Some(chars),
        };
        self
    }

    /// The same number field, numbers outside its range becoming the nearest inside.
    pub const fn clamped(mut self) -> Self {
        if let Kind::Int { min, max, .. } = self.kind {
            let clamp = true;
            self.kind = Kind::Int { min, max, clamp };
        }
        self
    }
}
