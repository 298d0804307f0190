//! Random inputs: stream events, golden cases with damage, and requests and responses from the templates in `tests/templates`.

use std::fmt;
use std::ops::Deref;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};
use tollgate_chat::hub::Event;
use tollgate_chat::{FORMATS, Format};

use crate::harness::{FINISH_REASONS, event, files, parse};

/// A format that proptest can print.
#[derive(Clone, Copy)]
pub(crate) struct AnyFormat(&'static dyn Format);

impl Deref for AnyFormat {
    type Target = dyn Format;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl fmt::Debug for AnyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

pub(crate) fn any_format() -> impl Strategy<Value = AnyFormat> {
    prop::sample::select(FORMATS.iter().copied().map(AnyFormat).collect::<Vec<_>>())
}

/// Any event, in any order.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let choice = prop_oneof![6 => Just(0_u32), 1 => Just(1), 1 => Just(2)];
    let text = "[a-z \"\n{}:é猫\\\\]{0,5}";
    let vendor = prop::sample::select(vec!["anthropic", "gemini", "openai"]);
    let signature = proptest::option::of(
        (vendor, "[a-zA-Z0-9]{1,4}").prop_map(|(vendor, data)| json!([vendor, data])),
    );
    let finish = prop::sample::select(FINISH_REASONS).prop_map(|finish| format!("{finish:?}"));
    (
        choice,
        0..3_u32,
        text,
        any::<bool>(),
        signature,
        finish,
        0..22_u8,
    )
        .prop_map(|(choice, call, text, flag, signature, finish, kind)| {
            let mut value = match kind {
                0 => json!({"start": {"id": text, "model": "up"}}),
                1..=4 => json!({"text": text}),
                5 => json!({"text_end": signature}),
                6 => json!({"reasoning": text, "summary": flag}),
                7 => json!({"reasoning_end": signature}),
                8 => json!({"redacted": ["anthropic", text]}),
                9 => json!({"refusal": text}),
                10..=12 => json!({"tool_start": call, "id": text, "name": "f", "custom": flag}),
                13..=15 => json!({"arguments": text, "call": call}),
                16 => json!({"tool_end": call, "signature": signature}),
                17 => json!({"citation": {"url": text, "start": 0, "end": 1}}),
                18 => json!({"part": parts()[call as usize * 2 + usize::from(flag)]}),
                19 => json!({"usage": {"input": call, "output": call}}),
                20 if flag => json!({"logprobs": {"content": [{"token": "a", "logprob": -1.0}]}}),
                _ => json!({"finish": finish}),
            };
            value["choice"] = json!(choice);
            event(&value)
        })
}

fn parts() -> [Value; 6] {
    [
        json!({"text": "part"}),
        json!({"refusal": "no"}),
        json!({"tool_call": {"id": "i.d", "name": "f", "arguments": "{\"a\":1}"}}),
        json!({"tool_call": {"id": "x", "name": "f", "arguments": "free", "custom": true, "signature": ["gemini", "c2ln"]}}),
        json!({"format_specific": ["messages", {"type": "server_tool_use", "id": "s", "name": "n", "input": {"a": 1}}]}),
        json!({"image": ["image/png", "iVBORw0KGgo="]}),
    ]
}

/// A format and one of its golden cases with some bytes and JSON values changed, removed or repeated.
pub(crate) fn damaged_case() -> impl Strategy<Value = (AnyFormat, Vec<u8>)> {
    let mut cases = Vec::new();
    for format in FORMATS {
        for kind in ["requests", "replies", "streams"] {
            let paths = files(&format!("golden/{}/{kind}", format.name()));
            cases.extend(
                paths
                    .iter()
                    .map(|path| (AnyFormat(*format), std::fs::read(path).unwrap())),
            );
        }
    }
    let change = (any::<Index>(), any::<u8>(), 0..6_u8);
    let changes = prop::collection::vec(change, 0..6);
    (prop::sample::select(cases), changes).prop_map(|((format, mut bytes), changes)| {
        for (at, byte, kind) in changes {
            if !bytes.is_empty() {
                damage(&mut bytes, at, byte, kind);
            }
        }
        (format, bytes)
    })
}

fn damage(bytes: &mut Vec<u8>, at: Index, byte: u8, kind: u8) {
    const VALUES: [&str; 9] = [
        "null",
        "true",
        "-1",
        "1e400",
        "\"\"",
        "[]",
        "{}",
        "[{}]",
        "\"tg1.x.y\"",
    ];
    let start = at.index(bytes.len());
    let end = (start + usize::from(byte) % 12).min(bytes.len());
    match kind {
        0 => bytes[start] = byte,
        1 => bytes.truncate(start),
        2 => drop(bytes.drain(start..end)),
        3 => bytes.insert(start, br#"{}[]",:0e-."#[usize::from(byte) % 11]),
        4 => {
            let again = bytes[start..end].to_vec();
            bytes.splice(start..start, again);
        }
        _ => {
            let ends: Vec<usize> = memchr::memmem::find_iter(bytes, "\":")
                .map(|at| at + 2)
                .collect();
            if !ends.is_empty() {
                let start = ends[at.index(ends.len())];
                let length = bytes[start..]
                    .iter()
                    .position(|byte| b",}\n".contains(byte));
                let end = length.map_or(bytes.len(), |length| start + length);
                bytes.splice(start..end, VALUES[usize::from(byte) % VALUES.len()].bytes());
            }
        }
    }
}

/// A format and a value of its template `kind` ("request" or "response").
pub(crate) fn from_template(kind: &'static str) -> impl Strategy<Value = (AnyFormat, Value)> {
    let mut templates = Vec::new();
    for path in files("templates") {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
        let template = parse(&std::fs::read(&path).unwrap())[kind].take();
        if !template.is_null() {
            templates.push((AnyFormat(tollgate_chat::by_name(name).unwrap()), template));
        }
    }
    let numbers = prop::collection::vec(any::<u16>(), 400);
    (prop::sample::select(templates), numbers).prop_map(|((format, template), numbers)| {
        let mut choices = Choices { numbers, used: 0 };
        (format, choices.fill(&template).unwrap())
    })
}

/// Fills in a template: `$text` is a random text, `{"$any": […]}` one item, `{"$list": […]}` a list of 1 to 3 items, `{"$concat": […]}`
/// 1 to 5 of the lists joined, `{"$merge": […]}` the objects merged, and `{"$maybe": X}` is left out two times in three.
struct Choices {
    numbers: Vec<u16>,
    used: usize,
}

impl Choices {
    fn below(&mut self, max: usize) -> usize {
        self.used += 1;
        usize::from(self.numbers[self.used % self.numbers.len()]) % max
    }

    fn pick(&mut self, items: &[Value], max: usize) -> Vec<Value> {
        let count = 1 + self.below(max);
        (0..count)
            .filter_map(|_| {
                let at = self.below(items.len());
                self.fill(&items[at])
            })
            .collect()
    }

    fn fill(&mut self, template: &Value) -> Option<Value> {
        const TEXTS: [&str; 7] = ["a", "b c", " \"q\" \\", "é猫", "\nx", "_1", "data: {}\n\nz"];
        if template == "$text" {
            return Some(json!(TEXTS[self.below(TEXTS.len())]));
        }
        match template {
            Value::Array(items) => Some(items.iter().filter_map(|item| self.fill(item)).collect()),
            Value::Object(members) => match members.iter().next() {
                Some((name, inner)) if name.starts_with('$') => self.fill_directive(name, inner),
                _ => {
                    let filled = members
                        .iter()
                        .filter_map(|(name, value)| Some((name.clone(), self.fill(value)?)));
                    Some(Value::Object(filled.collect()))
                }
            },
            other => Some(other.clone()),
        }
    }

    fn fill_directive(&mut self, name: &str, inner: &Value) -> Option<Value> {
        let items = || inner.as_array().unwrap();
        match name {
            "$maybe" if self.below(3) > 0 => None,
            "$maybe" => self.fill(inner),
            "$any" => self.pick(items(), 1).pop(),
            "$list" => Some(self.pick(items(), 3).into()),
            "$concat" => {
                let lists = self.pick(items(), 5).into_iter();
                Some(
                    lists
                        .flat_map(|list| list.as_array().cloned().unwrap())
                        .collect(),
                )
            }
            "$merge" => {
                let mut out = Map::new();
                for object in items().iter().filter_map(|item| self.fill(item)) {
                    out.extend(object.as_object().cloned().unwrap());
                }
                Some(Value::Object(out))
            }
            other => panic!("{other} is no directive"),
        }
    }
}
