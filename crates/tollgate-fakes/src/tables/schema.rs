//! Schemas of JSON objects: their fields and the values of these. A value that does not match is a [`Violation`], which each provider reports with
//! its own error message.
//!
//! A field is written `name = "KIND"`, or `"required KIND"`. The kinds: `any`, `bool`, `string`, `string <= 64` (characters), `int`, `int 1..10`,
//! `number 0..2`, `object`, `array`, `(a|b|c)` (one of these texts), `@name` (another schema), `[KIND]`, `[KIND] <= 4` (elements), `KIND or KIND`
//! (the first one with the value's JSON type is used). `"@include" = "name"` includes the fields of another schema.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::path::{JsonPath, PathStyle, camel};
use super::values::number;

/// The kind of a value. `null` counts as an absent field everywhere.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Any,
    Bool,
    /// The maximum number of characters.
    String(usize),
    /// The minimum and maximum, as for numbers.
    Int(f64, f64),
    Number(f64, f64),
    OneOf(Vec<String>),
    Object,
    Array,
    Schema(String),
    /// The maximum number of elements, and their kind.
    List(usize, Box<Kind>),
    Either(Vec<Kind>),
}

/// The fields that an object may have.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Schema {
    pub(crate) fields: Vec<(String, Kind)>,
    required: Vec<String>,
    includes: Vec<String>,
}

pub(crate) type Schemas = HashMap<String, Schema>;

/// A value that does not match the schema, and its path.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) path: JsonPath,
    pub(crate) kind: ViolationKind,
}

#[derive(Debug)]
pub(crate) enum ViolationKind {
    /// The object has a field of this name, which the schema does not have.
    Unknown(String),
    Missing,
    Type {
        expected: &'static str,
        given: &'static str,
    },
    Outside {
        limit: f64,
        below: bool,
    },
    /// The allowed values, and the given one.
    NotOneOf(Vec<String>, String),
    TooLarge {
        max: usize,
        count: usize,
        /// The unit of `max` and `count`: characters or entries.
        unit: &'static str,
    },
}

type Checked = Result<(), Violation>;

impl TryFrom<Map<String, Value>> for Schema {
    type Error = String;

    fn try_from(fields: Map<String, Value>) -> Result<Self, String> {
        let mut schema = Self::default();
        for (name, kind) in fields {
            let text = kind.as_str().ok_or_else(|| format!("{name}: not a text"))?;
            if name == "@include" {
                schema.includes.push(text.to_owned());
                continue;
            }
            let optional = text.strip_prefix("required ");
            if optional.is_some() {
                schema.required.push(name.clone());
            }
            let kind = Kind::parse(optional.unwrap_or(text)).map_err(|e| format!("{name}: {e}"))?;
            schema.fields.push((name, kind));
        }
        Ok(schema)
    }
}

impl Schema {
    fn find<'a>(&'a self, key: &str, schemas: &'a Schemas) -> Option<&'a Kind> {
        let own = self.fields.iter().find(|(name, _)| name == key);
        let mut included = self.includes.iter().filter_map(|name| schemas.get(name));
        own.map(|(_, kind)| kind)
            .or_else(|| included.find_map(|schema| schema.find(key, schemas)))
    }

    fn required<'a>(&'a self, schemas: &'a Schemas) -> Vec<&'a str> {
        let included = self.includes.iter().filter_map(|name| schemas.get(name));
        let mut names: Vec<&str> = included
            .flat_map(|schema| schema.required(schemas))
            .collect();
        names.extend(self.required.iter().map(String::as_str));
        names
    }

    /// The kind of a field. In a style with both spellings, the name may also be in snake case.
    pub(crate) fn field(&self, key: &str, style: PathStyle, schemas: &Schemas) -> Option<Kind> {
        let other = || match style {
            PathStyle::Snake if key.contains('_') => self.find(&camel(key), schemas),
            _ => None,
        };
        self.find(key, schemas).or_else(other).cloned()
    }

