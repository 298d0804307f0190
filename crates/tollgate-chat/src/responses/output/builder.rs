//! Collects hub events into output items with their final ids, in their final order.
//!
//! The stream writer and the writer of complete responses both use it, so that their results are the same.

use serde_json::{Map, Value};

use super::item::{ItemBody, OutputItem, TextPart, TextPartKind};
use crate::format::RenderOptions;
use crate::hub::{
    Citation, Event, FinishReason, NamespacedName, Opaque, Part, PartKind, Source, Usage,
    namespaced_names,
};
use crate::responses::annotations::write_annotation;
use crate::responses::constants::{GENERATED_ID_MARK, NAME};
use crate::responses::encrypted_content::EncryptedContent;
use crate::responses::extra_fields::write_extra_fields;

/// The output items so far.
#[derive(Debug, Default)]
pub(crate) struct OutputBuilder {
    seed: String,
    /// The client's functions in namespaces; calls refer to them by their flat names.
    namespaces: Vec<NamespacedName>,
    /// Whether reasoning items keep the ids that the upstream assigned. In a stream those ids arrive too late.
    keeps_reasoning_ids: bool,
    /// Whether the client requested a reasoning summary: if so, all visible reasoning is written as summary, because clients read it there.
    shows_reasoning_as_summary: bool,
    pub(crate) items: Vec<OutputItem>,
    /// The number of items that are completely sent, to which nothing can be added.
    pub(crate) sent_items: usize,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
}

