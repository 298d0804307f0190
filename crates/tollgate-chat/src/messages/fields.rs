//! Reads and writes members of JSON objects. Errors name the JSON path of a member. Members that are not read are kept as the format's extra fields.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::constants::NAME;
use crate::error::InvalidRequest;
use crate::hub::ExtraFields;

/// A JSON path. It is formatted only if there is an error.
#[derive(Debug, Clone, Copy)]
pub(super) enum JsonPath<'a> {
    /// The body.
    Root,
    /// A member of an object.
    Member(&'a JsonPath<'a>, &'a str),
    /// An item of a list.
    Item(&'a JsonPath<'a>, usize),
}

impl JsonPath<'_> {
    /// An error about the value at this path; `why` continues a sentence that begins with the path.
    pub(super) fn invalid(&self, why: impl AsRef<str>) -> InvalidRequest {
        match self {
            JsonPath::Root => InvalidRequest::body(format!("the body {}", why.as_ref())),
            _ => InvalidRequest::new(self.to_string(), why),
        }
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPath::Root => Ok(()),
            JsonPath::Member(JsonPath::Root, name) => f.write_str(name),
            JsonPath::Member(parent, name) => write!(f, "{parent}.{name}"),
            JsonPath::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The members of one object. `null` counts as absent.
#[derive(Debug)]
pub(super) struct Fields<'p> {
    path: &'p JsonPath<'p>,
    members: Map<String, Value>,
}

impl<'p> Fields<'p> {
    /// The members of `value`, which must be an object.
    pub(super) fn from_value(value: Value, path: &'p JsonPath<'p>) -> Result<Self, InvalidRequest> {
        match value {
            Value::Object(members) => Ok(Self { path, members }),
            _ => Err(path.invalid("must be an object")),
        }
    }

    /// An error about the member `name`.
    pub(super) fn invalid(&self, name: &str, why: impl AsRef<str>) -> InvalidRequest {
        JsonPath::Member(self.path, name).invalid(why)
    }

    /// Takes a member. `None` if it is missing or `null`.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members
            .shift_remove(name)
            .filter(|value| !value.is_null())
    }

    /// Takes an optional string.
    pub(super) fn take_text(&mut self, name: &str) -> Result<Option<String>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "must be a string")),
        }
    }

    /// Takes a required string.
    pub(super) fn require_text(&mut self, name: &str) -> Result<String, InvalidRequest> {
        let text = self.take_text(name)?;
        text.ok_or_else(|| self.invalid(name, "is required and must be a string"))
    }

    /// Takes a required string that is not blank.
    pub(super) fn require_name(&mut self, name: &str) -> Result<String, InvalidRequest> {
        let text = self.take_text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.invalid(name, "is required and must be a string that is not empty"))
    }

    /// Takes an optional boolean.
    pub(super) fn take_flag(&mut self, name: &str) -> Result<Option<bool>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.invalid(name, "must be true or false")),
        }
    }

    /// Takes an optional list.
    pub(super) fn take_list(&mut self, name: &str) -> Result<Option<Vec<Value>>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.invalid(name, "must be a list")),
        }
    }

    /// Inserts a member.
    pub(super) fn insert(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    /// The object of the remaining members.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.members)
    }

    /// The members that were not taken.
    pub(super) fn into_extra(mut self) -> ExtraFields {
        self.members.retain(|_, value| !value.is_null());
        ExtraFields::new(NAME, self.members)
    }
}

/// Adds the extra fields of this format to `into`, except notes such as `.name`.
pub(super) fn write_extra_fields(extra: &ExtraFields, into: &mut Map<String, Value>) {
    let members = extra.for_format(NAME).into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| !name.starts_with('.')) {
        into.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// A JSON string, borrowed if it has no escapes. (Serde borrows in plain [`Cow`] members only.)
#[derive(Debug, Deserialize)]
pub(super) struct JsonString<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Deref for JsonString<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
