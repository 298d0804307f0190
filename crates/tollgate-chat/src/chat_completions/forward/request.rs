//! Passes a request on: the same bytes, or the object with some members replaced, renamed or removed.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::Value;

use crate::chat_completions::constants::is_documented;
use crate::chat_completions::model_limits::{limit_max_tokens, supported_effort};
use crate::chat_completions::request_summary::{OTHER_FIELDS, field_bit};
use crate::chat_completions::{request_read, request_write};
use crate::error::InvalidRequest;
use crate::format::{ForwardedRequest, RequestSummary, Target};
use crate::hub::{Effort, SamplingSupport, is_default_sampling};
use crate::lazy_json::{LazyVisitor, RawJson, next_key, visit_json};

const SEARCH: &str = "web_search_options";

/// One member of an object, as written in the JSON text.
struct Member<'a> {
    name: Cow<'a, str>,
    value: &'a str,
    /// The change to the member when the request is written.
    change: Change,
}

#[derive(PartialEq)]
enum Change {
    Keep,
    Remove,
    /// The member gets this value, as JSON text.
    Value(String),
    /// The member gets this name.
    Name(&'static str),
    /// The member gets this name and this value.
    NameAndValue(&'static str, String),
}

/// Passes a request on; see [`crate::Format::forward_request`].
pub(in crate::chat_completions) fn forward_request(
    body: &Bytes,
    summary: &RequestSummary,
    target: &Target<'_>,
) -> Result<ForwardedRequest, InvalidRequest> {
    if is_unchanged(summary, target) {
        return Ok(ForwardedRequest::unchanged(body));
    }
    apply_changes(body, summary, target)
}

/// Whether the summary shows that nothing has to change, as for most requests. If it does not, the members are examined one by one.
fn is_unchanged(summary: &RequestSummary, target: &Target<'_>) -> bool {
    const CAPS: [u32; 2] = [field_bit("max_tokens"), field_bit("max_completion_tokens")];
    const SAMPLING: u32 = field_bit("temperature") | field_bit("top_p");
    const STOP: u32 = field_bit("stop");
    const FORMAT: u32 = field_bit("response_format");
    let capabilities = target.capabilities;
    let has = |bits: u32| summary.members & bits != 0;
    let other_cap = CAPS[usize::from(!capabilities.uses_max_completion_tokens)];
    let cap_fits = summary
        .max_tokens
        .is_none_or(|requested| limit_max_tokens(requested, capabilities) == requested);
    summary.members != 0
        && !has(OTHER_FIELDS | other_cap)
        && cap_fits
        && summary.model.as_deref() == Some(target.model)
        && !(summary.stream || target.stream)
        && (capabilities.sampling == SamplingSupport::All || !has(SAMPLING))
        && (capabilities.accepts_stop || !has(STOP))
        && (capabilities.supports_json_schema || !has(FORMAT))
        && !capabilities.requires_past_reasoning
}

/// The request with the members changed that the target does not support.
fn apply_changes(
    body: &Bytes,
    summary: &RequestSummary,
    target: &Target<'_>,
) -> Result<ForwardedRequest, InvalidRequest> {
    let mut members = Vec::with_capacity(16);
    visit_json(body, MemberCollector(&mut members))?;
    if needs_translation(&members, target) {
        let request = request_read::read_request(body)?;
        return request_write::write_request(&request, target).map(ForwardedRequest::from);
    }
    let mut changes = MemberChanges {
        members: &mut members,
        dropped: Vec::new(),
    };
    if !target.capabilities.supports_chat_search && changes.find(SEARCH).is_some() {
        let why = "requests web search, which this model does not support on chat completions: its channel must offer the responses format";
        return Err(InvalidRequest::new(SEARCH, why));
    }
    changes.set_model(target.model);
    changes.limit_max_tokens(target);
    changes.remove_sampling(target);
    changes.check_stop(target)?;
    changes.change_tool_choice_and_effort(target);
    let added = changes.request_usage(summary.stream || target.stream);
    if target.capabilities.rejects_unknown_fields {
        changes.remove_undocumented();
    }
    let dropped = changes.dropped;
    Ok(ForwardedRequest {
        body: write_members(body, &members, added),
        dropped,
    })
}

/// Whether a change needs the parsed conversation. That is rare; the request is then translated through the hub.
fn needs_translation(members: &[Member<'_>], target: &Target<'_>) -> bool {
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
    (!target.capabilities.supports_json_schema && has_schema())
        || (target.capabilities.requires_past_reasoning && lacks_reasoning())
}

struct MemberChanges<'m, 'a> {
    members: &'m mut Vec<Member<'a>>,
    /// The names of members that are left out or weakened.
    dropped: Vec<String>,
}

impl<'a> MemberChanges<'_, 'a> {
    /// The member of that name, if it is there and not `null`.
    fn find(&mut self, name: &str) -> Option<&mut Member<'a>> {
        self.members
            .iter_mut()
            .find(|member| member.name == name && member.value != "null")
    }

    /// Changes a member that is there and not `null`, and names it as left out or weakened.
    fn drop_field(&mut self, name: &str, change: Change) {
        if let Some(member) = self.find(name) {
            member.change = change;
            self.dropped.push(name.to_owned());
        }
    }

    fn set(&mut self, name: &str, change: Change) {
        if let Some(member) = self.find(name) {
            member.change = change;
        }
    }

    fn set_model(&mut self, model: &str) {
        let quoted = Value::from(model).to_string();
        if self
            .find("model")
            .is_some_and(|current| current.value != quoted)
        {
            self.set("model", Change::Value(quoted));
        }
    }

    fn limit_max_tokens(&mut self, target: &Target<'_>) {
        const NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];
        let supported = NAMES[usize::from(target.capabilities.uses_max_completion_tokens)];
        let both = NAMES.iter().all(|name| self.find(name).is_some());
        for name in NAMES {
            let Some(member) = self.find(name) else {
                continue;
            };
            // If both are given, the newer name takes precedence.
            if both && name == NAMES[0] {
                member.change = Change::Remove;
                continue;
            }
            let requested = member.value.parse::<u64>().ok();
            let cap = requested
                .map(|requested| (requested, limit_max_tokens(requested, target.capabilities)));
            let lower = cap
                .filter(|(requested, cap)| cap < requested)
                .map(|(_, cap)| cap.to_string());
            let is_lowered = lower.is_some();
            member.change = match (name == supported, lower) {
                (true, None) => Change::Keep,
                (true, Some(cap)) => Change::Value(cap),
                (false, None) => Change::Name(supported),
                (false, Some(cap)) => Change::NameAndValue(supported, cap),
            };
            self.dropped.extend(is_lowered.then(|| name.to_owned()));
        }
    }

