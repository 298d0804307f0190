//! Settings as they were written, each with the place it was written at, so that an error can name it.

use std::fmt;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::ConfigError;

/// One value.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In the file, on this line, counted from 1.
    Line(usize),
    /// In an environment variable.
    Variable(String),
    /// On the command line, as this flag.
    Flag(&'static str),
}

/// What was written.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    /// A number as written, in decimal.
    Number(String),
    Flag(bool),
    /// A date or time: no setting takes one.
    Date,
    /// A variable's or flag's text: what it is depends on what the setting takes.
    Raw(String),
    List(Vec<Node>),
    Table(Table),
}

/// Names and values in the order of the file.
pub(super) type Table = Vec<(String, Node)>;

impl Value {
    /// What it is, with an article, for "… is a list".
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Raw(_) => "a text",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::Date => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Reads a configuration file's text.
pub(super) fn parse(file: &str, text: &str) -> Result<Table, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        ConfigError::new(format!("{file}, line {line}: {}", error.message()))
    })?;
    let place = |at: usize| Place::Line(line_of(text, at));
    Ok(self::table(table.get_ref(), &place))
}

/// Reads one TOML value out of a variable; none where it is none.
pub(super) fn parse_variable(name: &str, text: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let place = |_: usize| Place::Variable(name.to_owned());
    Some(node(&value, &place))
}

fn node(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Place) -> Node {
    Node {
        place: place(value.span().start),
        value: match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Number(
                i128::from_str_radix(number.as_str(), number.radix())
                    .map_or_else(|_| number.to_string(), |n| n.to_string()),
            ),
            DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => Value::List(list(items, place)),
            DeValue::Table(entries) => Value::Table(table(entries, place)),
        },
    }
}

fn list(items: &DeArray<'_>, place: &dyn Fn(usize) -> Place) -> Vec<Node> {
    items.iter().map(|item| node(item, place)).collect()
}

/// An entry stands where its name does: a table's own span says little.
fn table(entries: &DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Table {
    let mut table: Vec<_> = entries
        .iter()
        .map(|(name, value)| {
            let mut node = node(value, place);
            node.place = place(name.span().start);
            (name.span().start, name.get_ref().to_string(), node)
        })
        .collect();
    table.sort_by_key(|(start, ..)| *start);
    table
        .into_iter()
        .map(|(_, name, node)| (name, node))
        .collect()
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.split(|byte| *byte == b'\n').count()
}
