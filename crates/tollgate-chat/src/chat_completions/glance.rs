//! The quick look at a request: SPEC.md's table, and the facts that routing, money and limits need.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::wire::{ROLES, ROLES_IN_WORDS, STOPS_MAX};
use crate::error::Bad;
use crate::format::Glance;
use crate::media;
use crate::scan::{At, Look, Rule, Scalar, next_key, scan};

/// The members that are looked at, and what they must be. Everything else is for the upstream to judge.
pub(super) const FIELDS: &[(&str, Rule)] = &[
    ("model", Rule::Text),
    ("messages", Rule::List),
    ("stream", Rule::Flag),
    ("max_tokens", Rule::Whole(1, i64::MAX)),
    ("max_completion_tokens", Rule::Whole(1, i64::MAX)),
    ("temperature", Rule::Number(0.0, 2.0)),
    ("top_p", Rule::Number(0.0, 1.0)),
    ("frequency_penalty", Rule::Number(-2.0, 2.0)),
    ("presence_penalty", Rule::Number(-2.0, 2.0)),
    ("n", Rule::Whole(1, 128)),
    ("stop", Rule::List),
    ("stream_options", Rule::Object),
    ("tools", Rule::List),
    ("functions", Rule::List),
    ("response_format", Rule::Object),
    ("metadata", Rule::Object),
    ("seed", Rule::Whole(i64::MIN, i64::MAX)),
    ("logprobs", Rule::Flag),
    ("top_logprobs", Rule::Whole(0, 20)),
    ("parallel_tool_calls", Rule::Flag),
    ("user", Rule::Text),
    ("safety_identifier", Rule::Text),
    ("prompt_cache_key", Rule::Text),
];

/// What [`Glance::members`] has beside a bit for each of [`FIELDS`]: a member of another name.
pub(super) const OTHERS: u32 = 1 << 31;

/// The bit of a member among [`FIELDS`].
pub(super) const fn bit(name: &str) -> u32 {
    let mut at = 0;
    while at < FIELDS.len() {
        let (field, mut is_it, mut byte) = (FIELDS[at].0.as_bytes(), true, 0);
        while byte < field.len() && byte < name.len() {
            is_it &= field[byte] == name.as_bytes()[byte];
            byte += 1;
        }
        if is_it && field.len() == name.len() {
            return 1 << at;
        }
        at += 1;
    }
    panic!("no such field");
}

/// Looks at a request.
pub(super) fn glance(body: &[u8]) -> Result<Glance, Bad> {
    let mut facts = Facts::default();
    scan(body, Request(&mut facts))?;
    if let Some(bad) = facts.bad {
        return Err(bad);
    }
    let missing = |field: &str| Err(Bad::new(field, "is required"));
    match &facts.glance.model {
        None => return missing("model"),
        Some(model) if model.trim().is_empty() => {
            return Err(Bad::new("model", "must not be empty"));
        }
        Some(_) => {}
    }
    match facts.messages {
        None => return missing("messages"),
        Some(0) => return Err(Bad::new("messages", "must hold at least one message")),
        Some(_) if !facts.says_something => {
            return Err(Bad::new("messages", "must not all be empty"));
        }
        Some(_) => {}
    }
    let mut glance = facts.glance;
    glance.user = facts.user.or(facts.safety_identifier).or(facts.cache_key);
    glance.max_tokens = facts.max_completion_tokens.or(glance.max_tokens);
    glance.n = glance.n.max(1);
    glance.is_native = true;
    glance.members = facts.seen;
    Ok(glance)
}

#[derive(Default)]
struct Facts {
    glance: Glance,
    max_completion_tokens: Option<u64>,
    user: Option<String>,
    safety_identifier: Option<String>,
    cache_key: Option<String>,
    /// How many there are.
    messages: Option<usize>,
    says_something: bool,
    /// As [`Glance::members`].
    seen: u32,
    bad: Option<Bad>,
}

impl Facts {
    /// Only the first fault counts.
    fn fault(&mut self, bad: impl FnOnce() -> Bad) {
        if self.bad.is_none() {
            self.bad = Some(bad());
        }
    }
}

struct Request<'f>(&'f mut Facts);

