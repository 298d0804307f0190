//! Names: what the client calls a field of the hub, and tool names and call ids that an upstream takes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Kind, Request, ToolChoice, ToolKind};

/// A field of [`Request`] that clients name differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the fields of `Request`")]
pub enum Field {
    MaxTokens,
    Temperature,
    TopP,
    TopK,
    Stop,
    N,
    Seed,
    FrequencyPenalty,
    PresencePenalty,
    Logprobs,
    Output,
    Tools,
    ToolChoice,
    ParallelTools,
    Reasoning,
    Verbosity,
    User,
    CacheKey,
    ServiceTier,
    Metadata,
    /// Prompt-cache markers.
    Cache,
    /// Thinking in the history.
    PastReasoning,
    /// Sources of text in the history.
    Citations,
    /// The list of turns.
    Turns,
    /// The list of parts in a turn.
    Parts,
}

/// Each field in the order of chat-completions, responses, messages, generate-content.
const WORDS: &[(Field, [&str; 4])] = &[
    (
        Field::MaxTokens,
        [
            "max_tokens",
            "max_output_tokens",
            "max_tokens",
            "generationConfig.maxOutputTokens",
        ],
    ),
    (
        Field::Temperature,
        [
            "temperature",
            "temperature",
            "temperature",
            "generationConfig.temperature",
        ],
    ),
    (
        Field::TopP,
        ["top_p", "top_p", "top_p", "generationConfig.topP"],
    ),
    (
        Field::TopK,
        ["top_k", "top_k", "top_k", "generationConfig.topK"],
    ),
    (
        Field::Stop,
        [
            "stop",
            "stop",
            "stop_sequences",
            "generationConfig.stopSequences",
        ],
    ),
    (Field::N, ["n", "n", "n", "generationConfig.candidateCount"]),
    (
        Field::Seed,
        ["seed", "seed", "seed", "generationConfig.seed"],
    ),
    (
        Field::FrequencyPenalty,
        [
            "frequency_penalty",
            "frequency_penalty",
            "frequency_penalty",
            "generationConfig.frequencyPenalty",
        ],
    ),
    (
        Field::PresencePenalty,
        [
            "presence_penalty",
            "presence_penalty",
            "presence_penalty",
            "generationConfig.presencePenalty",
        ],
    ),
    (
        Field::Logprobs,
        [
            "logprobs",
            "top_logprobs",
            "logprobs",
            "generationConfig.responseLogprobs",
        ],
    ),
    (
        Field::Output,
        [
            "response_format",
            "text.format",
            "output_config.format",
            "generationConfig.responseMimeType",
        ],
    ),
    (Field::Tools, ["tools", "tools", "tools", "tools"]),
    (
        Field::ToolChoice,
        [
            "tool_choice",
            "tool_choice",
            "tool_choice",
            "toolConfig.functionCallingConfig",
        ],
    ),
    (
        Field::ParallelTools,
        [
            "parallel_tool_calls",
            "parallel_tool_calls",
            "tool_choice.disable_parallel_tool_use",
            "toolConfig",
        ],
    ),
    (
        Field::Reasoning,
        [
            "reasoning_effort",
            "reasoning",
            "thinking",
            "generationConfig.thinkingConfig",
        ],
    ),
    (
        Field::Verbosity,
        ["verbosity", "text.verbosity", "verbosity", "verbosity"],
    ),
    (Field::User, ["user", "user", "metadata.user_id", "labels"]),
    (
        Field::CacheKey,
        [
            "prompt_cache_key",
            "prompt_cache_key",
            "prompt_cache_key",
            "prompt_cache_key",
        ],
    ),
    (
        Field::ServiceTier,
        [
            "service_tier",
            "service_tier",
            "service_tier",
            "serviceTier",
        ],
    ),
    (
        Field::Metadata,
        ["metadata", "metadata", "metadata", "labels"],
    ),
    (
        Field::Cache,
        [
            "cache_control",
            "prompt_cache_breakpoint",
            "cache_control",
            "cachedContent",
        ],
    ),
    (
        Field::PastReasoning,
        ["reasoning_content", "reasoning", "thinking", "thought"],
    ),
    (
        Field::Citations,
        [
            "annotations",
            "annotations",
            "citations",
            "groundingMetadata",
        ],
    ),
    (Field::Turns, ["messages", "input", "messages", "contents"]),
    (Field::Parts, ["content", "content", "content", "parts"]),
];

