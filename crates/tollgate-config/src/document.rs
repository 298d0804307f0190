//! The configuration as it was written: a tree of values, each with its origin (line of the file, environment variable, flag), which errors mention.

use std::collections::BTreeMap;
use std::fmt;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::error::ConfigError;

/// Environment variables by name.
pub(super) type Variables = BTreeMap<String, String>;

/// One value and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) value: Value,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// On this line of the file, counted from 1.
    Line(usize),
    /// In the environment variable of that name.
    Variable(String),
    /// On the command line, as this flag.
    Flag(&'static str),
    /// In a request to the admin API, or in the database.
    Request,
}

/// A TOML value. Numbers keep their digits, because prices are decimals.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    /// A number in decimal notation.
    Number(String),
    Bool(bool),
    Date,
    /// The text of a variable or a flag: it is parsed as the type of its setting.
    Untyped(String),
    List(Vec<Node>),
    Table(Table),
}

/// Names and values in the order of the file.
pub(super) type Table = Vec<(String, Node)>;

/// The settings that contain secrets, by the end of their name: keys, and URLs with a password.
const SECRET_NAMES: &[&str] = &[
    "key", "keys", "secret", "password", "token", "url", "headers",
];

/// Whether the document contains a secret as plain text, not as `env:NAME`.
pub(super) fn contains_secrets(table: &Table) -> bool {
    // `tls.key` is the path of a file.
    let is_path = |name: &str| name == "tls";
    let mut settings = table.iter().filter(|(name, _)| !is_path(name));
    settings.any(|(name, node)| {
        let is_secret = SECRET_NAMES.iter().any(|end| name.ends_with(end));
        holds_secret(&node.value, is_secret, name.ends_with("url"))
    })
}

fn holds_secret(value: &Value, is_secret: bool, is_url: bool) -> bool {
    match value {
        Value::Text(text) if is_url => text.contains('@'),
        Value::Text(text) => is_secret && !text.is_empty() && !text.starts_with("env:"),
        Value::List(nodes) => nodes
            .iter()
            .any(|node| holds_secret(&node.value, is_secret, is_url)),
        Value::Table(table) => contains_secrets(table),
        Value::Number(_) | Value::Bool(_) | Value::Date | Value::Untyped(_) => false,
    }
}

impl Value {
    /// The type's name with an article, for "… is a list".
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Untyped(_) => "a text",
            Self::Number(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Date => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => f.write_str(name),
            Self::Request => f.write_str("the request"),
        }
    }
}

/// Parses the text of a configuration file.
pub(super) fn parse(file: &str, text: &str) -> Result<Table, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        ConfigError::new(format!("{file}, line {line}: {}", error.message()))
    })?;
    let origin = |at: usize| Origin::Line(line_of(text, at));
    Ok(convert_table(table.get_ref(), &origin))
}

/// Parses one TOML value, or returns `None` if the text is none.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(convert(&value, &|_| origin.clone()))
}

/// Parses the texts of variables and flags in `value` that are TOML tables or lists.
pub(super) fn parse_variables(value: &mut Value, origin: &Origin) {
    if let Value::Untyped(text) = value
        && text.trim_start().starts_with(['[', '{'])
        && let Some(parsed) = parse_value(text, origin)
    {
        *value = parsed.value;
    }
    let parse = |node: &mut Node| parse_variables(&mut node.value, &node.origin);
    match value {
        Value::List(items) => items.iter_mut().for_each(parse),
        Value::Table(table) => table.iter_mut().map(|(_, node)| node).for_each(parse),
        _ => {}
    }
}