    pub(crate) fn check(&self, value: &Value, path: &JsonPath, schemas: &Schemas) -> Checked {
        let Some(object) = value.as_object() else {
            return type_mismatch("an object", value, path);
        };
        for (key, value) in object {
            match self.field(key, path.style, schemas) {
                Some(kind) => kind.check(value, &path.field(key), schemas)?,
                None => return fail(path, ViolationKind::Unknown(key.clone())),
            }
        }
        for name in self.required(schemas) {
            if field(value, name).is_none() {
                return fail(&path.field(name), ViolationKind::Missing);
            }
        }
        Ok(())
    }
}

impl Kind {
    fn parse(text: &str) -> Result<Self, String> {
        let alternatives: Vec<&str> = text.split(" or ").collect();
        if alternatives.len() > 1 {
            let kinds = alternatives.into_iter().map(Self::parse);
            return Ok(Self::Either(kinds.collect::<Result<_, _>>()?));
        }
        let (head, limit) = match text.rsplit_once(" <= ") {
            Some((head, limit)) => (
                head,
                limit.replace('_', "").parse().map_err(|e| format!("{e}"))?,
            ),
            None => (text, usize::MAX),
        };
        let list = head
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let names = head
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let is_plain = list.is_none() && names.is_none();
        let ranged = head.split_once(' ').filter(|_| is_plain);
        let (kind, range) = ranged.unwrap_or((head, ".."));
        let (low, high) = range.split_once("..").ok_or("a range without `..`")?;
        let bound = |text: &str, or: f64| match text.replace('_', "").as_str() {
            "" => Ok(or),
            digits => digits.parse::<f64>().map_err(|e| format!("{digits}: {e}")),
        };
        let (low, high) = (bound(low, f64::MIN)?, bound(high, f64::MAX)?);
        Ok(match (list, names, kind) {
            (Some(element), _, _) => Self::List(limit, Box::new(Self::parse(element)?)),
            (_, Some(names), _) => Self::OneOf(names.split('|').map(str::to_owned).collect()),
            (_, _, "any") => Self::Any,
            (_, _, "bool") => Self::Bool,
            (_, _, "string") => Self::String(limit),
            (_, _, "int") => Self::Int(low, high),
            (_, _, "number") => Self::Number(low, high),
            (_, _, "object") => Self::Object,
            (_, _, "array") => Self::Array,
            (_, _, name) => Self::Schema(name.strip_prefix('@').ok_or("unknown kind")?.to_owned()),
        })
    }

    pub(crate) fn check(&self, value: &Value, path: &JsonPath, schemas: &Schemas) -> Checked {
        if value.is_null() {
            return Ok(());
        }
        if !self.has_type_of(value) {
            return type_mismatch(self.expects(), value, path);
        }
        match (self, value) {
            (Self::String(max), Value::String(text)) => {
                limit_count(text.chars().count(), *max, "characters", path)
            }
            (Self::Int(low, high), _) => match integer(value, path.style) {
                Some(n) => range(n as f64, *low, *high, path),
                None => type_mismatch("an integer", value, path),
            },
            (Self::Number(low, high), _) => {
                range(value.as_f64().unwrap_or_default(), *low, *high, path)
            }
            (Self::OneOf(names), Value::String(text)) => {
                if names.contains(text) {
                    return Ok(());
                }
                fail(path, ViolationKind::NotOneOf(names.clone(), text.clone()))
            }
            (Self::Schema(name), _) => {
                let schema = schemas.get(name);
                schema.map_or(Ok(()), |schema| schema.check(value, path, schemas))
            }
            (Self::List(max, kind), Value::Array(list)) => {
                for (at, one) in list.iter().enumerate() {
                    kind.check(one, &path.at(at), schemas)?;
                }
                limit_count(list.len(), *max, "entries", path)
            }
            (Self::Either(kinds), _) => match kinds.iter().find(|kind| kind.has_type_of(value)) {
                Some(kind) => kind.check(value, path, schemas),
                None => type_mismatch(kinds[0].expects(), value, path),
            },
            _ => Ok(()),
        }
    }

    /// Whether the value has the JSON type of this kind.
    fn has_type_of(&self, value: &Value) -> bool {
        match self {
            Self::Any | Self::Either(_) => true,
            Self::Bool => value.is_boolean(),
            Self::String(_) | Self::OneOf(_) => value.is_string(),
            Self::Int(..) | Self::Number(..) => value.is_number(),
            Self::Object | Self::Schema(_) => value.is_object(),
            Self::Array | Self::List(..) => value.is_array(),
        }
    }

