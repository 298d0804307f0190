//! Evaluates expressions and renders templates.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::functions;
use super::scope::{Bindings, Local, Scope};
use super::syntax::{Expr, Key, Piece, Template};
use super::values::{elements, equal, number, plain, truthy};

static NULL: Value = Value::Null;

impl Expr {
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
            Self::Call(name, arguments) => call(name, arguments, scope),
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

/// Calls a function. The first ones evaluate only those of their arguments that they need, or evaluate them for each element of a list.
fn call(name: &str, arguments: &[Expr], scope: &Scope<'_>) -> Value {
    match (name, arguments) {
        ("if", [condition, yes, no @ ..]) => {
            let chosen = if condition.is_true(scope) {
                Some(yes)
            } else {
                no.first()
            };
            chosen.map_or(Value::Null, |chosen| chosen.value(scope))
        }
        (
            "map" | "filter" | "any" | "all" | "count" | "first" | "runs" | "sections",
            [list, each],
        ) => {
            let list = list.eval(scope);
            call_for_elements(name, elements(&list), each, scope)
        }
        _ => {
            let values: Vec<_> = arguments.iter().map(|one| one.eval(scope)).collect();
            let values: Vec<&Value> = values.iter().map(|value| &**value).collect();
            functions::call(name, &values, scope)
        }
    }
}

fn call_for_elements(name: &str, list: &[Value], each: &Expr, scope: &Scope<'_>) -> Value {
    let eval = |(at, item): (usize, &Value)| {
        scope.with_element("item", at, item, |inner| each.value(inner))
    };
    let mut results = list.iter().enumerate().map(eval);
    match name {
        "map" => results.collect(),
        "any" => json!(results.any(|one| truthy(&one))),
        "all" => json!(results.all(|one| truthy(&one))),
        "count" => json!(results.filter(truthy).count()),
        "first" => {
            let at = results.position(|one| truthy(&one));
            at.map_or(Value::Null, |at| list[at].clone())
        }
        "filter" => {
            let kept = list.iter().zip(results).filter(|(_, keep)| truthy(keep));
            kept.map(|(one, _)| one.clone()).collect()
        }
        // Splits the list: `runs` into pieces of elements with the same result, `sections` into pieces that begin at elements whose result is true.
        _ => {
            let keys: Vec<Value> = results.collect();
            let begins = |at: usize| match name {
                "runs" => keys[at - 1] != keys[at],
                _ => truthy(&keys[at]),
            };
            let mut pieces: Vec<Vec<Value>> = Vec::new();
            for (at, one) in list.iter().enumerate() {
                match pieces.last_mut() {
                    Some(piece) if !begins(at) => piece.push(one.clone()),
                    _ => pieces.push(vec![one.clone()]),
                }
            }
            json!(pieces)
        }
    }
}

impl Template {
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

    /// The value as a text: strings within the value without quotes, null as an empty text.
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

impl<'a> Scope<'a> {
    /// The value of a name; null if the name is not defined.
    pub(crate) fn get(&self, name: &str) -> Cow<'a, Value> {
        if let Some(value) = self.first.and_then(|first| first.get(name)) {
            return Cow::Borrowed(value);
        }
        let mut local = self.local;
        while let Some(one) = local {
            if one.name == name {
                return Cow::Borrowed(one.value);
            }
            let of_item = one.name == "item" && name == "at";
            if of_item || name.strip_suffix("_at") == Some(one.name) {
                return Cow::Owned(json!(one.at));
            }
            local = one.outer;
        }
        if name == "body" {
            return Cow::Borrowed(self.body);
        }
        if let Some(value) = self.vars.get(name) {
            return Cow::Borrowed(value);
        }
        let definitions = self.definitions.and_then(|all| all.get(name));
        let definition = definitions.or_else(|| self.shared.and_then(|all| all.get(name)));
        if let Some(expr) = definition {
            return expr.eval(self);
        }
        let known = self.body.get(name).or_else(|| self.tables.get(name));
        known.map_or_else(
            || Cow::Owned(self.built_in(name).unwrap_or_default()),
            Cow::Borrowed,
        )
    }

    /// Evaluates with bindings: each is evaluated in the scope of those before it.
    pub(crate) fn with_bindings<T>(
        &self,
        bindings: &Bindings,
        f: &mut dyn FnMut(&Scope<'_>) -> T,
    ) -> T {
        self.with_each(&bindings.0, f)
    }

    fn with_each<T>(&self, bindings: &[(String, Expr)], f: &mut dyn FnMut(&Scope<'_>) -> T) -> T {
        let Some(((name, expr), rest)) = bindings.split_first() else {
            return f(self);
        };
        let value = expr.eval(self);
        let local = Local {
            name,
            value: &value,
            at: None,
            outer: self.local,
        };
        let inner = Scope {
            local: Some(&local),
            ..*self
        };
        inner.with_each(rest, f)
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
            // An expression that cannot be parsed has no expected value.
            assert_eq!(value.ok().as_ref(), row.get(1), "{row}");
        }
    }
}
