//! Requests and replies passed on between equal formats: the same bytes, but for what must change.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::Value;

use super::facts::{Facts, look};
use super::glance::{OTHERS, bit};
use super::request::{self, capped, effort_for};
use super::wire::is_documented;
use crate::error::{Bad, Garbled};
use crate::format::{Answer, Glance, Target};
use crate::hub::{Effort, Sampling};
use crate::scan::{Look, Raw, next_key, scan};

/// One member of an object, as it stands in the text.
struct Member<'a> {
    name: Cow<'a, str>,
    value: &'a str,
    /// What stands in its place.
    change: Change,
}

#[derive(PartialEq)]
enum Change {
    Keep,
    Remove,
    Value(String),
    Name(&'static str),
    Both(&'static str, String),
}

/// Passes a request on.
pub(super) fn request(body: &Bytes, glance: &Glance, target: &Target<'_>) -> Result<Bytes, Bad> {
    if stays(glance, target) {
        return Ok(body.clone());
    }
    changed(body, glance, target)
}

/// Whether nothing of a request has to change, as far as a look at it has shown: most are sent for the model that they name,
/// with nothing in them that some models refuse. What it says no to is looked at member by member.
fn stays(glance: &Glance, target: &Target<'_>) -> bool {
    const CAPS: [u32; 2] = [bit("max_tokens"), bit("max_completion_tokens")];
    const SAMPLING: u32 = bit("temperature") | bit("top_p");
    const STOP: u32 = bit("stop");
    const FORMAT: u32 = bit("response_format");
    let traits = target.traits;
    let has = |bits: u32| glance.members & bits != 0;
    let other_cap = CAPS[usize::from(!traits.max_completion_tokens)];
    let cap_fits = glance
        .max_tokens
        .is_none_or(|asked| capped(asked, traits) == asked);
    glance.members != 0
        && !has(OTHERS | other_cap)
        && cap_fits
        && glance.model.as_deref() == Some(target.model)
        && !(glance.stream || target.stream)
        && (traits.sampling == Sampling::All || !has(SAMPLING))
        && (traits.takes_stop || !has(STOP))
        && (traits.json_schema || !has(FORMAT))
        && !traits.needs_reasoning_back
}

/// The request with what has to change.
fn changed(body: &Bytes, glance: &Glance, target: &Target<'_>) -> Result<Bytes, Bad> {
    let mut members = Vec::with_capacity(16);
    scan(body, Object(&mut members))?;
    if needs_hub(&members, target) {
        let request = request::read(body)?;
        return request::write(&request, target).map(|written| written.body.into());
    }
    let mut body_members = Members(&mut members);
    body_members.model(target.model);
    body_members.cap(target);
    body_members.sampling(target);
    body_members.stop(target)?;
    body_members.tools_and_thinking(target);
    let more = body_members.stream(glance.stream || target.stream);
    if target.traits.strict_fields {
        body_members.strict();
    }
    Ok(spliced(body, &members, more))
}

/// Repairs that need the whole conversation: they are rare, and go the long way.
fn needs_hub(members: &[Member<'_>], target: &Target<'_>) -> bool {
    let value = |name: &str| {
        members
            .iter()
            .find(|member| member.name == name)
            .map(|m| m.value)
    };
    let has_schema =
        || value("response_format").is_some_and(|format| format.contains("\"json_schema\""));
    let lacks_reasoning = || {
        let count =
            |text: &str, word: &str| memchr::memmem::find_iter(text.as_bytes(), word).count();
        value("messages").is_some_and(|text| {
            count(text, "\"tool_calls\"") > count(text, "\"reasoning_content\"")
        })
    };
    (!target.traits.json_schema && has_schema())
        || (target.traits.needs_reasoning_back && lacks_reasoning())
}

struct Members<'m, 'a>(&'m mut Vec<Member<'a>>);

impl<'a> Members<'_, 'a> {
    /// The member of that name, if it is there and not `null`.
    fn find(&mut self, name: &str) -> Option<&mut Member<'a>> {
        self.0
            .iter_mut()
            .find(|member| member.name == name && member.value != "null")
    }

    fn set(&mut self, name: &str, change: Change) {
        if let Some(member) = self.find(name) {
            member.change = change;
        }
    }

    fn model(&mut self, model: &str) {
        let quoted = Value::from(model).to_string();
        if self
            .find("model")
            .is_some_and(|there| there.value != quoted)
        {
            self.set("model", Change::Value(quoted));
        }
    }

    fn cap(&mut self, target: &Target<'_>) {
        const NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];
        let wanted = NAMES[usize::from(target.traits.max_completion_tokens)];
        let both = NAMES.iter().all(|name| self.find(name).is_some());
        for name in NAMES {
            let Some(member) = self.find(name) else {
                continue;
            };
            // Where both are there, the newer name counts.
            if both && name == NAMES[0] {
                member.change = Change::Remove;
                continue;
            }
            let asked = member.value.parse::<u64>().ok();
            let cap = asked.map(|asked| (asked, capped(asked, target.traits)));
            let lower = cap
                .filter(|(asked, cap)| cap < asked)
                .map(|(_, cap)| cap.to_string());
            member.change = match (name == wanted, lower) {
                (true, None) => Change::Keep,
                (true, Some(cap)) => Change::Value(cap),
                (false, None) => Change::Name(wanted),
                (false, Some(cap)) => Change::Both(wanted, cap),
            };
        }
    }

