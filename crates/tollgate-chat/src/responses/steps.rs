//! What a reply tells, step by step: the items as they grow and as they end, each thing once.
//!
//! A stream takes the steps as its events come ([`super::stream_read`]), a whole reply all at its end ([`super::reply`]).

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::opaque::{Sealed, with_id};
use super::request::{read_annotation, read_annotations};
use super::usage::{WireUsage, read_finish};
use super::wire::{NAME, note};
use crate::error::Garbled;
use crate::hub::{Citation, Event, Kind, Opaque, Own, Part, Source};
use crate::media;

/// The two lists of parts that items have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// `content`.
    Content,
    /// `summary`.
    Summary,
}

/// A part of an item: its list, and its place there.
pub(super) type Place = (List, u64);

/// Where the reading is.
#[derive(Default)]
pub(super) struct Steps {
    /// What the reply said of itself: id, model, created.
    head: (String, String, Option<i64>),
    started: bool,
    slots: BTreeMap<u64, Slot>,
    /// Ids of items and calls that are complete.
    done: HashSet<String>,
    calls: u32,
    has_refusal: bool,
    /// The end came.
    pub(super) finished: bool,
}

/// One output item as far as it was seen.
#[derive(Default)]
struct Slot {
    /// The call's number, once it was told.
    call: Option<u32>,
    has_input: bool,
    /// Parts of which text was seen.
    seen: Vec<Place>,
    /// Parts that are complete.
    complete: Vec<Place>,
    /// The part whose text is growing.
    growing: Option<Place>,
    /// Sources seen of the part that grows.
    sources: usize,
    has_logprobs: bool,
    is_reasoning: bool,
    /// The id of a reasoning item.
    id: Option<String>,
    ended: bool,
}

impl Slot {
    fn reasons(&mut self, item: &Value) {
        self.is_reasoning = true;
        let id = item["id"].as_str().filter(|id| !id.is_empty());
        self.id = id.map(str::to_owned).or_else(|| self.id.take());
    }
}

impl Steps {
    /// What a response object says of itself.
    pub(super) fn learn(&mut self, response: &Value) {
        let (id, model, created) = &mut self.head;
        if let Some(text) = response["id"].as_str() {
            text.clone_into(id);
        }
        if let Some(text) = response["model"].as_str() {
            text.clone_into(model);
        }
        let time = &response["created_at"];
        *created = time
            .as_i64()
            .or_else(|| time.as_f64().map(|at| at as i64))
            .or(*created);
    }

    fn start(&mut self, out: &mut Vec<Event>) {
        if !self.started {
            self.started = true;
            let (id, model, created) = self.head.clone();
            out.push(Event::Start {
                id,
                model,
                created,
                usage: None,
            });
        }
    }

    fn slot(&mut self, index: u64) -> &mut Slot {
        self.slots.entry(index).or_default()
    }

