//! The state of each output item, and the hub events for its deltas.
//!
//! For a stream, stream_read.rs passes the events one by one; for a complete response, response_read.rs passes everything at once.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::hub::{Citation, Event, flat_name};
use crate::responses::annotations::read_annotation;

/// The two lists of parts that an item can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartList {
    /// `content`.
    Content,
    /// `summary`.
    Summary,
}

/// A part of an item: its list and its index there.
pub(crate) type PartKey = (PartList, u64);

/// Builds hub events from the output items of one response.
#[derive(Default)]
pub(crate) struct HubEventBuilder {
    /// Id, model and creation time of the response.
    pub(crate) metadata: (String, String, Option<i64>),
    pub(crate) started: bool,
    pub(crate) items: BTreeMap<u64, ItemState>,
    /// Ids of items and calls that are complete.
    pub(crate) completed_ids: HashSet<String>,
    pub(crate) calls: u32,
    pub(crate) has_refusal: bool,
    /// Whether the final event arrived.
    pub(crate) finished: bool,
}

/// The state of one output item.
#[derive(Default)]
pub(crate) struct ItemState {
    /// The number of its call, once `ToolStart` was emitted.
    pub(crate) call: Option<u32>,
    pub(crate) has_input: bool,
    /// Parts of which text was emitted.
    pub(crate) seen: Vec<PartKey>,
    /// Parts that have ended.
    pub(crate) complete: Vec<PartKey>,
    /// The part that text is being added to.
    pub(crate) growing: Option<PartKey>,
    /// Number of annotations emitted for that part.
    pub(crate) sources: usize,
    pub(crate) has_logprobs: bool,
    pub(crate) is_reasoning: bool,
    /// The id of a reasoning item.
    pub(crate) id: Option<String>,
    pub(crate) ended: bool,
}

impl ItemState {
    pub(crate) fn set_reasoning(&mut self, item: &Value) {
        self.is_reasoning = true;
        let id = item["id"].as_str().filter(|id| !id.is_empty());
        self.id = id.map(str::to_owned).or_else(|| self.id.take());
    }
}

impl HubEventBuilder {
    /// Reads id, model and creation time of a response object.
    pub(crate) fn read_metadata(&mut self, response: &Value) {
        let (id, model, created) = &mut self.metadata;
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

    pub(crate) fn emit_start(&mut self, out: &mut Vec<Event>) {
        if !self.started {
            self.started = true;
            let (id, model, created) = self.metadata.clone();
            out.push(Event::Start {
                id,
                model,
                created,
                usage: None,
            });
        }
    }

    pub(crate) fn item(&mut self, index: u64) -> &mut ItemState {
        self.items.entry(index).or_default()
    }

    /// Handles `response.output_item.added`.
    pub(crate) fn item_added(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        self.emit_start(out);
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call") => self.start_call(index, item, out),
            Some("reasoning") => self.item(index).set_reasoning(item),
            _ => {}
        }
    }

    /// Emits `ToolStart` as soon as the name is known: some upstreams send it only here
    /// ([litellm#16863](https://github.com/BerriAI/litellm/issues/16863)).
    pub(crate) fn start_call(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        let name = item["name"].as_str().unwrap_or_default();
        let in_namespace = item["namespace"].as_str().filter(|_| !name.is_empty());
        let flat = in_namespace.map(|namespace| flat_name(namespace, name));
        let name = flat.as_deref().unwrap_or(name);
        if name.is_empty() || self.item(index).call.is_some() {
            return;
        }
        let call = self.calls;
        self.calls += 1;
        self.item(index).call = Some(call);
        let ids = [&item["call_id"], &item["id"]];
        let id = ids
            .into_iter()
            .filter_map(Value::as_str)
            .find(|id| !id.is_empty());
        let generated_id = || {
            format!(
                "call_{}_{call}",
                self.metadata.0.trim_start_matches("resp_")
            )
        };
        out.push(Event::ToolStart {
            choice: 0,
            call,
            id: id.map_or_else(generated_id, str::to_owned),
            name: name.to_owned(),
            custom: item["type"] == "custom_tool_call",
        });
    }

    /// Handles a delta of a call's input.
    pub(crate) fn call_input_delta(&mut self, index: u64, delta: &str, out: &mut Vec<Event>) {
        self.emit_start(out);
        let state = self.item(index);
        let Some(call) = state.call.filter(|_| !state.ended && !delta.is_empty()) else {
            return;
        };
        state.has_input = true;
        out.push(Event::ToolArguments {
            choice: 0,
            call,
            json: delta.to_owned(),
        });
    }

