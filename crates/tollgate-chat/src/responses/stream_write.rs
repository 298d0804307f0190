//! Writes a stream for a client.
//!
//! The writer compares the content of the response ([`OutputBuilder`]) with what it has sent, and sends the difference. One item is open at a time: a
//! parallel call is sent when the call before it is complete.

use serde_json::{Value, json};

use super::error::failure_object;
use super::finish::ResponseStatus;
use super::output::{ItemBody, OutputBuilder, OutputItem, ResponseObject};
use super::stream_events::{ItemEventWriter, KEEP_ALIVE, SentProgress, write_event};
use super::usage::write_usage;
use crate::error::ErrorBody;
use crate::format::{RenderOptions, StreamWriter};
use crate::hub::Event;

/// See [`crate::Format::stream_writer`].
pub(super) struct Writer {
    frame: ResponseObject,
    output: OutputBuilder,
    stage: Stage,
    /// `sequence_number` of the next event.
    sequence: u64,
    /// Index of the first item that is not completely sent.
    open_item: usize,
    sent: SentProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotStarted,
    Started,
    Ended,
}

impl Writer {
    /// A writer for a stream of which nothing has been sent.
    pub(super) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            frame: ResponseObject::new(options),
            output: OutputBuilder::new(options),
            stage: Stage::NotStarted,
            sequence: 0,
            open_item: 0,
            sent: SentProgress::default(),
        }
    }

    fn write_created(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::NotStarted {
            return;
        }
        self.stage = Stage::Started;
        let response = self.frame.build("in_progress", json!([]), Value::Null);
        let body = json!({"response": response});
        write_event(out, &mut self.sequence, "response.created", &body);
        write_event(out, &mut self.sequence, "response.in_progress", &body);
    }

    /// Sends new content. An item is closed only when another follows it, because its status is known only then.
    fn write_new_content(&mut self, out: &mut Vec<u8>) {
        while self.open_item < self.output.items.len() {
            self.write_item_updates(out);
            let is_last = self.open_item + 1 == self.output.items.len();
            let item = &mut self.output.items[self.open_item];
            if is_last || !item.ended {
                return;
            }
            item.fill_empty_arguments();
            self.write_item_updates(out);
            self.close_item(out, true);
        }
    }

    /// Announces the open item and sends the text that is new in it.
    fn write_item_updates(&mut self, out: &mut Vec<u8>) {
        let Some(item) = self.output.items.get(self.open_item) else {
            return;
        };
        let mut events = ItemEventWriter::new(out, &mut self.sequence, &item.id, self.open_item);
        if !self.sent.item_announced {
            self.sent.item_announced = true;
            events.item_event("response.output_item.added", item.initial_json());
        }
        match &item.body {
            ItemBody::Parts { parts, .. } => {
                while let Some(part) = parts.get(self.sent.part) {
                    events.part_updates(parts, &mut self.sent);
                    if self.sent.part + 1 == parts.len() {
                        break;
                    }
                    events.close_part(parts, part, &mut self.sent);
                }
            }
            ItemBody::Call { input, custom, .. } => {
                let new = &input[self.sent.bytes..];
                if !new.is_empty() {
                    self.sent.bytes = input.len();
                    events.call_input_delta(new, *custom);
                }
            }
            ItemBody::Complete(_) => {}
        }
    }

    /// Closes the open item. `is_complete`: its input was not cut off.
    fn close_item(&mut self, out: &mut Vec<u8>, is_complete: bool) {
        let Some(item) = self.output.items.get(self.open_item) else {
            return;
        };
        let mut events = ItemEventWriter::new(out, &mut self.sequence, &item.id, self.open_item);
        match &item.body {
            ItemBody::Parts { parts, .. } => {
                if let Some(part) = parts.get(self.sent.part) {
                    events.close_part(parts, part, &mut self.sent);
                }
            }
            ItemBody::Call { input, custom, .. } if is_complete => {
                events.call_input_done(input, *custom);
            }
            ItemBody::Complete(value) if value["type"] == "image_generation_call" => {
                events.image_completed();
            }
            ItemBody::Call { .. } | ItemBody::Complete(_) => {}
        }
        events.item_event("response.output_item.done", item.final_json());
        self.open_item += 1;
        self.output.sent_items = self.open_item;
        self.sent = SentProgress::default();
    }

    /// Closes all items. `cut`: the last item is incomplete; `failed`: every call that has not ended is incomplete too.
    fn close_all_items(&mut self, out: &mut Vec<u8>, cut: bool, failed: bool) {
        while self.open_item < self.output.items.len() {
            let is_last = self.open_item + 1 == self.output.items.len();
            let item = &mut self.output.items[self.open_item];
            match (cut && is_last) || (failed && !item.ended) {
                true => item.status = "incomplete",
                false => item.fill_empty_arguments(),
            }
            let is_complete = item.ended || !failed;
            self.write_item_updates(out);
            self.close_item(out, is_complete);
        }
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        if let (Event::Start { id, created, .. }, Stage::NotStarted) = (event, self.stage) {
            self.frame.set_identity(id, *created);
        }
        self.write_created(out);
        self.output.push(event);
        self.write_new_content(out);
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::Ended {
            out.extend_from_slice(KEEP_ALIVE);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        self.write_created(out);
        let finish = self.output.finish.unwrap_or_default();
        let status = ResponseStatus::from_finish(finish, self.output.has_refusal());
        self.close_all_items(out, status != ResponseStatus::Completed, false);
        let kind = match status {
            ResponseStatus::Completed => "response.completed",
            ResponseStatus::Incomplete(_) => "response.incomplete",
            ResponseStatus::Failed(..) => "response.failed",
        };
        // Some clients fail on a final event without usage.
        self.output.usage.get_or_insert_default();
        let response = self.frame.build_finished(&self.output, status);
        write_event(
            out,
            &mut self.sequence,
            kind,
            &json!({"response": response}),
        );
        self.stage = Stage::Ended;
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        self.write_created(out);
        self.close_all_items(out, true, true);
        let items = self
            .output
            .items
            .iter()
            .map(OutputItem::final_json)
            .collect();
        let usage = self.output.usage.as_ref().map(write_usage);
        let usage = usage.unwrap_or(Value::Null);
        let mut response = self.frame.build("failed", Value::Array(items), usage);
        response.insert("error".to_owned(), failure_object(error));
        let body = json!({"response": response});
        write_event(out, &mut self.sequence, "response.failed", &body);
        self.stage = Stage::Ended;
    }
}
