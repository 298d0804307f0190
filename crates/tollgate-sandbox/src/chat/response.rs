//! Generates a response: reasoning, text, tool calls, and its token usage.

use serde_json::{Value, json};
use tollgate_chat::hub::{
    Effort, FinishReason, OutputFormat, PartKind, Request, Role, ToolChoice, ToolKind, Usage,
};
use tollgate_chat::{thoughts, tokens};

use super::text::text_of;
use super::text_limit::MAX_OUTPUT;
use super::{images, schema_instance, text, text_limit};
use crate::directives::Directives;

/// The maximum number of choices of one response.
const MAX_CHOICES: u32 = 128;

/// A complete response.
pub(super) struct Response {
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Usage,
}

/// One choice of a response.
pub(super) struct Choice {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish: FinishReason,
    pub(super) stop_sequence: Option<String>,
}

/// A tool call.
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) custom: bool,
}

/// The input from which a response is generated.
struct Generator<'a> {
    request: &'a Request,
    directives: &'a Directives,
    /// The last user message without directives.
    message: &'a str,
    seed: u64,
    /// Whether the response contains the reasoning, or only counts its tokens.
    shows_reasoning: bool,
}

impl Response {
    /// The response to `request`. `message` is its last user message without the `directives`.
    pub(super) fn new(
        request: &Request,
        directives: &Directives,
        message: &str,
        seed: u64,
    ) -> Self {
        let generator = Generator {
            request,
            directives,
            message,
            seed,
            shows_reasoning: thoughts::are_requested(request),
        };
        let mut usage = Usage {
            input: tokens::estimate_request(request),
            input_image: images::count_images(request) * tokens::IMAGE_TOKENS,
            ..Usage::default()
        };
        let count = request.n.unwrap_or(1).clamp(1, MAX_CHOICES);
        let choices = (0..count).map(|index| generator.choice(index, &mut usage));
        Self {
            choices: choices.collect(),
            usage,
        }
    }
}

