//! Every setting there is: its place in the tree, for telling known names from unknown ones.
//!
//! A setting is known here when CONTRACT.md › Configuration knows it, also where a later part of the
//! gateway reads it.

use super::ConfigError;
use super::tree::{Node, Place, Table, Value, parse_variable};

/// What stands at one place of the tree.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// One text, number or switch.
    Value,
    /// A list of values, or of tables with these names.
    Values(&'static [Named]),
    /// A table.
    Table(&'static [Named]),
    /// A list of tables, `[[name]]`.
    Tables(&'static [Named]),
    /// A table whose names are the operator's (model ids), each a table of these.
    Map(&'static [Named]),
    /// A table that a channel's provider checks.
    Free,
}

type Named = (&'static str, Shape);

use Shape::{Free, Map, Tables, Value as One, Values};

/// The whole file.
pub(super) const ROOT: &[Named] = &[
    ("admin", Shape::Table(&[("key", One)])),
    ("channel", Tables(CHANNEL)),
    ("chat", Shape::Table(&[("default_max_tokens", One)])),
    ("currency", One),
    ("data_dir", One),
    ("database", Shape::Table(&[("url", One)])),
    ("demo", One),
    ("drain_s", One),
    ("expiry", Shape::Table(EXPIRY)),
    ("leases", Shape::Table(&[("seconds", One)])),
    ("limits", Shape::Table(LIMITS)),
    ("listen", One),
    (
        "media",
        Shape::Table(&[("allow_private_urls", Values(&[]))]),
    ),
    ("model", Tables(&[("name", One), ("like", One)])),
    ("price", Map(PRICE)),
    ("public_url", One),
    ("safety", Shape::Table(SAFETY)),
    ("sandbox", Shape::Table(SANDBOX)),
    ("storage", Shape::Table(STORAGE)),
    ("time_limits", Shape::Table(TIME_LIMITS)),
    (
        "workers",
        Shape::Table(&[("calls", One), ("open", One), ("downloads", One)]),
    ),
];

const CHANNEL: &[Named] = &[
    ("name", One),
    ("kind", One),
    ("base_url", One),
    ("api_keys", Values(&[])),
    (
        "models",
        Values(&[("name", One), ("upstream", One), ("options", Free)]),
    ),
    ("priority", One),
    ("weight", One),
    ("max_concurrency", One),
    ("apis", Values(&[])),
    ("connect_s", One),
    ("first_byte_s", One),
    ("idle_s", One),
    ("poll_ms", One),
    ("options", Free),
];
const EXPIRY: &[Named] = &[
    ("images_s", One),
    ("long_s", One),
    ("tasks_days", One),
    ("tasks_s", One),
];
const LIMITS: &[Named] = &[
    ("body_memory_mb", One),
    ("max_concurrency", One),
    ("max_connections", One),
    ("redis_url", One),
    ("rpm", One),
    ("tpm", One),
];
const PRICE: &[Named] = &[
    ("per_image", One),
    ("when", Tables(PRICE_WHEN)),
    ("per_second", One),
    ("per_video", One),
    ("per_thousand_characters", One),
    ("input_per_million", One),
    ("output_per_million", One),
    ("cached_input_per_million", One),
    ("cache_write_per_million", One),
    ("reasoning_per_million", One),
];
const PRICE_WHEN: &[Named] = &[
    ("size", One),
    ("resolution", One),
    ("quality", One),
    ("per_image", One),
    ("per_second", One),
    ("per_video", One),
];
const SAFETY: &[Named] = &[("patterns", Values(&[])), ("families", Values(&[]))];
const SANDBOX: &[Named] = &[
    ("image_ms", One),
    ("video_ms", One),
    ("speech_ms", One),
    ("chat_ms", One),
];
const STORAGE: &[Named] = &[("url", One), ("endpoint", One), ("region", One)];
const TIME_LIMITS: &[Named] = &[
    ("image_s", One),
    ("video_s", One),
    ("speech_s", One),
    ("chat_connect_s", One),
    ("chat_first_byte_s", One),
    ("chat_idle_s", One),
];

/// Checks that the tree holds only known names, and tables and lists where they belong. `path` is
/// that of `table`, empty for the whole.
pub(super) fn check(
    file: &str,
    path: &str,
    table: &Table,
    known: &'static [Named],
) -> Result<(), ConfigError> {
    for (name, node) in table {
        let path = join(path, name);
        let Some((_, shape)) = known.iter().find(|(known, _)| known == name) else {
            let near = nearest(name, known.iter().map(|(known, _)| *known));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let what = format!("no setting is called {path}{hint}");
            return Err(ConfigError::at(file, &node.place, what));
        };
        check_node(file, &path, node, *shape)?;
    }
    Ok(())
}

fn check_node(file: &str, path: &str, node: &Node, shape: Shape) -> Result<(), ConfigError> {
    let wrong = |takes: String| {
        let what = format!("{path} is {}, but it takes {takes}", node.value.kind());
        Err(ConfigError::at(file, &node.place, what))
    };
    match (shape, &node.value) {
        (One, Value::List(_) | Value::Table(_)) => wrong("one value".to_owned()),
        (One, _) | (Free, Value::Table(_)) => Ok(()),
        (Free, _) => wrong("a table".to_owned()),
        (Shape::Table(known), Value::Table(table)) => check(file, path, table, known),
        (Map(known), Value::Table(table)) => {
            for (name, node) in table {
                let path = join(path, name);
                check_node(file, &path, node, Shape::Table(known))?;
            }
            Ok(())
        }
        (Tables(known), Value::List(items)) => {
            for (at, item) in items.iter().enumerate() {
                let path = format!("{path}[{at}]");
                check_node(file, &path, item, Shape::Table(known))?;
            }
            Ok(())
        }
        (Values(known), Value::List(items)) => {
            for (at, item) in items.iter().enumerate() {
                let path = format!("{path}[{at}]");
                let in_table = matches!(item.value, Value::Table(_)) && !known.is_empty();
                let shape = if in_table { Shape::Table(known) } else { One };
                check_node(file, &path, item, shape)?;
            }
            Ok(())
        }
        (Shape::Table(known), _) => {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            wrong(format!("a table with {}", names.join(", ")))
        }
        (Map(_), _) => wrong("a table by model".to_owned()),
        (Tables(_), _) => wrong("a list of tables".to_owned()),
        (Values(_), _) => wrong("a list".to_owned()),
    }
}

/// Puts a variable's text where its name says. False where it names no setting.
///
/// `segments` are the parts of the name between the `__`, in capitals. A list's element is named by
/// its number from 0, a model by its id with `_` for what is no letter or digit.
pub(super) fn set(
    table: &mut Table,
    known: &'static [Named],
    segments: &[&str],
    variable: &str,
    text: &str,
) -> Result<bool, ConfigError> {
    let [first, rest @ ..] = segments else {
        return Ok(false);
    };
    let lower = first.to_lowercase();
    let Some((name, shape)) = known.iter().find(|(name, _)| *name == lower) else {
        return Ok(false);
    };
    let at = table.iter().position(|(there, _)| there == name);
    let mut node = match at {
        Some(at) => table[at].1.clone(),
        None => empty(*shape, variable),
    };
    if !set_node(&mut node, *shape, rest, variable, text)? {
        return Ok(false);
    }
    match at {
        Some(at) => table[at].1 = node,
        None => table.push(((*name).to_owned(), node)),
    }
    Ok(true)
}

fn set_node(
    node: &mut Node,
    shape: Shape,
    segments: &[&str],
    variable: &str,
    text: &str,
) -> Result<bool, ConfigError> {
    let Some((first, rest)) = segments.split_first() else {
        *node = whole(shape, variable, text)?;
        return Ok(true);
    };
    match (shape, &mut node.value) {
        (Shape::Table(known), Value::Table(table)) => set(table, known, segments, variable, text),
        (Map(known), Value::Table(table)) => {
            let model = table.iter_mut().find(|(name, _)| capitals(name) == *first);
            let Some((_, node)) = model else {
                return Ok(false);
            };
            set_node(node, Shape::Table(known), rest, variable, text)
        }
        (Tables(_) | Values(_), Value::List(items)) => {
            let item = if let Tables(known) = shape {
                Shape::Table(known)
            } else {
                One
            };
            let Some(at) = first.parse().ok().filter(|at: &usize| *at <= items.len()) else {
                return Ok(false);
            };
            let mut node = match items.get(at) {
                Some(node) => node.clone(),
                None => empty(item, variable),
            };
            let known = set_node(&mut node, item, rest, variable, text)?;
            if known && at < items.len() {
                items[at] = node;
            } else if known {
                items.push(node);
            }
            Ok(known)
        }
        // A wrong kind in the file: the check of the whole tree says so.
        _ => Ok(false),
    }
}

/// The value that a variable's whole text is, at a place of this shape.
fn whole(shape: Shape, variable: &str, text: &str) -> Result<Node, ConfigError> {
    let place = Place::Variable(variable.to_owned());
    let raw = |text: &str| Node {
        place: place.clone(),
        value: Value::Raw(text.to_owned()),
    };
    let is_toml = text.trim_start().starts_with(['[', '{']);
    match shape {
        One => Ok(raw(text)),
        Values(_) if !is_toml => Ok(Node {
            place: place.clone(),
            value: Value::List(text.split(',').map(|part| raw(part.trim())).collect()),
        }),
        _ => parse_variable(variable, text).ok_or_else(|| {
            let what = "must be a TOML value, such as [\"a\", \"b\"] or {name = \"a\"}";
            ConfigError::new(format!("{place} {what}"))
        }),
    }
}

fn empty(shape: Shape, variable: &str) -> Node {
    Node {
        place: Place::Variable(variable.to_owned()),
        value: match shape {
            One => Value::Raw(String::new()),
            Values(_) | Tables(_) => Value::List(Vec::new()),
            Shape::Table(_) | Map(_) | Free => Value::Table(Vec::new()),
        },
    }
}

/// A name as it stands in a variable.
fn capitals(name: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(letter).collect()
}

/// `name` below `path`, as TOML writes it.
pub(super) fn join(path: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = if name.chars().all(plain) && !name.is_empty() {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// The known name that somebody who wrote `name` most likely meant.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = 1 + name.chars().count() / 4;
    let by_distance = known.map(|known| (distance(name, known), known));
    let near = by_distance.filter(|(distance, _)| *distance <= far);
    near.min().map(|(_, known)| known)
}

/// How many letters must be put in, left out or changed to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_word() {
        let names = || ROOT.iter().map(|(name, _)| *name);
        assert_eq!(nearest("lisen", names()), Some("listen"));
        assert_eq!(nearest("databse", names()), Some("database"));
        assert_eq!(nearest("channels", names()), Some("channel"));
        assert_eq!(nearest("zebra", names()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