    fn remove_sampling(&mut self, target: &Target<'_>) {
        let both = self.find("temperature").is_some() && self.find("top_p").is_some();
        let unsupported: &[&str] = match target.capabilities.sampling {
            SamplingSupport::All => &[],
            SamplingSupport::TemperatureOrTopP if both => &["top_p"],
            SamplingSupport::TemperatureOrTopP => &[],
            SamplingSupport::None => &["temperature", "top_p", "top_k"],
        };
        for name in unsupported {
            let is_default = |member: &mut Member<'_>| {
                *name != "top_k" && is_default_sampling(member.value.parse().ok())
            };
            match self.find(name).is_some_and(is_default) {
                true => self.set(name, Change::Remove),
                false => self.drop_field(name, Change::Remove),
            }
        }
    }

    fn check_stop(&mut self, target: &Target<'_>) -> Result<(), InvalidRequest> {
        let stops = self.find("stop").filter(|stop| stop.value != "[]");
        if stops.is_some() && !target.capabilities.accepts_stop {
            return Err(InvalidRequest::new(
                "stop",
                "is not supported by this model",
            ));
        }
        Ok(())
    }

    fn change_tool_choice_and_effort(&mut self, target: &Target<'_>) {
        if !target.capabilities.supports_forced_tools {
            let choice = self.find("tool_choice");
            if choice.is_some_and(|choice| !["\"auto\"", "\"none\""].contains(&choice.value)) {
                self.drop_field("tool_choice", Change::Value("\"auto\"".to_owned()));
            }
        }
        let effort = self
            .find("reasoning_effort")
            .map(|effort| effort.value.trim_matches('"'));
        if let Some(requested) = effort.and_then(Effort::parse) {
            match supported_effort(requested, target.capabilities.thinking) {
                Some(sent) if sent == requested => {}
                Some(sent) => {
                    let change = Change::Value(format!("\"{}\"", sent.as_str()));
                    self.drop_field("reasoning_effort", change);
                }
                // A model that does not reason needs no field for it.
                None if requested == Effort::None => self.set("reasoning_effort", Change::Remove),
                None => self.drop_field("reasoning_effort", Change::Remove),
            }
        }
    }

    /// Requests usage in a stream. Returns the member to add if there is no `stream_options` to change.
    fn request_usage(&mut self, is_stream: bool) -> Option<&'static str> {
        const WITH_USAGE: &str = r#"{"include_usage":true}"#;
        if !is_stream {
            return None;
        }
        let Some(options) = self.find("stream_options") else {
            // A `null` is removed: the member is added.
            self.members
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
            options.change = Change::Value(WITH_USAGE.to_owned());
        }
        None
    }

    fn remove_undocumented(&mut self) {
        for member in self.members.iter_mut() {
            if !is_documented(&member.name) {
                if member.value != "null" && member.change != Change::Remove {
                    self.dropped.push(member.name.clone().into_owned());
                }
                member.change = Change::Remove;
            }
        }
    }
}

