//! Reads JSON objects member by member: names in lowerCamelCase or snake_case, `null` as absent, errors with the member's path. Members that remain
//! after all known ones are taken are kept as this format's extra fields.

use serde_json::{Map, Value};

use crate::error::InvalidRequest;

/// A JSON object and its path in the body.
pub(crate) struct Fields {
    members: Map<String, Value>,
    path: String,
}

impl Fields {
    /// Wraps `value`, which must be an object. `at` is its path, empty for the body.
    pub(crate) fn new(value: Value, at: impl Into<String>) -> Result<Self, InvalidRequest> {
        let at = at.into();
        match value {
            Value::Object(members) => Ok(Self { members, path: at }),
            _ if at.is_empty() => Err(InvalidRequest::body("the body must be a JSON object")),
            _ => Err(InvalidRequest::new(at, "must be an object")),
        }
    }

    /// The path of this object.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether the object has no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The path of a member.
    pub(crate) fn member_path(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        }
    }

    /// Takes a member out by its lowerCamelCase name or the same in snake_case. `None` if it is
    /// absent or `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let value = match self.members.shift_remove(name) {
            None if name.bytes().any(|b| b.is_ascii_uppercase()) => {
                self.members.shift_remove(&to_snake_case(name))
            }
            found => found,
        };
        value.filter(|value| !value.is_null())
    }

    /// Takes a string.
    pub(crate) fn take_string(&mut self, name: &str) -> Result<Option<String>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "must be a string")),
        }
    }

    /// Takes a boolean.
    pub(crate) fn take_bool(&mut self, name: &str) -> Result<Option<bool>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(self.invalid(name, "must be true or false")),
        }
    }

    /// Takes an array.
    pub(crate) fn take_array(&mut self, name: &str) -> Result<Option<Vec<Value>>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.invalid(name, "must be a list")),
        }
    }

    /// Takes an object, to read it member by member.
    pub(crate) fn take_object(&mut self, name: &str) -> Result<Option<Self>, InvalidRequest> {
        let path = self.member_path(name);
        self.take(name)
            .map(|value| Self::new(value, path))
            .transpose()
    }

    /// Takes an object as it is.
    pub(crate) fn take_raw_object(&mut self, name: &str) -> Result<Option<Value>, InvalidRequest> {
        match self.take(name) {
            Some(value) if !value.is_object() => Err(self.invalid(name, "must be an object")),
            found => Ok(found),
        }
    }

    /// Takes a string that must be present and not empty.
    pub(crate) fn take_required_string(&mut self, name: &str) -> Result<String, InvalidRequest> {
        self.take_string(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.invalid(name, "is required and must be a string"))
    }

    /// An error for the member `name`; `why` continues the sentence "`path` …".
    pub(crate) fn invalid(&self, name: &str, why: &str) -> InvalidRequest {
        InvalidRequest::new(self.member_path(name), why)
    }

    /// The remaining members except `null`, names in lowerCamelCase.
    pub(crate) fn into_rest(self) -> Map<String, Value> {
        let left = self
            .members
            .into_iter()
            .filter(|(_, value)| !value.is_null());
        left.map(|(name, value)| match name.contains('_') {
            true => (to_camel_case(&name), value),
            false => (name, value),
        })
        .collect()
    }
}

/// `inlineData` → `inline_data`.
pub(crate) fn to_snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `inline_data` → `inlineData`; names without an underscore stay.
pub(crate) fn to_camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut words = name.split('_');
    out.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

/// Inserts `value` into `into` at `path` (names joined by dots), creating the objects in between.
pub(crate) fn insert_at_path(into: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            into.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = into
                .entry(head.to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert_at_path(inner, rest, value);
            }
        }
    }
}

/// Inserts the members of `rest` into `extra`, each under the name `prefix.NAME`.
pub(crate) fn insert_with_prefix(
    extra: &mut Map<String, Value>,
    prefix: &str,
    rest: Map<String, Value>,
) {
    for (name, value) in rest {
        extra.insert(format!("{prefix}.{name}"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_read_in_both_spellings_and_others_are_kept() {
        let value =
            json!({"inline_data": 1, "topK": 2, "other_one": 3, "none": null, "flag": true});
        let mut fields = Fields::new(value, "x").unwrap();
        assert_eq!(fields.take("inlineData"), Some(json!(1)));
        assert_eq!(fields.take("topK"), Some(json!(2)));
        assert_eq!(fields.take("none"), None);
        assert_eq!(fields.take_string("flag").unwrap_err().field, "x.flag");
        assert_eq!(Value::Object(fields.into_rest()), json!({"otherOne": 3}));
        assert_eq!(to_camel_case("response_json_schema"), "responseJsonSchema");
        assert_eq!(to_snake_case("responseJsonSchema"), "response_json_schema");
    }

    #[test]
    fn inserting_at_a_path_creates_objects() {
        let mut map = Map::new();
        insert_at_path(&mut map, "a.b.c", json!(1));
        insert_at_path(&mut map, "a.d", json!(2));
        insert_at_path(&mut map, "e", json!(3));
        assert_eq!(
            Value::Object(map),
            json!({"a": {"b": {"c": 1}, "d": 2}, "e": 3})
        );
    }
}