/// Sets the value at `segments`, the parts of a variable's name between the `__`, in capitals. A list's element is named by its index, a
/// model by its id with `_` for everything but letters and digits. Returns false if the name leads nowhere.
pub(super) fn set_variable(
    table: &mut Table,
    segments: &[&str],
    variable: &str,
    text: &str,
) -> bool {
    let origin = Origin::Variable(variable.to_owned());
    let [first, rest @ ..] = segments else {
        return false;
    };
    let position = table.iter().position(|(name, _)| capitals(name) == *first);
    // A variable can set a price only of a model that has one in the file: the model's id cannot be derived from its capitals.
    let is_new_price =
        *first == "PRICE" && rest.first().is_some_and(|model| !has_price(table, model));
    if is_new_price {
        return false;
    }
    let position = position.unwrap_or_else(|| {
        table.push((first.to_lowercase(), empty_node(rest, &origin)));
        table.len() - 1
    });
    set_in_node(&mut table[position].1, rest, &origin, text)
}

fn has_price(table: &Table, model: &str) -> bool {
    let prices = table.iter().find(|(name, _)| name == "price");
    matches!(prices.map(|(_, node)| &node.value), Some(Value::Table(prices)) if prices.iter().any(|(name, _)| capitals(name) == model))
}

fn set_in_node(node: &mut Node, segments: &[&str], origin: &Origin, text: &str) -> bool {
    let Some((first, rest)) = segments.split_first() else {
        node.origin = origin.clone();
        node.value = Value::Untyped(text.to_owned());
        return true;
    };
    match &mut node.value {
        Value::Table(table) => {
            let position = table.iter().position(|(name, _)| capitals(name) == *first);
            let position = position.unwrap_or_else(|| {
                table.push((first.to_lowercase(), empty_node(rest, origin)));
                table.len() - 1
            });
            set_in_node(&mut table[position].1, rest, origin, text)
        }
        Value::List(items) => match first.parse::<usize>() {
            Ok(index) if index <= items.len() => {
                if index == items.len() {
                    items.push(empty_node(rest, origin));
                }
                set_in_node(&mut items[index], rest, origin, text)
            }
            _ => false,
        },
        _ => false,
    }
}

/// An empty value for a variable with these further segments: a list if the next segment is an index, a table if it is a name.
fn empty_node(segments: &[&str], origin: &Origin) -> Node {
    let value = match segments.first() {
        None => Value::Untyped(String::new()),
        Some(index) if index.bytes().all(|b| b.is_ascii_digit()) => Value::List(Vec::new()),
        Some(_) => Value::Table(Vec::new()),
    };
    Node {
        origin: origin.clone(),
        value,
    }
}

/// Sets a top-level value from a command-line flag.
pub(super) fn set_flag(table: &mut Table, name: &str, flag: &'static str, text: &str) {
    table.retain(|(there, _)| there != name);
    let node = Node {
        origin: Origin::Flag(flag),
        value: Value::Untyped(text.to_owned()),
    };
    table.push((name.to_owned(), node));
}

/// For each channel with keys, by its name, the origin of each key: `env:NAME` or `file`.
pub(super) fn key_origins(table: &Table) -> BTreeMap<String, Vec<String>> {
    let Some(Value::List(channels)) = find(table, "channel") else {
        return BTreeMap::new();
    };
    let origins = channels.iter().filter_map(|channel| {
        let Value::Table(channel) = &channel.value else {
            return None;
        };
        let (Some(Value::Text(name)), Some(Value::List(keys))) =
            (find(channel, "name"), find(channel, "api_keys"))
        else {
            return None;
        };
        let origins = keys.iter().map(|key| match &key.value {
            Value::Text(text) => key_origin(text),
            _ => key_origin(""),
        });
        Some((name, origins.collect()))
    });
    origins.collect()
}

/// The origin of the `admin_key` of each channel that has one, by the channel's name: `env:NAME` or `file`.
pub(super) fn admin_key_origins(table: &Table) -> BTreeMap<String, String> {
    let Some(Value::List(channels)) = find(table, "channel") else {
        return BTreeMap::new();
    };
    let origins = channels.iter().filter_map(|channel| {
        let Value::Table(channel) = &channel.value else {
            return None;
        };
        match (find(channel, "name"), find(channel, "admin_key")) {
            (Some(Value::Text(name)), Some(Value::Text(key))) => Some((name, key_origin(&key))),
            _ => None,
        }
    });
    origins.collect()
}

