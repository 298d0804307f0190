//! The expressions in the tables of the providers: conditions of rules, computed values, and the
//! placeholders of templates. The functions are in [`super::functions`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use super::functions;
use super::scope::Scope;
use super::template::Template;

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
    /// A complete text that is JSON is a template.
    Template(Box<Template>),
}

/// A binary operator, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operator(&'static str);

/// The binary operators, the loosest level first.
const LEVELS: &[&[&str]] = &[
    &["or"],
    &["and"],
    &["=", "!=", "<=", ">=", "<", ">", "in"],
    &["??"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The level above which `not` binds.
const NOT_LEVEL: usize = 2;

impl TryFrom<String> for Expr {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match Template::of_json(&text) {
            Some(template) => Ok(Self::Template(Box::new(template?))),
            None => Self::parse(&text),
        }
    }
}

static NULL: Value = Value::Null;

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

    /// Whether the value is neither null nor false.
    pub(crate) fn is_true(&self, scope: &Scope<'_>) -> bool {
        truthy(&self.eval(scope))
    }

    pub(crate) fn value(&self, scope: &Scope<'_>) -> Value {
        self.eval(scope).into_owned()
    }

    pub(crate) fn eval<'a>(&'a self, scope: &Scope<'a>) -> Cow<'a, Value> {
        let computed = match self {
            Self::Literal(value) => return Cow::Borrowed(value),
            Self::Name(name) => return scope.get(name),
            Self::Field(of, name) => {
                return match of.eval(scope) {
                    Cow::Borrowed(of) => Cow::Borrowed(of.get(name).unwrap_or(&NULL)),
                    Cow::Owned(mut of) => {
                        let field = of.get_mut(name).map(Value::take);
                        Cow::Owned(field.unwrap_or_default())
                    }
                };
            }
            Self::Index(of, at) => {
                let at = at.eval(scope);
                return match of.eval(scope) {
                    Cow::Borrowed(of) => Cow::Borrowed(element(of, &at).unwrap_or(&NULL)),
                    Cow::Owned(of) => Cow::Owned(element(&of, &at).cloned().unwrap_or_default()),
                };
            }
            Self::List(list) => list.iter().map(|one| one.value(scope)).collect(),
            Self::Not(inner) => json!(!inner.is_true(scope)),
            Self::Binary(left, op, right) => return binary(left, op.0, right, scope),
            Self::Call(name, arguments) => functions::call(name, arguments, scope),
            Self::Template(template) => template.render(scope),
        };
        Cow::Owned(computed)
    }
}

fn element<'a>(of: &'a Value, at: &Value) -> Option<&'a Value> {
    match at {
        Value::String(key) => of.get(key),
        _ => of.get(at.as_u64()? as usize),
    }
}

pub(crate) fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn binary<'a>(left: &'a Expr, op: &str, right: &'a Expr, scope: &Scope<'a>) -> Cow<'a, Value> {
    let first = left.eval(scope);
    match op {
        "or" if truthy(&first) => return Cow::Owned(json!(true)),
        "and" if !truthy(&first) => return Cow::Owned(json!(false)),
        "??" if !first.is_null() => return first,
        "??" => return right.eval(scope),
        _ => {}
    }
    let second = right.eval(scope);
    let numbers = first.as_f64().zip(second.as_f64());
    let compare = |test: fn(f64, f64) -> bool| json!(numbers.is_some_and(|(a, b)| test(a, b)));
    let compute = |f: fn(f64, f64) -> f64| numbers.map_or(Value::Null, |(a, b)| number(f(a, b)));
    Cow::Owned(match op {
        "or" | "and" => json!(truthy(&second)),
        "=" => json!(equal(&first, &second)),
        "!=" => json!(!equal(&first, &second)),
        "<" => compare(|a, b| a < b),
        "<=" => compare(|a, b| a <= b),
        ">" => compare(|a, b| a > b),
        ">=" => compare(|a, b| a >= b),
        "+" => match (&*first, &*second) {
            (Value::String(_), _) | (_, Value::String(_)) => json!(plain(&first) + &plain(&second)),
            (Value::Array(a), Value::Array(b)) => json!([&a[..], b].concat()),
            _ => compute(|a, b| a + b),
        },
        "-" => compute(|a, b| a - b),
        "*" => compute(|a, b| a * b),
        "/" => compute(|a, b| a / b),
        "%" => compute(|a, b| a % b),
        _ => json!(match (&*first, &*second) {
            (one, Value::Array(list)) => list.iter().any(|known| equal(known, one)),
            (Value::String(key), Value::Object(object)) => object.contains_key(key),
            (Value::String(part), Value::String(text)) => text.contains(part.as_str()),
            _ => false,
        }),
    })
}

/// A value as text: a string without quotes, null as nothing.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A number as JSON, an integer if it is one.
pub(crate) fn number(n: f64) -> Value {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        json!(n as i64)
    } else {
        json!(n)
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Takes an operator or a mark if it comes next; words only if they end there.
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    #[test]
    fn expressions_and_templates_are_evaluated() {
        let body = json!({"n": 3, "size": "64x32", "list": [{"a": 1}, {"a": 2}], "off": false});
        for row in include_str!("../../tests/cases/expressions.jsonl").lines() {
            let row: Value = serde_json::from_str(row).expect("a text and its value");
            let (vars, tables) = (Map::new(), Map::new());
            let text = row[0]
                .as_str()
                .map_or_else(|| row[0].to_string(), str::to_owned);
            let value =
                Expr::try_from(text).map(|expr| expr.value(&Scope::new(&vars, &body, &tables)));
            // An expression that cannot be parsed has no value.
            assert_eq!(value.ok().as_ref(), row.get(1), "{row}");
        }
    }
}
