//! Messages: `message_start`, blocks one after the other, `message_delta`, `message_stop`; an error only between blocks.

use serde_json::{Map, Value, json};

/// The events of a stream: name and data. Checks that the name is the type in the data.
fn parse(sse: &str) -> Vec<(String, Value)> {
    assert!(sse.is_empty() || sse.ends_with("\n\n"));
    let mut out = Vec::new();
    for event in sse.split_terminator("\n\n") {
        let (name, data) = event.split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a named event");
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], name);
        out.push((name.to_owned(), data));
    }
    out
}

pub(crate) fn check(sse: &[u8], failed: bool) {
    let message = accumulate(std::str::from_utf8(sse).unwrap());
    assert_eq!(message.error.is_some(), failed);
    assert_eq!(message.is_stopped, !failed);
    assert_eq!(message.stop_reason.is_string(), !failed);
}

/// The message that an official SDK gathers from a stream. Fails at the first event that it would reject.
pub(crate) fn accumulate(sse: &str) -> Message {
    let mut message = Message::default();
    for (name, data) in parse(sse) {
        message.take(&name, &data);
    }
    message
}

/// A message in the state of the official SDKs.
#[derive(Debug, Default)]
pub(crate) struct Message {
    head: Option<Value>,
    pub(crate) content: Vec<Value>,
    pub(crate) stop_reason: Value,
    pub(crate) usage: Value,
    error: Option<Value>,
    /// The open block's arguments.
    json: String,
    is_open: bool,
    is_signed: bool,
    is_stopped: bool,
}

impl Message {
    fn take(&mut self, name: &str, data: &Value) {
        assert!(!self.is_stopped, "{name} after the end");
        assert!(self.error.is_none(), "{name} after an error");
        let is_first = self.head.is_none();
        assert!(
            !is_first || name == "message_start" || name == "error",
            "{name} before message_start"
        );
        match name {
            "message_start" => {
                assert!(is_first);
                assert!(data["message"]["usage"]["input_tokens"].is_u64());
                assert_eq!(data["message"]["content"], json!([]));
                self.head = Some(data["message"].clone());
            }
            "ping" => {}
            "content_block_start" => self.open(data),
            "content_block_delta" => self.delta(data),
            "content_block_stop" => self.close(data),
            "message_delta" => {
                assert!(!self.is_open, "message_delta with an open block");
                assert!(self.stop_reason.is_null(), "two message_delta");
                self.stop_reason = data["delta"]["stop_reason"].clone();
                assert!(self.stop_reason.is_string());
                self.usage = data["usage"].clone();
                let input = &self.usage["input_tokens"];
                assert!(input.is_u64() || input.is_null());
                assert!(self.usage["output_tokens"].is_u64());
            }
            "message_stop" => {
                assert!(self.stop_reason.is_string());
                self.is_stopped = true;
            }
            "error" => {
                assert!(!self.is_open, "an error with an open block");
                self.error = Some(data["error"].clone());
            }
            other => panic!("{other} is no event of the format"),
        }
    }

    fn open(&mut self, data: &Value) {
        assert!(!self.is_open, "two open blocks");
        assert!(self.stop_reason.is_null());
        assert_eq!(data["index"], self.content.len());
        let block = data["content_block"].clone();
        let needed: &[&str] = match block["type"].as_str().unwrap() {
            "text" => &["text"],
            "thinking" => &["thinking", "signature"],
            "tool_use" => &["id", "name"],
            "redacted_thinking" => &["data"],
            _ => &[],
        };
        for member in needed {
            assert!(block[member].is_string(), "{member} of {block}");
        }
        if block["type"] == "tool_use" {
            assert_eq!(block["input"], json!({}));
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let id = block["id"].as_str().unwrap();
            assert!(!id.is_empty() && id.chars().all(legal), "{id}");
        }
        self.content.push(block);
        self.json.clear();
        (self.is_open, self.is_signed) = (true, false);
    }

    fn delta(&mut self, data: &Value) {
        assert!(self.is_open, "a delta without a block");
        assert_eq!(data["index"], self.content.len() - 1);
        let block = self.content.last_mut().unwrap();
        let delta = &data["delta"];
        let add = |block: &mut Value, member: &str| {
            let all = format!(
                "{}{}",
                block[member].as_str().unwrap(),
                delta[member].as_str().unwrap()
            );
            block[member] = json!(all);
        };
        let (kind, of) = (
            delta["type"].as_str().unwrap(),
            block["type"].as_str().unwrap().to_owned(),
        );
        match kind {
            "text_delta" => {
                assert_eq!(of, "text");
                add(block, "text");
            }
            "thinking_delta" => {
                assert_eq!(of, "thinking");
                assert!(!self.is_signed);
                add(block, "thinking");
            }
            "signature_delta" => {
                assert_eq!(of, "thinking");
                assert!(!std::mem::replace(&mut self.is_signed, true));
                block["signature"] = delta["signature"].clone();
            }
            "input_json_delta" => {
                assert!(of.ends_with("tool_use"), "{of}");
                self.json.push_str(delta["partial_json"].as_str().unwrap());
            }
            "citations_delta" => {
                assert_eq!(of, "text");
                let map: &mut Map<String, Value> = block.as_object_mut().unwrap();
                let list = map.entry("citations").or_insert_with(|| json!([]));
                list.as_array_mut().unwrap().push(delta["citation"].clone());
            }
            other => panic!("{other} is no delta of the format"),
        }
    }

    fn close(&mut self, data: &Value) {
        assert!(self.is_open, "a stop without a block");
        assert_eq!(data["index"], self.content.len() - 1);
        self.is_open = false;
        let block = self.content.last_mut().unwrap();
        if !self.json.is_empty() {
            block["input"] =
                serde_json::from_str(&self.json).unwrap_or_else(|_| json!(self.json.clone()));
        }
    }
}
