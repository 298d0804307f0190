//! Requests and whole replies between equal formats: the bytes as they are, single members replaced.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::repairs;
use super::stream_read::stream_error;
use super::usage::Counts;
use super::wire::Text;
use crate::error::{InvalidRequest, MalformedResponse};
use crate::format::{ForwardedResponse, RequestSummary, Target};

/// The members of an object, in order, as they stand in the text.
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The value of the member `name`.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|member| member.0 == name);
        found
            .map(|member| member.1)
            .filter(|raw| raw.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(Text(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(All)
    }
}

/// Where `part` stands in `whole`, of which it is a piece.
pub(super) fn span(whole: &[u8], part: &str) -> Range<usize> {
    let from = part.as_ptr() as usize - whole.as_ptr() as usize;
    from..from + part.len()
}

/// The bytes with these places replaced; they do not overlap and are in order.
pub(super) fn spliced(bytes: &[u8], edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let added: usize = edits.iter().map(|edit| edit.1.len()).sum();
    let mut out = Vec::with_capacity(bytes.len() + added);
    let mut done = 0;
    for (place, text) in edits {
        out.extend_from_slice(&bytes[done..place.start]);
        out.extend_from_slice(text.as_bytes());
        done = place.end;
    }
    out.extend_from_slice(&bytes[done..]);
    out
}

/// Passes a request on; see [`crate::Format::forward_request`].
pub(super) fn request(
    body: &Bytes,
    glance: &RequestSummary,
    target: &Target<'_>,
) -> Result<Bytes, InvalidRequest> {
    let members: Members<'_> = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let mut changes = repairs(&members.0, target);
    if glance.model.as_deref() != Some(target.model) {
        changes.push(("model", Some(json!(target.model))));
    }
    if glance.stream != target.stream {
        changes.push(("stream", target.stream.then_some(json!(true))));
    }
    if changes.is_empty() {
        return Ok(body.clone());
    }
    let is_there = |name: &str| members.0.iter().any(|member| member.0 == name);
    let in_place = |(name, value): &(&str, Option<Value>)| value.is_some() && is_there(name);
    if changes.iter().all(in_place) {
        return Ok(Bytes::from(replaced(body, &members, &changes)));
    }
    Ok(Bytes::from(rebuilt(&members, &changes)))
}

/// The same text but for the values of members that are there.
fn replaced(body: &[u8], members: &Members<'_>, changes: &[(&str, Option<Value>)]) -> Vec<u8> {
    let edits: Vec<(Range<usize>, String)> = members
        .0
        .iter()
        .filter_map(|(name, raw)| {
            let change = changes.iter().find(|change| name == change.0)?;
            Some((span(body, raw.get()), change.1.as_ref()?.to_string()))
        })
        .collect();
    spliced(body, &edits)
}

/// The object anew: values that stay are copied as they are, members come and go.
fn rebuilt(members: &Members<'_>, changes: &[(&str, Option<Value>)]) -> Vec<u8> {
    let length: usize = members
        .0
        .iter()
        .map(|m| m.0.len() + m.1.get().len() + 8)
        .sum();
    let mut out = Vec::with_capacity(length + 128);
    let mut put = |name: &str, value: &str| {
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(Value::from(name).to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    };
    for (name, raw) in &members.0 {
        match changes.iter().find(|change| name == change.0) {
            None => put(name, raw.get()),
            Some((_, Some(value))) => put(name, &value.to_string()),
            Some((_, None)) => {}
        }
    }
    let is_there = |name: &str| members.0.iter().any(|member| member.0 == name);
    for (name, value) in changes {
        if let (false, Some(value)) = (is_there(name), value) {
            put(name, &value.to_string());
        }
    }
    out.push(b'}');
    out
}

/// Passes a whole reply on; see [`crate::Format::forward_response`].
pub(super) fn reply(body: &Bytes, model: &str) -> Result<ForwardedResponse, MalformedResponse> {
    let malformed = |why: String| MalformedResponse::Invalid(why);
    let members: Members<'_> = serde_json::from_slice(body)
        .map_err(|error| malformed(format!("the reply is no JSON object: {error}")))?;
    if let Some(error) = members.get("error") {
        return Err(stream_error(error));
    }
    let content = members
        .get("content")
        .ok_or_else(|| malformed("the reply has no content".to_owned()))?;
    let text_bytes =
        text_bytes(content).map_err(|error| malformed(format!("the reply's content: {error}")))?;
    let usage = members.get("usage").map(Counts::of).unwrap_or_default();
    let wanted = Value::from(model).to_string();
    let body = match members.get("model") {
        Some(raw) if raw.get() != wanted => {
            Bytes::from(spliced(body, &[(span(body, raw.get()), wanted)]))
        }
        _ => body.clone(),
    };
    Ok(ForwardedResponse {
        body,
        usage: usage.usage(),
        text_bytes,
    })
}

/// How much was generated: texts, thinking and arguments.
fn text_bytes(content: &RawValue) -> Result<u64, serde_json::Error> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        #[serde(borrow)]
        thinking: Option<&'a RawValue>,
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(content.get())?;
    let length = |raw: &RawValue| match raw.get().strip_prefix('"') {
        // Escapes are few: their length is near enough.
        Some(text) => text.len() as u64 - 1,
        None => raw.get().len() as u64,
    };
    let lengths = blocks
        .iter()
        .flat_map(|block| [block.text, block.thinking, block.input])
        .flatten();
    Ok(lengths.map(length).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{ModelCapabilities, ReasoningControl, SamplingSupport};
    use crate::messages::glance::glance;

    fn forwarded(body: &str, target: &Target<'_>) -> String {
        let body = Bytes::from(body.to_owned());
        let seen = glance(&body).unwrap();
        let sent = request(&body, &seen, target).unwrap();
        String::from_utf8(sent.to_vec()).unwrap()
    }

    fn target(capabilities: &ModelCapabilities) -> Target<'_> {
        Target {
            model: "up",
            stream: false,
            capabilities,
            default_max_tokens: 8192,
        }
    }

    const BODY: &str = r#"{ "model" : "m", "max_tokens": 5, "messages": [{"role":"user","content":"\u00e9 x"}], "temperature": 0.50, "top_p": 1 }"#;

    #[test]
    fn only_the_models_name_changes() {
        let capabilities = ModelCapabilities::default();
        let sent = forwarded(BODY, &target(&capabilities));
        assert_eq!(sent, BODY.replace("\"m\"", "\"up\""));
        let body = Bytes::from(BODY);
        let seen = glance(&body).unwrap();
        let same = Target {
            model: "m",
            ..target(&capabilities)
        };
        let sent = request(&body, &seen, &same).unwrap();
        assert_eq!((sent.as_ptr(), sent.len()), (body.as_ptr(), body.len()));
    }

    #[test]
    fn what_is_missing_is_added() {
        let capabilities = ModelCapabilities::default();
        let body = r#"{"messages":[1],"model":"m","max_tokens":null}"#;
        let expected = r#"{"messages":[1],"model":"up","max_tokens":8192}"#;
        assert_eq!(forwarded(body, &target(&capabilities)), expected);
        let body = r#"{"messages":[1],"model":"m"}"#;
        let streamed = Target {
            stream: true,
            ..target(&capabilities)
        };
        assert_eq!(
            forwarded(body, &streamed),
            r#"{"messages":[1],"model":"up","max_tokens":8192,"stream":true}"#
        );
    }

    #[test]
    fn trap_21_22_sampling_that_the_model_refuses_goes() {
        for (sampling, left) in [
            (
                SamplingSupport::TemperatureOrTopP,
                r#","temperature":0.50}"#,
            ),
            (SamplingSupport::None, "]}"),
        ] {
            let capabilities = ModelCapabilities {
                sampling,
                ..ModelCapabilities::default()
            };
            let sent = forwarded(BODY, &target(&capabilities));
            assert!(sent.ends_with(left), "{sent}");
        }
    }

    #[test]
    fn thinking_becomes_what_the_model_takes() {
        let body = r#"{"model":"up","max_tokens":9000,"messages":[1],"thinking":{"type":"enabled","budget_tokens":4000}}"#;
        let word = ModelCapabilities::default();
        let sent: Value = serde_json::from_str(&forwarded(body, &target(&word))).unwrap();
        assert_eq!(sent["thinking"], json!({"type": "adaptive"}));
        assert_eq!(sent["output_config"], json!({"effort": "medium"}));
        let budget = ModelCapabilities {
            thinking: ReasoningControl::Budget {
                min: 1024,
                max: 32_000,
                can_disable: true,
            },
            max_output_tokens: Some(8000),
            ..ModelCapabilities::default()
        };
        let sent = forwarded(body, &target(&budget));
        assert_eq!(sent, body.replace("9000", "8000"));
    }

    #[test]
    fn replies_keep_their_bytes() {
        let body = r#"{"id":"msg_1", "model":"up","content":[{"type":"text","text":"hey"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":2}}"#;
        let answer = reply(&Bytes::from(body), "m").unwrap();
        assert_eq!(answer.body, body.replace("\"up\"", "\"m\""));
        assert_eq!(answer.text_bytes, 10);
        assert_eq!(answer.usage.unwrap().input, 7);
        for broken in ["", "[]", "{}", "{\"content\":7}"] {
            assert!(reply(&Bytes::from(broken), "m").is_err());
        }
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#;
        assert!(
            matches!(reply(&Bytes::from(error), "m"), Err(MalformedResponse::Upstream(words)) if words.status == Some(529))
        );
    }
}
