//! Paths to the fields of a request, in the style of each provider.

use serde::Deserialize;
use serde_json::Value;

/// The style in which a provider writes a path, and whether it also accepts names in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathStyle {
    /// `messages[0].content`
    #[default]
    Brackets,
    /// `messages.0.content`
    Dots,
    /// `generation_config.stop_sequences[0]`; both spellings of names are accepted.
    Snake,
}

/// A path to a field.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath {
    pub(crate) style: PathStyle,
    pub(crate) text: String,
}

impl JsonPath {
    /// The path with that text; the root if the text is empty.
    pub(crate) fn new(style: PathStyle, text: String) -> Self {
        Self { style, text }
    }

    pub(crate) fn field(&self, name: &str) -> Self {
        let dot = if self.text.is_empty() { "" } else { "." };
        let name = match self.style {
            PathStyle::Snake => snake(name),
            _ => name.to_owned(),
        };
        Self::new(self.style, format!("{}{dot}{name}", self.text))
    }

    pub(crate) fn at(&self, index: usize) -> Self {
        let text = match self.style {
            PathStyle::Dots => format!("{}.{index}", self.text),
            _ => format!("{}[{index}]", self.text),
        };
        Self::new(self.style, text)
    }
}

/// Converts `stopSequences` to `stop_sequences`.
pub(crate) fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Converts `stop_sequences` to `stopSequences`.
pub(crate) fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let mut letters = word.chars();
        let raised = letters.next().map(|c| c.to_ascii_uppercase());
        text + &raised.into_iter().chain(letters).collect::<String>()
    })
}

/// The value with the names of its fields in camel case, except inside the fields `except`.
pub(crate) fn in_camel_case(value: &Value, except: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields = object.iter().map(|(name, value)| {
                let name = camel(name);
                let is_free = except
                    .as_array()
                    .is_some_and(|all| all.iter().any(|one| *one == name));
                let inner = if is_free {
                    value.clone()
                } else {
                    in_camel_case(value, except)
                };
                (name, inner)
            });
            Value::Object(fields.collect())
        }
        Value::Array(list) => list.iter().map(|one| in_camel_case(one, except)).collect(),
        other => other.clone(),
    }
}
