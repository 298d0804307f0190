//! Fields that only one format knows.

use serde_json::{Map, Value};

/// Members that one format has and the hub has no field for; written back by that format, dropped by the others.
///
/// A member whose name begins with a dot is none of the wire's: it is how the format spelled something that the hub does have
/// a field for (`.parameters`: a schema in its older dialect). Nothing is lost without it, so [`Own::lost_to`] leaves it out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own(Option<Box<(&'static str, Map<String, Value>)>>);

impl Own {
    /// Nothing.
    pub const NONE: Self = Self(None);

    /// `members` of the format of that name; nothing where there are none.
    pub fn of(format: &'static str, members: Map<String, Value>) -> Self {
        Self((!members.is_empty()).then(|| Box::new((format, members))))
    }

    /// The members, for the format they belong to.
    pub fn for_format(&self, format: &str) -> Option<&Map<String, Value>> {
        self.0
            .as_deref()
            .filter(|own| own.0 == format)
            .map(|own| &own.1)
    }

    /// The names of members that another format than theirs has to drop.
    pub fn lost_to(&self, format: &str) -> impl Iterator<Item = &str> {
        let lost = self.0.as_deref().filter(|own| own.0 != format);
        lost.into_iter()
            .flat_map(|own| own.1.keys().map(String::as_str))
            .filter(|name| !name.starts_with('.'))
    }

    /// One member, whichever format it is of.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_deref().and_then(|own| own.1.get(name))
    }
}
