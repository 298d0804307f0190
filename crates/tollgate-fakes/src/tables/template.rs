//! JSON with placeholders: responses, error bodies, messages.
//!
//! A text `"{expression}"` is replaced by the value; inside of a longer text values are written out.
//! A field `"name?"` is left out if its value is null. The fields of `"$if expression": {…}` are there
//! if it holds. A list `["$for list", element]` has the element once for each `item`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::expr::{Expr, truthy};
use super::scope::Scope;

/// A parsed template.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Template {
    Fixed(Value),
    Expr(Expr),
    Text(Vec<Piece>),
    List(Vec<Template>),
    Each(Expr, Box<Template>),
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
        let is_json =
            text.trim_start().starts_with(['[', '{']) && text.trim_end().ends_with([']', '}']);
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if is_json => Self::of_value(&value),
            _ => Self::of_text(&text),
        }
    }
}

impl Template {
    fn of_value(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::of_text(text)?,
            Value::Array(list) => match list.as_slice() {
                [Value::String(begin), element] if begin.starts_with("$for ") => {
                    let list = Expr::parse(&begin["$for ".len()..])?;
                    Self::Each(list, Box::new(Self::of_value(element)?))
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
            Self::Expr(expr) => expr.eval(scope),
            Self::Text(_) => Value::String(self.text(scope)),
            Self::List(list) => list.iter().map(|one| one.render(scope)).collect(),
            Self::Each(list, element) => {
                let list = list.eval(scope);
                let items = list.as_array().into_iter().flatten().enumerate();
                items
                    .map(|(at, item)| scope.with_item(at, item, |inner| element.render(inner)))
                    .collect()
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
                            if truthy(&condition.eval(scope))
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

    /// As a text: values inside of it without quotes, null as nothing.
    pub(crate) fn text(&self, scope: &Scope<'_>) -> String {
        let written = |value: Value| match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        match self {
            Self::Text(pieces) => {
                let piece = |piece: &Piece| match piece {
                    Piece::Text(text) => text.clone(),
                    Piece::Expr(expr) => written(expr.eval(scope)),
                };
                pieces.iter().map(piece).collect()
            }
            other => written(other.render(scope)),
        }
    }
}