/// The value of a name in a table.
fn find(table: &Table, name: &str) -> Option<Value> {
    let found = table.iter().find(|(known, _)| known == name);
    found.map(|(_, node)| node.value.clone())
}

/// The origin of a key that is written as this text: `env:NAME` or `file`.
fn key_origin(text: &str) -> String {
    let origin = match text.starts_with("env:") {
        true => text,
        false => "file",
    };
    origin.to_owned()
}

/// Replaces every text `env:NAME` by the value of the environment variable NAME. The error is the path of a text whose variable is not set, and the
/// variable.
pub(super) fn resolve_env(
    table: &mut Table,
    variables: &Variables,
) -> Result<(), (String, Origin, String)> {
    fn resolve(
        path: &str,
        node: &mut Node,
        variables: &Variables,
    ) -> Result<(), (String, Origin, String)> {
        match &mut node.value {
            Value::Text(text) | Value::Untyped(text) => {
                let Some(name) = text.strip_prefix("env:") else {
                    return Ok(());
                };
                let Some(value) = variables.get(name) else {
                    return Err((path.to_owned(), node.origin.clone(), name.to_owned()));
                };
                node.value = Value::Untyped(value.clone());
                Ok(())
            }
            Value::List(items) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(at, item)| resolve(&format!("{path}[{at}]"), item, variables)),
            Value::Table(table) => table
                .iter_mut()
                .try_for_each(|(name, node)| resolve(&join(path, name), node, variables)),
            _ => Ok(()),
        }
    }
    table
        .iter_mut()
        .try_for_each(|(name, node)| resolve(&join("", name), node, variables))
}

/// The paths of the texts `env:NAME` whose environment variable is set.
pub(super) fn env_paths(table: &Table, variables: &Variables) -> Vec<String> {
    fn add(path: &str, node: &Node, variables: &Variables, paths: &mut Vec<String>) {
        match &node.value {
            Value::Text(text) | Value::Untyped(text) => {
                let name = text.strip_prefix("env:");
                if name.is_some_and(|name| variables.contains_key(name)) {
                    paths.push(path.to_owned());
                }
            }
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    add(&format!("{path}[{at}]"), item, variables, paths);
                }
            }
            Value::Table(table) => {
                for (name, node) in table {
                    add(&join(path, name), node, variables, paths);
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Date => {}
        }
    }
    let mut paths = Vec::new();
    for (name, node) in table {
        add(&join("", name), node, variables, &mut paths);
    }
    paths
}

/// The path of `name` below `path`, as TOML writes it.
pub(super) fn join(path: &str, name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = if name.chars().all(is_bare) && !name.is_empty() {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    match path {
        "" => name,
        path => format!("{path}.{name}"),
    }
}

/// A name in the form that variables use: capitals.
fn capitals(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    name.chars().map(letter).collect()
}

fn convert(value: &Spanned<DeValue<'_>>, origin: &dyn Fn(usize) -> Origin) -> Node {
    Node {
        origin: origin(value.span().start),
        value: match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Number(
                i128::from_str_radix(number.as_str(), number.radix())
                    .map_or_else(|_| number.to_string(), |n| n.to_string()),
            ),
            DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => Value::List(convert_list(items, origin)),
            DeValue::Table(entries) => Value::Table(convert_table(entries, origin)),
        },
    }
}

fn convert_list(items: &DeArray<'_>, origin: &dyn Fn(usize) -> Origin) -> Vec<Node> {
    items.iter().map(|item| convert(item, origin)).collect()
}

/// The origin of an entry is that of its name, because the span of a table begins at another position.
fn convert_table(entries: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    let mut table: Vec<_> = entries
        .iter()
        .map(|(name, value)| {
            let mut node = convert(value, origin);
            node.origin = origin(name.span().start);
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
