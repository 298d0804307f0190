//! JSON objects read member by member: lowerCamelCase or snake_case, `null` as absent, errors by path. What is left when all
//! known members are taken is what only this format knows.

use serde_json::{Map, Value};

use crate::error::Bad;

/// An object and where it stands.
pub(super) struct Fields {
    members: Map<String, Value>,
    at: String,
}

impl Fields {
    /// `value`, which must be an object. `at` is its path, empty for the body.
    pub(super) fn of(value: Value, at: impl Into<String>) -> Result<Self, Bad> {
        let at = at.into();
        match value {
            Value::Object(members) => Ok(Self { members, at }),
            _ if at.is_empty() => Err(Bad::body("the body must be a JSON object")),
            _ => Err(Bad::new(at, "must be an object")),
        }
    }

    /// Where this object stands.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The path of a member.
    pub(super) fn path(&self, name: &str) -> String {
        match self.at.as_str() {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        }
    }

    /// Takes a member out, by its lowerCamelCase name or that in snake_case; `null` is none.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let value = match self.members.shift_remove(name) {
            None if name.bytes().any(|b| b.is_ascii_uppercase()) => {
                self.members.shift_remove(&snake(name))
            }
            found => found,
        };
        value.filter(|value| !value.is_null())
    }

    /// A text.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Bad> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(name, "must be a string")),
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, Bad> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(self.bad(name, "must be true or false")),
        }
    }

    /// A list.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Bad> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.bad(name, "must be a list")),
        }
    }

    /// An object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Bad> {
        let path = self.path(name);
        self.take(name)
            .map(|value| Self::of(value, path))
            .transpose()
    }

    /// An object that is kept as it is.
    pub(super) fn whole(&mut self, name: &str) -> Result<Option<Value>, Bad> {
        match self.take(name) {
            Some(value) if !value.is_object() => Err(self.bad(name, "must be an object")),
            found => Ok(found),
        }
    }

    /// A text that must be there and not be empty.
    pub(super) fn required(&mut self, name: &str) -> Result<String, Bad> {
        self.string(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.bad(name, "is required and must be a string"))
    }

    /// `name` is wrong; `why` continues the sentence.
    pub(super) fn bad(&self, name: &str, why: &str) -> Bad {
        Bad::new(self.path(name), why)
    }

    /// What is left but for `null`s, in lowerCamelCase.
    pub(super) fn rest(self) -> Map<String, Value> {
        let left = self
            .members
            .into_iter()
            .filter(|(_, value)| !value.is_null());
        left.map(|(name, value)| match name.contains('_') {
            true => (camel(&name), value),
            false => (name, value),
        })
        .collect()
    }
}

/// `inlineData` → `inline_data`.
pub(super) fn snake(name: &str) -> String {
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
pub(super) fn camel(name: &str) -> String {
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

/// Puts `value` at `path` (names joined by dots) into `into`, making objects on the way.
pub(super) fn insert_at(into: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            into.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = into
                .entry(head.to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert_at(inner, rest, value);
            }
        }
    }
}

/// Adds the members of `rest` to `own`, each named `prefix.NAME`.
pub(super) fn keep_under(own: &mut Map<String, Value>, prefix: &str, rest: Map<String, Value>) {
    for (name, value) in rest {
        own.insert(format!("{prefix}.{name}"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_are_taken_and_the_rest_remains() {
        let value =
            json!({"inline_data": 1, "topK": 2, "other_one": 3, "none": null, "flag": true});
        let mut fields = Fields::of(value, "x").unwrap();
        assert_eq!(fields.take("inlineData"), Some(json!(1)));
        assert_eq!(fields.take("topK"), Some(json!(2)));
        assert_eq!(fields.take("none"), None);
        assert_eq!(fields.string("flag").unwrap_err().field, "x.flag");
        assert_eq!(Value::Object(fields.rest()), json!({"otherOne": 3}));
        assert_eq!(camel("response_json_schema"), "responseJsonSchema");
        assert_eq!(snake("responseJsonSchema"), "response_json_schema");
    }

    #[test]
    fn paths_make_objects() {
        let mut map = Map::new();
        insert_at(&mut map, "a.b.c", json!(1));
        insert_at(&mut map, "a.d", json!(2));
        insert_at(&mut map, "e", json!(3));
        assert_eq!(
            Value::Object(map),
            json!({"a": {"b": {"c": 1}, "d": 2}, "e": 3})
        );
    }
}
