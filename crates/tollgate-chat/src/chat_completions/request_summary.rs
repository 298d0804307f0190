//! Reads model, limits, user and attachments from a request without parsing the conversation (docs/chat.md).

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::constants::{MAX_STOP_SEQUENCES, ROLE_RULE, ROLES};
use crate::attachments::is_media_member;
use crate::error::InvalidRequest;
use crate::format::RequestSummary;
use crate::lazy_json::{FieldRule, LazyVisitor, Scalar, VisitWith, next_key, visit_json};
use crate::media;

/// The fields that are read, with their types and ranges. All other fields are validated by the upstream only.
pub(super) const FIELDS: &[(&str, FieldRule)] = &[
    ("model", FieldRule::String),
    ("messages", FieldRule::Array),
    ("stream", FieldRule::Bool),
    ("max_tokens", FieldRule::Integer(1, i64::MAX)),
    ("max_completion_tokens", FieldRule::Integer(1, i64::MAX)),
    ("temperature", FieldRule::Number(0.0, 2.0)),
    ("top_p", FieldRule::Number(0.0, 1.0)),
    ("frequency_penalty", FieldRule::Number(-2.0, 2.0)),
    ("presence_penalty", FieldRule::Number(-2.0, 2.0)),
    ("n", FieldRule::Integer(1, 128)),
    ("stop", FieldRule::Array),
    ("stream_options", FieldRule::Object),
    ("tools", FieldRule::Array),
    ("functions", FieldRule::Array),
    ("response_format", FieldRule::Object),
    ("metadata", FieldRule::Object),
    ("seed", FieldRule::Integer(i64::MIN, i64::MAX)),
    ("logprobs", FieldRule::Bool),
    ("top_logprobs", FieldRule::Integer(0, 20)),
    ("parallel_tool_calls", FieldRule::Bool),
    ("user", FieldRule::String),
    ("safety_identifier", FieldRule::String),
    ("prompt_cache_key", FieldRule::String),
];

/// Bit of [`RequestSummary::members`] for any field that is not among [`FIELDS`].
pub(super) const OTHER_FIELDS: u32 = 1 << 31;

/// The bit of [`RequestSummary::members`] for one of [`FIELDS`].
pub(super) const fn field_bit(name: &str) -> u32 {
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

/// Whether a request has fields of [`FIELDS`] only, and no tools. `members` is [`RequestSummary::members`]; false for other formats.
pub(crate) fn has_plain_fields_only(members: u32) -> bool {
    const OTHERS: u32 = OTHER_FIELDS | field_bit("tools");
    members != 0 && members & OTHERS == 0
}

/// See [`crate::Format::summarize_request`].
pub(super) fn summarize_request(body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
    let mut builder = SummaryBuilder::default();
    visit_json(body, Request(&mut builder))?;
    if let Some(error) = builder.error {
        return Err(error);
    }
    let missing = |field: &str| Err(InvalidRequest::new(field, "is required"));
    match &builder.summary.model {
        None => return missing("model"),
        Some(model) if model.trim().is_empty() => {
            return Err(InvalidRequest::new("model", "must not be empty"));
        }
        Some(_) => {}
    }
    match builder.messages {
        None => return missing("messages"),
        Some(0) => {
            return Err(InvalidRequest::new(
                "messages",
                "must hold at least one message",
            ));
        }
        Some(_) if !builder.has_content => {
            return Err(InvalidRequest::new("messages", "must not all be empty"));
        }
        Some(_) => {}
    }
    let mut summary = builder.summary;
    summary.user = builder
        .user
        .or(builder.safety_identifier)
        .or(builder.cache_key);
    summary.max_tokens = builder.max_completion_tokens.or(summary.max_tokens);
    summary.n = summary.n.max(1);
    summary.is_native = true;
    summary.members = builder.member_bits;
    Ok(summary)
}

#[derive(Default)]
struct SummaryBuilder {
    summary: RequestSummary,
    max_completion_tokens: Option<u64>,
    user: Option<String>,
    safety_identifier: Option<String>,
    cache_key: Option<String>,
    /// Number of messages. `None` if the field is missing.
    messages: Option<usize>,
    has_content: bool,
    /// As [`RequestSummary::members`].
    member_bits: u32,
    error: Option<InvalidRequest>,
}

impl SummaryBuilder {
    /// Records an error, unless there is an earlier one.
    fn reject(&mut self, error: impl FnOnce() -> InvalidRequest) {
        if self.error.is_none() {
            self.error = Some(error());
        }
    }
}

struct Request<'f>(&'f mut SummaryBuilder);

