//! A conversation and what is asked of the model.

use serde_json::Value;

use super::{Own, Part};

/// A chat request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The client's format by name, for naming fields in the client's words; empty where it is not known.
    pub client: &'static str,
    /// The model, where the format has it in the body.
    pub model: String,
    /// The turns in order. System text at the front is turns of [`Role::System`] too; where a format has one place for it,
    /// its writer joins them.
    pub turns: Vec<Turn>,
    /// Cap on generated tokens, reasoning included.
    pub max_tokens: Option<u64>,
    /// 0 to 2 (messages: to 1).
    pub temperature: Option<f64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// Sample from the most probable options only.
    pub top_k: Option<u64>,
    /// Texts that end the reply.
    pub stop: Vec<String>,
    /// Replies asked for.
    pub n: Option<u32>,
    /// For repeatable sampling.
    pub seed: Option<i64>,
    /// -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// -2 to 2.
    pub presence_penalty: Option<f64>,
    /// Probabilities of the tokens: `Some(k)` with the k most probable others.
    pub logprobs: Option<u32>,
    /// What the text must be.
    pub output: Option<OutputFormat>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Which of them to use.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are allowed.
    pub parallel_tools: Option<bool>,
    /// How much to think, and whether to show it.
    pub reasoning: Option<Reasoning>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// The end user: `user`, `safety_identifier`, `metadata.user_id`.
    pub user: Option<String>,
    /// Key for the upstream's prompt cache.
    pub cache_key: Option<String>,
    /// `auto`, `default`, `flex`, `priority`, `standard_only` …
    pub service_tier: Option<String>,
    /// Free labels of the client.
    pub metadata: Option<Value>,
    /// Whether a stream is asked for, where the body says so.
    pub stream: bool,
    /// Whether a chat-completions client asked for usage in its stream.
    pub include_usage: bool,
    /// Members that only the client's format knows. Those whose loss would change what the client receives
    /// are refused by the writers of other formats: `previous_response_id`, `conversation`, `background`, `modalities` with audio, …
    pub own: Own,
}

/// Who says a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The operator of the conversation: system, developer, instructions.
    System,
    /// The person; tool results are in their turns too.
    User,
    /// The model.
    Assistant,
}

/// One turn. Tool results of chat-completions (role `tool`) and responses (items) become parts of a user turn; consecutive
/// ones of one role may stay apart, writers merge where their format needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Who.
    pub role: Role,
    /// What.
    pub parts: Vec<Part>,
    /// Whether the content was one string rather than a list.
    pub plain: bool,
    /// `name` of chat-completions messages.
    pub name: Option<String>,
    /// What only its format knows of it (among it the spelling `developer`, `instructions`, item types and ids).
    pub own: Own,
}

/// What the text of the reply must be.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputFormat {
    /// Any text, said explicitly.
    Text,
    /// Any JSON.
    Json,
    /// JSON of a schema.
    Schema {
        /// Its name; made up where the format has none.
        name: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// JSON Schema (from generate-content's older dialect already converted).
        schema: Value,
        /// Whether the model must keep to it strictly.
        strict: Option<bool>,
    },
}

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// What kind.
    pub kind: ToolKind,
    /// A prompt-cache marker behind it.
    pub cache: Option<String>,
    /// What only its format knows of it.
    pub own: Own,
}

/// What a tool is.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// A function of the client's.
    Function {
        /// Its name.
        name: String,
        /// What it does.
        description: Option<String>,
        /// JSON Schema of its arguments; none for a function without.
        parameters: Option<Value>,
        /// Whether arguments must keep to the schema strictly.
        strict: Option<bool>,
    },
    /// A tool of the client's that takes free text (custom).
    Custom {
        /// Its name.
        name: String,
        /// What it does.
        description: Option<String>,
        /// The text's grammar, in the responses format's flat spelling.
        format: Option<Value>,
    },
    /// Search of the web by the vendor.
    WebSearch {
        /// `{city, country, region, timezone}`.
        location: Option<Value>,
    },
    /// A tool that the vendor runs and only one format knows: its whole JSON.
    Foreign {
        /// The format.
        format: &'static str,
        /// Its definition.
        value: Value,
    },
}

/// Which tool to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// None.
    None,
    /// Any, but at least one.
    Required,
    /// This one.
    One(String),
    /// Only these; `required`: at least one of them.
    Among {
        /// Their names.
        names: Vec<String>,
        /// At least one of them.
        required: bool,
    },
}

/// How much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all.
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

/// Thinking as asked for. All none: the client named reasoning without saying how much.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasoning {
    /// By word.
    pub effort: Option<Effort>,
    /// By tokens; 0 is off, -1 is the model's choice.
    pub budget: Option<i64>,
    /// The model decides (messages `adaptive`).
    pub adaptive: bool,
    /// Whether the client wants to see it: `auto`, `concise`, `detailed`, `summarized`, `omitted`; `includeThoughts: true` is `auto`.
    pub show: Option<String>,
    /// What only its format knows of it.
    pub own: Own,
}

impl Turn {
    /// A turn of `parts`.
    pub fn of(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            plain: false,
            name: None,
            own: Own::NONE,
        }
    }
}

impl Effort {
    /// The word of the formats.
    pub fn word(self) -> &'static str {
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

    /// The effort of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        const ALL: [Effort; 7] = [
            Effort::None,
            Effort::Minimal,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::XHigh,
            Effort::Max,
        ];
        ALL.into_iter().find(|effort| effort.word() == word)
    }
}

impl Reasoning {
    /// Its strength by word, from the budget where that is what was given (translation: up to 2048 low, up to 8192 medium, above
    /// high; 0 none; -1 and adaptive alone open).
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
