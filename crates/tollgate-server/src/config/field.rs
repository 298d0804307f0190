//! One setting, read as what it must be; an error names the setting, the place and what is allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::Value as Json;
use tollgate_core::{Amount, Secret};

use super::shape::join;
use super::tree::{Node, Place, Table, Value};
use super::{ConfigError, Variables};

/// Where settings come from.
pub(super) struct Source<'a> {
    /// The file's name for messages.
    pub(super) file: &'a str,
    /// For values `env:NAME`.
    pub(super) variables: &'a Variables,
}

/// A setting that may have been given.
pub(super) struct Field<'a> {
    source: &'a Source<'a>,
    path: String,
    node: Option<&'a Node>,
}

impl<'a> Field<'a> {
    /// The setting `path` (names joined by dots) of `table`.
    pub(super) fn of(source: &'a Source<'a>, table: &'a Table, path: &str) -> Self {
        let mut names = path.split('.');
        let first = names.next().and_then(|name| get(table, name));
        let node = names.try_fold(first, |node, name| match node.map(|node| &node.value) {
            Some(Value::Table(table)) => Some(get(table, name)),
            _ => None,
        });
        Self {
            source,
            path: path.to_owned(),
            node: node.flatten(),
        }
    }

    /// The setting `name` of this table.
    pub(super) fn at(&self, name: &str) -> Self {
        let node = match self.node.map(|node| &node.value) {
            Some(Value::Table(table)) => get(table, name),
            _ => None,
        };
        Self {
            source: self.source,
            path: format!("{}.{name}", self.path),
            node,
        }
    }

    /// Whether it was given.
    pub(super) fn is_given(&self) -> bool {
        self.node.is_some()
    }

    /// Whether it is a table.
    pub(super) fn is_table(&self) -> bool {
        self.node
            .is_some_and(|node| matches!(node.value, Value::Table(_)))
    }

    /// The elements of this list, none where it was not given.
    pub(super) fn items(&self) -> Vec<Self> {
        let Some(Value::List(items)) = self.node.map(|node| &node.value) else {
            return Vec::new();
        };
        let field = |(at, node)| Self {
            source: self.source,
            path: format!("{}[{at}]", self.path),
            node: Some(node),
        };
        items.iter().enumerate().map(field).collect()
    }