    fn expects(&self) -> &'static str {
        match self {
            Self::Any | Self::Either(_) => "a value",
            Self::Bool => "a boolean",
            Self::String(_) | Self::OneOf(_) => "a string",
            Self::Int(..) => "an integer",
            Self::Number(..) => "a decimal",
            Self::Object | Self::Schema(_) => "an object",
            Self::Array | Self::List(..) => "an array",
        }
    }
}

fn fail(path: &JsonPath, kind: ViolationKind) -> Checked {
    let path = path.clone();
    Err(Violation { path, kind })
}

fn limit_count(count: usize, max: usize, unit: &'static str, path: &JsonPath) -> Checked {
    if count <= max {
        return Ok(());
    }
    fail(path, ViolationKind::TooLarge { max, count, unit })
}

fn range(n: f64, low: f64, high: f64, path: &JsonPath) -> Checked {
    let below = n < low;
    if !below && n <= high {
        return Ok(());
    }
    let limit = if below { low } else { high };
    fail(path, ViolationKind::Outside { limit, below })
}

/// An integer. In a style with both spellings of names, a number such as 40.0 is accepted too.
fn integer(value: &Value, style: PathStyle) -> Option<i64> {
    let round = |n: f64| (style == PathStyle::Snake && n.fract() == 0.0).then_some(n as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(round))
}

fn type_mismatch(expected: &'static str, value: &Value, path: &JsonPath) -> Checked {
    let given = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(n) if n.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    fail(path, ViolationKind::Type { expected, given })
}

impl Violation {
    /// The name of the broken rule.
    pub(crate) fn rule(&self) -> &'static str {
        match self.kind {
            ViolationKind::Unknown(_) => "unknown-field",
            ViolationKind::Missing => "missing-field",
            ViolationKind::Type { .. } => "type",
            ViolationKind::Outside { .. } => "range",
            ViolationKind::NotOneOf(..) => "value",
            ViolationKind::TooLarge {
                unit: "characters", ..
            } => "length",
            ViolationKind::TooLarge { .. } => "too-many",
        }
    }

    /// The variables for the messages of the providers; `text` is a message for providers whose own message is not known.
    pub(crate) fn vars(&self) -> Map<String, Value> {
        let at = self.path.text.clone();
        let field = match &self.kind {
            ViolationKind::Unknown(name) => self.path.field(name).text,
            _ => at.clone(),
        };
        let (more, text) = match &self.kind {
            ViolationKind::Unknown(name) => {
                (json!({"name": name}), format!("unknown field `{field}`"))
            }
            ViolationKind::Missing => (json!({}), format!("missing field `{field}`")),
            ViolationKind::Type { expected, given } => {
                let text = format!("`{field}` must be {expected}, but {given} was given");
                (json!({"expected": expected, "was": given}), text)
            }
            ViolationKind::Outside { limit, below } => {
                let bound = if *below { "least" } else { "most" };
                let text = format!("`{field}` must be at {bound} {limit}");
                (json!({"limit": number(*limit), "below": below}), text)
            }
            ViolationKind::NotOneOf(values, given) => {
                let names = values.join(", ");
                let text = format!("`{field}` must be one of {names}, not {given}");
                (json!({"values": values, "was": given}), text)
            }
            ViolationKind::TooLarge { max, count, unit } => {
                let text = format!("`{field}` has {count} {unit}, at most {max} are allowed");
                (json!({"limit": max, "count": count}), text)
            }
        };
        let mut vars = Map::new();
        vars.insert("parent".to_owned(), json!(at));
        vars.insert("field".to_owned(), json!(field));
        vars.insert("text".to_owned(), json!(text));
        vars.extend(more.as_object().cloned().unwrap_or_default());
        vars
    }
}

/// A field that is present and not null, under either spelling of its name.
fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let found = value.get(name).or_else(|| {
        let mixed = name.bytes().any(|b| b.is_ascii_uppercase());
        mixed.then(|| value.get(super::path::snake(name))).flatten()
    });
    found.filter(|found| !found.is_null())
}
