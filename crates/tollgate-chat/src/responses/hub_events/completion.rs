//! Hub events for parts, items and responses that are complete: content that their deltas did not report.

use serde_json::{Map, Value};

use super::deltas::{HubEventBuilder, PartKey, PartList};
use crate::error::MalformedResponse;
use crate::hub::{Event, ExtraFields, Opaque, Part, PartKind, Source, Usage};
use crate::media;
use crate::responses::annotations::read_annotations;
use crate::responses::constants::NAME;
use crate::responses::encrypted_content::{EncryptedContent, prepend_item_id};
use crate::responses::extra_fields::spelling_note;
use crate::responses::finish::read_finish;
use crate::responses::usage::read_usage;

impl HubEventBuilder {
    /// Handles a complete part of a message: emits the content that its deltas did not contain.
    pub(crate) fn part_done(
        &mut self,
        index: u64,
        part_key: PartKey,
        mut part: Value,
        out: &mut Vec<Event>,
    ) {
        let state = self.item(index);
        if state.ended || state.complete.contains(&part_key) || state.is_reasoning {
            return;
        }
        match part["type"].as_str() {
            Some("output_text") => {
                let text = part["text"].as_str().unwrap_or_default();
                self.emit_text_unless_seen(index, part_key, text, out);
                let state = self.item(index);
                if state.growing != Some(part_key) {
                    return;
                }
                let known = state.sources;
                for citation in read_annotations(Some(part["annotations"].take()))
                    .into_iter()
                    .skip(known)
                {
                    self.emit_citation(Some(citation), out);
                }
                if !self.item(index).has_logprobs {
                    self.logprobs(index, part["logprobs"].take(), out);
                }
            }
            Some("refusal") => {
                let text = part["refusal"].as_str().unwrap_or_default();
                self.refusal_done(index, part_key, text, out);
            }
            _ => {}
        }
        if self.item(index).growing == Some(part_key) {
            self.end_part(index, out);
        }
    }

    /// Handles a complete item: emits the content that its deltas did not contain.
    pub(crate) fn item_done(
        &mut self,
        index: u64,
        item: Value,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        self.emit_start(out);
        if self.item(index).ended {
            return Ok(());
        }
        for id in [&item["id"], &item["call_id"]] {
            self.completed_ids
                .extend(id.as_str().filter(|id| !id.is_empty()).map(str::to_owned));
        }
        match item["type"].as_str() {
            Some("message") => self.message_done(index, item, out),
            Some("function_call" | "custom_tool_call") => self.call_done(index, &item, out)?,
            Some("reasoning") => self.reasoning_done(index, &item, out),
            Some("image_generation_call") if item["result"].is_string() => emit_image(item, out),
            Some(_) => out.push(Event::Part {
                choice: 0,
                part: Part::new(PartKind::FormatSpecific {
                    format: NAME,
                    value: item,
                }),
            }),
            None => {
                return Err(MalformedResponse::Invalid(
                    "an item without a type".to_owned(),
                ));
            }
        }
        self.item(index).ended = true;
        Ok(())
    }

    pub(crate) fn message_done(&mut self, index: u64, mut item: Value, out: &mut Vec<Event>) {
        if let Value::Array(parts) = item["content"].take() {
            for (part_key, part) in parts.into_iter().enumerate() {
                self.part_done(index, (PartList::Content, part_key as u64), part, out);
            }
        }
        if self.item(index).growing.is_some() {
            self.end_part(index, out);
        }
    }

    pub(crate) fn call_done(
        &mut self,
        index: u64,
        item: &Value,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        self.start_call(index, item, out);
        let input = item["arguments"]
            .as_str()
            .or_else(|| item["input"].as_str());
        self.call_input_done(index, input.unwrap_or_default(), out);
        let Some(call) = self.item(index).call else {
            return Err(MalformedResponse::Invalid(
                "a tool call without a name".to_owned(),
            ));
        };
        out.push(Event::ToolEnd {
            choice: 0,
            call,
            signature: None,
        });
        Ok(())
    }