    fn sampling(&mut self, target: &Target<'_>) {
        let both = self.find("temperature").is_some() && self.find("top_p").is_some();
        let refused: &[&str] = match target.traits.sampling {
            Sampling::All => &[],
            Sampling::One if both => &["top_p"],
            Sampling::One => &[],
            Sampling::None => &["temperature", "top_p", "top_k"],
        };
        for name in refused {
            self.set(name, Change::Remove);
        }
    }

    fn stop(&mut self, target: &Target<'_>) -> Result<(), Bad> {
        let stops = self.find("stop").filter(|stop| stop.value != "[]");
        if stops.is_some() && !target.traits.takes_stop {
            return Err(Bad::new("stop", "is nothing that this model takes"));
        }
        Ok(())
    }

    fn tools_and_thinking(&mut self, target: &Target<'_>) {
        if !target.traits.forced_tools {
            let choice = self.find("tool_choice");
            if choice.is_some_and(|choice| !["\"auto\"", "\"none\""].contains(&choice.value)) {
                self.set("tool_choice", Change::Value("\"auto\"".to_owned()));
            }
        }
        let word = self
            .find("reasoning_effort")
            .map(|effort| effort.value.trim_matches('"'));
        if let Some(asked) = word.and_then(Effort::from_word) {
            let change = match effort_for(asked, target.traits.thinking) {
                Some(sent) if sent == asked => Change::Keep,
                Some(sent) => Change::Value(format!("\"{}\"", sent.word())),
                None => Change::Remove,
            };
            self.set("reasoning_effort", change);
        }
    }

    /// Asks for usage in a stream. Gives the member to add where there is none to change.
    fn stream(&mut self, is_stream: bool) -> Option<&'static str> {
        const ASKED: &str = r#"{"include_usage":true}"#;
        if !is_stream {
            return None;
        }
        let Some(options) = self.find("stream_options") else {
            // `null` goes: the member is given anew.
            self.0
                .iter_mut()
                .filter(|m| m.name == "stream_options")
                .for_each(|m| m.change = Change::Remove);
            return Some(r#""stream_options":{"include_usage":true}"#);
        };
        if let Ok(Value::Object(mut map)) = serde_json::from_str(options.value) {
            if map.get("include_usage") != Some(&Value::Bool(true)) {
                map.insert("include_usage".to_owned(), true.into());
                options.change = Change::Value(Value::from(map).to_string());
            }
        } else {
            options.change = Change::Value(ASKED.to_owned());
        }
        None
    }

    fn strict(&mut self) {
        for member in self.0.iter_mut() {
            if !is_documented(&member.name) {
                member.change = Change::Remove;
            }
        }
    }
}

/// Gathers an object's members as they stand.
struct Object<'m, 'a>(&'m mut Vec<Member<'a>>);

impl<'de> Look<'de> for Object<'_, 'de> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = next_key(&mut object)? {
            let value = object.next_value_seed(Raw)?;
            let change = Change::Keep;
            self.0.push(Member {
                name,
                value,
                change,
            });
        }
        Ok(())
    }
}