impl<'de> LazyVisitor<'de> for Request<'_> {
    fn visit_scalar(self, _: Scalar<'de>) {
        self.0
            .reject(|| InvalidRequest::body("the body must be a JSON object"));
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0
            .reject(|| InvalidRequest::body("the body must be a JSON object"));
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let builder = self.0;
        while let Some(key) = next_key(&mut object)? {
            match FIELDS.iter().position(|field| field.0 == key) {
                Some(at) => {
                    if builder.member_bits & (1 << at) != 0 {
                        // Parsers differ in which of two members with the same name they use.
                        builder.reject(|| InvalidRequest::new(FIELDS[at].0, "is given twice"));
                    }
                    builder.member_bits |= 1 << at;
                    object.next_value_seed(VisitWith(RequestField { builder, at }))?;
                }
                None => {
                    builder.member_bits |= OTHER_FIELDS;
                    builder.summary.has_reasoning_settings |= [
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

/// A field of the request.
struct RequestField<'f> {
    builder: &'f mut SummaryBuilder,
    at: usize,
}

impl<'de> LazyVisitor<'de> for RequestField<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        let (name, rule) = FIELDS[self.at];
        let builder = self.builder;
        let one_stop = name == "stop" && matches!(value, Scalar::String(_));
        if let Some(error) = rule.check(name, &value).filter(|_| !one_stop) {
            return builder.reject(|| {
                if name == "stop" {
                    invalid_stop()
                } else {
                    error
                }
            });
        }
        let summary = &mut builder.summary;
        match (name, value) {
            ("model", Scalar::String(text)) => summary.model = Some(text.into_owned()),
            ("user", Scalar::String(text)) => builder.user = Some(text.into_owned()),
            ("safety_identifier", Scalar::String(text)) => {
                builder.safety_identifier = Some(text.into_owned())
            }
            ("prompt_cache_key", Scalar::String(text)) => {
                builder.cache_key = Some(text.into_owned())
            }
            ("stream", Scalar::Bool(flag)) => summary.stream = flag,
            ("max_tokens", Scalar::Integer(x)) => summary.max_tokens = u64::try_from(x).ok(),
            ("max_completion_tokens", Scalar::Integer(x)) => {
                builder.max_completion_tokens = u64::try_from(x).ok()
            }
            ("n", Scalar::Integer(x)) => summary.n = u32::try_from(x).unwrap_or(1),
            _ => {}
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (name, rule) = FIELDS[self.at];
        let builder = self.builder;
        match (name, rule) {
            ("messages", _) => {
                let mut at = 0;
                while list
                    .next_element_seed(VisitWith(Message { builder, at }))?
                    .is_some()
                {
                    at += 1;
                }
                builder.messages = Some(at);
            }
            ("stop", _) => {
                let mut stops = 0;
                while list.next_element_seed(VisitWith(Stop(builder)))?.is_some() {
                    stops += 1;
                }
                if stops > MAX_STOP_SEQUENCES {
                    builder.reject(invalid_stop);
                }
            }
            _ => {
                if !matches!(rule, FieldRule::Array) {
                    builder.reject(|| {
                        InvalidRequest::new(
                            name,
                            format!("must be {}, got a list", rule.description()),
                        )
                    });
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let (name, rule) = FIELDS[self.at];
        let builder = self.builder;
        if !matches!(rule, FieldRule::Object) {
            builder.reject(|| match name {
                "stop" => invalid_stop(),
                _ => InvalidRequest::new(
                    name,
                    format!("must be {}, got an object", rule.description()),
                ),
            });
        }
        while let Some(key) = next_key(&mut object)? {
            if name == "stream_options" && key == "include_usage" {
                object.next_value_seed(VisitWith(IncludeUsage(builder)))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The error for an invalid `stop`.
pub(super) fn invalid_stop() -> InvalidRequest {
    InvalidRequest::new(
        "stop",
        format!("must be a string or a list of at most {MAX_STOP_SEQUENCES} strings"),
    )
}

struct Stop<'f>(&'f mut SummaryBuilder);

impl<'de> LazyVisitor<'de> for Stop<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if !matches!(value, Scalar::String(_)) {
            self.0.reject(invalid_stop);
        }
    }
}

struct IncludeUsage<'f>(&'f mut SummaryBuilder);

impl<'de> LazyVisitor<'de> for IncludeUsage<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        const FIELD: &str = "stream_options.include_usage";
        match value {
            Scalar::Bool(flag) => self.0.summary.include_usage = flag,
            value => {
                if let Some(error) = FieldRule::Bool.check(FIELD, &value) {
                    self.0.reject(|| error);
                }
            }
        }
    }
}

struct Message<'f> {
    builder: &'f mut SummaryBuilder,
    at: usize,
}

impl<'de> LazyVisitor<'de> for Message<'_> {
    fn visit_scalar(self, _: Scalar<'de>) {
        self.builder
            .reject(|| InvalidRequest::new(format!("messages[{}]", self.at), "must be an object"));
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.builder
            .reject(|| InvalidRequest::new(format!("messages[{}]", self.at), "must be an object"));
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Self { builder, at } = self;
        let (mut role, mut has_content) = (None, false);
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "role" => object.next_value_seed(VisitWith(Role(&mut role)))?,
                "content" => {
                    let has_content = &mut has_content;
                    object.next_value_seed(VisitWith(Content {
                        builder,
                        at,
                        has_content,
                    }))?;
                }
                "tool_calls" | "function_call" => {
                    builder.has_content = true;
                    object.next_value::<IgnoredAny>()?;
                }
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        match role {
            None => {
                builder.reject(|| InvalidRequest::new(format!("messages[{at}].role"), ROLE_RULE))
            }
            Some("assistant" | "function") => {}
            Some(_) if !has_content => {
                builder.reject(|| {
                    InvalidRequest::new(format!("messages[{at}].content"), "is required")
                });
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Reads the role, if it is a known one.
struct Role<'f>(&'f mut Option<&'static str>);

impl<'de> LazyVisitor<'de> for Role<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let Scalar::String(role) = value {
            *self.0 = ROLES.iter().copied().find(|known| *known == role);
        }
    }
}

struct Content<'f> {
    builder: &'f mut SummaryBuilder,
    /// Index of the message.
    at: usize,
    has_content: &'f mut bool,
}

impl Content<'_> {
    fn reject(self) {
        let at = self.at;
        self.builder.reject(|| {
            InvalidRequest::new(
                format!("messages[{at}].content"),
                "must be a string or a list of parts",
            )
        });
    }
}

impl<'de> LazyVisitor<'de> for Content<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        match value {
            Scalar::Null => {}
            Scalar::String(text) => {
                *self.has_content = true;
                self.builder.has_content |= !is_blank(&text);
            }
            _ => self.reject(),
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        *self.has_content = true;
        while list
            .next_element_seed(VisitWith(Part(self.builder)))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.reject();
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

/// A part of a content list: text or an attachment.
struct Part<'f>(&'f mut SummaryBuilder);

impl<'de> LazyVisitor<'de> for Part<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let builder = self.0;
        let mut attached = false;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "text" | "refusal" => object.next_value_seed(VisitWith(PartText(builder)))?,
                "type" | "cache_control" | "prompt_cache_breakpoint" => {
                    object.next_value::<IgnoredAny>()?;
                }
                name => {
                    attached = true;
                    object.next_value_seed(VisitWith(Payload {
                        builder,
                        is_data_field: false,
                        is_uri_field: is_uri_field(name),
                        holds_media: is_media_member(name.as_bytes()),
                    }))?;
                }
            }
        }
        builder.summary.attachments += u32::from(attached);
        builder.has_content |= attached;
        Ok(())
    }
}

