//! A serde deserializer of the [configuration document](super::document): structs derive `Deserialize`, and an error names the setting, its origin
//! and the allowed values.

use std::fmt::{self, Display};

use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::document::{Node, Origin, Table, Value, join, parse_value};

/// The newtype name that makes the deserializer pass a number as its digits: see [`super::fields`].
pub(super) const DIGITS: &str = "tollgate number";

/// The minimum similarity (normalised Damerau-Levenshtein, 0 to 1) of a known name that is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.7;

/// Why a document cannot be deserialized.
#[derive(Debug)]
pub(super) struct Error {
    /// The setting, such as `channel[0].name`.
    path: String,
    /// `None` if the setting is missing.
    origin: Option<Origin>,
    /// The end of the message, after the path.
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    /// The setting is invalid; the text follows the path in the message.
    Invalid(String),
    /// The last name of `path` is unknown; a similar one may be known.
    Unknown(Option<&'static str>),
    Missing,
}

impl Error {
    fn new(origin: &Origin, message: impl Display) -> Self {
        Self {
            path: String::new(),
            origin: Some(origin.clone()),
            reason: Reason::Invalid(message.to_string()),
        }
    }

    /// An error about the setting `path`, which was written at `origin`.
    pub(super) fn at(path: String, origin: Origin, message: impl Display) -> Self {
        Self {
            path,
            ..Self::new(&origin, message)
        }
    }

    /// The variable that names an unknown setting, if that is the error.
    pub(super) fn unknown_variable(&self) -> Option<&str> {
        match (&self.reason, &self.origin) {
            (Reason::Unknown(_), Some(Origin::Variable(name))) => Some(name),
            _ => None,
        }
    }

    /// The path of the setting and what is allowed, for a caller that shows them separately.
    pub(super) fn into_path_and_message(self) -> (String, String) {
        let message = match self.reason {
            Reason::Invalid(message) => message,
            Reason::Missing => "is required".to_owned(),
            Reason::Unknown(None) => "is not known here".to_owned(),
            Reason::Unknown(Some(similar)) => {
                format!("is not known here; did you mean {similar}?")
            }
        };
        (self.path, message)
    }

    /// The sentence for the operator; `file` is the name of the configuration file.
    pub(super) fn sentence(&self, file: &str) -> String {
        let path = &self.path;
        let what = match &self.reason {
            Reason::Invalid(message) => format!("{path} {message}"),
            Reason::Missing => format!("{path} is missing"),
            Reason::Unknown(None) => format!("no setting is called {path}"),
            Reason::Unknown(Some(similar)) => {
                format!("no setting is called {path}; did you mean {similar}?")
            }
        };
        match &self.origin {
            Some(origin @ Origin::Line(_)) => format!("{file}, {origin}: {what}"),
            Some(origin) => format!("{origin}: {what}"),
            None => format!("{file}: {what}"),
        }
    }

    fn below(mut self, parent: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => parent.to_owned(),
            path if path.starts_with('[') => format!("{parent}{path}"),
            path => format!("{parent}.{path}"),
        };
        self
    }

    fn or_origin(mut self, origin: &Origin) -> Self {
        if !matches!(self.reason, Reason::Missing) {
            self.origin.get_or_insert_with(|| origin.clone());
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence("the configuration"))
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self {
            path: String::new(),
            origin: None,
            reason: Reason::Invalid(message.to_string()),
        }
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        // `next_key_seed`, which has the names of the fields, adds a similar one.
        Self {
            path: String::new(),
            origin: None,
            reason: Reason::Unknown(None),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            path: field.to_owned(),
            origin: None,
            reason: Reason::Missing,
        }
    }
}

/// Deserializes the complete document.
pub(super) fn deserialize<T: de::DeserializeOwned>(table: &Table) -> Result<T, Error> {
    T::deserialize(Root(table))
}

struct Root<'a>(&'a Table);

