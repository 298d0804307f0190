//! Shapes of JSON as tables: which fields an object may have and what they hold. What does not fit
//! is a [`Flaw`], which each provider puts into its own words.

use serde_json::Value;

use crate::place::{Place, Style, camel};

/// What a value may be. `null` stands for an absent field everywhere.
#[derive(Debug)]
pub(crate) enum Kind {
    Any,
    Bool,
    Str,
    /// A string of at most so many characters.
    Text(usize),
    Int(i64, i64),
    Num(f64, f64),
    OneOf(&'static [&'static str]),
    Object,
    Array,
    Shape(&'static Shape),
    List(&'static Kind),
    /// A list of at most so many.
    Few(usize, &'static Kind),
    /// The first alternative of the value's JSON type decides.
    Either(&'static [Kind]),
}

/// What an object may hold.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) fields: &'static [(&'static str, Kind)],
    pub(crate) required: &'static [&'static str],
}

/// What does not fit, and where.
#[derive(Debug)]
pub(crate) struct Flaw {
    pub(crate) place: Place,
    pub(crate) what: What,
}

/// The ways in which a value does not fit.
#[derive(Debug)]
pub(crate) enum What {
    /// The field is not known; its name.
    Unknown(String),
    Missing,
    /// What was expected, and what came.
    Type(&'static str, &'static str),
    Below(f64),
    Above(f64),
    NotOneOf(&'static [&'static str], String),
    TooLong(usize, usize),
    TooMany(usize, usize),
}

pub(crate) type Fit = Result<(), Flaw>;

impl Shape {
    pub(crate) fn check(&self, value: &Value, place: &Place) -> Fit {
        let Some(object) = value.as_object() else {
            return wrong_type("an object", value, place);
        };
        for (key, value) in object {
            match self.find(key, place.style) {
                Some(kind) => kind.check(value, &place.field(key))?,
                None => {
                    let what = What::Unknown(key.clone());
                    let place = place.clone();
                    return Err(Flaw { place, what });
                }
            }
        }
        for name in self.required {
            if field(value, name).is_none() {
                let what = What::Missing;
                let place = place.field(name);
                return Err(Flaw { place, what });
            }
        }
        Ok(())
    }

    fn find(&self, key: &str, style: Style) -> Option<&Kind> {
        let known = |key: &str| self.fields.iter().find(|(name, _)| *name == key);
        let found = known(key).or_else(|| match style {
            Style::Snake if key.contains('_') => known(&camel(key)),
            _ => None,
        });
        found.map(|(_, kind)| kind)
    }
}

impl Kind {
    pub(crate) fn check(&self, value: &Value, place: &Place) -> Fit {
        if value.is_null() {
            return Ok(());
        }
        match self {
            Self::Any => Ok(()),
            Self::Text(most) => text(value, *most, place),
            Self::Int(low, high) => {
                let whole = whole(value, place.style);
                whole.map_or_else(
                    || wrong_type("an integer", value, place),
                    |n| range(n as f64, *low as f64, *high as f64, place),
                )
            }
            Self::Num(low, high) => value.as_f64().map_or_else(
                || wrong_type("a decimal", value, place),
                |n| range(n, *low, *high, place),
            ),
            Self::OneOf(names) => one_of(value, names, place),
            Self::Shape(shape) => shape.check(value, place),
            Self::List(kind) => list(value, kind, place),
            Self::Few(most, kind) => {
                list(value, kind, place)?;
                let count = value.as_array().map_or(0, Vec::len);
                let what = What::TooMany(*most, count);
                let place = place.clone();
                (count <= *most).then_some(()).ok_or(Flaw { place, what })
            }
            Self::Either(kinds) => {
                let fits = kinds.iter().find(|kind| kind.takes(value));
                fits.map_or_else(
                    || wrong_type(kinds[0].expects(), value, place),
                    |kind| kind.check(value, place),
                )
            }
            Self::Bool | Self::Str | Self::Object | Self::Array => {
                if self.takes(value) {
                    Ok(())
                } else {
                    wrong_type(self.expects(), value, place)
                }
            }
        }
    }

    /// Whether the value has the JSON type that this kind wants.
    fn takes(&self, value: &Value) -> bool {
        match self {
            Self::Any | Self::Either(_) => true,
            Self::Bool => value.is_boolean(),
            Self::Str | Self::Text(_) | Self::OneOf(_) => value.is_string(),
            Self::Int(..) | Self::Num(..) => value.is_number(),
            Self::Object | Self::Shape(_) => value.is_object(),
            Self::Array | Self::List(_) | Self::Few(..) => value.is_array(),
        }
    }