/// Collects an object's members without parsing the values.
struct MemberCollector<'m, 'a>(&'m mut Vec<Member<'a>>);

impl<'de> LazyVisitor<'de> for MemberCollector<'_, 'de> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = next_key(&mut object)? {
            let value = object.next_value_seed(RawJson)?;
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

/// Writes the object with its changes; the same bytes if there are none.
fn write_members(body: &Bytes, members: &[Member<'_>], added: Option<&str>) -> Bytes {
    if added.is_none() && members.iter().all(|member| member.change == Change::Keep) {
        return body.clone();
    }
    let mut out = String::with_capacity(body.len() + 64);
    for member in members {
        let (name, value) = match &member.change {
            Change::Remove => continue,
            Change::Keep => (&*member.name, member.value),
            Change::Value(value) => (&*member.name, value.as_str()),
            Change::Name(name) => (*name, member.value),
            Change::NameAndValue(name, value) => (*name, value.as_str()),
        };
        out.push(if out.is_empty() { '{' } else { ',' });
        push_quoted(&mut out, name);
        out.push(':');
        out.push_str(value);
    }
    if let Some(added) = added {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(added);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat_completions::request_summary::{FIELDS, summarize_request};
    use crate::hub::{ModelCapabilities, ReasoningControl};

    #[test]
    fn requests_forwarded_unchanged_have_no_member_to_change() {
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
        let open = ModelCapabilities::default();
        let strict = ModelCapabilities {
            max_output_tokens: Some(4),
            sampling: SamplingSupport::None,
            thinking: ReasoningControl::Unsupported,
            supports_json_schema: false,
            supports_forced_tools: false,
            uses_max_completion_tokens: !open.uses_max_completion_tokens,
            rejects_unknown_fields: true,
            requires_past_reasoning: true,
            accepts_stop: false,
            ..open
        };
        let renamed = ModelCapabilities {
            uses_max_completion_tokens: !open.uses_max_completion_tokens,
            rejects_unknown_fields: true,
            ..open
        };
        let one = ModelCapabilities {
            sampling: SamplingSupport::TemperatureOrTopP,
            ..open
        };
        let mut unchanged = 0;
        for first in 0..members.len() {
            for second in first..members.len() {
                let mut given = vec![r#""model":"m""#, members[first]];
                given.extend((second > first).then_some(members[second]));
                if !given.iter().any(|member| member.contains("messages")) {
                    given.push(r#""messages":[{"role":"user","content":"hi"}]"#);
                }
                let body = Bytes::from(format!("{{{}}}", given.join(",")));
                let Ok(summary) = summarize_request(&body) else {
                    continue;
                };
                for capabilities in [&open, &strict, &renamed, &one] {
                    for (model, stream) in [("m", false), ("m", true), ("other", false)] {
                        let target = Target {
                            model,
                            stream,
                            capabilities,
                            default_max_tokens: 9,
                        };
                        if is_unchanged(&summary, &target) {
                            unchanged += 1;
                            assert_eq!(
                                apply_changes(&body, &summary, &target).unwrap(),
                                ForwardedRequest::unchanged(&body)
                            );
                        }
                    }
                }
            }
        }
        assert!(unchanged > 150, "{unchanged}");
    }

    #[test]
    fn summarized_fields_are_documented() {
        for (at, (name, _)) in FIELDS.iter().enumerate() {
            assert!(is_documented(name), "{name}");
            assert!(
                field_bit(name) == 1 << at && field_bit(name) != OTHER_FIELDS,
                "{name}"
            );
        }
    }
}
