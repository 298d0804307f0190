//! Members of JSON objects, taken one by one; what is left over is the format's own. Errors name a member by its whole path.

use std::fmt;

use serde_json::{Map, Value};

use super::wire::NAME;
use crate::error::InvalidRequest;
use crate::hub::ExtraFields;

/// Where in a body something stands. Costs nothing until an error shows it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    /// The body itself.
    Root,
    /// A member of an object.
    Member(&'a Path<'a>, &'a str),
    /// An item of a list.
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// An error about what stands here; `why` continues a sentence that begins with its name.
    pub(super) fn bad(&self, why: impl AsRef<str>) -> InvalidRequest {
        match self {
            Path::Root => InvalidRequest::body(format!("the body {}", why.as_ref())),
            _ => InvalidRequest::new(self.to_string(), why),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Member(Path::Root, name) => f.write_str(name),
            Path::Member(parent, name) => write!(f, "{parent}.{name}"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The members of one object. `null` counts as absent.
#[derive(Debug)]
pub(super) struct Fields<'p> {
    at: &'p Path<'p>,
    members: Map<String, Value>,
}

impl<'p> Fields<'p> {
    /// The members of `value`, which must be an object.
    pub(super) fn of(value: Value, at: &'p Path<'p>) -> Result<Self, InvalidRequest> {
        match value {
            Value::Object(members) => Ok(Self { at, members }),
            _ => Err(at.bad("must be an object")),
        }
    }

    /// An error about the member `name`.
    pub(super) fn bad(&self, name: &str, why: impl AsRef<str>) -> InvalidRequest {
        Path::Member(self.at, name).bad(why)
    }

    /// A member as it is.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members
            .shift_remove(name)
            .filter(|value| !value.is_null())
    }

    /// A member that is text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(name, "must be a string")),
        }
    }

    /// A member that is text and must be there.
    pub(super) fn needed_text(&mut self, name: &str) -> Result<String, InvalidRequest> {
        let text = self.text(name)?;
        text.ok_or_else(|| self.bad(name, "is required and must be a string"))
    }

    /// A member that is a name: text that says something.
    pub(super) fn needed_name(&mut self, name: &str) -> Result<String, InvalidRequest> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.bad(name, "is required and must be a string that is not empty"))
    }

    /// A member that is true or false.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.bad(name, "must be true or false")),
        }
    }

    /// A member that is a list.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, InvalidRequest> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.bad(name, "must be a list")),
        }
    }

    /// Puts back what a reader could not use.
    pub(super) fn keep(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    /// The whole object again.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.members)
    }

    /// What was not taken.
    pub(super) fn rest(mut self) -> ExtraFields {
        self.members.retain(|_, value| !value.is_null());
        ExtraFields::new(NAME, self.members)
    }
}

/// Adds the members of `own` that this format's wire has.
pub(super) fn put_back(extra: &ExtraFields, into: &mut Map<String, Value>) {
    let members = extra.for_format(NAME).into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| !name.starts_with('.')) {
        into.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_the_member() {
        let (root, list) = (Path::Root, Path::Member(&Path::Root, "messages"));
        let item = Path::Item(&list, 2);
        let mut fields = Fields::of(json!({"role": 1, "a": null, "b": 2}), &item).unwrap();
        assert_eq!(
            fields.text("role").unwrap_err().field,
            "messages[2].role".to_owned()
        );
        assert_eq!(fields.text("a"), Ok(None));
        assert!(fields.needed_text("c").is_err());
        assert_eq!(
            fields.rest().names_unknown_to("other").collect::<Vec<_>>(),
            ["b"]
        );
        let bad = Fields::of(json!([]), &root).unwrap_err();
        assert_eq!(bad.message, "the body must be an object");
    }
}