impl OutputBuilder {
    /// An empty output for a response that is rendered with `options`.
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        let reasoning = options.request.and_then(|r| r.reasoning.as_ref());
        Self {
            seed: options.seed.to_owned(),
            namespaces: options.request.map(namespaced_names).unwrap_or_default(),
            shows_reasoning_as_summary: reasoning.is_some_and(|r| r.display.is_some()),
            ..Self::default()
        }
    }

    /// An empty output for a complete (non-streaming) response.
    pub(crate) fn for_complete_response(options: &RenderOptions<'_>) -> Self {
        Self {
            keeps_reasoning_ids: true,
            ..Self::new(options)
        }
    }

    /// Adds an event. This format has one choice; events of other choices are ignored.
    pub(crate) fn push(&mut self, event: &Event) {
        match event {
            Event::Text { choice: 0, text } => self.append_text(TextPartKind::Text, text),
            Event::Refusal { choice: 0, text } => self.append_text(TextPartKind::Refusal, text),
            Event::Reasoning {
                choice: 0,
                text,
                summary,
            } => match *summary || self.shows_reasoning_as_summary {
                true => self.append_text(TextPartKind::ReasoningSummary, text),
                false => self.append_text(TextPartKind::ReasoningText, text),
            },
            Event::TextEnd {
                choice: 0,
                signature,
            } => {
                self.end_text_part(true);
                if let Some(opaque) = signature {
                    self.add_encrypted_item(EncryptedContent::TextSignature(opaque.clone()));
                }
            }
            Event::ReasoningEnd {
                choice: 0,
                signature,
                id,
            } => {
                self.end_reasoning(signature.as_ref());
                self.keep_reasoning_id(id.as_deref());
            }
            Event::RedactedReasoning { choice: 0, data } => {
                self.add_encrypted_item(EncryptedContent::Redacted(data.clone()))
            }
            Event::ToolStart {
                choice: 0,
                call,
                id,
                name,
                custom,
            } => self.start_call(*call, id, name, *custom),
            Event::ToolArguments {
                choice: 0,
                call,
                json,
            } => {
                if let Some((ItemBody::Call { input, .. }, _)) = self.open_call(*call) {
                    input.push_str(json);
                }
            }
            Event::ToolEnd {
                choice: 0,
                call,
                signature,
            } => self.end_call(*call, signature.as_ref()),
            Event::Citation {
                choice: 0,
                citation,
            } => self.add_citation(citation),
            Event::Logprobs { choice: 0, value } => {
                if let (Some(part), Some(list)) =
                    (self.last_text_part(), value["content"].as_array())
                {
                    part.logprobs.extend(list.iter().cloned());
                }
            }
            Event::Part { choice: 0, part } => self.add_part(part),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Start { usage, .. } => self.usage = usage.or(self.usage),
            Event::Finish {
                choice: 0, finish, ..
            } => self.finish = Some(*finish),
            _ => {}
        }
    }

    /// Whether a message has a refusal part.
    pub(crate) fn has_refusal(&self) -> bool {
        let is_refusal = |part: &TextPart| part.kind == TextPartKind::Refusal;
        self.items.iter().any(|item| match &item.body {
            ItemBody::Parts { parts, .. } => parts.iter().any(is_refusal),
            _ => false,
        })
    }

    fn add_item(&mut self, prefix: &str, body: ItemBody, ended: bool) {
        // A new item ends the previous one, unless that is a call: parallel calls may interleave.
        if let Some(last) = self.items.last_mut()
            && !matches!(last.body, ItemBody::Call { .. })
        {
            last.ended = true;
        }
        let id = format!(
            "{prefix}{GENERATED_ID_MARK}{}_{}",
            self.seed,
            self.items.len()
        );
        self.items.push(OutputItem {
            id,
            body,
            ended,
            status: "completed",
        });
    }

    fn append_text(&mut self, kind: TextPartKind, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.items.last().is_some_and(|item| item.accepts(kind)) {
            let (prefix, parts) = (
                if kind.belongs_to_message() {
                    "msg"
                } else {
                    "rs"
                },
                Vec::new(),
            );
            let body = ItemBody::Parts {
                is_message: kind.belongs_to_message(),
                parts,
                encrypted_content: None,
            };
            self.add_item(prefix, body, false);
        }
        let Some(ItemBody::Parts { parts, .. }) = self.items.last_mut().map(|item| &mut item.body)
        else {
            return;
        };
        match parts.last_mut() {
            Some(part) if part.kind == kind && !part.ended => part.text.push_str(text),
            _ => parts.push(TextPart {
                kind,
                text: text.to_owned(),
                annotations: Vec::new(),
                logprobs: Vec::new(),
                ended: false,
            }),
        }
    }

    /// Text that follows starts a new part.
    fn end_text_part(&mut self, of_message: bool) {
        if let Some(OutputItem {
            body: ItemBody::Parts {
                is_message, parts, ..
            },
            ..
        }) = self.items.last_mut()
            && *is_message == of_message
            && let Some(part) = parts.last_mut()
        {
            part.ended = true;
        }
    }

    fn end_reasoning(&mut self, signature: Option<&Opaque>) {
        self.end_text_part(false);
        let Some(opaque) = signature else { return };
        let content = EncryptedContent::Signature(opaque.clone());
        match self.items.last_mut() {
            Some(item) if item.accepts(TextPartKind::ReasoningSummary) => {
                if let ItemBody::Parts {
                    encrypted_content, ..
                } = &mut item.body
                {
                    *encrypted_content = Some(content.encode());
                }
                item.ended = true;
            }
            _ => self.add_encrypted_item(content),
        }
    }

    fn keep_reasoning_id(&mut self, id: Option<&str>) {
        let id = id.filter(|id| self.keeps_reasoning_ids && id.starts_with("rs_"));
        if let (Some(id), Some(item)) = (id, self.items.last_mut())
            && matches!(
                item.body,
                ItemBody::Parts {
                    is_message: false,
                    ..
                }
            )
        {
            id.clone_into(&mut item.id);
        }
    }

    /// Adds a reasoning item that has only `encrypted_content`.
    fn add_encrypted_item(&mut self, content: EncryptedContent) {
        let body = ItemBody::Parts {
            is_message: false,
            parts: Vec::new(),
            encrypted_content: Some(content.encode()),
        };
        self.add_item("rs", body, true);
    }

    fn start_call(&mut self, call: u32, id: &str, name: &str, custom: bool) {
        let has_number =
            |item: &OutputItem| matches!(item.body, ItemBody::Call { call: c, .. } if c == call);
        if self.items.iter().any(has_number) {
            return;
        }
        let call_id = match id {
            "" => format!("call_{}_{call}", self.seed),
            id => id.to_owned(),
        };
        let namespaced = self.namespaces.iter().find(|n| n.flat == name);
        let body = ItemBody::Call {
            call,
            call_id,
            name: namespaced.map_or(name, |n| &n.name).to_owned(),
            namespace: namespaced.map(|n| n.namespace.clone()),
            input: String::new(),
            custom,
        };
        self.add_item(if custom { "ctc" } else { "fc" }, body, false);
    }

    fn open_call(&mut self, number: u32) -> Option<(&mut ItemBody, &mut bool)> {
        let is_it = |item: &&mut OutputItem| {
            !item.ended && matches!(item.body, ItemBody::Call { call, .. } if call == number)
        };
        let item = self.items.iter_mut().find(is_it)?;
        Some((&mut item.body, &mut item.ended))
    }

    fn end_call(&mut self, number: u32, signature: Option<&Opaque>) {
        let Some((body, ended)) = self.open_call(number) else {
            return;
        };
        *ended = true;
        if let (Some(opaque), ItemBody::Call { call_id, .. }) = (signature, body) {
            let content = EncryptedContent::CallSignature(call_id.clone(), opaque.clone());
            self.add_encrypted_item(content);
        }
    }

    /// The text part that log probabilities belong to.
    fn last_text_part(&mut self) -> Option<&mut TextPart> {
        self.items.last_mut()?.last_text_part()
    }

    /// Adds a citation to the last text.
    fn add_citation(&mut self, citation: &Citation) {
        let mut unsent = self.items.iter_mut().skip(self.sent_items).rev();
        let Some(part) = unsent.find_map(OutputItem::last_text_part) else {
            return;
        };
        let annotation = write_annotation(citation, &part.text);
        part.annotations.extend(annotation);
    }

    fn add_part(&mut self, part: &Part) {
        match &part.kind {
            PartKind::Text { text, .. } => self.append_text(TextPartKind::Text, text),
            PartKind::Refusal(text) => self.append_text(TextPartKind::Refusal, text),
            PartKind::RedactedReasoning(opaque) => {
                self.add_encrypted_item(EncryptedContent::Redacted(opaque.clone()))
            }
            PartKind::Image {
                source: Source::Base64 { media_type, data },
                ..
            } => {
                let format = media_type.strip_prefix("image/").unwrap_or("png");
                let mut value = Map::from_iter([
                    ("type".to_owned(), Value::from("image_generation_call")),
                    ("status".to_owned(), Value::from("completed")),
                    ("output_format".to_owned(), Value::from(format)),
                    ("result".to_owned(), Value::from(data.as_str())),
                ]);
                write_extra_fields(&part.extra, &mut value);
                self.add_item("ig", ItemBody::Complete(Value::Object(value)), true);
            }
            PartKind::Image {
                source: Source::Url { url, .. },
                ..
            } => self.append_text(TextPartKind::Text, &format!("![image]({url})")),
            PartKind::FormatSpecific { format, value } if *format == NAME && value.is_object() => {
                self.add_item("item", ItemBody::Complete(value.clone()), true);
                // Keeps the id that the vendor assigned.
                let extra = value["id"].as_str();
                if let (Some(item), Some(extra)) = (self.items.last_mut(), extra) {
                    extra.clone_into(&mut item.id);
                }
            }
            _ => {}
        }
    }
}
