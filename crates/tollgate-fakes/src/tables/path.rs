//! Paths to the fields of a request, written as each provider writes them.

use std::fmt::Write as _;

use serde::Deserialize;

/// How a provider writes a path, and whether it also takes names in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathStyle {
    /// `messages[0].content`
    #[default]
    Brackets,
    /// `messages.0.content`
    Dots,
    /// `generation_config.stop_sequences[0]`, and both spellings are read.
    Snake,
}

#[derive(Debug, Clone)]
enum Step {
    Name(String),
    Index(usize),
}

/// A path to a field.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath {
    pub(crate) style: PathStyle,
    steps: Vec<Step>,
}

impl JsonPath {
    pub(crate) fn root(style: PathStyle) -> Self {
        Self {
            style,
            steps: Vec::new(),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Self {
        self.with(Step::Name(name.to_owned()))
    }

    pub(crate) fn at(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut longer = self.clone();
        longer.steps.push(step);
        longer
    }

    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let dot = if text.is_empty() { "" } else { "." };
            let written = match (step, self.style) {
                (Step::Name(name), PathStyle::Snake) => write!(text, "{dot}{}", snake(name)),
                (Step::Name(name), _) => write!(text, "{dot}{name}"),
                (Step::Index(index), PathStyle::Dots) => write!(text, "{dot}{index}"),
                (Step::Index(index), _) => write!(text, "[{index}]"),
            };
            // A String takes everything.
            written.unwrap_or_default();
        }
        text
    }
}

/// `stopSequences` as `stop_sequences`.
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

/// `stop_sequences` as `stopSequences`.
pub(crate) fn camel(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut raise = false;
    for c in name.chars() {
        if c == '_' {
            raise = true;
        } else if raise {
            text.push(c.to_ascii_uppercase());
            raise = false;
        } else {
            text.push(c);
        }
    }
    text
}
