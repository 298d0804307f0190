//! [`Field`]: the declaration of one request field, with its type, bounds, default and documentation.

use serde_json::Value;
use tollgate_core::ApiError;

use super::duration::Durations;

/// One field of a request body (or, within [`FieldKind::Object`], one member).
#[derive(Clone, Copy)]
pub struct Field {
    /// The field's name in requests.
    pub name: &'static str,
    /// Other names for the field.
    pub aliases: &'static [&'static str],
    /// The type and bounds of the field's value.
    pub kind: FieldKind,
    /// Whether the field may also be a member of the object `metadata`.
    pub in_metadata: bool,
    /// Whether a request without the field is rejected.
    pub required: bool,
    /// The value used if the field is absent. `None` if there is no default, the family's sizes or durations contain it, or `doc` explains it.
    pub default: Option<DefaultValue>,
    /// One or two sentences for the docs page and the JSON Schema.
    pub doc: &'static str,
}

/// The type and bounds of a field's value.
#[derive(Clone, Copy)]
pub enum FieldKind {
    /// A string.
    Text {
        /// Maximum length in Unicode scalar values. `None` if only the size of the body limits it.
        max_chars: Option<usize>,
    },
    /// One of these strings; case-sensitive.
    Choice(&'static [&'static str]),
    /// An integer within these bounds.
    Int {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
        /// Whether a number outside the bounds is clamped to them (an adjustment) instead of rejected.
        clamp: bool,
    },
    /// A number within these bounds.
    Number {
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
    },
    /// `true` or `false`.
    Flag,
    /// The duration of a video in whole seconds.
    Duration {
        /// The durations accepted.
        durations: &'static Durations,
        /// Whether the value is a string of digits; if so, a JSON integer is accepted too.
        text: bool,
    },
    /// A value of the family's `size`.
    Size,
    /// An aspect ratio of the family's sizes.
    Ratio,
    /// A resolution tier of the family's sizes; case-insensitive.
    Tier,
    /// Reference images as an array of URLs (strings, or objects with `url`), within the family's [`InputLimits`](crate::input::InputLimits).
    ImageUrls,
    /// The http or https URL of the webhook that is called when the task ends.
    WebhookUrl,
    /// One reference image in any form: URL, data URI, base64, or an object that contains one.
    Image,
    /// Reference images, each in any of those forms.
    Images,
    /// The inpainting mask.
    MaskUrl,
    /// An object of these members.
    Object(&'static [Field]),
    /// A type that only one family has.
    Custom(&'static CustomField),
}

/// The type of a [`FieldKind::Custom`] field.
pub struct CustomField {
    /// The JSON type of the value, for the docs page.
    pub json_type: &'static str,
    /// The allowed values as text, for the docs page.
    pub values: &'static str,
    /// Validates a value (not null) of the field with that name; returns the value to store in the job.
    pub(crate) parse: fn(&str, &Value) -> Result<Value, ApiError>,
    /// The JSON Schema of the value.
    pub(crate) schema: fn() -> Value,
}

/// The value of a field that the request omits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// That string.
    Text(&'static str),
    /// That number.
    Int(i64),
    /// That boolean.
    Flag(bool),
}

impl DefaultValue {
    /// The value as JSON.
    pub fn value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Int(number) => number.into(),
            Self::Flag(flag) => flag.into(),
        }
    }
}

impl Field {
    const fn new(name: &'static str, kind: FieldKind, doc: &'static str) -> Self {
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

    /// `callback_url`, the webhook URL, which every family has.
    pub const CALLBACK_URL: Self = Self::new(
        "callback_url",
        FieldKind::WebhookUrl,
        "Webhook: an http or https URL of at most 2048 bytes to which the task's record is POSTed when the task ends.",
    )
    .allowed_in_metadata();

    /// Whether `name` is one of the field's names.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The prompt of a family that requires one.
    pub const fn prompt(doc: &'static str) -> Self {
        Self::text("prompt", doc).required()
    }

    /// A string.
    pub const fn text(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, FieldKind::Text { max_chars: None }, doc)
    }

