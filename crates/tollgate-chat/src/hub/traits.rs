//! What an upstream model takes and refuses; each provider's folder says it for its models.

/// What a model takes. The default is a model that takes everything and thinks by word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTraits {
    /// The most tokens that one reply can have; none where unknown.
    pub max_output: Option<u64>,
    /// Which sampling parameters it takes.
    pub sampling: Sampling,
    /// How thinking is asked for.
    pub thinking: Thinking,
    /// Whether it keeps to a JSON schema natively; else a forced tool stands in (messages).
    pub json_schema: bool,
    /// Whether functions and JSON output go together (generate-content: not on old models).
    pub tools_with_json: bool,
    /// Whether tool use can be forced.
    pub forced_tools: bool,
    /// chat-completions: the cap's name is `max_completion_tokens`, and `max_tokens` is refused.
    pub max_completion_tokens: bool,
    /// chat-completions: only fields that OpenAI itself documents may be sent.
    pub strict_fields: bool,
    /// generate-content: every call of the current turn must carry a signature.
    pub needs_signatures: bool,
    /// chat-completions: `reasoning_content` must come back on assistant turns with tool calls.
    pub needs_reasoning_back: bool,
    /// generate-content: takes plain https links as `fileData`.
    pub takes_urls: bool,
    /// chat-completions and responses: takes `stop`.
    pub takes_stop: bool,
    /// Tool names may have these many characters.
    pub tool_name_max: usize,
}

/// Which of temperature, top_p and top_k a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// All, together.
    All,
    /// Temperature or top_p, not both (temperature is kept).
    One,
    /// None of them.
    None,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It cannot.
    No,
    /// By word (`reasoning_effort`; messages: `adaptive` with `output_config.effort`).
    Effort {
        /// Whether it can be turned off.
        can_disable: bool,
    },
    /// By a budget of tokens.
    Budget {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
        /// Whether 0 / disabled is taken.
        can_disable: bool,
    },
    /// By level (generate-content `thinkingLevel`).
    Level {
        /// Whether MINIMAL is taken.
        minimal: bool,
        /// Whether MEDIUM is taken.
        medium: bool,
    },
}

impl Default for ModelTraits {
    fn default() -> Self {
        Self {
            max_output: None,
            sampling: Sampling::All,
            thinking: Thinking::Effort { can_disable: true },
            json_schema: true,
            tools_with_json: true,
            forced_tools: true,
            max_completion_tokens: false,
            strict_fields: false,
            needs_signatures: false,
            needs_reasoning_back: false,
            takes_urls: false,
            takes_stop: true,
            tool_name_max: 64,
        }
    }
}