    /// An item begins.
    pub(super) fn added(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        self.start(out);
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call") => self.begin_call(index, item, out),
            Some("reasoning") => self.slot(index).reasons(item),
            _ => {}
        }
    }

    /// Tells a call as soon as its name is known: it comes only here (litellm#16863).
    fn begin_call(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        let name = item["name"].as_str().unwrap_or_default();
        if name.is_empty() || self.slot(index).call.is_some() {
            return;
        }
        let call = self.calls;
        self.calls += 1;
        self.slot(index).call = Some(call);
        let ids = [&item["call_id"], &item["id"]];
        let id = ids
            .into_iter()
            .filter_map(Value::as_str)
            .find(|id| !id.is_empty());
        let minted = || format!("call_{}_{call}", self.head.0.trim_start_matches("resp_"));
        out.push(Event::ToolStart {
            choice: 0,
            call,
            id: id.map_or_else(minted, str::to_owned),
            name: name.to_owned(),
            custom: item["type"] == "custom_tool_call",
        });
    }

    /// A piece of a call's input.
    pub(super) fn input(&mut self, index: u64, piece: &str, out: &mut Vec<Event>) {
        self.start(out);
        let slot = self.slot(index);
        let Some(call) = slot.call.filter(|_| !slot.ended && !piece.is_empty()) else {
            return;
        };
        slot.has_input = true;
        out.push(Event::ToolArguments {
            choice: 0,
            call,
            json: piece.to_owned(),
        });
    }

    /// A call's input is complete.
    pub(super) fn fill_input(&mut self, index: u64, whole: &str, out: &mut Vec<Event>) {
        if !self.slot(index).has_input {
            self.input(index, whole, out);
        }
    }

    /// A piece of visible text.
    pub(super) fn text(&mut self, index: u64, place: Place, piece: &str, out: &mut Vec<Event>) {
        self.start(out);
        if piece.is_empty() || self.slot(index).ended {
            return;
        }
        self.grow(index, place, out);
        out.push(Event::Text {
            choice: 0,
            text: piece.to_owned(),
        });
    }

    fn fill_text(&mut self, index: u64, place: Place, whole: &str, out: &mut Vec<Event>) {
        if !self.slot(index).seen.contains(&place) {
            self.text(index, place, whole, out);
        }
    }

    /// A text is complete; what was not seen of it is told now.
    pub(super) fn text_done(
        &mut self,
        index: u64,
        place: Place,
        whole: &str,
        logprobs: Value,
        out: &mut Vec<Event>,
    ) {
        self.fill_text(index, place, whole, out);
        if !self.slot(index).has_logprobs {
            self.logprobs(index, logprobs, out);
        }
    }

    /// A source of the text so far.
    pub(super) fn annotation(&mut self, index: u64, annotation: Value, out: &mut Vec<Event>) {
        self.slot(index).sources += 1;
        self.cite(read_annotation(annotation), out);
    }

    /// A refusal is complete.
    pub(super) fn refusal_done(
        &mut self,
        index: u64,
        place: Place,
        whole: &str,
        out: &mut Vec<Event>,
    ) {
        if !self.slot(index).seen.contains(&place) {
            self.refusal(index, place, whole, out);
        }
    }

    /// A piece of a refusal.
    pub(super) fn refusal(&mut self, index: u64, place: Place, piece: &str, out: &mut Vec<Event>) {
        self.start(out);
        if piece.is_empty() || self.slot(index).ended {
            return;
        }
        self.has_refusal = true;
        self.grow(index, place, out);
        out.push(Event::Refusal {
            choice: 0,
            text: piece.to_owned(),
        });
    }

    /// A piece of thinking.
    pub(super) fn thought(&mut self, index: u64, place: Place, piece: &str, out: &mut Vec<Event>) {
        self.start(out);
        if piece.is_empty() || self.slot(index).ended {
            return;
        }
        self.slot(index).is_reasoning = true;
        self.grow(index, place, out);
        out.push(Event::Reasoning {
            choice: 0,
            text: piece.to_owned(),
            summary: place.0 == List::Summary,
        });
    }

    /// Makes `place` the part that grows; the one before it is complete.
    fn grow(&mut self, index: u64, place: Place, out: &mut Vec<Event>) {
        let slot = self.slot(index);
        if slot.growing != Some(place) {
            if slot.growing.is_some() {
                self.end_part(index, out);
            }
            let slot = self.slot(index);
            (slot.growing, slot.sources) = (Some(place), 0);
            slot.seen.push(place);
        }
    }

    fn end_part(&mut self, index: u64, out: &mut Vec<Event>) {
        let slot = self.slot(index);
        slot.complete.extend(slot.growing.take());
        out.push(match slot.is_reasoning {
            true => Event::ReasoningEnd {
                choice: 0,
                signature: None,
                id: slot.id.clone(),
            },
            false => Event::TextEnd {
                choice: 0,
                signature: None,
            },
        });
    }

    /// Probabilities of the text just before.
    pub(super) fn logprobs(&mut self, index: u64, list: Value, out: &mut Vec<Event>) {
        if list.as_array().is_some_and(|list| !list.is_empty()) && !self.slot(index).ended {
            self.slot(index).has_logprobs = true;
            let value = Value::Object(Map::from_iter([("content".to_owned(), list)]));
            out.push(Event::Logprobs { choice: 0, value });
        }
    }

    fn cite(&mut self, citation: Option<Citation>, out: &mut Vec<Event>) {
        self.start(out);
        out.extend(citation.map(|citation| Event::Citation {
            choice: 0,
            citation,
        }));
    }

    /// A part of a message is complete: what was not seen of it is told now.
    pub(super) fn part_done(
        &mut self,
        index: u64,
        place: Place,
        mut part: Value,
        out: &mut Vec<Event>,
    ) {
        let slot = self.slot(index);
        if slot.ended || slot.complete.contains(&place) || slot.is_reasoning {
            return;
        }
        match part["type"].as_str() {
            Some("output_text") => {
                let text = part["text"].as_str().unwrap_or_default();
                self.fill_text(index, place, text, out);
                let slot = self.slot(index);
                if slot.growing != Some(place) {
                    return;
                }
                let known = slot.sources;
                for citation in read_annotations(Some(part["annotations"].take()))
                    .into_iter()
                    .skip(known)
                {
                    self.cite(Some(citation), out);
                }
                if !self.slot(index).has_logprobs {
                    self.logprobs(index, part["logprobs"].take(), out);
                }
            }
            Some("refusal") => {
                let text = part["refusal"].as_str().unwrap_or_default();
                self.refusal_done(index, place, text, out);
            }
            _ => {}
        }
        if self.slot(index).growing == Some(place) {
            self.end_part(index, out);
        }
    }

    /// An item is complete: what was not seen of it is told now.
    pub(super) fn item_done(
        &mut self,
        index: u64,
        item: Value,
        out: &mut Vec<Event>,
    ) -> Result<(), Garbled> {
        self.start(out);
        if self.slot(index).ended {
            return Ok(());
        }
        for id in [&item["id"], &item["call_id"]] {
            self.done
                .extend(id.as_str().filter(|id| !id.is_empty()).map(str::to_owned));
        }
        match item["type"].as_str() {
            Some("message") => self.message_done(index, item, out),
            Some("function_call" | "custom_tool_call") => self.call_done(index, &item, out)?,
            Some("reasoning") => self.reasoning_done(index, &item, out),
            Some("image_generation_call") if item["result"].is_string() => picture(item, out),
            Some(_) => out.push(Event::Part {
                choice: 0,
                part: Part::of(Kind::Foreign {
                    format: NAME,
                    value: item,
                }),
            }),
            None => return Err(Garbled::Malformed("an item without a type".to_owned())),
        }
        self.slot(index).ended = true;
        Ok(())
    }

    fn message_done(&mut self, index: u64, mut item: Value, out: &mut Vec<Event>) {
        if let Value::Array(parts) = item["content"].take() {
            for (place, part) in parts.into_iter().enumerate() {
                self.part_done(index, (List::Content, place as u64), part, out);
            }
        }
        if self.slot(index).growing.is_some() {
            self.end_part(index, out);
        }
    }

    fn call_done(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) -> Result<(), Garbled> {
        self.begin_call(index, item, out);
        let input = item["arguments"]
            .as_str()
            .or_else(|| item["input"].as_str());
        self.fill_input(index, input.unwrap_or_default(), out);
        let Some(call) = self.slot(index).call else {
            return Err(Garbled::Malformed("a tool call without a name".to_owned()));
        };
        out.push(Event::ToolEnd {
            choice: 0,
            call,
            signature: None,
        });
        Ok(())
    }

    fn reasoning_done(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        self.slot(index).reasons(item);
        for (list, name) in [(List::Summary, "summary"), (List::Content, "content")] {
            let parts = item[name].as_array().map(Vec::as_slice).unwrap_or_default();
            for (at, part) in parts.iter().enumerate() {
                let place = (list, at as u64);
                if !self.slot(index).seen.contains(&place) {
                    self.thought(index, place, part["text"].as_str().unwrap_or_default(), out);
                }
            }
        }
        let id = self.slot(index).id.clone();
        let sealed = item["encrypted_content"]
            .as_str()
            .filter(|text| !text.is_empty());
        match sealed.map(Sealed::open) {
            Some(Sealed::Redacted(data)) => out.push(Event::Redacted { choice: 0, data }),
            // Sealed by a gateway of this kind for clients only.
            Some(Sealed::OnCall(..) | Sealed::OnText(_)) => {}
            Some(Sealed::Signature(signature)) => {
                let signature = with_id(signature, id.as_deref());
                end_thought(Some(signature), id, out);
            }
            None if self.slot(index).seen.is_empty() => {}
            None => end_thought(None, id, out),
        }
        self.slot(index).growing = None;
    }

    /// The end. What its response holds only fills gaps: everything else was told before (new-api#6223).
    pub(super) fn terminal(
        &mut self,
        response: &Value,
        is_incomplete: bool,
        out: &mut Vec<Event>,
    ) -> Result<(), Garbled> {
        self.start(out);
        let output = response["output"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            let ids = [&item["id"], &item["call_id"]];
            let is_told = ids
                .iter()
                .any(|id| id.as_str().is_some_and(|id| self.done.contains(id)));
            if !is_told {
                self.item_done(index as u64, item.clone(), out)?;
            }
        }
        self.close_open(out);
        if let Some(usage) = read_usage(&response["usage"]) {
            out.push(Event::Usage(usage.into()));
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        let finish = read_finish(is_incomplete, reason, self.has_refusal);
        out.push(Event::Finish {
            choice: 0,
            finish: finish.with_calls(self.calls > 0),
            stop_sequence: None,
        });
        self.finished = true;
        Ok(())
    }

    /// Items that began and of which nobody said the end.
    fn close_open(&mut self, out: &mut Vec<Event>) {
        let open: Vec<u64> = self
            .slots
            .iter()
            .filter(|s| !s.1.ended)
            .map(|s| *s.0)
            .collect();
        for index in open {
            if self.slot(index).growing.is_some() {
                self.end_part(index, out);
            }
            if let Some(call) = self.slot(index).call {
                out.push(Event::ToolEnd {
                    choice: 0,
                    call,
                    signature: None,
                });
            }
            self.slot(index).ended = true;
        }
    }
}

