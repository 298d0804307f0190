//! JSON with placeholders: responses, error bodies, messages.
//!
//! A text `"{expression}"` is replaced by the value; inside of a longer text values are written out.
//! A field `"name?"` is left out if its value is null. The fields of `"$if expression": {…}` are there
//! if it holds. A list `["$for NAME in LIST", element]` has the element once for each of the list, which is
//! NAME and has the number NAME_at; without `NAME in` they are `item` and `at`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::expr::{Expr, plain};
use super::functions::is_name;
use super::scope::Scope;

/// A parsed template.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Template {
    Fixed(Value),
    Expr(Expr),
    Text(Vec<Piece>),
    List(Vec<Template>),
    /// The name of an element, the list, what stands for the element.
    Each(String, Expr, Box<Template>),
    Object(Vec<(Key, Template)>),
}

#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Text(String),
    Expr(Expr),
}

#[derive(Debug, Clone)]
pub(crate) enum Key {
    Always(String),
    /// Only if the value is not null.
    NotNull(String),
    /// The fields of the value, if this holds.
    If(Expr),
}

impl TryFrom<String> for Template {
    type Error = String;

    /// Parses JSON, or a text that is a message.
    fn try_from(text: String) -> Result<Self, String> {
        Self::of_json(&text).unwrap_or_else(|| Self::of_text(&text))
    }
}

impl Template {
    /// Parses a text that is a JSON array or object; `None` if it is not.
    pub(crate) fn of_json(text: &str) -> Option<Result<Self, String>> {
        if !text.trim_start().starts_with(['[', '{']) {
            return None;
        }
        let value = serde_json::from_str::<Value>(text).ok()?;
        Some(Self::of_value(&value))
    }

    fn of_value(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::of_text(text)?,
            Value::Array(list) => match list.as_slice() {
                [Value::String(begin), element] if begin.starts_with("$for ") => {
                    let list = &begin["$for ".len()..];
                    let named = list.split_once(" in ");
                    let named = named.filter(|(name, _)| is_name(name));
                    let (name, list) = named.unwrap_or(("item", list));
                    let element = Self::of_value(element)?;
                    Self::Each(name.to_owned(), Expr::parse(list)?, Box::new(element))
                }
                _ => Self::List(list.iter().map(Self::of_value).collect::<Result<_, _>>()?),
            },
            Value::Object(object) => {
                let field = |(key, value): (&String, &Value)| {
                    let key = if let Some(condition) = key.strip_prefix("$if ") {
                        Key::If(Expr::parse(condition)?)
                    } else if let Some(name) = key.strip_suffix('?') {
                        Key::NotNull(name.to_owned())
                    } else {
                        Key::Always(key.clone())
                    };
                    Ok::<_, String>((key, Self::of_value(value)?))
                };
                Self::Object(object.iter().map(field).collect::<Result<_, _>>()?)
            }
            fixed => Self::Fixed(fixed.clone()),
        })
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (inner, after) = after.split_once('}').ok_or("a `{` without its `}`")?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Expr(Expr::parse(inner)?));
            rest = after;
        }
        if pieces.is_empty() {
            return Ok(Self::Fixed(Value::String(text.to_owned())));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(match pieces.as_slice() {
            [Piece::Expr(only)] => Self::Expr(only.clone()),
            _ => Self::Text(pieces),
        })
    }

    pub(crate) fn render(&self, scope: &Scope<'_>) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Expr(expr) => expr.value(scope),
            Self::Text(_) => Value::String(self.text(scope)),
            Self::List(list) => list.iter().map(|one| one.render(scope)).collect(),
            Self::Each(name, list, element) => {
                let list = list.eval(scope);
                let items = list.as_array().into_iter().flatten().enumerate();
                let render =
                    |(at, item)| scope.with_element(name, at, item, |inner| element.render(inner));
                items.map(render).collect()
            }
            Self::Object(fields) => {
                let mut object = Map::new();
                for (key, value) in fields {
                    match key {
                        Key::Always(name) => {
                            object.insert(name.clone(), value.render(scope));
                        }
                        Key::NotNull(name) => {
                            let value = value.render(scope);
                            if !value.is_null() {
                                object.insert(name.clone(), value);
                            }
                        }
                        Key::If(condition) => {
                            if condition.is_true(scope)
                                && let Value::Object(more) = value.render(scope)
                            {
                                object.extend(more);
                            }
                        }
                    }
                }
                Value::Object(object)
            }
        }
    }

    /// As a text: strings inside of it without quotes, null as nothing.
    pub(crate) fn text(&self, scope: &Scope<'_>) -> String {
        match self {
            Self::Text(pieces) => {
                let piece = |piece: &Piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Expr(expr) => plain(&expr.eval(scope)),
                };
                pieces.iter().map(piece).collect()
            }
            other => plain(&other.render(scope)),
        }
    }
}