    /// The names and values of this table, none where it was not given.
    pub(super) fn entries(&self) -> Vec<(&'a str, Self)> {
        let Some(Value::Table(table)) = self.node.map(|node| &node.value) else {
            return Vec::new();
        };
        let field = |(name, node): &'a (String, Node)| {
            let field = Self {
                source: self.source,
                path: join(&self.path, name),
                node: Some(node),
            };
            (name.as_str(), field)
        };
        table.iter().map(field).collect()
    }

    /// An error about this setting: `why` goes on after its name.
    pub(super) fn error(&self, why: impl Display) -> ConfigError {
        let what = format!("{} {why}", self.path);
        match self.node {
            Some(node) => ConfigError::at(self.source.file, &node.place, what),
            None => ConfigError::new(format!("{}: {what}", self.source.file)),
        }
    }

    /// A text, not empty. `env:NAME` is read from the environment.
    pub(super) fn text(&self) -> Result<Option<String>, ConfigError> {
        let Some(node) = self.node else {
            return Ok(None);
        };
        let (Value::Text(text) | Value::Raw(text)) = &node.value else {
            return Err(self.error(format!("is {}, but it takes a text", node.value.kind())));
        };
        let text = match text.strip_prefix("env:") {
            Some(name) => self.source.variables.get(name).ok_or_else(|| {
                self.error(format!(
                    "needs environment variable {name:?}, which is not set"
                ))
            })?,
            None => text,
        };
        if text.is_empty() {
            return Err(self.error("is empty: give it a value or leave it out"));
        }
        Ok(Some(text.clone()))
    }

    /// A text that must be there.
    pub(super) fn required(&self) -> Result<String, ConfigError> {
        self.text()?.ok_or_else(|| self.error("is missing"))
    }

    /// A text that no error may repeat.
    pub(super) fn secret(&self) -> Result<Option<Secret>, ConfigError> {
        Ok(self.text()?.map(Secret::new))
    }

    /// A whole number.
    pub(super) fn whole(&self, allowed: RangeInclusive<i64>) -> Result<Option<i64>, ConfigError> {
        let Some(text) = self.number()? else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        number.map(Some).ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            self.error(format!(
                "is {text:?}, but it takes a whole number from {least} to {most}"
            ))
        })
    }

    /// An amount of money, not negative.
    pub(super) fn amount(&self) -> Result<Option<Amount>, ConfigError> {
        let Some(text) = self.number()? else {
            return Ok(None);
        };
        let amount = text.parse::<Amount>().ok().filter(|a| !a.is_negative());
        amount.map(Some).ok_or_else(|| {
            self.error(format!(
                "is {text:?}, but a price is a decimal number such as 0.04, with at most nine \
                 decimals and below one billion"
            ))
        })
    }

    /// A switch.
    pub(super) fn flag(&self) -> Result<Option<bool>, ConfigError> {
        let Some(node) = self.node else {
            return Ok(None);
        };
        match &node.value {
            Value::Flag(flag) => Ok(Some(*flag)),
            Value::Raw(text) if text == "true" => Ok(Some(true)),
            Value::Raw(text) if text == "false" => Ok(Some(false)),
            _ => Err(self.error("takes true or false")),
        }
    }

    /// This table as JSON, for whoever knows what belongs in it. Texts may be `env:NAME`.
    pub(super) fn json(&self) -> Result<serde_json::Map<String, Json>, ConfigError> {
        let entries = self.entries().into_iter();
        entries
            .map(|(name, field)| Ok((name.to_owned(), field.json_value()?)))
            .collect()
    }

    fn json_value(&self) -> Result<Json, ConfigError> {
        Ok(match self.node.map(|node| &node.value) {
            Some(Value::Table(_)) => Json::Object(self.json()?),
            Some(Value::List(_)) => {
                let items = self.items().into_iter();
                Json::Array(
                    items
                        .map(|item| item.json_value())
                        .collect::<Result<_, _>>()?,
                )
            }
            Some(Value::Flag(flag)) => Json::Bool(*flag),
            Some(Value::Number(text)) => serde_json::from_str(text)
                .map_err(|_| self.error(format!("is {text:?}, which is no usual number")))?,
            Some(Value::Date) => return Err(self.error("is a date, which no option takes")),
            Some(Value::Text(text)) if text.is_empty() => Json::String(String::new()),
            Some(Value::Text(_) | Value::Raw(_)) => Json::String(self.required()?),
            None => Json::Null,
        })
    }

    /// The digits of a number.
    fn number(&self) -> Result<Option<String>, ConfigError> {
        let Some(node) = self.node else {
            return Ok(None);
        };
        match &node.value {
            Value::Number(text) => Ok(Some(text.clone())),
            Value::Raw(_) => self.text(),
            Value::Text(text) if text.starts_with("env:") => self.text(),
            other => Err(self.error(format!("is {}, but it takes a number", other.kind()))),
        }
    }
}

impl ConfigError {
    /// An error about something written at `place`.
    pub(super) fn at(file: &str, place: &Place, what: impl Display) -> Self {
        match place {
            Place::Line(_) => Self::new(format!("{file}, {place}: {what}")),
            Place::Variable(_) | Place::Flag(_) => Self::new(format!("{place}: {what}")),
        }
    }
}

fn get<'a>(table: &'a Table, name: &str) -> Option<&'a Node> {
    table
        .iter()
        .find(|(there, _)| there == name)
        .map(|(_, node)| node)
}