/// The object again with its changes; the same bytes where there are none.
fn spliced(body: &Bytes, members: &[Member<'_>], more: Option<&str>) -> Bytes {
    if more.is_none() && members.iter().all(|member| member.change == Change::Keep) {
        return body.clone();
    }
    let mut out = String::with_capacity(body.len() + 64);
    for member in members {
        let (name, value) = match &member.change {
            Change::Remove => continue,
            Change::Keep => (&*member.name, member.value),
            Change::Value(value) => (&*member.name, value.as_str()),
            Change::Name(name) => (*name, member.value),
            Change::Both(name, value) => (*name, value.as_str()),
        };
        out.push(if out.is_empty() { '{' } else { ',' });
        push_quoted(&mut out, name);
        out.push(':');
        out.push_str(value);
    }
    if let Some(more) = more {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(more);
    }
    out.push('}');
    out.into()
}

fn push_quoted(out: &mut String, name: &str) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.bytes().all(is_plain) {
        out.extend(["\"", name, "\""]);
    } else {
        out.push_str(&Value::from(name).to_string());
    }
}

/// Passes a whole reply on.
pub(super) fn reply(body: &Bytes, model: &str) -> Result<Answer, Garbled> {
    let facts = look(body)?;
    if facts.choices.is_none() {
        return Err(Garbled::Malformed("the reply has no `choices`".to_owned()));
    }
    let Facts {
        usage, text_bytes, ..
    } = facts;
    let quoted = Value::from(model).to_string();
    let body = match facts.model.filter(|there| *there != quoted) {
        Some(there) => {
            let span = span_of(body, there);
            [&body[..span.start], quoted.as_bytes(), &body[span.end..]]
                .concat()
                .into()
        }
        None => body.clone(),
    };
    Ok(Answer {
        body,
        usage,
        text_bytes,
    })
}

/// Where `piece`, which is a slice of `text`, stands in it.
pub(super) fn span_of(text: &[u8], piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let start = start.min(text.len());
    start..(start + piece.len()).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat_completions::glance::{FIELDS, glance};
    use crate::hub::{ModelTraits, Thinking};

    #[test]
    fn what_stays_by_its_look_stays_member_by_member() {
        let members = [
            r#""max_tokens":5"#,
            r#""max_completion_tokens":5"#,
            r#""max_tokens":null"#,
            r#""temperature":1"#,
            r#""top_p":0.5"#,
            r#""stop":["a"]"#,
            r#""stop":[]"#,
            r#""stream":false"#,
            r#""stream":true"#,
            r#""response_format":{"type":"json_schema"}"#,
            r#""tools":[]"#,
            r#""user":"u""#,
            r#""n":2"#,
            r#""tool_choice":"required""#,
            r#""reasoning_effort":"high""#,
            r#""top_k":3"#,
            r#""store":true"#,
            r#""odd":1"#,
            r#""messages":[{"role":"assistant","tool_calls":[]}]"#,
        ];
        let open = ModelTraits::default();
        let strict = ModelTraits {
            max_output: Some(4),
            sampling: Sampling::None,
            thinking: Thinking::No,
            json_schema: false,
            forced_tools: false,
            max_completion_tokens: !open.max_completion_tokens,
            strict_fields: true,
            needs_reasoning_back: true,
            takes_stop: false,
            ..open
        };
        let renamed = ModelTraits {
            max_completion_tokens: !open.max_completion_tokens,
            strict_fields: true,
            ..open
        };
        let one = ModelTraits {
            sampling: Sampling::One,
            ..open
        };
        let mut stayed = 0;
        for first in 0..members.len() {
            for second in first..members.len() {
                let mut given = vec![r#""model":"m""#, members[first]];
                given.extend((second > first).then_some(members[second]));
                if !given.iter().any(|member| member.contains("messages")) {
                    given.push(r#""messages":[{"role":"user","content":"hi"}]"#);
                }
                let body = Bytes::from(format!("{{{}}}", given.join(",")));
                let Ok(seen) = glance(&body) else { continue };
                for traits in [&open, &strict, &renamed, &one] {
                    for (model, stream) in [("m", false), ("m", true), ("other", false)] {
                        let target = Target {
                            model,
                            stream,
                            traits,
                            default_max_tokens: 9,
                        };
                        if stays(&seen, &target) {
                            stayed += 1;
                            assert_eq!(changed(&body, &seen, &target).unwrap(), body);
                        }
                    }
                }
            }
        }
        assert!(stayed > 150, "{stayed}");
    }

    #[test]
    fn the_look_knows_only_what_is_documented() {
        for (at, (name, _)) in FIELDS.iter().enumerate() {
            assert!(is_documented(name), "{name}");
            assert!(bit(name) == 1 << at && bit(name) != OTHERS, "{name}");
        }
    }
}
