//! A request, built in the words of any of the four formats.

use serde_json::{Value, json};

use super::wire::Wire::{self, Chat, Generate, Messages, Responses};
use super::wire::{Call, Said};

/// A picture of one pixel: a PNG.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Its size in bytes.
pub(super) const PNG_BYTES: usize = 70;
/// The tool that [`Talk::tools`] offers beside another.
pub(super) const TOOL: &str = "get_weather";

/// A request in the making.
#[derive(Clone)]
pub(super) struct Talk {
    wire: Wire,
    pub(super) body: Value,
}

impl Talk {
    /// Nothing is said yet.
    pub(super) fn new(wire: Wire, model: &str, stream: bool) -> Self {
        let mut body = match wire {
            Chat => json!({"model": model, "messages": []}),
            Responses => json!({"model": model, "input": []}),
            Messages => json!({"model": model, "messages": [], "max_tokens": 500}),
            Generate => json!({"contents": []}),
        };
        if stream && wire != Generate {
            body["stream"] = json!(true);
        }
        if stream && wire == Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
        Self { wire, body }
    }

    /// One user turn.
    pub(super) fn saying(wire: Wire, model: &str, stream: bool, text: &str) -> Self {
        Self::new(wire, model, stream).user(text)
    }

    fn turns(&mut self) -> &mut Vec<Value> {
        let name = match self.wire {
            Chat | Messages => "messages",
            Responses => "input",
            Generate => "contents",
        };
        self.body[name].as_array_mut().expect("a list")
    }

    pub(super) fn system(mut self, text: &str) -> Self {
        match self.wire {
            Chat => self
                .turns()
                .insert(0, json!({"role": "system", "content": text})),
            Responses => self.body["instructions"] = json!(text),
            Messages => self.body["system"] = json!(text),
            Generate => self.body["systemInstruction"] = json!({"parts": [{"text": text}]}),
        }
        self
    }

    pub(super) fn user(mut self, text: &str) -> Self {
        let turn = match self.wire {
            Chat | Responses | Messages => json!({"role": "user", "content": text}),
            Generate => json!({"role": "user", "parts": [{"text": text}]}),
        };
        self.turns().push(turn);
        self
    }

