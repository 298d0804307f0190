//! Finds members in a JSON text and replaces values without rewriting the rest of it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::messages::fields::JsonString;

/// The members of an object in order, with their values as JSON text.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The value of the member `name`. `None` if it is missing or `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|member| member.0 == name);
        found
            .map(|member| member.1)
            .filter(|raw| raw.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(JsonString(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(All)
    }
}

/// The range of `part` in `document`. `part` must be a slice of `document`.
pub(crate) fn span(document: &[u8], part: &str) -> Range<usize> {
    let from = part.as_ptr() as usize - document.as_ptr() as usize;
    from..from + part.len()
}

/// The bytes with these ranges replaced. The ranges are in order and do not overlap.
pub(crate) fn apply_edits(bytes: &[u8], edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let added: usize = edits.iter().map(|edit| edit.1.len()).sum();
    let mut out = Vec::with_capacity(bytes.len() + added);
    let mut done = 0;
    for (range, text) in edits {
        out.extend_from_slice(&bytes[done..range.start]);
        out.extend_from_slice(text.as_bytes());
        done = range.end;
    }
    out.extend_from_slice(&bytes[done..]);
    out
}