const FORMATS: [&str; 4] = [
    "chat-completions",
    "responses",
    "messages",
    "generate-content",
];

impl Request {
    /// What this request's client calls `field`.
    pub fn name_of(&self, field: Field) -> &'static str {
        let column = FORMATS.iter().position(|f| *f == self.client).unwrap_or(0);
        WORDS
            .iter()
            .find(|row| row.0 == field)
            .map_or("", |row| row.1[column])
    }

    /// A part as the client's path, `messages[2].content[0]`. The turn's number is that of [`Request::turns`] less the system turns
    /// at the front of formats that have a place of their own for them.
    pub fn path_of(&self, turn: usize, part: usize) -> String {
        let apart = match self.client {
            "chat-completions" | "" => 0,
            _ => self
                .turns
                .iter()
                .take_while(|t| t.role == super::Role::System)
                .count(),
        };
        let (turns, parts) = (self.name_of(Field::Turns), self.name_of(Field::Parts));
        format!("{turns}[{}].{parts}[{part}]", turn.saturating_sub(apart))
    }

    /// The member of [`Request::own`] without which an upstream of `format` would answer something else than what was asked:
    /// a reason for 400. What only tunes is no such member.
    pub fn own_that_matters_to(&self, format: &str) -> Option<&str> {
        let mut lost = self.own.lost_to(format);
        lost.find(|name| self.own.get(name).is_some_and(|value| matters(name, value)))
    }
}

/// Whether losing this member changes what the client receives.
fn matters(name: &str, value: &Value) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    match name {
        "previous_response_id"
        | "conversation"
        | "prompt"
        | "audio"
        | "container"
        | "cachedContent"
        | "continuationToken"
        | "speechConfig" => !value.is_null(),
        "background" => value == &Value::Bool(true),
        "mcp_servers" => value.as_array().is_some_and(|list| !list.is_empty()),
        "modalities" | "responseModalities" => value.as_array().is_some_and(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .any(|m| !m.eq_ignore_ascii_case("text"))
        }),
        _ => false,
    }
}

/// Tool names as one upstream takes them, the same for definitions, choice and history of a request.
#[derive(Debug, Default)]
pub struct ToolNames {
    sent: HashMap<String, String>,
    renamed: Vec<(String, String)>,
}

impl ToolNames {
    /// Names of at most `max` characters that `legal` takes (it is told whether the character is the first).
    pub fn of(request: &Request, max: usize, legal: impl Fn(bool, char) -> bool) -> Self {
        let fits = |name: &str| {
            !name.is_empty()
                && name.chars().count() <= max
                && name.chars().enumerate().all(|(i, c)| legal(i == 0, c))
        };
        let names = all_names(request);
        let mut taken: HashSet<String> = names
            .iter()
            .filter(|name| fits(name))
            .map(|name| (*name).to_owned())
            .collect();
        let mut this = Self::default();
        for name in names {
            if fits(name) || this.sent.contains_key(name) {
                continue;
            }
            let plain = legal_text(name, &legal);
            let mut short: String = plain.chars().take(max).collect();
            if short.is_empty() || short.len() != plain.len() || taken.contains(&short) {
                short = with_hash(&plain, name, max);
            }
            taken.insert(short.clone());
            this.renamed.push((short.clone(), name.to_owned()));
            this.sent.insert(name.to_owned(), short);
        }
        this
    }