impl<'de> Deserializer<'de> for Root<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries::new(self.0, &[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Entries::new(self.0, fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

impl Node {
    fn mismatch(&self, takes: impl Display) -> Error {
        let message = format!("is {}, but it takes {takes}", self.value.type_name());
        Error::new(&self.origin, message)
    }

    /// Parses a variable's text as a TOML table or list.
    fn parsed(&self, text: &str) -> Result<Node, Error> {
        parse_value(text, &self.origin).ok_or_else(|| {
            let message = "must be a TOML value, such as [\"a\", \"b\"] or {name = \"a\"}";
            Error::new(&self.origin, message)
        })
    }

    /// Parses a variable's text as a list: TOML, or texts separated by commas.
    fn split(&self, text: &str) -> Result<Vec<Node>, Error> {
        if text.trim_start().starts_with(['[', '{']) {
            return match self.parsed(text)?.value {
                Value::List(items) => Ok(items),
                _ => Err(self.mismatch("a list")),
            };
        }
        let item = |part: &str| Node {
            origin: self.origin.clone(),
            value: Value::Untyped(part.trim().to_owned()),
        };
        Ok(text.split(',').map(item).collect())
    }

    fn visit_table<'de, V: Visitor<'de>>(
        &self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.value {
            Value::Table(table) => visitor.visit_map(Entries::new(table, fields)),
            Value::Untyped(text) => match self.parsed(text)? {
                Node {
                    value: Value::Table(table),
                    ..
                } => visitor.visit_map(Entries::new(&table, fields)),
                _ => Err(self.mismatch("a table")),
            },
            _ if fields.is_empty() => Err(self.mismatch("a table")),
            _ => Err(self.mismatch(format!("a table with {}", fields.join(", ")))),
        }
    }

    /// The node's text, if it is a text that is not empty.
    fn text(&self) -> Result<&str, Error> {
        match &self.value {
            Value::Text(text) | Value::Untyped(text) if text.is_empty() => Err(Error::new(
                &self.origin,
                "is empty: give it a value or leave it out",
            )),
            Value::Text(text) | Value::Untyped(text) => Ok(text),
            _ => Err(self.mismatch("a text")),
        }
    }
}

impl<'de> Deserializer<'de> for &Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.value {
            Value::Text(text) | Value::Untyped(text) => visitor.visit_str(text),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(digits) => match (digits.parse(), digits.parse()) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_f64(number),
                _ => Err(Error::new(
                    &self.origin,
                    format!("is {digits:?}, which is out of range"),
                )),
            },
            Value::Date => Err(Error::new(
                &self.origin,
                "is a date, which no setting takes",
            )),
            Value::List(items) => visitor.visit_seq(Items::new(items)),
            Value::Table(table) => visitor.visit_map(Entries::new(table, &[])),
        };
        result.map_err(|e| e.or_origin(&self.origin))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = visitor.visit_str(self.text()?);
        result.map_err(|e: Error| e.or_origin(&self.origin))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Untyped(text) if text == "true" => visitor.visit_bool(true),
            Value::Untyped(text) if text == "false" => visitor.visit_bool(false),
            _ => Err(Error::new(&self.origin, "takes true or false")),
        }
    }

    /// Passes the digits of a number to the visitor if the name is [`DIGITS`].
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != DIGITS {
            return visitor.visit_newtype_struct(self);
        }
        let result = match &self.value {
            Value::Number(digits) => visitor.visit_str(digits),
            Value::Untyped(_) => visitor.visit_str(self.text()?),
            _ => Err(self.mismatch("a number")),
        };
        result.map_err(|e| e.or_origin(&self.origin))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.value {
            Value::List(items) => visitor.visit_seq(Items::new(items)),
            Value::Untyped(text) => visitor.visit_seq(Items::new(&self.split(text)?)),
            _ => Err(self.mismatch("a list")),
        };
        result.map_err(|e| e.or_origin(&self.origin))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = self.visit_table(&[], visitor);
        result.map_err(|e| e.or_origin(&self.origin))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let result = self.visit_table(fields, visitor);
        result.map_err(|e| e.or_origin(&self.origin))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'a> Items<'a> {
    fn new(items: &'a [Node]) -> Self {
        Self {
            items: items.iter().enumerate(),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some((at, node)) = self.items.next() else {
            return Ok(None);
        };
        let item = seed.deserialize(node);
        let located = |e: Error| e.or_origin(&node.origin).below(&format!("[{at}]"));
        item.map(Some).map_err(located)
    }
}

/// The entries of a table; `fields` are the names that the struct has.
struct Entries<'a> {
    entries: std::slice::Iter<'a, (String, Node)>,
    fields: &'static [&'static str],
    current: Option<&'a (String, Node)>,
}

impl<'a> Entries<'a> {
    fn new(table: &'a Table, fields: &'static [&'static str]) -> Self {
        Self {
            entries: table.iter(),
            fields,
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.current = self.entries.next();
        let Some((name, node)) = self.current else {
            return Ok(None);
        };
        let key = seed.deserialize(name.as_str().into_deserializer());
        key.map(Some).map_err(|mut e: Error| {
            if matches!(e.reason, Reason::Unknown(_)) {
                e.reason = Reason::Unknown(most_similar(name, self.fields));
            }
            e.or_origin(&node.origin).below(&join("", name))
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((name, node)) = self.current else {
            return Err(de::Error::custom("has a value without a name"));
        };
        let value = seed.deserialize(node);
        value.map_err(|e| e.or_origin(&node.origin).below(&join("", name)))
    }
}

/// The known name that is most similar to `name`, if one is similar enough to be suggested.
fn most_similar(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let similarity =
        |known: &'static str| (strsim::normalized_damerau_levenshtein(name, known), known);
    let similar = known.iter().map(|known| similarity(known));
    let best = similar.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    best.max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
