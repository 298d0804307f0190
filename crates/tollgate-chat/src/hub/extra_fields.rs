//! [`ExtraFields`]: JSON members that only one format has.

use serde_json::{Map, Value};

/// Members of one format for which the hub has no field. That format's writer restores them; the others drop them.
///
/// A name that begins with a dot is not a member of the JSON: it records how the format spelled something for which the hub does have a field
/// (`.parameters`: a schema in Google's older dialect). Dropping it loses no information, so [`ExtraFields::names_unknown_to`] skips it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtraFields(Option<Box<(&'static str, Map<String, Value>)>>);

impl ExtraFields {
    /// No members.
    pub const NONE: Self = Self(None);

    /// `members` of the format with the name `format`. They may be empty.
    pub fn new(format: &'static str, members: Map<String, Value>) -> Self {
        Self((!members.is_empty()).then(|| Box::new((format, members))))
    }

    /// The members. `None` if there are none or they belong to another format than `format`.
    pub fn for_format(&self, format: &str) -> Option<&Map<String, Value>> {
        self.0
            .as_deref()
            .filter(|extra| extra.0 == format)
            .map(|extra| &extra.1)
    }

    /// The names of the members that a writer of `format` has to drop. Empty if they belong to `format`.
    pub fn names_unknown_to(&self, format: &str) -> impl Iterator<Item = &str> {
        let lost = self.0.as_deref().filter(|extra| extra.0 != format);
        lost.into_iter()
            .flat_map(|extra| extra.1.keys().map(String::as_str))
            .filter(|name| !name.starts_with('.'))
    }

    /// The member `name`, whichever format it belongs to.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_deref().and_then(|extra| extra.1.get(name))
    }
}
