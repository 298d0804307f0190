//! A chat request: its settings, output format and reasoning settings.

use serde_json::Value;

use super::client_format::ClientFormat;
use super::extra_fields::ExtraFields;
use super::tool::{Tool, ToolChoice, ToolKind};
use super::turn::Turn;

/// A chat request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The client's format, for error messages with the client's field names.
    pub client_format: &'static ClientFormat,
    /// The model; empty if the format has it in the URL path.
    pub model: String,
    /// The turns in order. System prompts at the front are turns with [`super::Role::System`]; writers of formats with one system field
    /// join them.
    pub turns: Vec<Turn>,
    /// Maximum number of generated tokens, reasoning included.
    pub max_tokens: Option<u64>,
    /// The sampling temperature, 0 to 2 (messages: 0 to 1).
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold, 0 to 1.
    pub top_p: Option<f64>,
    /// Sample from this many of the most probable tokens.
    pub top_k: Option<u64>,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// Number of requested choices.
    pub n: Option<u32>,
    /// Seed for repeatable sampling.
    pub seed: Option<i64>,
    /// The penalty for frequent tokens, -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// The penalty for tokens that already occurred, -2 to 2.
    pub presence_penalty: Option<f64>,
    /// Whether to return log probabilities: `Some(k)` with the `k` most probable alternatives per token.
    pub logprobs: Option<u32>,
    /// The required output format.
    pub output: Option<OutputFormat>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// Which of the tools to use.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several tool calls in one turn are allowed.
    pub parallel_tools: Option<bool>,
    /// How much to reason, and whether to return the reasoning.
    pub reasoning: Option<Reasoning>,
    /// The verbosity of the output: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// The end user: `user`, `safety_identifier`, `metadata.user_id`.
    pub user: Option<String>,
    /// Key for the upstream's prompt cache.
    pub cache_key: Option<String>,
    /// The service tier: `auto`, `default`, `flex`, `priority`, `standard_only` …
    pub service_tier: Option<String>,
    /// Labels that the client attached.
    pub metadata: Option<Value>,
    /// Whether the body requests a stream.
    pub stream: bool,
    /// Whether a chat-completions client requested usage in its stream.
    pub include_usage: bool,
    /// Members that only the client's format has. Writers of other formats reject the request if dropping a member would change what the client
    /// receives: `previous_response_id`, `conversation`, `background`, `modalities` with audio, …
    pub extra: ExtraFields,
}

/// The required format of the response's text.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputFormat {
    /// Any text, requested explicitly.
    Text,
    /// Any JSON.
    Json,
    /// JSON that follows a schema.
    Schema {
        /// The schema's name. `None` if the format has none.
        name: Option<String>,
        /// The purpose of the output.
        description: Option<String>,
        /// JSON Schema; generate-content's older dialect is already converted.
        schema: Value,
        /// Whether the output must follow the schema strictly. `None` if not set.
        strict: Option<bool>,
    },
}

/// Reasoning effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// No reasoning.
    None,
    /// `minimal`.
    Minimal,
    /// `low`.
    Low,
    /// `medium`.
    Medium,
    /// `high`.
    High,
    /// `xhigh`.
    XHigh,
    /// `max`.
    Max,
}

/// Requested reasoning. If all fields are empty, the client mentioned reasoning without an amount.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasoning {
    /// Amount by name.
    pub effort: Option<Effort>,
    /// Amount in tokens; 0 is off, -1 lets the model decide.
    pub budget: Option<i64>,
    /// Whether the model decides (messages `adaptive`).
    pub adaptive: bool,
    /// Whether and how reasoning is returned: `auto`, `concise`, `detailed`, `summarized`, `omitted`; `includeThoughts: true` becomes `auto`.
    pub display: Option<String>,
    /// Members that only its format has.
    pub extra: ExtraFields,
}

impl Request {
    /// Whether a forced call of the tool `name` means the web search, which has no name in other formats: no function or custom tool has that name.
    pub fn is_web_search(&self, name: &str) -> bool {
        let has = |is: &dyn Fn(&ToolKind) -> bool| self.tools.iter().any(|tool| is(&tool.kind));
        has(&|kind| matches!(kind, ToolKind::WebSearch { .. }))
            && !has(&|kind| match kind {
                ToolKind::Function { name: other, .. } | ToolKind::Custom { name: other, .. } => {
                    other == name
                }
                _ => false,
            })
    }
}

impl Effort {
    /// The name that the formats use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort with the name `name`. `None` if there is no such effort.
    pub fn parse(name: &str) -> Option<Self> {
        const ALL: [Effort; 7] = [
            Effort::None,
            Effort::Minimal,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::XHigh,
            Effort::Max,
        ];
        ALL.into_iter().find(|effort| effort.as_str() == name)
    }
}

impl Reasoning {
    /// The effort, converted from a token budget if a budget was requested: 0 none, up to 2048 low, up to 8192 medium, above high.
    /// `None` if the amount is left to the model.
    pub fn as_effort(&self) -> Option<Effort> {
        self.effort.or_else(|| match self.budget? {
            0 => Some(Effort::None),
            1..=2048 => Some(Effort::Low),
            2049..=8192 => Some(Effort::Medium),
            b if b > 8192 => Some(Effort::High),
            _ => None,
        })
    }
}
