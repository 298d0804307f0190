//! The list of the client's fields that are left out of the request for the upstream.

/// Names of the client's fields that are left out or weakened, each once, in order.
#[derive(Default)]
pub(in crate::chat_completions) struct DroppedFields(Vec<String>);

impl DroppedFields {
    /// Adds a name.
    pub(in crate::chat_completions) fn push(&mut self, name: &str) {
        if !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    /// Adds several names.
    pub(in crate::chat_completions) fn extend<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        names.for_each(|name| self.push(name));
    }

    /// The names for [`crate::WrittenRequest::dropped`].
    pub(in crate::chat_completions) fn into_names(self) -> Vec<String> {
        self.0
    }
}