struct PartText<'f>(&'f mut SummaryBuilder);

impl<'de> LazyVisitor<'de> for PartText<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let Scalar::String(text) = value {
            self.0.has_content |= !is_blank(&text);
        }
    }
}

/// Whether members of that name have the file itself if their value is a data URI: `video` has a list of frames in some dialects. Elsewhere such a
/// value is text.
fn is_uri_field(name: &str) -> bool {
    matches!(
        name,
        "url"
            | "image_url"
            | "video_url"
            | "audio_url"
            | "file_data"
            | "data"
            | "image"
            | "video"
            | "audio"
    )
}

/// Counts the bytes of data URIs and of base64 in the fields of an attachment that have them.
struct Payload<'f> {
    builder: &'f mut SummaryBuilder,
    is_data_field: bool,
    /// Whether the value, or each of a list, may be a data URI.
    is_uri_field: bool,
    /// Whether an object has media in its member `data`.
    holds_media: bool,
}

impl<'de> LazyVisitor<'de> for Payload<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let Scalar::String(text) = value
            && (self.is_data_field || self.is_uri_field && media::parse_data_uri(&text).is_some())
        {
            self.builder.summary.payload_bytes += text.len() as u64;
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let builder = self.builder;
        while list
            .next_element_seed(VisitWith(Payload {
                builder,
                is_data_field: false,
                is_uri_field: self.is_uri_field,
                holds_media: false,
            }))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let builder = self.builder;
        while let Some(key) = next_key(&mut object)? {
            let is_data_field = key == "file_data" || key == "data" && self.holds_media;
            object.next_value_seed(VisitWith(Payload {
                builder,
                is_data_field,
                is_uri_field: is_uri_field(&key),
                holds_media: is_media_member(key.as_bytes()),
            }))?;
        }
        Ok(())
    }
}