impl Generator<'_> {
    /// Generates one choice and adds its tokens to `usage`.
    fn choice(&self, index: u32, usage: &mut Usage) -> Choice {
        let mut remaining = self
            .request
            .max_tokens
            .unwrap_or(MAX_OUTPUT)
            .min(MAX_OUTPUT);
        let mut reasoning = self.reasoning();
        // At most half of the limit, so that some text follows.
        text_limit::truncate_to_tokens(&mut reasoning, remaining / 2);
        let reasoning_tokens = tokens::estimate_text(&reasoning);
        remaining -= reasoning_tokens;
        let mut calls = self.calls(index);
        let mut text = self.text(index, !calls.is_empty());
        let (mut finish, stop_sequence) =
            text_limit::apply_limits(&mut text, remaining, &self.request.stop);
        let mut text_tokens = tokens::estimate_text(&text);
        if finish != FinishReason::EndTurn {
            calls.clear();
        }
        for at in 0..calls.len() {
            // A name is complete, unless it alone is longer than any response.
            text_limit::truncate_to_tokens(&mut calls[at].name, MAX_OUTPUT);
            text_tokens += tokens::estimate_text(&calls[at].name);
            let cut = text_limit::truncate_to_tokens(
                &mut calls[at].arguments,
                remaining.saturating_sub(text_tokens),
            );
            text_tokens += tokens::estimate_text(&calls[at].arguments);
            if cut {
                finish = FinishReason::Length;
                calls.truncate(at + 1);
                break;
            }
        }
        usage.reasoning += reasoning_tokens;
        usage.output += reasoning_tokens + text_tokens.min(remaining);
        if !self.shows_reasoning {
            reasoning.clear();
        }
        Choice {
            reasoning,
            finish: finish.with_tool_calls(!calls.is_empty()),
            text,
            calls,
            stop_sequence,
        }
    }

    fn reasoning(&self) -> String {
        if !requests_reasoning(self.request) {
            return String::new();
        }
        let about = text::excerpt(self.message);
        format!("The message is “{about}”. A few sentences will do for an answer.")
    }

    fn text(&self, index: u32, calls: bool) -> String {
        let seed = self
            .seed
            .wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if let Some(text) = &self.directives.say {
            return text.clone();
        }
        if let Some(count) = self.directives.words {
            return text::filler_words(count, seed);
        }
        if calls {
            return String::new();
        }
        match &self.request.output {
            Some(OutputFormat::Json) => json!({ "answer": self.prose(seed) }).to_string(),
            Some(OutputFormat::Schema { schema, .. }) => {
                schema_instance::minimal(schema).to_string()
            }
            Some(OutputFormat::Text) | None => self.prose(seed),
        }
    }

    /// A few sentences that quote the request.
    fn prose(&self, seed: u64) -> String {
        let excerpt = text::excerpt(self.message);
        let given = text::excerpt(&self.tool_results());
        let opening = match (excerpt.as_str(), given.as_str()) {
            ("", "") => "There is no text in your message.".to_owned(),
            ("", given) => format!("The tool gave back “{given}”."),
            (excerpt, _) => format!("You said “{excerpt}”."),
        };
        let mut prose = vec![opening];
        prose.extend(images::describe_images(self.request));
        prose.extend(text::sentences(seed).map(str::to_owned));
        prose.join(" ")
    }

    /// The texts of the tool results in the last user turn.
    fn tool_results(&self) -> String {
        let last = self.request.turns.iter().rfind(|t| t.role == Role::User);
        let parts = last.into_iter().flat_map(|turn| &turn.parts);
        let contents = parts.filter_map(|part| match &part.kind {
            PartKind::ToolResult { content, .. } => Some(content),
            _ => None,
        });
        let texts = contents.flatten().filter_map(text_of);
        texts.collect::<Vec<_>>().join(" ")
    }

    /// The tool calls of the directives, or those that `tool_choice` requires.
    fn calls(&self, index: u32) -> Vec<ToolCall> {
        let named = &self.directives.tools;
        let has_fixed_text = self.directives.say.is_some() || self.directives.words.is_some();
        let calls: Vec<(String, String, bool)> = if !named.is_empty() {
            named
                .iter()
                .map(|(name, arguments)| (name.clone(), arguments.clone(), self.is_custom(name)))
                .collect()
        } else if has_fixed_text {
            Vec::new()
        } else {
            self.required_call().into_iter().collect()
        };
        calls
            .into_iter()
            .enumerate()
            .map(|(at, (name, arguments, custom))| ToolCall {
                id: format!("call_{:016x}_{index}_{at}", self.seed),
                name,
                arguments,
                custom,
            })
            .collect()
    }

    /// The call that `tool_choice` requires: name, arguments, and whether it is a custom tool (free text). `None` if it requires none, or
    /// none that clients run.
    fn required_call(&self) -> Option<(String, String, bool)> {
        let tools = || {
            self.request
                .tools
                .iter()
                .filter_map(|tool| minimal_call(&tool.kind))
        };
        match self.request.tool_choice.as_ref()? {
            ToolChoice::Required => tools().next(),
            ToolChoice::Tool(name) => tools().find(|(offered, ..)| offered == name),
            ToolChoice::AllowedTools {
                names,
                required: true,
            } => tools().find(|(offered, ..)| names.contains(offered)),
            ToolChoice::AllowedTools { .. } | ToolChoice::Auto | ToolChoice::None => None,
        }
    }

    fn is_custom(&self, name: &str) -> bool {
        self.request
            .tools
            .iter()
            .any(|tool| matches!(&tool.kind, ToolKind::Custom { name: known, .. } if known == name))
    }
}

/// A valid call of `tool`: name, arguments, whether it is custom. `None` for tools that the provider runs.
fn minimal_call(tool: &ToolKind) -> Option<(String, String, bool)> {
    match tool {
        ToolKind::Function {
            name, parameters, ..
        } => {
            let arguments = parameters.as_ref().map(schema_instance::minimal);
            // Arguments are always an object, even if the schema has no type.
            let arguments = arguments
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({}));
            Some((name.clone(), arguments.to_string(), false))
        }
        ToolKind::Custom { name, .. } => Some((name.clone(), "text".to_owned(), true)),
        ToolKind::WebSearch { .. } | ToolKind::FormatSpecific { .. } => None,
    }
}

fn requests_reasoning(request: &Request) -> bool {
    let reasoning = request.reasoning.as_ref();
    reasoning.is_some_and(|reasoning| reasoning.as_effort() != Some(Effort::None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_do_not_keep_text_beyond_the_token_limit() {
        let long = "dawn ".repeat(1_000_000);
        for message in [
            "[[sandbox:words=1000000]]".to_owned(),
            format!("[[sandbox:say={long}]]"),
            format!("[[sandbox:tool={}]]", long.trim_end()),
            format!("[[sandbox:tool=a {{\"b\": \"{long}\"}}]]"),
        ] {
            let request = Request {
                n: Some(2),
                ..Request::default()
            };
            let (directives, text) = Directives::parse(&message);
            let response = Response::new(&request, &directives, &text, 7);
            assert_eq!(response.choices.len(), 2);
            for Choice { text, calls, .. } in response.choices {
                let calls = calls.iter();
                let calls = calls.map(|call| call.name.capacity() + call.arguments.capacity());
                let kept = text.capacity() + calls.sum::<usize>();
                let max = MAX_OUTPUT as usize * 4;
                assert!((max / 2..max + 100).contains(&kept), "{kept}");
            }
        }
    }
}
