//! What the sandbox answers to a request: thinking, text, calls of tools, and the tokens that they are.

use serde_json::{Value, json};
use tollgate_chat::Format;
use tollgate_chat::hub::{
    Effort, Finish, Kind, OutputFormat, Request, Role, ToolChoice, ToolKind, Usage,
};
use tollgate_chat::tokens;

use super::{MAX_OUTPUT, instance, limit, pictures, text_of, words};
use crate::sandbox::directives::Directives;

/// Replies to one request that anybody reads.
const CHOICES_MAX: u32 = 128;

/// A whole reply.
pub(super) struct Script {
    pub(super) choices: Vec<Spoken>,
    pub(super) usage: Usage,
}

/// One of its choices.
pub(super) struct Spoken {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Finish,
    pub(super) stop_sequence: Option<String>,
}

/// A call of a tool.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) custom: bool,
}

/// What a reply is made from.
struct Author<'a> {
    request: &'a Request,
    directives: &'a Directives,
    /// The last message without its directives.
    message: &'a str,
    seed: u64,
    /// Whether the client gets to see the thinking.
    shows_reasoning: bool,
}

impl Script {
    /// The reply to `request`, whose last message is `message` and `directives`.
    pub(super) fn new(
        request: &Request,
        format: &dyn Format,
        directives: &Directives,
        message: &str,
        seed: u64,
    ) -> Self {
        let author = Author {
            request,
            directives,
            message,
            seed,
            shows_reasoning: shows_reasoning(request, format),
        };
        let mut usage = Usage {
            input: tokens::of_request(request),
            input_image: pictures::count(request) * tokens::IMAGE_TOKENS,
            ..Usage::default()
        };
        let count = request.n.unwrap_or(1).clamp(1, CHOICES_MAX);
        let choices = (0..count).map(|index| author.choice(index, &mut usage));
        Self {
            choices: choices.collect(),
            usage,
        }
    }
}

