//! What a reply consists of, gathered from events: the output items with their final ids, in their final order.
//!
//! Both the stream writer and the writer of whole replies go through here, so the two never differ.

use serde_json::{Map, Value};

use super::item::{Body, Item, Piece, PieceKind};
use super::opaque::Sealed;
use super::request::write_annotation;
use super::wire::{MINTED, NAME, put_back};
use crate::format::Rendering;
use crate::hub::{Citation, Event, Finish, Kind, Opaque, Part, Source, Usage};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    seed: String,
    /// Whether reasoning items keep the ids that the upstream gave them. In a stream those come too late.
    keeps_ids: bool,
    /// Whether the client asked for a summary of the reasoning: then all thoughts that are shown are one, whatever the upstream calls
    /// them, for that is where its clients look.
    summarises: bool,
    pub(super) items: Vec<Item>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<Finish>,
}

impl Output {
    /// Nothing yet of the reply that `rendering` describes.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        let reasoning = rendering.request.and_then(|r| r.reasoning.as_ref());
        Self {
            seed: rendering.seed.to_owned(),
            summarises: reasoning.is_some_and(|r| r.show.is_some()),
            ..Self::default()
        }
    }

    /// Nothing yet of a reply that is known whole.
    pub(super) fn whole(rendering: &Rendering<'_>) -> Self {
        Self {
            keeps_ids: true,
            ..Self::new(rendering)
        }
    }

    /// Takes an event. This format has one reply: what other choices say is not for it.
    pub(super) fn push(&mut self, event: &Event) {
        match event {
            Event::Text { choice: 0, text } => self.grow(PieceKind::Text, text),
            Event::Refusal { choice: 0, text } => self.grow(PieceKind::Refusal, text),
            Event::Reasoning {
                choice: 0,
                text,
                summary,
            } => match *summary || self.summarises {
                true => self.grow(PieceKind::Summary, text),
                false => self.grow(PieceKind::Raw, text),
            },
            Event::TextEnd {
                choice: 0,
                signature,
            } => {
                self.end_piece(true);
                if let Some(opaque) = signature {
                    self.sealed(Sealed::OnText(opaque.clone()));
                }
            }
            Event::ReasoningEnd {
                choice: 0,
                signature,
                id,
            } => {
                self.end_reasoning(signature.as_ref());
                self.keep_id(id.as_deref());
            }
            Event::Redacted { choice: 0, data } => self.sealed(Sealed::Redacted(data.clone())),
            Event::ToolStart {
                choice: 0,
                call,
                id,
                name,
                custom,
            } => self.begin_call(*call, id, name, *custom),
            Event::ToolArguments {
                choice: 0,
                call,
                json,
            } => {
                if let Some((Body::Call { input, .. }, _)) = self.open_call(*call) {
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
            } => self.cite(citation),
            Event::Logprobs { choice: 0, value } => {
                if let (Some(piece), Some(list)) = (self.last_text(), value["content"].as_array()) {
                    piece.logprobs.extend(list.iter().cloned());
                }
            }
            Event::Part { choice: 0, part } => self.part(part),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Start { usage, .. } => self.usage = usage.or(self.usage),
            Event::Finish {
                choice: 0, finish, ..
            } => self.finish = Some(*finish),
            _ => {}
        }
    }

    /// Whether the model refused in words.
    pub(super) fn has_refusal(&self) -> bool {
        let is_refusal = |piece: &Piece| piece.kind == PieceKind::Refusal;
        self.items.iter().any(|item| match &item.body {
            Body::Parts { parts, .. } => parts.iter().any(is_refusal),
            _ => false,
        })
    }

    fn add(&mut self, prefix: &str, body: Body, ended: bool) {
        // Whatever still grew at the end is complete now; only calls may have more to come.
        if let Some(last) = self.items.last_mut()
            && !matches!(last.body, Body::Call { .. })
        {
            last.ended = true;
        }
        let id = format!("{prefix}{MINTED}{}_{}", self.seed, self.items.len());
        self.items.push(Item {
            id,
            body,
            ended,
            status: "completed",
        });
    }

    fn grow(&mut self, kind: PieceKind, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.items.last().is_some_and(|item| item.takes(kind)) {
            let (prefix, parts) = (if kind.is_message() { "msg" } else { "rs" }, Vec::new());
            let body = Body::Parts {
                is_message: kind.is_message(),
                parts,
                sealed: None,
            };
            self.add(prefix, body, false);
        }
        let Some(Body::Parts { parts, .. }) = self.items.last_mut().map(|item| &mut item.body)
        else {
            return;
        };
        match parts.last_mut() {
            Some(piece) if piece.kind == kind && !piece.ended => piece.text.push_str(text),
            _ => parts.push(Piece {
                kind,
                text: text.to_owned(),
                annotations: Vec::new(),
                logprobs: Vec::new(),
                ended: false,
            }),
        }
    }

    /// The last part is one of its own.
    fn end_piece(&mut self, of_message: bool) {
        if let Some(Item {
            body: Body::Parts {
                is_message, parts, ..
            },
            ..
        }) = self.items.last_mut()
            && *is_message == of_message
            && let Some(piece) = parts.last_mut()
        {
            piece.ended = true;
        }
    }

    fn end_reasoning(&mut self, signature: Option<&Opaque>) {
        self.end_piece(false);
        let Some(opaque) = signature else { return };
        let seal = Sealed::Signature(opaque.clone());
        match self.items.last_mut() {
            Some(item) if item.takes(PieceKind::Summary) => {
                if let Body::Parts { sealed, .. } = &mut item.body {
                    *sealed = Some(seal.seal());
                }
                item.ended = true;
            }
            _ => self.sealed(seal),
        }
    }

    fn keep_id(&mut self, id: Option<&str>) {
        let id = id.filter(|id| self.keeps_ids && id.starts_with("rs_"));
        if let (Some(id), Some(item)) = (id, self.items.last_mut())
            && matches!(
                item.body,
                Body::Parts {
                    is_message: false,
                    ..
                }
            )
        {
            id.clone_into(&mut item.id);
        }
    }

    /// A reasoning item that only carries something sealed.
    fn sealed(&mut self, sealed: Sealed) {
        let body = Body::Parts {
            is_message: false,
            parts: Vec::new(),
            sealed: Some(sealed.seal()),
        };
        self.add("rs", body, true);
    }

    fn begin_call(&mut self, call: u32, id: &str, name: &str, custom: bool) {
        let is_there = |item: &Item| matches!(item.body, Body::Call { call: c, .. } if c == call);
        if self.items.iter().any(is_there) {
            return;
        }
        let call_id = match id {
            "" => format!("call_{}_{call}", self.seed),
            id => id.to_owned(),
        };
        let body = Body::Call {
            call,
            call_id,
            name: name.to_owned(),
            input: String::new(),
            custom,
        };
        self.add(if custom { "ctc" } else { "fc" }, body, false);
    }

    fn open_call(&mut self, number: u32) -> Option<(&mut Body, &mut bool)> {
        let is_it = |item: &&mut Item| {
            !item.ended && matches!(item.body, Body::Call { call, .. } if call == number)
        };
        let item = self.items.iter_mut().find(is_it)?;
        Some((&mut item.body, &mut item.ended))
    }

    fn end_call(&mut self, number: u32, signature: Option<&Opaque>) {
        let Some((body, ended)) = self.open_call(number) else {
            return;
        };
        *ended = true;
        if let (Some(opaque), Body::Call { call_id, .. }) = (signature, body) {
            let sealed = Sealed::OnCall(call_id.clone(), opaque.clone());
            self.sealed(sealed);
        }
    }

    /// The text part that citations and probabilities are about.
    fn last_text(&mut self) -> Option<&mut Piece> {
        match &mut self.items.last_mut()?.body {
            Body::Parts { parts, .. } => parts.last_mut().filter(|p| p.kind == PieceKind::Text),
            _ => None,
        }
    }

    fn cite(&mut self, citation: &Citation) {
        let Some(piece) = self.last_text() else {
            return;
        };
        let annotation = write_annotation(citation, &piece.text);
        piece.annotations.extend(annotation);
    }

    fn part(&mut self, part: &Part) {
        match &part.kind {
            Kind::Text { text, .. } => self.grow(PieceKind::Text, text),
            Kind::Refusal(text) => self.grow(PieceKind::Refusal, text),
            Kind::Redacted(opaque) => self.sealed(Sealed::Redacted(opaque.clone())),
            Kind::Image {
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
                put_back(&part.own, &mut value);
                self.add("ig", Body::Whole(Value::Object(value)), true);
            }
            Kind::Image {
                source: Source::Url { url, .. },
                ..
            } => self.grow(PieceKind::Text, &format!("![image]({url})")),
            Kind::Foreign { format, value } if *format == NAME && value.is_object() => {
                self.add("item", Body::Whole(value.clone()), true);
                // Its own id is the one that the vendor knows.
                let own = value["id"].as_str();
                if let (Some(item), Some(own)) = (self.items.last_mut(), own) {
                    own.clone_into(&mut item.id);
                }
            }
            _ => {}
        }
    }
}