impl<'de> Look<'de> for Request<'_> {
    fn scalar(self, _: Scalar<'de>) {
        self.0.fault(|| Bad::body("the body must be a JSON object"));
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.fault(|| Bad::body("the body must be a JSON object"));
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let facts = self.0;
        while let Some(key) = next_key(&mut object)? {
            match FIELDS.iter().position(|field| field.0 == key) {
                Some(at) => {
                    if facts.seen & (1 << at) != 0 {
                        // Two readers of such a body could see two requests.
                        facts.fault(|| Bad::new(FIELDS[at].0, "is given twice"));
                    }
                    facts.seen |= 1 << at;
                    object.next_value_seed(At(Member { facts, at }))?;
                }
                None => {
                    facts.seen |= OTHERS;
                    facts.glance.says_reasoning |= [
                        "reasoning_effort",
                        "reasoning",
                        "thinking",
                        "enable_thinking",
                    ]
                    .contains(&&*key);
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A member of the request, by its place in [`FIELDS`].
struct Member<'f> {
    facts: &'f mut Facts,
    at: usize,
}

impl<'de> Look<'de> for Member<'_> {
    fn scalar(self, value: Scalar<'de>) {
        let (name, rule) = FIELDS[self.at];
        let facts = self.facts;
        let one_stop = name == "stop" && matches!(value, Scalar::Text(_));
        if let Some(bad) = rule.check(name, &value).filter(|_| !one_stop) {
            return facts.fault(|| if name == "stop" { stop_is_wrong() } else { bad });
        }
        let glance = &mut facts.glance;
        match (name, value) {
            ("model", Scalar::Text(text)) => glance.model = Some(text.into_owned()),
            ("user", Scalar::Text(text)) => facts.user = Some(text.into_owned()),
            ("safety_identifier", Scalar::Text(text)) => {
                facts.safety_identifier = Some(text.into_owned())
            }
            ("prompt_cache_key", Scalar::Text(text)) => facts.cache_key = Some(text.into_owned()),
            ("stream", Scalar::Flag(flag)) => glance.stream = flag,
            ("max_tokens", Scalar::Whole(x)) => glance.max_tokens = u64::try_from(x).ok(),
            ("max_completion_tokens", Scalar::Whole(x)) => {
                facts.max_completion_tokens = u64::try_from(x).ok()
            }
            ("n", Scalar::Whole(x)) => glance.n = u32::try_from(x).unwrap_or(1),
            _ => {}
        }
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (name, rule) = FIELDS[self.at];
        let facts = self.facts;
        match (name, rule) {
            ("messages", _) => {
                let mut at = 0;
                while list.next_element_seed(At(Message { facts, at }))?.is_some() {
                    at += 1;
                }
                facts.messages = Some(at);
            }
            ("stop", _) => {
                let mut stops = 0;
                while list.next_element_seed(At(Stop(facts)))?.is_some() {
                    stops += 1;
                }
                if stops > STOPS_MAX {
                    facts.fault(stop_is_wrong);
                }
            }
            _ => {
                if !matches!(rule, Rule::List) {
                    facts.fault(|| Bad::new(name, format!("must be {}, got a list", rule.words())));
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let (name, rule) = FIELDS[self.at];
        let facts = self.facts;
        if !matches!(rule, Rule::Object) {
            facts.fault(|| match name {
                "stop" => stop_is_wrong(),
                _ => Bad::new(name, format!("must be {}, got an object", rule.words())),
            });
        }
        while let Some(key) = next_key(&mut object)? {
            if name == "stream_options" && key == "include_usage" {
                object.next_value_seed(At(IncludeUsage(facts)))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// What is wrong with `stop`.
pub(super) fn stop_is_wrong() -> Bad {
    Bad::new(
        "stop",
        format!("must be a string or a list of at most {STOPS_MAX} strings"),
    )
}

struct Stop<'f>(&'f mut Facts);

impl<'de> Look<'de> for Stop<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if !matches!(value, Scalar::Text(_)) {
            self.0.fault(stop_is_wrong);
        }
    }
}

struct IncludeUsage<'f>(&'f mut Facts);

impl<'de> Look<'de> for IncludeUsage<'_> {
    fn scalar(self, value: Scalar<'de>) {
        const FIELD: &str = "stream_options.include_usage";
        match value {
            Scalar::Flag(flag) => self.0.glance.include_usage = flag,
            value => {
                if let Some(bad) = Rule::Flag.check(FIELD, &value) {
                    self.0.fault(|| bad);
                }
            }
        }
    }
}

struct Message<'f> {
    facts: &'f mut Facts,
    at: usize,
}

impl<'de> Look<'de> for Message<'_> {
    fn scalar(self, _: Scalar<'de>) {
        self.facts
            .fault(|| Bad::new(format!("messages[{}]", self.at), "must be an object"));
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.facts
            .fault(|| Bad::new(format!("messages[{}]", self.at), "must be an object"));
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Self { facts, at } = self;
        let (mut role, mut has_content) = (None, false);
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "role" => object.next_value_seed(At(Role(&mut role)))?,
                "content" => {
                    let there = &mut has_content;
                    object.next_value_seed(At(Content { facts, at, there }))?;
                }
                "tool_calls" | "function_call" => {
                    facts.says_something = true;
                    object.next_value::<IgnoredAny>()?;
                }
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        match role {
            None => facts.fault(|| Bad::new(format!("messages[{at}].role"), ROLES_IN_WORDS)),
            Some("assistant" | "function") => {}
            Some(_) if !has_content => {
                facts.fault(|| Bad::new(format!("messages[{at}].content"), "is required"));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// The role, as far as it is one.
struct Role<'f>(&'f mut Option<&'static str>);

impl<'de> Look<'de> for Role<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if let Scalar::Text(role) = value {
            *self.0 = ROLES.iter().copied().find(|known| *known == role);
        }
    }
}

struct Content<'f> {
    facts: &'f mut Facts,
    /// Of the message.
    at: usize,
    there: &'f mut bool,
}

impl Content<'_> {
    fn wrong(self) {
        let at = self.at;
        self.facts.fault(|| {
            Bad::new(
                format!("messages[{at}].content"),
                "must be a string or a list of parts",
            )
        });
    }
}

impl<'de> Look<'de> for Content<'_> {
    fn scalar(self, value: Scalar<'de>) {
        match value {
            Scalar::Null => {}
            Scalar::Text(text) => {
                *self.there = true;
                self.facts.says_something |= !is_blank(&text);
            }
            _ => self.wrong(),
        }
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        *self.there = true;
        while list.next_element_seed(At(Part(self.facts)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.wrong();
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes()
        .next()
        .is_none_or(|first| first.is_ascii_whitespace())
        && text.trim().is_empty()
}

/// A part of a content list: text, or something attached.
struct Part<'f>(&'f mut Facts);

impl<'de> Look<'de> for Part<'_> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let facts = self.0;
        let mut attached = false;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "text" | "refusal" => object.next_value_seed(At(PartText(facts)))?,
                "type" | "cache_control" | "prompt_cache_breakpoint" => {
                    object.next_value::<IgnoredAny>()?;
                }
                _ => {
                    attached = true;
                    object.next_value_seed(At(Payload {
                        facts,
                        named_data: false,
                    }))?;
                }
            }
        }
        facts.glance.attachments += u32::from(attached);
        facts.says_something |= attached;
        Ok(())
    }
}

