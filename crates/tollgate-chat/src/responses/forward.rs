//! Requests and replies passed on between equal formats: the bytes as they are, but for the few that must change.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::reply::check_status;
use super::stream_read::malformed;
use super::usage::WireUsage;
use crate::error::{Bad, Garbled};
use crate::format::{Answer, Target};
use crate::hub::{ModelTraits, Sampling, Thinking, Usage};

/// Replacements of spans of a text.
pub(super) struct Edits<'a> {
    text: &'a str,
    list: Vec<(Range<usize>, Cow<'a, str>)>,
}

impl<'a> Edits<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            list: Vec::new(),
        }
    }

    /// Replaces `value`, which was borrowed from the text, unless it reads so already.
    pub(super) fn set(&mut self, value: &RawValue, new: impl Into<Cow<'a, str>>) {
        let new = new.into();
        let value = value.get();
        let start = (value.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let span = start..start.saturating_add(value.len());
        if value != new && self.text.get(span.clone()) == Some(value) {
            self.list.push((span, new));
        }
    }

    /// The text with the replacements made; none where there are none.
    pub(super) fn done(mut self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        self.list.sort_by_key(|edit| edit.0.start);
        let more: usize = self.list.iter().map(|edit| edit.1.len()).sum();
        let mut out = String::with_capacity(self.text.len() + more);
        let mut at = 0;
        for (span, new) in &self.list {
            out.push_str(self.text.get(at..span.start).unwrap_or_default());
            out.push_str(new);
            at = at.max(span.end);
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        Some(out)
    }
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[derive(Deserialize)]
struct RequestBody<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReasoningBody<'a> {
    #[serde(borrow)]
    effort: Option<&'a RawValue>,
}

/// See [`crate::Format::forward_request`].
pub(super) fn forward_request(body: &Bytes, target: &Target<'_>) -> Result<Bytes, Bad> {
    let text = std::str::from_utf8(body).map_err(|_| Bad::body("the body is not UTF-8"))?;
    let wire: RequestBody<'_> = serde_json::from_str(text)
        .map_err(|error| Bad::body(format!("the body is not valid JSON: {error}")))?;
    let mut edits = Edits::of(text);
    if let Some(model) = wire.model {
        edits.set(model, quoted(target.model));
    }
    mend(&wire, target.traits, &mut edits);
    Ok(edits.done().map_or_else(|| body.clone(), Bytes::from))
}

/// Takes out what the model refuses: null counts as absent.
fn mend(wire: &RequestBody<'_>, traits: &ModelTraits, edits: &mut Edits<'_>) {
    let mut remove = |value: Option<&RawValue>| {
        if let Some(value) = value {
            edits.set(value, "null");
        }
    };
    match traits.sampling {
        Sampling::All => {}
        Sampling::One if wire.temperature.is_some() => remove(wire.top_p),
        Sampling::One => {}
        Sampling::None => {
            remove(wire.temperature);
            remove(wire.top_p);
        }
    }
    if traits.thinking == Thinking::No {
        remove(wire.reasoning);
    }
    let cannot_disable = matches!(
        traits.thinking,
        Thinking::Effort { can_disable: false }
            | Thinking::Budget {
                can_disable: false,
                ..
            }
    );
    let reasoning = wire.reasoning.filter(|_| cannot_disable);
    let effort =
        reasoning.and_then(|raw| serde_json::from_str::<ReasoningBody<'_>>(raw.get()).ok());
    if let Some(effort) = effort
        .and_then(|body| body.effort)
        .filter(|e| e.get() == "\"none\"")
    {
        edits.set(effort, "\"low\"");
    }
    if let (Some(cap), Some(most)) = (wire.max_output_tokens, traits.max_output)
        && cap.get().parse::<u64>().is_ok_and(|asked| asked > most)
    {
        edits.set(cap, most.to_string());
    }
    if let Some(choice) = wire
        .tool_choice
        .filter(|raw| !traits.forced_tools && is_forced(raw))
    {
        edits.set(choice, "\"auto\"");
    }
}

fn is_forced(choice: &RawValue) -> bool {
    match serde_json::from_str::<Value>(choice.get()) {
        Ok(Value::String(word)) => word == "required",
        Ok(value) if value["type"] == "allowed_tools" => value["mode"] == "required",
        Ok(value) => value.is_object(),
        Err(_) => false,
    }
}

#[derive(Deserialize)]
struct ReplyBody<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    error: Option<Value>,
    usage: Option<&'a RawValue>,
    output: Option<TextBytes>,
}

/// See [`crate::Format::forward_reply`].
pub(super) fn forward_reply(body: &Bytes, model: &str) -> Result<Answer, Garbled> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Garbled::Malformed("a reply is not UTF-8".to_owned()))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Garbled::Malformed("a reply is no object".to_owned()));
    }
    let wire: ReplyBody<'_> = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    // A run in the background answers before it is finished; only its own client asked for that.
    let status = wire.status.as_deref();
    if !matches!(status, Some("queued" | "in_progress")) {
        let error = wire.error.unwrap_or(Value::Null);
        check_status(status, &serde_json::json!({"error": error}))?;
        if wire.output.is_none() {
            return Err(Garbled::Malformed("a reply without output".to_owned()));
        }
    }
    let mut edits = Edits::of(text);
    if let Some(named) = wire.model {
        edits.set(named, quoted(model));
    }
    Ok(Answer {
        usage: wire.usage.and_then(usage_of),
        text_bytes: wire.output.map_or(0, |bytes| bytes.0),
        body: edits.done().map_or_else(|| body.clone(), Bytes::from),
    })
}

/// The counts; none where they are no object.
pub(super) fn usage_of(raw: &RawValue) -> Option<Usage> {
    let wire: Option<WireUsage> = serde_json::from_str(raw.get()).ok()?;
    wire.map(Usage::from)
}

/// How many bytes of visible text, thinking and arguments a value holds. Reads any value, keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextBytes(pub(super) u64);

/// Members that hold such text, or hold what holds it.
const TEXT_MEMBERS: [&str; 7] = [
    "text",
    "refusal",
    "arguments",
    "input",
    "content",
    "summary",
    "delta",
];

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(TextBytes)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<u64, E> {
        Ok(text.len() as u64)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut sum = 0;
        while let Some(TextBytes(more)) = list.next_element()? {
            sum += more;
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut sum = 0;
        while let Some(IsText(is_text)) = map.next_key()? {
            if is_text {
                sum += map.next_value::<TextBytes>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(sum)
    }
}

/// Whether a member's name is one of [`TEXT_MEMBERS`].
struct IsText(bool);

impl<'de> Deserialize<'de> for IsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = IsText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<IsText, E> {
                Ok(IsText(TEXT_MEMBERS.contains(&name)))
            }
        }
        deserializer.deserialize_str(Name)
    }
}