    /// Handles the complete input of a call; emits it if there was no delta.
    pub(crate) fn call_input_done(&mut self, index: u64, text: &str, out: &mut Vec<Event>) {
        if !self.item(index).has_input {
            self.call_input_delta(index, text, out);
        }
    }

    /// Handles a delta of visible text.
    pub(crate) fn text_delta(
        &mut self,
        index: u64,
        part_key: PartKey,
        delta: &str,
        out: &mut Vec<Event>,
    ) {
        self.emit_start(out);
        if delta.is_empty() || self.item(index).ended {
            return;
        }
        self.switch_to_part(index, part_key, out);
        out.push(Event::Text {
            choice: 0,
            text: delta.to_owned(),
        });
    }

    pub(crate) fn emit_text_unless_seen(
        &mut self,
        index: u64,
        part_key: PartKey,
        text: &str,
        out: &mut Vec<Event>,
    ) {
        if !self.item(index).seen.contains(&part_key) {
            self.text_delta(index, part_key, text, out);
        }
    }

    /// Handles the complete text of a part; emits it if there was no delta.
    pub(crate) fn text_done(
        &mut self,
        index: u64,
        part_key: PartKey,
        text: &str,
        logprobs: Value,
        out: &mut Vec<Event>,
    ) {
        self.emit_text_unless_seen(index, part_key, text, out);
        if !self.item(index).has_logprobs {
            self.logprobs(index, logprobs, out);
        }
    }

    /// Handles an annotation of the text so far.
    pub(crate) fn annotation_added(&mut self, index: u64, annotation: Value, out: &mut Vec<Event>) {
        self.item(index).sources += 1;
        self.emit_citation(read_annotation(annotation), out);
    }

    /// Handles the complete text of a refusal; emits it if there was no delta.
    pub(crate) fn refusal_done(
        &mut self,
        index: u64,
        part_key: PartKey,
        text: &str,
        out: &mut Vec<Event>,
    ) {
        if !self.item(index).seen.contains(&part_key) {
            self.refusal_delta(index, part_key, text, out);
        }
    }

    /// Handles a delta of a refusal.
    pub(crate) fn refusal_delta(
        &mut self,
        index: u64,
        part_key: PartKey,
        delta: &str,
        out: &mut Vec<Event>,
    ) {
        self.emit_start(out);
        if delta.is_empty() || self.item(index).ended {
            return;
        }
        self.has_refusal = true;
        self.switch_to_part(index, part_key, out);
        out.push(Event::Refusal {
            choice: 0,
            text: delta.to_owned(),
        });
    }

    /// Handles a delta of reasoning text or of its summary.
    pub(crate) fn reasoning_delta(
        &mut self,
        index: u64,
        part_key: PartKey,
        delta: &str,
        out: &mut Vec<Event>,
    ) {
        self.emit_start(out);
        if delta.is_empty() || self.item(index).ended {
            return;
        }
        self.item(index).is_reasoning = true;
        self.switch_to_part(index, part_key, out);
        out.push(Event::Reasoning {
            choice: 0,
            text: delta.to_owned(),
            summary: part_key.0 == PartList::Summary,
        });
    }

    /// Ends the current part and makes `part_key` the part that text is added to.
    pub(crate) fn switch_to_part(&mut self, index: u64, part_key: PartKey, out: &mut Vec<Event>) {
        let state = self.item(index);
        if state.growing != Some(part_key) {
            if state.growing.is_some() {
                self.end_part(index, out);
            }
            let state = self.item(index);
            (state.growing, state.sources) = (Some(part_key), 0);
            state.seen.push(part_key);
        }
    }

    pub(crate) fn end_part(&mut self, index: u64, out: &mut Vec<Event>) {
        let state = self.item(index);
        state.complete.extend(state.growing.take());
        out.push(match state.is_reasoning {
            true => Event::ReasoningEnd {
                choice: 0,
                signature: None,
                id: state.id.clone(),
            },
            false => Event::TextEnd {
                choice: 0,
                signature: None,
            },
        });
    }

    /// Handles log probabilities of the preceding text.
    pub(crate) fn logprobs(&mut self, index: u64, list: Value, out: &mut Vec<Event>) {
        if list.as_array().is_some_and(|list| !list.is_empty()) && !self.item(index).ended {
            self.item(index).has_logprobs = true;
            let value = Value::Object(Map::from_iter([("content".to_owned(), list)]));
            out.push(Event::Logprobs { choice: 0, value });
        }
    }

    pub(crate) fn emit_citation(&mut self, citation: Option<Citation>, out: &mut Vec<Event>) {
        self.emit_start(out);
        out.extend(citation.map(|citation| Event::Citation {
            choice: 0,
            citation,
        }));
    }
}