fn end_thought(signature: Option<Opaque>, id: Option<String>, out: &mut Vec<Event>) {
    out.push(Event::ReasoningEnd {
        choice: 0,
        signature,
        id,
    });
}

/// `usage`; none where it is missing or no object.
pub(super) fn read_usage(usage: &Value) -> Option<WireUsage> {
    usage
        .is_object()
        .then(|| serde_json::from_value(usage.clone()).unwrap_or_default())
}

/// A picture that was made.
fn picture(mut item: Value, out: &mut Vec<Event>) {
    let Value::String(data) = item["result"].take() else {
        return;
    };
    let media_type = match (media::sniff_base64(&data), item["output_format"].as_str()) {
        (Some(seen), _) => seen.to_owned(),
        (None, Some(format)) => format!("image/{format}"),
        (None, None) => "image/png".to_owned(),
    };
    let mut own = Map::new();
    if let Value::Object(members) = item {
        let formal = ["id", "type", "status", "result", "output_format"];
        let kept = members
            .into_iter()
            .filter(|(name, value)| !formal.contains(&name.as_str()) && !value.is_null());
        own.extend(kept.map(|(name, value)| (note(&name), value)));
    }
    let kind = Kind::Image {
        source: Source::Base64 { media_type, data },
        detail: None,
    };
    let own = Own::of(NAME, own);
    let part = Part {
        own,
        ..Part::of(kind)
    };
    out.push(Event::Part { choice: 0, part });
}