    pub(super) fn model(mut self, text: &str) -> Self {
        let turn = match self.wire {
            Chat | Messages => json!({"role": "assistant", "content": text}),
            Responses => {
                json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]})
            }
            Generate => json!({"role": "model", "parts": [{"text": text}]}),
        };
        self.turns().push(turn);
        self
    }

    /// The model's own turn, as the format's clients send it back.
    pub(super) fn turn(mut self, said: &Said) -> Self {
        self.turns().extend(said.turn.iter().cloned());
        self
    }

    /// What the tools answered, one turn for all of them.
    pub(super) fn results(mut self, calls: &[Call], text: &str) -> Self {
        let wire = self.wire;
        let result = |call: &Call| match wire {
            Chat => json!({"role": "tool", "tool_call_id": call.id, "content": text}),
            Responses => {
                json!({"type": "function_call_output", "call_id": call.id, "output": text})
            }
            Messages => json!({"type": "tool_result", "tool_use_id": call.id, "content": text}),
            Generate => {
                let mut result = json!({"name": call.name, "response": {"output": text}});
                if !call.id.is_empty() {
                    result["id"] = json!(call.id);
                }
                json!({"functionResponse": result})
            }
        };
        let results: Vec<Value> = calls.iter().map(result).collect();
        match wire {
            Chat | Responses => self.turns().extend(results),
            Messages => self
                .turns()
                .push(json!({"role": "user", "content": results})),
            Generate => self.turns().push(json!({"role": "user", "parts": results})),
        }
        self
    }

    /// A text and a picture, which is a data URI of [`PNG`] where no address is given.
    pub(super) fn picture(mut self, text: &str, address: Option<&str>) -> Self {
        let data = format!("data:image/png;base64,{PNG}");
        let url = address.unwrap_or(&data);
        let parts = match (self.wire, address) {
            (Chat, _) => {
                json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}])
            }
            (Responses, _) => {
                json!([{"type": "input_text", "text": text}, {"type": "input_image", "image_url": url}])
            }
            (Messages, Some(url)) => {
                json!([{"type": "text", "text": text}, {"type": "image", "source": {"type": "url", "url": url}}])
            }
            (Messages, None) => json!([{"type": "text", "text": text}, {"type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]),
            (Generate, Some(url)) => {
                json!([{"text": text}, {"fileData": {"mimeType": "image/png", "fileUri": url}}])
            }
            (Generate, None) => {
                json!([{"text": text}, {"inlineData": {"mimeType": "image/png", "data": PNG}}])
            }
        };
        let content = if self.wire == Generate {
            "parts"
        } else {
            "content"
        };
        self.turns().push(json!({"role": "user", content: parts}));
        self
    }

    /// Two tools.
    pub(super) fn tools(mut self) -> Self {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let tool = |name: &str| match self.wire {
            Chat => {
                json!({"type": "function", "function": {"name": name, "description": "A tool", "parameters": schema}})
            }
            Responses => {
                json!({"type": "function", "name": name, "description": "A tool", "parameters": schema, "strict": false})
            }
            Messages => json!({"name": name, "description": "A tool", "input_schema": schema}),
            Generate => json!({"name": name, "description": "A tool", "parameters": schema}),
        };
        let both = json!([tool(TOOL), tool("other")]);
        self.body["tools"] = match self.wire {
            Generate => json!([{"functionDeclarations": both}]),
            _ => both,
        };
        self
    }

    /// [`TOOL`] must be called.
    pub(super) fn forced(mut self) -> Self {
        match self.wire {
            Chat => {
                self.body["tool_choice"] = json!({"type": "function", "function": {"name": TOOL}})
            }
            Responses => self.body["tool_choice"] = json!({"type": "function", "name": TOOL}),
            Messages => self.body["tool_choice"] = json!({"type": "tool", "name": TOOL}),
            Generate => {
                let config = json!({"mode": "ANY", "allowedFunctionNames": [TOOL]});
                self.body["toolConfig"] = json!({"functionCallingConfig": config});
            }
        }
        self
    }

    /// At most so many tokens.
    pub(super) fn cap(mut self, tokens: u64) -> Self {
        match self.wire {
            Chat | Messages => self.body["max_tokens"] = json!(tokens),
            Responses => self.body["max_output_tokens"] = json!(tokens),
            Generate => self.body["generationConfig"]["maxOutputTokens"] = json!(tokens),
        }
        self
    }

    /// A stop sequence, which the responses format has none of.
    pub(super) fn stop(mut self, text: &str) -> Self {
        match self.wire {
            Chat => self.body["stop"] = json!(text),
            Responses => {}
            Messages => self.body["stop_sequences"] = json!([text]),
            Generate => self.body["generationConfig"]["stopSequences"] = json!([text]),
        }
        self
    }

    /// The answer is JSON of a schema.
    pub(super) fn schema(mut self) -> Self {
        let schema = json!({"type": "object", "properties": {"town": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["town", "count"], "additionalProperties": false});
        match self.wire {
            Chat => {
                let format = json!({"name": "answer", "strict": true, "schema": schema});
                self.body["response_format"] =
                    json!({"type": "json_schema", "json_schema": format});
            }
            Responses => {
                let format = json!({"type": "json_schema", "name": "answer", "strict": true, "schema": schema});
                self.body["text"] = json!({"format": format});
            }
            Messages => {
                self.body["output_config"] =
                    json!({"format": {"type": "json_schema", "schema": schema}});
            }
            Generate => {
                self.body["generationConfig"]["responseMimeType"] = json!("application/json");
                self.body["generationConfig"]["responseJsonSchema"] = schema;
            }
        }
        self
    }

    /// Thinking is on and shown, where the format has a place for it.
    pub(super) fn thinking(mut self) -> Self {
        match self.wire {
            Chat => self.body["reasoning_effort"] = json!("medium"),
            Responses => self.body["reasoning"] = json!({"effort": "medium", "summary": "auto"}),
            Messages => {
                self.body["max_tokens"] = json!(8000);
                self.body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
            }
            Generate => {
                let config = json!({"includeThoughts": true, "thinkingBudget": 2000});
                self.body["generationConfig"]["thinkingConfig"] = config;
            }
        }
        self
    }
}
