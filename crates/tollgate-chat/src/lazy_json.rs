//! Lazy JSON reading: visitors read the fields that they need from JSON text, everything else is skipped without allocations.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::InvalidRequest;

/// A JSON value that is neither an array nor an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction and exponent.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
}

/// Receives a JSON value. Kinds of values for which an implementation defines no method are skipped.
pub trait LazyVisitor<'de>: Sized {
    /// Called if the value is a scalar.
    fn visit_scalar(self, _: Scalar<'de>) {}

    /// Called if the value is an array.
    fn visit_array<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// Called if the value is an object.
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Visits a complete JSON text. The error names what is invalid and where.
pub fn visit_json<'de>(
    body: &'de [u8],
    visitor: impl LazyVisitor<'de>,
) -> Result<(), InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body must be UTF-8"))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let result = VisitWith(visitor)
        .deserialize(&mut json)
        .and_then(|()| json.end());
    result.map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))
}

/// Whether `text` contains no character that must be escaped in a JSON string.
pub(crate) fn needs_no_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Without an early exit, so that the compiler can vectorise it.
    let has_control = bytes
        .iter()
        .fold(false, |found, byte| found | (*byte < 0x20));
    !has_control && memchr::memchr2(b'"', b'\\', bytes).is_none()
}

/// A deserialization seed that returns a value as it is written in the JSON text.
pub struct RawJson;

impl<'de> DeserializeSeed<'de> for RawJson {
    type Value = &'de str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'de str, D::Error> {
        <&RawValue>::deserialize(from).map(RawValue::get)
    }
}

/// The next member's name.
pub fn next_key<'de, A: MapAccess<'de>>(object: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    object.next_key_seed(Key)
}

/// Adapts a [`LazyVisitor`] to serde's seed and visitor.
pub struct VisitWith<V>(pub V);

impl<'de, V: LazyVisitor<'de>> DeserializeSeed<'de> for VisitWith<V> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, V: LazyVisitor<'de>> Visitor<'de> for VisitWith<V> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.visit_scalar(Scalar::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.visit_scalar(Scalar::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.visit_scalar(Scalar::Integer(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        // No field accepts integers beyond i64.
        self.0.visit_scalar(
            i64::try_from(value).map_or(Scalar::Float(value as f64), Scalar::Integer),
        );
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.visit_scalar(Scalar::Float(value));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<(), E> {
        self.0.visit_scalar(Scalar::String(Cow::Borrowed(value)));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0
            .visit_scalar(Scalar::String(Cow::Owned(value.to_owned())));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<(), A::Error> {
        self.0.visit_array(array)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.visit_object(object)
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

/// The type and range that a field must have.
#[derive(Debug, Clone, Copy)]
pub enum FieldRule {
    /// A string.
    String,
    /// `true` or `false`.
    Bool,
    /// A number from the first to the second, inclusive.
    Number(f64, f64),
    /// An integer from the first to the second, inclusive.
    Integer(i64, i64),
    /// An object.
    Object,
    /// An array.
    Array,
}

impl FieldRule {
    /// Returns an error if `value` breaks the rule. `null` is always valid: it counts as absent.
    pub fn check(self, field: &str, value: &Scalar<'_>) -> Option<InvalidRequest> {
        let fits = match (self, value) {
            (_, Scalar::Null)
            | (Self::String, Scalar::String(_))
            | (Self::Bool, Scalar::Bool(_)) => true,
            (Self::Number(min, max), Scalar::Float(x)) => (min..=max).contains(x),
            (Self::Number(min, max), Scalar::Integer(x)) => (min..=max).contains(&(*x as f64)),
            (Self::Integer(min, max), Scalar::Integer(x)) => (min..=max).contains(x),
            _ => false,
        };
        (!fits).then(|| self.error(field, value))
    }

    /// The error for a value that breaks the rule.
    pub fn error(self, field: &str, value: &Scalar<'_>) -> InvalidRequest {
        let got = match value {
            Scalar::Null => "null".to_owned(),
            Scalar::Bool(x) => x.to_string(),
            Scalar::Integer(x) => x.to_string(),
            Scalar::Float(x) => format!("{x:?}"),
            Scalar::String(_) => "a string".to_owned(),
        };
        InvalidRequest::new(field, format!("must be {}, got {got}", self.description()))
    }

    /// The allowed values, as the end of a sentence "must be …".
    pub fn description(self) -> String {
        match self {
            Self::String => "a string".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Integer(min, i64::MAX) => format!("a whole number of at least {min}"),
            Self::Integer(i64::MIN, _) => "a whole number".to_owned(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Object => "an object".to_owned(),
            Self::Array => "a list".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_state_the_allowed_range_and_the_value() {
        let message =
            |rule: FieldRule, value: Scalar<'_>| rule.check("n", &value).map(|error| error.message);
        assert_eq!(message(FieldRule::Integer(1, 8), Scalar::Integer(8)), None);
        assert_eq!(
            message(FieldRule::Number(0.0, 2.0), Scalar::Integer(2)),
            None
        );
        assert_eq!(message(FieldRule::Bool, Scalar::Null), None);
        assert_eq!(
            message(FieldRule::Integer(1, 8), Scalar::Float(1.0)).as_deref(),
            Some("`n` must be a whole number from 1 to 8, got 1.0")
        );
        assert_eq!(
            message(FieldRule::Number(0.0, 2.0), Scalar::String("1".into())).as_deref(),
            Some("`n` must be a number from 0 to 2, got a string")
        );
    }
}
