//! Responses: the events of a stream.

use std::sync::Arc;

use serde_json::{Value, json};

use super::response::{Writer, names};
use crate::chat_output::{Call, Ending, pieces};
use crate::event_stream::{Event, EventStream, Form};

/// Collects events and numbers them.
struct Events {
    list: Vec<Event>,
    /// The item that is being written.
    output: usize,
}

impl Events {
    fn push(&mut self, name: &'static str, data: Value) {
        let event = event(name, self.list.len(), data);
        self.list.push(event);
    }

    /// An event of the item that is being written.
    fn item(&mut self, name: &'static str, id: &Value, data: Value) {
        let mut all = json!({"item_id": id, "output_index": self.output});
        merge(&mut all, data);
        self.push(name, all);
    }

    fn added(&mut self, item: &Value) {
        let data = json!({"output_index": self.output, "item": item});
        self.push("response.output_item.added", data);
    }

    fn done(&mut self, item: &Value) {
        let data = json!({"output_index": self.output, "item": item});
        self.push("response.output_item.done", data);
        self.output += 1;
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn event(name: &'static str, number: usize, data: Value) -> Event {
    let mut all = json!({"type": name, "sequence_number": number});
    merge(&mut all, data);
    Event::Json {
        name: Some(name),
        data: all,
    }
}

pub(super) fn script(writer: &Writer<'_>) -> EventStream {
    let mut events = Events {
        list: Vec::new(),
        output: 0,
    };
    let started = writer.response(Vec::new());
    events.push("response.created", json!({"response": started}));
    events.push("response.in_progress", json!({"response": started}));
    let mut filler_at = events.list.len();
    if !writer.plan.thoughts.is_empty() {
        reasoning(writer, &mut events);
    }
    let message = writer.message(false);
    let index = events.output;
    if !writer.plan.pieces.is_empty() {
        filler_at = speak(writer, &message, &mut events);
    }
    for (at, call) in writer.plan.calls.iter().enumerate() {
        push_call(writer, at, call, &mut events);
    }
    let terminal = match writer.plan.ending {
        Ending::Length | Ending::Filtered => "response.incomplete",
        _ => "response.completed",
    };
    events.push(terminal, json!({"response": writer.finished()}));
    let mut failed = writer.response(Vec::new());
    failed["status"] = json!("failed");
    let message_text = "The server had an error processing your request.";
    failed["error"] = json!({"code": "server_error", "message": message_text});
    let flat = json!({"code": "server_error", "message": message_text, "param": null});
    let filler = move |n: u64| {
        let data = json!({"item_id": message["id"], "output_index": index, "content_index": 0,
            "delta": "and so on ", "logprobs": []});
        event("response.output_text.delta", filler_at + n as usize, data)
    };
    EventStream {
        form: Form::Sse,
        events: events.list,
        tail: 1,
        filler_at,
        filler: Arc::new(filler),
        error_first: event("error", 0, flat),
        error_mid: event("response.failed", filler_at, json!({"response": failed})),
    }
}

fn reasoning(writer: &Writer<'_>, events: &mut Events) {
    let started = writer.reasoning(false);
    let id = &started["id"];
    events.added(&started);
    if writer.request.summary {
        let index = json!({"summary_index": 0});
        let with = |data: Value| {
            let mut all = index.clone();
            merge(&mut all, data);
            all
        };
        let part = |text: &str| with(json!({"part": {"type": "summary_text", "text": text}}));
        let thought = writer.plan.thought();
        events.item("response.reasoning_summary_part.added", id, part(""));
        for piece in &writer.plan.thoughts {
            let data = with(json!({"delta": piece, "obfuscation": "x9"}));
            events.item("response.reasoning_summary_text.delta", id, data);
        }
        let data = with(json!({"text": thought}));
        events.item("response.reasoning_summary_text.done", id, data);
        events.item("response.reasoning_summary_part.done", id, part(&thought));
    }
    events.done(&writer.reasoning(true));
}

/// The message. Gives the number of events up to and with its first piece.
fn speak(writer: &Writer<'_>, started: &Value, events: &mut Events) -> usize {
    let id = &started["id"];
    let refuses = writer.refuses();
    let text = writer.plan.text();
    events.added(started);
    let part = json!({"content_index": 0, "part": writer.part("")});
    events.item("response.content_part.added", id, part);
    let mut filler_at = 0;
    for piece in &writer.plan.pieces {
        let mut data = json!({"content_index": 0, "delta": piece});
        if refuses {
            events.item("response.refusal.delta", id, data);
        } else {
            merge(&mut data, json!({"logprobs": [], "obfuscation": "q"}));
            events.item("response.output_text.delta", id, data);
        }
        if filler_at == 0 {
            filler_at = events.list.len();
        }
    }
    if refuses {
        let data = json!({"content_index": 0, "refusal": text});
        events.item("response.refusal.done", id, data);
    } else {
        let data = json!({"content_index": 0, "text": text, "logprobs": []});
        events.item("response.output_text.done", id, data);
    }
    let part = json!({"content_index": 0, "part": writer.part(&text)});
    events.item("response.content_part.done", id, part);
    events.done(&writer.message(true));
    filler_at
}

fn push_call(writer: &Writer<'_>, at: usize, call: &Call, events: &mut Events) {
    let started = writer.call(at, call, false);
    let id = &started["id"];
    let (_, field, _) = names(call);
    let (delta, done) = if call.custom {
        (
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
        )
    } else {
        (
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
        )
    };
    events.added(&started);
    for piece in pieces(&call.text(), 4) {
        events.item(delta, id, json!({"delta": piece}));
    }
    events.item(done, id, json!({field: call.text()}));
    events.done(&writer.call(at, call, true));
}