    pub(crate) fn reasoning_done(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        self.item(index).set_reasoning(item);
        for (list, name) in [
            (PartList::Summary, "summary"),
            (PartList::Content, "content"),
        ] {
            let parts = item[name].as_array().map(Vec::as_slice).unwrap_or_default();
            for (at, part) in parts.iter().enumerate() {
                let part_key = (list, at as u64);
                if !self.item(index).seen.contains(&part_key) {
                    self.reasoning_delta(
                        index,
                        part_key,
                        part["text"].as_str().unwrap_or_default(),
                        out,
                    );
                }
            }
        }
        let id = self.item(index).id.clone();
        let encrypted = item["encrypted_content"]
            .as_str()
            .filter(|text| !text.is_empty());
        match encrypted.map(EncryptedContent::decode) {
            Some(EncryptedContent::Redacted(data)) => {
                out.push(Event::RedactedReasoning { choice: 0, data })
            }
            // A gateway wrapped these signatures for its clients; they are not signatures of this reasoning item.
            Some(EncryptedContent::CallSignature(..) | EncryptedContent::TextSignature(_)) => {}
            Some(EncryptedContent::Signature(signature)) => {
                let signature = prepend_item_id(signature, id.as_deref());
                emit_reasoning_end(Some(signature), id, out);
            }
            None if self.item(index).seen.is_empty() => {}
            None => emit_reasoning_end(None, id, out),
        }
        self.item(index).growing = None;
    }

    /// Handles the stream's final event. Only content of its `output` that was not streamed before is emitted
    /// ([new-api#6223](https://github.com/QuantumNous/new-api/issues/6223)).
    pub(crate) fn response_done(
        &mut self,
        response: &Value,
        is_incomplete: bool,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        self.emit_start(out);
        let output = response["output"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            let ids = [&item["id"], &item["call_id"]];
            let is_reported = ids.iter().any(|id| {
                id.as_str()
                    .is_some_and(|id| self.completed_ids.contains(id))
            });
            if !is_reported {
                self.item_done(index as u64, item.clone(), out)?;
            }
        }
        self.close_unfinished_items(out);
        if let Some(usage) = read_usage(&response["usage"]) {
            let items = response["output"].as_array().into_iter().flatten();
            // Pages that the model opened are not charged as searches.
            let searches = items.filter(|item| {
                let action = item["action"]["type"].as_str();
                item["type"] == "web_search_call" && action.is_none_or(|kind| kind == "search")
            });
            out.push(Event::Usage(Usage {
                web_searches: searches.count() as u64,
                ..usage.into()
            }));
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        let finish = read_finish(is_incomplete, reason, self.has_refusal);
        out.push(Event::Finish {
            choice: 0,
            finish: finish.with_tool_calls(self.calls > 0),
            stop_sequence: None,
        });
        self.finished = true;
        Ok(())
    }

    /// Ends the items that started but were never completed.
    pub(crate) fn close_unfinished_items(&mut self, out: &mut Vec<Event>) {
        let open: Vec<u64> = self
            .items
            .iter()
            .filter(|s| !s.1.ended)
            .map(|s| *s.0)
            .collect();
        for index in open {
            if self.item(index).growing.is_some() {
                self.end_part(index, out);
            }
            if let Some(call) = self.item(index).call {
                out.push(Event::ToolEnd {
                    choice: 0,
                    call,
                    signature: None,
                });
            }
            self.item(index).ended = true;
        }
    }
}

fn emit_reasoning_end(signature: Option<Opaque>, id: Option<String>, out: &mut Vec<Event>) {
    out.push(Event::ReasoningEnd {
        choice: 0,
        signature,
        id,
    });
}

/// A generated image.
fn emit_image(mut item: Value, out: &mut Vec<Event>) {
    let Value::String(data) = item["result"].take() else {
        return;
    };
    let media_type = match (
        media::sniff_base64_media_type(&data),
        item["output_format"].as_str(),
    ) {
        (Some(seen), _) => seen.to_owned(),
        (None, Some(format)) => format!("image/{format}"),
        (None, None) => "image/png".to_owned(),
    };
    let mut extra = Map::new();
    if let Value::Object(members) = item {
        let keep_members = ["id", "type", "status", "result", "output_format"];
        let kept = members
            .into_iter()
            .filter(|(name, value)| !keep_members.contains(&name.as_str()) && !value.is_null());
        extra.extend(kept.map(|(name, value)| (spelling_note(&name), value)));
    }
    let kind = PartKind::Image {
        source: Source::Base64 { media_type, data },
        detail: None,
    };
    let extra = ExtraFields::new(NAME, extra);
    let part = Part {
        extra,
        ..Part::new(kind)
    };
    out.push(Event::Part { choice: 0, part });
}