impl Author<'_> {
    /// One choice, its tokens added to `usage`.
    fn choice(&self, index: u32, usage: &mut Usage) -> Spoken {
        let mut left = self
            .request
            .max_tokens
            .unwrap_or(MAX_OUTPUT)
            .min(MAX_OUTPUT);
        let mut reasoning = self.reasoning();
        // Half of the cap at most, so that a short answer is an answer.
        limit::to_tokens(&mut reasoning, left / 2);
        let thought = tokens::count(&reasoning);
        left -= thought;
        let mut calls = self.calls(index);
        let mut text = self.text(index, !calls.is_empty());
        let (mut finish, stop_sequence) = limit::apply(&mut text, left, &self.request.stop);
        let mut said = tokens::count(&text);
        if finish != Finish::End {
            calls.clear();
        }
        for at in 0..calls.len() {
            said += tokens::count(&calls[at].name);
            let cut = limit::to_tokens(&mut calls[at].arguments, left.saturating_sub(said));
            said += tokens::count(&calls[at].arguments);
            if cut {
                finish = Finish::Length;
                calls.truncate(at + 1);
                break;
            }
        }
        usage.reasoning += thought;
        usage.output += thought + said.min(left);
        if !self.shows_reasoning {
            reasoning.clear();
        }
        Spoken {
            reasoning,
            finish: finish.with_calls(!calls.is_empty()),
            text,
            calls,
            stop_sequence,
        }
    }

    fn reasoning(&self) -> String {
        if !thinks(self.request) {
            return String::new();
        }
        let about = words::excerpt(self.message);
        format!("The message is “{about}”. Some true sentences will do for an answer.")
    }

    fn text(&self, index: u32, calls: bool) -> String {
        let seed = self
            .seed
            .wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if let Some(text) = &self.directives.say {
            return text.clone();
        }
        if let Some(count) = self.directives.words {
            return words::some(count, seed);
        }
        if calls {
            return String::new();
        }
        match &self.request.output {
            Some(OutputFormat::Json) => json!({ "answer": self.prose(seed) }).to_string(),
            Some(OutputFormat::Schema { schema, .. }) => instance::minimal(schema).to_string(),
            Some(OutputFormat::Text) | None => self.prose(seed),
        }
    }

    /// A few sentences that refer to what was sent.
    fn prose(&self, seed: u64) -> String {
        let said = words::excerpt(self.message);
        let given = words::excerpt(&self.tool_results());
        let opening = match (said.as_str(), given.as_str()) {
            ("", "") => "There is no text in your message.".to_owned(),
            ("", given) => format!("The tool gave back “{given}”."),
            (said, _) => format!("You said “{said}”."),
        };
        let mut prose = vec![opening];
        prose.extend(pictures::sentence(self.request));
        prose.extend(words::sentences(seed).map(str::to_owned));
        prose.join(" ")
    }

    /// The texts of the tools' results in the last turn.
    fn tool_results(&self) -> String {
        let last = self.request.turns.iter().rfind(|t| t.role == Role::User);
        let parts = last.into_iter().flat_map(|turn| &turn.parts);
        let contents = parts.filter_map(|part| match &part.kind {
            Kind::ToolResult { content, .. } => Some(content),
            _ => None,
        });
        let texts = contents.flatten().filter_map(text_of);
        texts.collect::<Vec<_>>().join(" ")
    }

    /// The calls that the directives or the request demand.
    fn calls(&self, index: u32) -> Vec<Call> {
        let told = &self.directives.tools;
        let is_told_text = self.directives.say.is_some() || self.directives.words.is_some();
        let demanded: Vec<(String, String, bool)> = if !told.is_empty() {
            told.iter()
                .map(|name| (name.clone(), "{}".to_owned(), self.is_custom(name)))
                .collect()
        } else if is_told_text {
            Vec::new()
        } else {
            self.forced().into_iter().collect()
        };
        let made = demanded.into_iter().enumerate();
        made.map(|(at, (name, arguments, custom))| Call {
            id: format!("call_{:016x}_{index}_{at}", self.seed),
            name,
            arguments,
            custom,
        })
        .collect()
    }

    /// The one call that `tool_choice` forces: name, arguments, and whether the tool takes free text.
    fn forced(&self) -> Option<(String, String, bool)> {
        let tools = || {
            self.request
                .tools
                .iter()
                .filter_map(|tool| call_of(&tool.kind))
        };
        match self.request.tool_choice.as_ref()? {
            ToolChoice::Required => tools().next(),
            ToolChoice::One(name) => tools()
                .find(|(there, ..)| there == name)
                .or_else(|| Some((name.clone(), "{}".to_owned(), false))),
            ToolChoice::Among {
                names,
                required: true,
            } => tools().find(|(there, ..)| names.contains(there)),
            ToolChoice::Among { .. } | ToolChoice::Auto | ToolChoice::None => None,
        }
    }

    fn is_custom(&self, name: &str) -> bool {
        self.request
            .tools
            .iter()
            .any(|tool| matches!(&tool.kind, ToolKind::Custom { name: there, .. } if there == name))
    }
}

/// A call that is valid for a tool of the client's.
fn call_of(tool: &ToolKind) -> Option<(String, String, bool)> {
    match tool {
        ToolKind::Function {
            name, parameters, ..
        } => {
            let arguments = parameters.as_ref().map(instance::minimal);
            // Arguments are an object, whatever the schema forgets to say.
            let arguments = arguments
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({}));
            Some((name.clone(), arguments.to_string(), false))
        }
        ToolKind::Custom { name, .. } => Some((name.clone(), "text".to_owned(), true)),
        ToolKind::WebSearch { .. } | ToolKind::Foreign { .. } => None,
    }
}

fn thinks(request: &Request) -> bool {
    let reasoning = request.reasoning.as_ref();
    reasoning.is_some_and(|reasoning| reasoning.as_effort() != Some(Effort::None))
}

/// Whether thinking is shown: where the client says so, and in the formats that show it unasked.
fn shows_reasoning(request: &Request, format: &dyn Format) -> bool {
    let asked = request.reasoning.as_ref().and_then(|r| r.show.as_deref());
    match asked {
        Some(how) => how != "omitted",
        None => matches!(format.name(), "chat-completions" | "messages"),
    }
}