    /// One of `values`.
    pub const fn choice(
        name: &'static str,
        values: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(name, FieldKind::Choice(values), doc)
    }

    /// A whole number from `min` to `max`.
    pub const fn int(name: &'static str, min: i64, max: i64, doc: &'static str) -> Self {
        let clamp = false;
        Self::new(name, FieldKind::Int { min, max, clamp }, doc)
    }

    /// `n`, the number of images: 1 to `max`, default 1.
    pub const fn n(max: i64) -> Self {
        Self::int("n", 1, max, "Number of images to generate.").default_to(DefaultValue::Int(1))
    }

    /// A number from `min` to `max`.
    pub const fn number(name: &'static str, min: f64, max: f64, doc: &'static str) -> Self {
        Self::new(name, FieldKind::Number { min, max }, doc)
    }

    /// `seconds`, a duration as a string.
    pub const fn seconds(durations: &'static Durations) -> Self {
        let text = true;
        let doc = "Duration of the video in seconds, as a string or an integer.";
        Self::new("seconds", FieldKind::Duration { durations, text }, doc)
    }

    /// A duration as an integer.
    pub const fn duration(
        name: &'static str,
        durations: &'static Durations,
        doc: &'static str,
    ) -> Self {
        let text = false;
        Self::new(name, FieldKind::Duration { durations, text }, doc)
    }