    fn expects(&self) -> &'static str {
        match self {
            Self::Any | Self::Either(_) => "a value",
            Self::Bool => "a boolean",
            Self::Str | Self::Text(_) | Self::OneOf(_) => "a string",
            Self::Int(..) => "an integer",
            Self::Num(..) => "a decimal",
            Self::Object | Self::Shape(_) => "an object",
            Self::Array | Self::List(_) | Self::Few(..) => "an array",
        }
    }
}

fn list(value: &Value, kind: &Kind, place: &Place) -> Fit {
    let Some(list) = value.as_array() else {
        return wrong_type("an array", value, place);
    };
    let mut each = list.iter().enumerate();
    each.try_for_each(|(at, value)| kind.check(value, &place.at(at)))
}

fn text(value: &Value, most: usize, place: &Place) -> Fit {
    let Some(text) = value.as_str() else {
        return wrong_type("a string", value, place);
    };
    let long = text.chars().count();
    let what = What::TooLong(most, long);
    let place = place.clone();
    (long <= most).then_some(()).ok_or(Flaw { place, what })
}

fn one_of(value: &Value, names: &'static [&'static str], place: &Place) -> Fit {
    let Some(text) = value.as_str() else {
        return wrong_type("a string", value, place);
    };
    let what = What::NotOneOf(names, text.to_owned());
    let place = place.clone();
    names
        .contains(&text)
        .then_some(())
        .ok_or(Flaw { place, what })
}

fn range(n: f64, low: f64, high: f64, place: &Place) -> Fit {
    let what = if n < low {
        What::Below(low)
    } else if n > high {
        What::Above(high)
    } else {
        return Ok(());
    };
    let place = place.clone();
    Err(Flaw { place, what })
}

/// An integer; where the style allows it, also one that is written as 40.0.
fn whole(value: &Value, style: Style) -> Option<i64> {
    let round = |n: f64| (style == Style::Snake && n.fract() == 0.0).then_some(n as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(round))
}

fn wrong_type(expected: &'static str, value: &Value, place: &Place) -> Fit {
    let what = What::Type(expected, type_of(value));
    let place = place.clone();
    Err(Flaw { place, what })
}

/// What a value is, with its article.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(n) if n.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A field that is there and not null.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let found = value.get(name).or_else(|| {
        let mixed = name.bytes().any(|b| b.is_ascii_uppercase());
        mixed
            .then(|| value.get(crate::place::snake(name)))
            .flatten()
    });
    found.filter(|found| !found.is_null())
}

/// The text of a field, if it is one.
pub(crate) fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    field(value, name).and_then(Value::as_str)
}

/// The list of a field; none is an empty one.
pub(crate) fn list_of<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = field(value, name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

impl Flaw {
    /// The name of the rule that is broken.
    pub(crate) fn rule(&self) -> &'static str {
        match self.what {
            What::Unknown(_) => "unknown-field",
            What::Missing => "missing-field",
            What::Type(..) => "type",
            What::Below(_) | What::Above(_) => "range",
            What::NotOneOf(..) => "value",
            What::TooLong(..) => "length",
            What::TooMany(..) => "too-many",
        }
    }

    /// The field that is meant, also if it is one that is not known.
    pub(crate) fn field(&self) -> String {
        match &self.what {
            What::Unknown(name) => self.place.field(name).write(),
            _ => self.place.write(),
        }
    }

    /// What is wrong, for providers whose own words are not known.
    pub(crate) fn says(&self) -> String {
        let field = self.field();
        match &self.what {
            What::Unknown(_) => format!("unknown field `{field}`"),
            What::Missing => format!("missing field `{field}`"),
            What::Type(expected, given) => {
                format!("`{field}` must be {expected}, but {given} was given")
            }
            What::Below(bound) => format!("`{field}` must be at least {bound}"),
            What::Above(bound) => format!("`{field}` must be at most {bound}"),
            What::NotOneOf(names, given) => {
                format!("`{field}` must be one of {}, not {given}", names.join(", "))
            }
            What::TooLong(most, long) => {
                format!("`{field}` has {long} characters, at most {most} are allowed")
            }
            What::TooMany(most, many) => {
                format!("`{field}` has {many} entries, at most {most} are allowed")
            }
        }
    }
}
