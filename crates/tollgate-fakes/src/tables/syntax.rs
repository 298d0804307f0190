//! Parses the expressions and templates in the tables of the providers. Expressions are conditions of rules, computed values, and the placeholders of
//! templates; their functions are in [`super::functions`].
//!
//! A template is JSON with placeholders; templates define responses, error bodies and messages.
//!
//! A text `"{expression}"` is replaced by the value; inside a longer text, values are inserted as text. A field `"name?"` is omitted if its value is
//! null. The fields of `"$if expression": {…}` are included if the expression is true. A list `["$for NAME in LIST", element]` contains the element
//! once for each entry of the list, which is called NAME and whose number is NAME_at; without `NAME in` they are called `item` and `at`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::values::{is_name, number};

/// A parsed expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Expr {
    Literal(Value),
    List(Vec<Expr>),
    Name(String),
    Field(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Binary(Box<Expr>, Operator, Box<Expr>),
    Call(String, Vec<Expr>),
    /// A template, for a complete text that is JSON.
    Template(Box<Template>),
}

/// A binary operator, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operator(pub(super) &'static str);

/// The binary operators by precedence, the lowest first.
const LEVELS: &[&[&str]] = &[
    &["or"],
    &["and"],
    &["=", "!=", "<=", ">=", "<", ">", "in"],
    &["??"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The level at which `not` is parsed: it negates a complete comparison, and takes precedence over `and` and `or`.
const NOT_LEVEL: usize = 2;

impl TryFrom<String> for Expr {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match Template::from_json(&text) {
            Some(template) => Ok(Self::Template(Box::new(template?))),
            None => Self::parse(&text),
        }
    }
}

impl Expr {
    /// Parses a complete text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let parsed = parser.level(0).map_err(|e| format!("{e} in `{text}`"))?;
        match parser.rest.trim_start() {
            "" => Ok(parsed),
            rest => Err(format!("unexpected `{rest}` in `{text}`")),
        }
    }
}

/// A parsed template.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Template {
    Fixed(Value),
    Expr(Expr),
    Text(Vec<Piece>),
    List(Vec<Template>),
    /// Repeats a template: the name of an element, the list, the template of an element.
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
    /// A field that is omitted if its value is null.
    NotNull(String),
    /// Fields that are included if this expression is true.
    If(Expr),
}

impl TryFrom<String> for Template {
    type Error = String;

    /// Parses JSON, or a text that is a message.
    fn try_from(text: String) -> Result<Self, String> {
        Self::from_json(&text).unwrap_or_else(|| Self::from_text(&text))
    }
}

impl Template {
    /// Parses a text that is a JSON array or object. `None` if it is neither; an error if an expression in it is invalid.
    pub(crate) fn from_json(text: &str) -> Option<Result<Self, String>> {
        if !text.trim_start().starts_with(['[', '{']) {
            return None;
        }
        let value = serde_json::from_str::<Value>(text).ok()?;
        Some(Self::from_value(&value))
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::from_text(text)?,
            Value::Array(list) => match list.as_slice() {
                [Value::String(begin), element] if begin.starts_with("$for ") => {
                    let list = &begin["$for ".len()..];
                    let named = list.split_once(" in ");
                    let named = named.filter(|(name, _)| is_name(name));
                    let (name, list) = named.unwrap_or(("item", list));
                    let element = Self::from_value(element)?;
                    Self::Each(name.to_owned(), Expr::parse(list)?, Box::new(element))
                }
                _ => Self::List(
                    list.iter()
                        .map(Self::from_value)
                        .collect::<Result<_, _>>()?,
                ),
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
                    Ok::<_, String>((key, Self::from_value(value)?))
                };
                Self::Object(object.iter().map(field).collect::<Result<_, _>>()?)
            }
            fixed => Self::Fixed(fixed.clone()),
        })
    }

    fn from_text(text: &str) -> Result<Self, String> {
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
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Consumes an operator or a mark if it comes next; a word only if it ends there.
    fn take(&mut self, mark: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(mark) else {
            return false;
        };
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if is_word(mark.chars().last()) && is_word(rest.chars().next()) {
            return false;
        }
        self.rest = rest;
        true
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        let found = self.take(mark);
        found
            .then_some(())
            .ok_or_else(|| format!("expected `{mark}` before `{}`", self.rest))
    }

    /// Parses operators of this level and of higher ones.
    fn level(&mut self, level: usize) -> Result<Expr, String> {
        if level == NOT_LEVEL && self.take("not") {
            return Ok(Expr::Not(Box::new(self.level(level)?)));
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.postfix();
        };
        let mut left = self.level(level + 1)?;
        while let Some(op) = operators.iter().find(|op| self.take(op)) {
            let right = self.level(level + 1)?;
            left = Expr::Binary(Box::new(left), Operator(op), Box::new(right));
        }
        Ok(left)
    }

    /// Parses a value followed by any number of `[INDEX]` and `.FIELD`.
    fn postfix(&mut self) -> Result<Expr, String> {
        let mut value = self.primary()?;
        loop {
            if self.take("[") {
                value = Expr::Index(Box::new(value), Box::new(self.level(0)?));
                self.expect("]")?;
            } else if self.take(".") {
                value = Expr::Field(Box::new(value), self.word()?.to_owned());
            } else {
                return Ok(value);
            }
        }
    }

    fn word(&mut self) -> Result<&'a str, String> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.rest = rest;
        match word {
            "" => Err(format!("expected a name before `{text}`")),
            word => Ok(word),
        }
    }

    fn primary(&mut self) -> Result<Expr, String> {
        if self.take("(") {
            let inner = self.level(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[") {
            return Ok(Expr::List(self.list("]")?));
        }
        if self.take("'") {
            let (text, rest) = self.rest.split_once('\'').ok_or("a text without an end")?;
            self.rest = rest;
            return Ok(Expr::Literal(json!(text)));
        }
        if self.take("-") {
            let zero = Expr::Literal(json!(0));
            return Ok(Expr::Binary(
                Box::new(zero),
                Operator("-"),
                Box::new(self.postfix()?),
            ));
        }
        let text = self.rest.trim_start();
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
            let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
            self.rest = rest;
            let parsed: Result<f64, _> = digits.replace('_', "").parse();
            let parsed = parsed.map_err(|_| format!("`{digits}` is no number"))?;
            return Ok(Expr::Literal(number(parsed)));
        }
        let word = self.word()?;
        if self.take("(") {
            return Ok(Expr::Call(word.to_owned(), self.list(")")?));
        }
        Ok(match word {
            "null" => Expr::Literal(Value::Null),
            "true" => Expr::Literal(json!(true)),
            "false" => Expr::Literal(json!(false)),
            name => Expr::Name(name.to_owned()),
        })
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut list = Vec::new();
        if self.take(end) {
            return Ok(list);
        }
        loop {
            list.push(self.level(0)?);
            if !self.take(",") {
                self.expect(end)?;
                return Ok(list);
            }
        }
    }
}