struct PartText<'f>(&'f mut Facts);

impl<'de> Look<'de> for PartText<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if let Scalar::Text(text) = value {
            self.0.says_something |= !is_blank(&text);
        }
    }
}

/// What an attachment holds: data URIs wherever they are, and base64 under the names that have it.
struct Payload<'f> {
    facts: &'f mut Facts,
    named_data: bool,
}

impl<'de> Look<'de> for Payload<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if let Scalar::Text(text) = value
            && (self.named_data || media::is_data_uri(&text))
        {
            self.facts.glance.payload_bytes += text.len() as u64;
        }
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let facts = self.facts;
        while list
            .next_element_seed(At(Payload {
                facts,
                named_data: false,
            }))?
            .is_some()
        {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let facts = self.facts;
        while let Some(key) = next_key(&mut object)? {
            let named_data = matches!(&*key, "data" | "file_data");
            object.next_value_seed(At(Payload { facts, named_data }))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &str) -> String {
        glance(body.as_bytes()).expect_err(body).message
    }

    fn with(more: &str) -> String {
        format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"hi"}}],{more}}}"#)
    }

    #[test]
    fn the_facts_are_found() {
        let body = r#"{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"n":2,"max_tokens":5,
            "max_completion_tokens":7,"safety_identifier":"u1","reasoning_effort":"low","temperature":null,"unknown":[1],
            "messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"what?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"https://x.y/z"}},
            {"type":"input_audio","input_audio":{"data":"AAAAAAAA","format":"wav"}}]}]}"#;
        assert_eq!(
            glance(body.as_bytes()).unwrap(),
            Glance {
                model: Some("gpt-5".to_owned()),
                stream: true,
                include_usage: true,
                max_tokens: Some(7),
                n: 2,
                user: Some("u1".to_owned()),
                attachments: 3,
                payload_bytes: 34,
                says_reasoning: true,
                members: [
                    "model",
                    "stream",
                    "stream_options",
                    "n",
                    "max_tokens",
                    "max_completion_tokens",
                    "safety_identifier",
                    "temperature",
                    "messages",
                ]
                .map(bit)
                .iter()
                .fold(OTHERS, |all, bit| all | bit),
                is_native: true,
            }
        );
    }

    #[test]
    fn what_spec_refuses_is_refused_by_name() {
        for (body, expected) in [
            ("[]".to_owned(), "the body must be a JSON object"),
            (
                r#"{"messages":[{"role":"user","content":"hi"}]}"#.to_owned(),
                "`model` is required",
            ),
            (
                r#"{"model":" ","messages":[{"role":"user","content":"hi"}]}"#.to_owned(),
                "`model` must not be empty",
            ),
            (r#"{"model":"m"}"#.to_owned(), "`messages` is required"),
            (
                r#"{"model":"m","messages":null}"#.to_owned(),
                "`messages` is required",
            ),
            (
                r#"{"model":"m","messages":[]}"#.to_owned(),
                "`messages` must hold at least one message",
            ),
            (
                r#"{"model":"m","messages":"hi"}"#.to_owned(),
                "`messages` must be a list, got a string",
            ),
            (
                r#"{"model":"m","messages":["hi"]}"#.to_owned(),
                "`messages[0]` must be an object",
            ),
            (
                r#"{"model":"m","messages":[{"role":"user"}]}"#.to_owned(),
                "`messages[0].content` is required",
            ),
            (
                r#"{"model":"m","messages":[{"role":"user","content":" "}]}"#.to_owned(),
                "`messages` must not all be empty",
            ),
            (
                with(r#""temperature":2.1"#),
                "`temperature` must be a number from 0 to 2, got 2.1",
            ),
            (
                with(r#""temperature":"1""#),
                "`temperature` must be a number from 0 to 2, got a string",
            ),
            (
                with(r#""top_p":[1]"#),
                "`top_p` must be a number from 0 to 1, got a list",
            ),
            (
                with(r#""max_tokens":1.0"#),
                "`max_tokens` must be a whole number of at least 1, got 1.0",
            ),
            (
                with(r#""max_tokens":0"#),
                "`max_tokens` must be a whole number of at least 1, got 0",
            ),
            (
                with(r#""n":"2""#),
                "`n` must be a whole number from 1 to 128, got a string",
            ),
            (
                with(r#""stop":["a","b","c","d","e"]"#),
                "`stop` must be a string or a list of at most 4 strings",
            ),
            (
                with(r#""stop":[1]"#),
                "`stop` must be a string or a list of at most 4 strings",
            ),
            (
                with(r#""stop":{}"#),
                "`stop` must be a string or a list of at most 4 strings",
            ),
            (
                with(r#""stream":1"#),
                "`stream` must be true or false, got 1",
            ),
            (with(r#""model":"gpt-4""#), "`model` is given twice"),
        ] {
            assert_eq!(message(&body), expected, "{body}");
        }
        let role = message(
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"robot","content":"a"}]}"#,
        );
        assert!(
            role.starts_with("`messages[1].role` must be \"system\""),
            "{role}"
        );
        assert!(message("{").starts_with("the body must be valid JSON"));
        assert!(glance(with(r#""stop":"x","temperature":2,"top_p":1"#).as_bytes()).is_ok());
    }
}
