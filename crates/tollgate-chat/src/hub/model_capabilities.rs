//! [`ModelCapabilities`]: the features of an upstream model. Each provider's folder declares them for its models.

/// What a model supports. The default supports everything except plain links (`accepts_urls`), and accepts reasoning effort by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// Maximum number of tokens in one response. `None` if unknown.
    pub max_output_tokens: Option<u64>,
    /// Maximum number of tokens of prompt and response together. `None` if unknown.
    pub context_window: Option<u64>,
    /// Whether a stream contains every generated token, reasoning included, so that the output of an aborted stream can be estimated from it. False
    /// for models that hide their reasoning and report its tokens at the end.
    pub shows_all_output: bool,
    /// Which sampling parameters it accepts.
    pub sampling: SamplingSupport,
    /// chat-completions: accepts `top_k`. OpenAI's own models reject it, whichever server forwards the request.
    pub accepts_top_k: bool,
    /// How reasoning is requested.
    pub thinking: ReasoningControl,
    /// Whether it supports a JSON schema natively; if not, messages uses a forced tool instead.
    pub supports_json_schema: bool,
    /// Whether functions and JSON output can be combined (generate-content: not on old models).
    pub supports_tools_with_json: bool,
    /// Whether tool use can be forced.
    pub supports_forced_tools: bool,
    /// chat-completions: the token limit is `max_completion_tokens`, and `max_tokens` is rejected.
    pub uses_max_completion_tokens: bool,
    /// chat-completions: only fields that OpenAI documents may be sent.
    pub rejects_unknown_fields: bool,
    /// generate-content: every call of the current turn must have a signature.
    pub requires_signatures: bool,
    /// chat-completions: `reasoning_content` must be sent back on assistant turns with tool calls.
    pub requires_past_reasoning: bool,
    /// generate-content: accepts plain https links as `fileData`.
    pub accepts_urls: bool,
    /// chat-completions and responses: accepts `stop`.
    pub accepts_stop: bool,
    /// chat-completions: accepts `web_search_options`. If not, the model may support search in the responses format.
    pub supports_chat_search: bool,
    /// generate-content: whether Google's search is accepted beside functions.
    pub search_with_functions: SearchWithFunctions,
    /// Maximum number of characters in a tool name.
    pub max_tool_name_length: usize,
}

/// Whether a model accepts Google's search beside functions (generate-content).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchWithFunctions {
    /// The model accepts both together.
    Accepted,
    /// The model requires `toolConfig.includeServerSideToolInvocations` (Gemini 3).
    WithServerSideInvocations,
    /// The model returns 400 (Gemini 2.x).
    Rejected,
}

/// Which of temperature, top_p and top_k a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingSupport {
    /// All, together.
    All,
    /// Temperature or top_p, but not both (temperature is kept); and top_k.
    TemperatureOrTopP,
    /// None of them.
    None,
}

/// Whether a temperature or `top_p` is 1, the default of every vendor: without it the response is the same.
pub fn is_default_sampling(value: Option<f64>) -> bool {
    value == Some(1.0)
}

/// How a model's reasoning (thinking) is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningControl {
    /// The model does not reason.
    Unsupported,
    /// By name (`reasoning_effort`; messages: `adaptive` with `output_config.effort`).
    Effort {
        /// Whether it can be turned off.
        can_disable: bool,
    },
    /// By a budget of tokens.
    Budget {
        /// Minimum, in tokens.
        min: u32,
        /// Maximum, in tokens.
        max: u32,
        /// Whether 0 or `disabled` is accepted.
        can_disable: bool,
    },
    /// By level (generate-content `thinkingLevel`).
    Level {
        /// Whether MINIMAL is accepted.
        minimal: bool,
        /// Whether MEDIUM is accepted.
        medium: bool,
    },
}

impl Default for ModelCapabilities {
    fn default() -> Self {
        Self {
            max_output_tokens: None,
            context_window: None,
            shows_all_output: false,
            sampling: SamplingSupport::All,
            accepts_top_k: true,
            thinking: ReasoningControl::Effort { can_disable: true },
            supports_json_schema: true,
            supports_tools_with_json: true,
            supports_forced_tools: true,
            uses_max_completion_tokens: false,
            rejects_unknown_fields: false,
            requires_signatures: false,
            requires_past_reasoning: false,
            accepts_urls: false,
            accepts_stop: true,
            supports_chat_search: true,
            search_with_functions: SearchWithFunctions::Accepted,
            max_tool_name_length: 64,
        }
    }
}
