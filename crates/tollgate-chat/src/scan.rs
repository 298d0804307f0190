//! A look at JSON text without building it: readers say what they want of a place, the rest is skipped.

mod skim;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::Bad;
use skim::Skim;

/// A value that is neither list nor object.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number without fraction and exponent.
    Whole(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(Cow<'a, str>),
}

/// What a reader does with what stands at a place. What it does not ask for is skipped.
pub trait Look<'de>: Sized {
    /// A scalar stands there.
    fn scalar(self, _: Scalar<'de>) {}

    /// A list stands there.
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// An object stands there.
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Looks at a whole JSON text.
pub fn scan<'de>(body: &'de [u8], look: impl Look<'de>) -> Result<(), Bad> {
    let text = std::str::from_utf8(body).map_err(|_| Bad::body("the body must be UTF-8"))?;
    let mut json = Skim::new(text);
    let seen = At(look).deserialize(&mut json).and_then(|()| json.end());
    seen.map_err(|error| {
        // Its words say where it is, too.
        let words = serde_json::from_str::<serde_json::Value>(text).err();
        let words = words.map_or_else(|| error.to_string(), |error| error.to_string());
        Bad::body(format!("the body must be valid JSON: {words}"))
    })
}

/// Whether a text stands for itself between quotes: nothing in it has to be escaped.
pub(crate) fn is_plain(text: &str) -> bool {
    skim::plain_length(text.as_bytes()) == Some(text.len())
}

/// A value as it stands in the text.
pub struct Raw;

impl<'de> DeserializeSeed<'de> for Raw {
    type Value = &'de str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'de str, D::Error> {
        from.deserialize_newtype_struct(skim::AS_IT_STANDS, self)
    }
}

impl<'de> Visitor<'de> for Raw {
    type Value = &'de str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON as it stands")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<&'de str, E> {
        Ok(text)
    }
}

/// The next member's name.
pub fn next_key<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    object.next_key_seed(Key)
}

/// Makes a [`Look`] a seed and a visitor of serde.
pub struct At<L>(pub L);

impl<'de, L: Look<'de>> DeserializeSeed<'de> for At<L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, L: Look<'de>> Visitor<'de> for At<L> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.scalar(Scalar::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.scalar(Scalar::Flag(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.scalar(Scalar::Whole(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        // Counts beyond i64 are out of every range anyway.
        self.0
            .scalar(i64::try_from(value).map_or(Scalar::Number(value as f64), Scalar::Whole));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.scalar(Scalar::Number(value));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<(), E> {
        self.0.scalar(Scalar::Text(Cow::Borrowed(value)));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.scalar(Scalar::Text(Cow::Owned(value.to_owned())));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.object(object)
    }
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_owned()))
    }
}

/// What a scalar member must be. The words continue a sentence that begins with the member's name.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// Text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A number between these.
    Number(f64, f64),
    /// A whole number between these.
    Whole(i64, i64),
    /// An object.
    Object,
    /// A list.
    List,
}

impl Rule {
    /// What is wrong with `value`, if anything.
    pub fn check(self, field: &str, value: &Scalar<'_>) -> Option<Bad> {
        let fits = match (self, value) {
            (_, Scalar::Null) | (Self::Text, Scalar::Text(_)) | (Self::Flag, Scalar::Flag(_)) => {
                true
            }
            (Self::Number(min, max), Scalar::Number(x)) => (min..=max).contains(x),
            (Self::Number(min, max), Scalar::Whole(x)) => (min..=max).contains(&(*x as f64)),
            (Self::Whole(min, max), Scalar::Whole(x)) => (min..=max).contains(x),
            _ => false,
        };
        (!fits).then(|| self.bad(field, value))
    }

    /// The error for a value that does not fit.
    pub fn bad(self, field: &str, value: &Scalar<'_>) -> Bad {
        let got = match value {
            Scalar::Null => "null".to_owned(),
            Scalar::Flag(x) => x.to_string(),
            Scalar::Whole(x) => x.to_string(),
            Scalar::Number(x) => format!("{x:?}"),
            Scalar::Text(_) => "a string".to_owned(),
        };
        Bad::new(field, format!("must be {}, got {got}", self.words()))
    }

    /// What is allowed.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Whole(min, i64::MAX) => format!("a whole number of at least {min}"),
            Self::Whole(i64::MIN, _) => "a whole number".to_owned(),
            Self::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Self::Object => "an object".to_owned(),
            Self::List => "a list".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_what_is_allowed() {
        let bad = |rule: Rule, value: Scalar<'_>| rule.check("n", &value).map(|bad| bad.message);
        assert_eq!(bad(Rule::Whole(1, 8), Scalar::Whole(8)), None);
        assert_eq!(bad(Rule::Number(0.0, 2.0), Scalar::Whole(2)), None);
        assert_eq!(bad(Rule::Flag, Scalar::Null), None);
        assert_eq!(
            bad(Rule::Whole(1, 8), Scalar::Number(1.0)).as_deref(),
            Some("`n` must be a whole number from 1 to 8, got 1.0")
        );
        assert_eq!(
            bad(Rule::Number(0.0, 2.0), Scalar::Text("1".into())).as_deref(),
            Some("`n` must be a number from 0 to 2, got a string")
        );
    }
}
