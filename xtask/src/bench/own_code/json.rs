//! Reading a few fields of a chat completions request: `tollgate_chat::lazy_json` beside `serde_json`, which reads them with the same visitor, into a
//! struct with derived code that ignores the rest, and into a `Value`. All return the same fields.
//!
//! In each round each reader is called many times; their order rotates. A figure is the median of the rounds' processor time per call.

use std::borrow::Cow;
use std::hint::black_box;

use serde::Deserialize;
use serde::de::{DeserializeSeed as _, IgnoredAny, MapAccess, SeqAccess};
use serde_json::{Value, json};
use tollgate_chat::lazy_json::{LazyVisitor, Scalar, VisitWith, next_key, visit_json};

use super::super::table::Table;
use super::medians::{add_medians, cpu_time};

const ROUNDS: usize = 201;
/// The bytes that each reader reads in a round.
const ROUND_BYTES: usize = 2_000_000;
/// The number of messages and the bytes of each message's text: bodies of 1 KB and 54 KB.
const BODIES: [(usize, usize); 2] = [(3, 280), (100, 504)];
const MODEL: &str = "gpt-5";
const MAX_TOKENS: u64 = 400;
const PROSE: &str = "The harbour lies still at dawn, and the first boats return with what they caught in the night. \
    \"Who sails today?\" asks the keeper of the light, who has not slept.\n\
    Nobody replies; the tide turns, the gulls rise from the wall, and the bells of the town ring for the market. ";

type Reader = for<'de> fn(&'de [u8]) -> Result<Fields<'de>, String>;

const READERS: [(&str, Reader); 4] = [
    ("own", read_lazily),
    ("serde_json, same visitor", read_with_visitor),
    ("serde_json, derived struct", read_derived),
    ("serde_json, Value", read_value),
];

/// The names of [`Fields`] in the JSON text.
const NAMES: [&str; 4] = ["model", "stream", "max_tokens", "messages"];

/// What is read of a request.
#[derive(Debug, Default, PartialEq)]
struct Fields<'de> {
    model: Cow<'de, str>,
    stream: Option<bool>,
    max_tokens: Option<u64>,
    /// The number of messages.
    messages: usize,
}

pub(super) fn measure(table: &mut Table) -> Result<(), String> {
    eprintln!("own code: JSON");
    for (messages, text_bytes) in BODIES {
        let body = request_body(messages, text_bytes);
        check_readers(&body, messages)?;
        let what = format!("json, {} bytes, CPU ns each (ratio)", body.len());
        let names = READERS.map(|(name, _)| name);
        add_medians(&what, names, measure_readers(&body), table);
    }
    Ok(())
}

/// The nanoseconds per call of each reader in each round.
fn measure_readers(body: &[u8]) -> [Vec<f64>; READERS.len()] {
    let calls = u32::try_from(ROUND_BYTES / body.len()).unwrap_or(1);
    let mut samples = READERS.map(|_| Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        for step in 0..READERS.len() {
            let at = (round + step) % READERS.len();
            let (_, reader) = READERS[at];
            let before = cpu_time();
            for _ in 0..calls {
                // The result was checked before.
                let _ = black_box(reader(black_box(body)));
            }
            let used = cpu_time().saturating_sub(before);
            samples[at].push(used.as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
    samples
}

/// Fails if a reader does not read the fields of [`request_body`].
fn check_readers(body: &[u8], messages: usize) -> Result<(), String> {
    let expected = Fields {
        model: MODEL.into(),
        stream: Some(true),
        max_tokens: Some(MAX_TOKENS),
        messages,
    };
    for (name, reader) in READERS {
        let fields = reader(body)?;
        if fields != expected {
            return Err(format!("{name}: {fields:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

fn request_body(messages: usize, text_bytes: usize) -> Vec<u8> {
    let text = PROSE.repeat(text_bytes / PROSE.len() + 1);
    let messages: Vec<Value> = (0..messages)
        .map(|at| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": &text[..text_bytes] })
        })
        .collect();
    let request = json!({
        "model": MODEL,
        "messages": messages,
        "temperature": 0.7,
        "stream": true,
        "max_tokens": MAX_TOKENS,
    });
    request.to_string().into_bytes()
}

fn read_lazily(body: &[u8]) -> Result<Fields<'_>, String> {
    let mut fields = Fields::default();
    visit_json(body, Request(&mut fields)).map_err(|error| error.message)?;
    Ok(fields)
}

fn read_with_visitor(body: &[u8]) -> Result<Fields<'_>, String> {
    let mut fields = Fields::default();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    VisitWith(Request(&mut fields))
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|error| error.to_string())?;
    Ok(fields)
}

#[derive(Deserialize)]
struct DerivedRequest<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    stream: Option<bool>,
    max_tokens: Option<u64>,
    messages: Vec<IgnoredAny>,
}

fn read_derived(body: &[u8]) -> Result<Fields<'_>, String> {
    let request: DerivedRequest<'_> =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(Fields {
        model: request.model,
        stream: request.stream,
        max_tokens: request.max_tokens,
        messages: request.messages.len(),
    })
}

fn read_value(body: &[u8]) -> Result<Fields<'_>, String> {
    let mut request: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let model = match request["model"].take() {
        Value::String(model) => model,
        other => return Err(format!("the model is {other}")),
    };
    Ok(Fields {
        model: Cow::Owned(model),
        stream: request["stream"].as_bool(),
        max_tokens: request["max_tokens"].as_u64(),
        messages: request["messages"].as_array().map_or(0, Vec::len),
    })
}

struct Request<'f, 'de>(&'f mut Fields<'de>);

impl<'de> LazyVisitor<'de> for Request<'_, 'de> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let fields = self.0;
        while let Some(key) = next_key(&mut object)? {
            match NAMES.iter().position(|name| *name == key) {
                Some(at) => {
                    let name = NAMES[at];
                    object.next_value_seed(VisitWith(RequestField { fields, name }))?;
                }
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A field of the request.
struct RequestField<'f, 'de> {
    fields: &'f mut Fields<'de>,
    name: &'static str,
}

impl<'de> LazyVisitor<'de> for RequestField<'_, 'de> {
    fn visit_scalar(self, value: Scalar<'de>) {
        let fields = self.fields;
        match (self.name, value) {
            ("model", Scalar::String(model)) => fields.model = model,
            ("stream", Scalar::Bool(flag)) => fields.stream = Some(flag),
            ("max_tokens", Scalar::Integer(max)) => fields.max_tokens = u64::try_from(max).ok(),
            _ => {}
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let mut count = 0;
        while array.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if self.name == "messages" {
            self.fields.messages = count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_reads_the_same_fields() {
        for (messages, text_bytes) in BODIES {
            let body = request_body(messages, text_bytes);
            assert_eq!(check_readers(&body, messages), Ok(()));
        }
    }
}