    /// `true` or `false`.
    pub const fn flag(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, FieldKind::Flag, doc)
    }

    /// `size`.
    pub const fn size(doc: &'static str) -> Self {
        Self::new("size", FieldKind::Size, doc)
    }

    /// `resolution`, a resolution tier.
    pub const fn resolution(doc: &'static str) -> Self {
        Self::tier("resolution", doc)
    }

    /// An aspect ratio.
    pub const fn ratio(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, FieldKind::Ratio, doc)
    }

    /// A resolution tier.
    pub const fn tier(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, FieldKind::Tier, doc)
    }

    /// `image`, one reference image.
    pub const fn image(doc: &'static str) -> Self {
        Self::new("image", FieldKind::Image, doc)
    }

    /// `images`, several reference images.
    pub const fn images(doc: &'static str) -> Self {
        Self::new("images", FieldKind::Images, doc)
    }

    /// `image_urls`, reference images within the family's input limits.
    pub const fn image_urls(doc: &'static str) -> Self {
        Self::new("image_urls", FieldKind::ImageUrls, doc)
    }

    /// `mask_url`.
    pub const fn mask_url(doc: &'static str) -> Self {
        Self::new("mask_url", FieldKind::MaskUrl, doc)
    }

    /// An object of `members`.
    pub const fn object(name: &'static str, members: &'static [Field], doc: &'static str) -> Self {
        Self::new(name, FieldKind::Object(members), doc)
    }

    /// A field of a custom type.
    pub const fn custom(
        name: &'static str,
        custom: &'static CustomField,
        doc: &'static str,
    ) -> Self {
        Self::new(name, FieldKind::Custom(custom), doc)
    }

    /// The same field, required.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same field with a default.
    pub const fn default_to(mut self, default: DefaultValue) -> Self {
        self.default = Some(default);
        self
    }

    /// The same field with other names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The same field, allowed in the object `metadata` too.
    pub const fn allowed_in_metadata(mut self) -> Self {
        self.in_metadata = true;
        self
    }

    /// The same text field with a maximum length in Unicode scalar values.
    pub const fn max_chars(mut self, chars: usize) -> Self {
        self.kind = FieldKind::Text {
            max_chars: Some(chars),
        };
        self
    }

    /// The same integer field, clamped to its bounds.
    pub const fn clamped(mut self) -> Self {
        if let FieldKind::Int { min, max, .. } = self.kind {
            let clamp = true;
            self.kind = FieldKind::Int { min, max, clamp };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &str = "What it is.";
    /// A field, its expected name, and whether a kind is the expected one.
    type Declared = (Field, &'static str, fn(&FieldKind) -> bool);
    static DURATIONS: Durations = Durations::Between {
        min: 3,
        max: 9,
        default: 5,
    };
    static CUSTOM: CustomField = CustomField {
        json_type: "string",
        values: "any",
        parse: |_, value| Ok(value.clone()),
        schema: || Value::Null,
    };

    /// The compiler evaluates these constructors for the families' tables, so no other test runs them.
    #[test]
    fn each_constructor_gives_its_kind_and_name() {
        use FieldKind as Kind;
        let is_text = |field: &Field| matches!(field.kind, Kind::Text { max_chars: None });
        assert!(is_text(&Field::text("style", DOC)) && is_text(&Field::prompt(DOC)));
        let fields: [Declared; 17] = [
            (Field::choice("a", &["x", "y"], DOC), "a", |kind| {
                matches!(kind, Kind::Choice(["x", "y"]))
            }),
            (Field::int("b", 1, 5, DOC), "b", |kind| {
                matches!(
                    kind,
                    Kind::Int {
                        min: 1,
                        max: 5,
                        clamp: false
                    }
                )
            }),
            (Field::n(4), "n", |kind| {
                matches!(kind, Kind::Int { min: 1, max: 4, .. })
            }),
            (
                Field::number("c", 0.5, 2.0, DOC),
                "c",
                |kind| matches!(kind, Kind::Number { min, max } if (*min, *max) == (0.5, 2.0)),
            ),
            (Field::seconds(&DURATIONS), "seconds", |kind| {
                matches!(kind, Kind::Duration { text: true, .. })
            }),
            (
                Field::duration("duration", &DURATIONS, DOC),
                "duration",
                |kind| matches!(kind, Kind::Duration { text: false, .. }),
            ),
            (Field::flag("d", DOC), "d", |kind| {
                matches!(kind, Kind::Flag)
            }),
            (Field::size(DOC), "size", |kind| matches!(kind, Kind::Size)),
            (Field::resolution(DOC), "resolution", |kind| {
                matches!(kind, Kind::Tier)
            }),
            (Field::tier("e", DOC), "e", |kind| {
                matches!(kind, Kind::Tier)
            }),
            (Field::ratio("f", DOC), "f", |kind| {
                matches!(kind, Kind::Ratio)
            }),
            (Field::image(DOC), "image", |kind| {
                matches!(kind, Kind::Image)
            }),
            (Field::images(DOC), "images", |kind| {
                matches!(kind, Kind::Images)
            }),
            (Field::image_urls(DOC), "image_urls", |kind| {
                matches!(kind, Kind::ImageUrls)
            }),
            (Field::mask_url(DOC), "mask_url", |kind| {
                matches!(kind, Kind::MaskUrl)
            }),
            (
                Field::object("g", &[Field::CALLBACK_URL], DOC),
                "g",
                |kind| matches!(kind, Kind::Object([member]) if member.in_metadata),
            ),
            (
                Field::custom("h", &CUSTOM, DOC),
                "h",
                |kind| matches!(kind, Kind::Custom(custom) if custom.values == "any"),
            ),
        ];
        for (field, name, is_kind) in fields {
            assert!(is_kind(&field.kind), "{name}");
            assert!(field.has_name(name) && !field.has_name("other"));
            assert!(!field.required && !field.in_metadata, "{name}");
        }
    }

    #[test]
    fn rules_are_added_to_a_field() {
        let field = Field::text("style", DOC)
            .max_chars(9)
            .aliases(&["theme"])
            .default_to(DefaultValue::Text("plain"))
            .allowed_in_metadata()
            .required();
        assert!(matches!(field.kind, FieldKind::Text { max_chars: Some(9) }));
        assert!(field.has_name("style") && field.has_name("theme"));
        assert!(field.required && field.in_metadata);
        assert_eq!(field.default, Some(DefaultValue::Text("plain")));
        assert!(Field::prompt(DOC).required);
        assert_eq!(Field::n(4).default, Some(DefaultValue::Int(1)));
        let clamped = |field: Field| matches!(field.kind, FieldKind::Int { clamp: true, .. });
        assert!(clamped(Field::int("n", 1, 4, DOC).clamped()));
        assert!(!clamped(Field::flag("n", DOC).clamped()));
    }
}