    /// What the upstream calls the tool that the client calls `name`.
    pub fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent.get(name).map_or(name, String::as_str)
    }

    /// What [`crate::Written::renamed_tools`] wants.
    pub fn renamed(self) -> Vec<(String, String)> {
        self.renamed
    }
}

fn all_names(request: &Request) -> Vec<&str> {
    let defined = request.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let chosen = match &request.tool_choice {
        Some(ToolChoice::One(name)) => std::slice::from_ref(name),
        Some(ToolChoice::Among { names, .. }) => names,
        _ => &[],
    };
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let called = parts.filter_map(|part| match &part.kind {
        Kind::ToolCall { name, .. } => Some(name.as_str()),
        Kind::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    });
    defined
        .chain(chosen.iter().map(String::as_str))
        .chain(called)
        .collect()
}

/// `id` as an upstream takes it: at most `max` characters that `legal` takes. The same for the same id wherever it stands; ids
/// that had to be changed carry a hash, so that two of them never become one. An empty id stays empty.
pub fn fitting_id(id: &str, max: usize, legal: impl Fn(char) -> bool) -> Cow<'_, str> {
    if id.chars().all(&legal) && id.chars().count() <= max {
        return Cow::Borrowed(id);
    }
    let plain = legal_text(id, &|_, c| legal(c));
    Cow::Owned(with_hash(&plain, id, max))
}

fn legal_text(text: &str, legal: &impl Fn(bool, char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        let first = out.is_empty();
        match c {
            c if legal(first, c) => out.push(c),
            c if first && legal(false, c) => out.extend(['_', c]),
            _ => out.push('_'),
        }
    }
    out
}

/// `plain`, shortened, with a hash of `original` behind it.
fn with_hash(plain: &str, original: &str, max: usize) -> String {
    let digest = Sha256::digest(original);
    let hash: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let room = max.saturating_sub(hash.len() + 1);
    let head: String = plain.chars().take(room).collect();
    format!("{head}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Own, Tool};

    fn plain(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-'
    }

    #[test]
    fn trap_06_07_ids_are_made_fitting_without_collisions() {
        assert_eq!(fitting_id("call_1", 40, plain), "call_1");
        let (a, b) = (
            fitting_id("a.b:c", 40, plain),
            fitting_id("a:b.c", 40, plain),
        );
        assert!(a.starts_with("a_b_c_") && a != b && a == fitting_id("a.b:c", 40, plain));
        let (x, y) = ("x".repeat(80) + "1", "x".repeat(80) + "2");
        let (x, y) = (fitting_id(&x, 64, plain), fitting_id(&y, 64, plain));
        assert!(x.len() == 64 && y.len() == 64 && x != y);
    }

    #[test]
    fn trap_11_tool_names_are_mapped_and_remembered() {
        let tool = |name: &str| Tool {
            kind: ToolKind::Function {
                name: name.to_owned(),
                description: None,
                parameters: None,
                strict: None,
            },
            cache: None,
            own: Own::NONE,
        };
        let request = Request {
            tools: vec![
                tool("mcp.files.read"),
                tool("mcp_files_read"),
                tool("ok"),
                tool("1st"),
            ],
            ..Request::default()
        };
        let names = ToolNames::of(&request, 64, |first, c| {
            plain(c) && !(first && c.is_ascii_digit())
        });
        assert_eq!(names.sent("ok"), "ok");
        assert_eq!(names.sent("1st"), "_1st");
        let sent = names.sent("mcp.files.read").to_owned();
        assert!(sent.starts_with("mcp_files_read_"));
        assert_eq!(names.renamed()[0], (sent, "mcp.files.read".to_owned()));
    }

    #[test]
    fn fields_are_named_in_the_clients_words() {
        let request = Request {
            client: "generate-content",
            ..Request::default()
        };
        assert_eq!(
            request.name_of(Field::Stop),
            "generationConfig.stopSequences"
        );
        assert_eq!(request.path_of(1, 2), "contents[1].parts[2]");
    }
}
