//! Responses: items and parts open and close in order, and the last event repeats what was streamed.

use serde_json::Value;

/// The events of a stream. Checks that names and data agree and that sequence numbers rise by one.
fn events(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    assert!(text.is_empty() || text.ends_with("\n\n"));
    let mut out: Vec<Value> = Vec::new();
    for block in text.split_terminator("\n\n") {
        if block.starts_with(':') {
            continue;
        }
        let (name, data) = block.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), event["type"].as_str());
        assert_eq!(event["sequence_number"], out.len(), "{block}");
        out.push(event);
    }
    out
}

pub(crate) fn check(stream: &[u8], failed: bool) {
    // A stream without an error fails too if the model's tool call is malformed.
    let response = check_order(&events(stream));
    assert!(!failed || response["status"] == "failed");
}

/// Checks that the events are in a legal order. Returns the final response object.
fn check_order(events: &[Value]) -> Value {
    let kind = |at: usize| events[at]["type"].as_str().unwrap();
    assert_eq!(kind(0), "response.created");
    let mut items: Vec<Item> = Vec::new();
    for (at, event) in events.iter().enumerate().skip(1) {
        let is_last = at + 1 == events.len();
        match kind(at) {
            "response.in_progress" => assert_eq!(at, 1),
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert!(is_last, "something behind the end");
                let status = kind(at).trim_start_matches("response.");
                assert_eq!(event["response"]["status"], status);
                assert!(items.iter().all(|item| item.done), "an item was not closed");
                let reported: Vec<&Value> = items.iter().map(|item| &item.last).collect();
                let output: Vec<&Value> = event["response"]["output"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .collect();
                assert_eq!(output, reported);
                return event["response"].clone();
            }
            "response.output_item.added" => {
                assert!(items.iter().all(|item| item.done), "two items are open");
                assert_eq!(event["output_index"], items.len());
                items.push(Item::new(&event["item"]));
            }
            other => {
                assert_eq!(
                    event["output_index"].as_u64(),
                    items.len().checked_sub(1).map(|i| i as u64)
                );
                items.last_mut().unwrap().take(other, event);
            }
        }
        assert!(!is_last, "no end");
    }
    panic!("no end");
}

#[derive(Default)]
struct Item {
    first: Value,
    last: Value,
    done: bool,
    /// The open part: its list and its text.
    open: Option<(&'static str, String)>,
    counts: [usize; 2],
    input: String,
    input_done: bool,
}

impl Item {
    fn new(item: &Value) -> Self {
        assert!(item["id"].as_str().is_some_and(|id| !id.is_empty()));
        Self {
            first: item.clone(),
            ..Self::default()
        }
    }

    fn take(&mut self, kind: &str, event: &Value) {
        assert!(!self.done, "an item goes on behind its end: {event}");
        if kind != "response.output_item.done" {
            assert_eq!(event["item_id"], self.first["id"]);
        }
        match kind {
            "response.content_part.added" => self.begin("content_index", event),
            "response.reasoning_summary_part.added" => self.begin("summary_index", event),
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta" => {
                let (_, text) = self.open_part(event);
                text.push_str(event["delta"].as_str().unwrap());
            }
            "response.output_text.done"
            | "response.reasoning_text.done"
            | "response.reasoning_summary_text.done" => {
                let (_, text) = self.open_part(event);
                assert_eq!(event["text"], text.as_str());
            }
            "response.refusal.done" => {
                let (_, text) = self.open_part(event);
                assert_eq!(event["refusal"], text.as_str());
            }
            "response.output_text.annotation.added" => _ = self.open_part(event),
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                let (list, text) = self.open.take().unwrap();
                let reported = event["part"]["text"]
                    .as_str()
                    .or(event["part"]["refusal"].as_str());
                assert_eq!(reported, Some(text.as_str()));
                self.counts[usize::from(list == "summary_index")] += 1;
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                assert!(!self.input_done);
                self.input.push_str(event["delta"].as_str().unwrap());
            }
            "response.function_call_arguments.done" => self.end_input(&event["arguments"]),
            "response.custom_tool_call_input.done" => self.end_input(&event["input"]),
            "response.image_generation_call.completed" => {}
            "response.output_item.done" => self.end(&event["item"]),
            other => panic!("unknown event {other}"),
        }
    }

    fn begin(&mut self, list: &'static str, event: &Value) {
        assert!(self.open.is_none(), "two parts are open");
        assert_eq!(
            event[list],
            self.counts[usize::from(list == "summary_index")]
        );
        self.open = Some((list, String::new()));
    }

    fn open_part(&mut self, event: &Value) -> &mut (&'static str, String) {
        let part = self.open.as_mut().expect("a delta before its part");
        assert_eq!(
            event[part.0],
            self.counts[usize::from(part.0 == "summary_index")]
        );
        part
    }

    fn end_input(&mut self, reported: &Value) {
        assert_eq!(reported, self.input.as_str());
        self.input_done = true;
    }

    fn end(&mut self, item: &Value) {
        assert!(self.open.is_none(), "a part was not closed");
        for name in ["id", "type", "call_id", "name"] {
            assert_eq!(item[name], self.first[name]);
        }
        match item["type"].as_str().unwrap() {
            "function_call" => assert_eq!(item["arguments"], self.input.as_str()),
            "custom_tool_call" => assert_eq!(item["input"], self.input.as_str()),
            "message" => assert_eq!(item["content"].as_array().unwrap().len(), self.counts[0]),
            "reasoning" => {
                assert_eq!(item["summary"].as_array().unwrap().len(), self.counts[1]);
            }
            _ => {}
        }
        let is_cut = item["status"] == "incomplete";
        assert!(self.input_done || is_cut || item["call_id"].is_null());
        (self.last, self.done) = (item.clone(), true);
    }
}
