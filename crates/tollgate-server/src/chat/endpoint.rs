//! The chat endpoints: the format of each, and whether its responses are in the envelope `{code, data}` or like those of the provider's API.

use http::Uri;
use tollgate_chat::Format;
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::generate_content::GenerateContent;
use tollgate_chat::messages::Messages;
use tollgate_chat::responses::Responses;

/// A chat endpoint.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// The clients' format.
    pub format: &'static dyn Format,
    /// Whether responses and errors are in the provider's own form, without the envelope (docs/chat.md).
    pub bare: bool,
    /// Whether the key may be in the query as `?key=`, and streams without `alt=sse` are JSON arrays.
    pub gemini: bool,
    /// The status if no channel can serve the model now.
    pub no_channel_status: u16,
}

const fn endpoint(format: &'static dyn Format, bare: bool) -> Endpoint {
    Endpoint {
        format,
        bare,
        gemini: false,
        no_channel_status: 502,
    }
}

/// `/api/v1/chat/completions`.
pub const ENVELOPED_CHAT_COMPLETIONS: Endpoint = endpoint(&ChatCompletions, false);
/// `/openai/v1/chat/completions` and `/v1/chat/completions`.
pub const BARE_CHAT_COMPLETIONS: Endpoint = endpoint(&ChatCompletions, true);
/// `/v1/responses`.
pub const ENVELOPED_RESPONSES: Endpoint = endpoint(&Responses, false);
/// `/openai/v1/responses`.
pub const BARE_RESPONSES: Endpoint = endpoint(&Responses, true);
/// `/v1/messages`.
pub const ENVELOPED_MESSAGES: Endpoint = endpoint(&Messages, false);
/// `/anthropic/v1/messages`.
pub const BARE_MESSAGES: Endpoint = endpoint(&Messages, true);
/// `/v1beta/models/…`.
pub const ENVELOPED_GENERATE_CONTENT: Endpoint = Endpoint {
    no_channel_status: 503,
    ..endpoint(&GenerateContent, false)
};
/// `/gemini/v1beta/models/…` and `/gemini/v1/models/…`.
pub const BARE_GENERATE_CONTENT: Endpoint = Endpoint {
    gemini: true,
    no_channel_status: 503,
    ..endpoint(&GenerateContent, true)
};

/// What a POST to a chat path does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ChatOperation {
    /// Generates a response; the body names the model.
    ModelInBody,
    /// Generates a response or counts tokens; the path names the model and the operation (`MODEL:countTokens`).
    ModelInPath,
    /// Estimates the prompt's tokens; the body names the model.
    CountTokens,
}

/// A path to which clients POST chats.
#[derive(Clone, Copy)]
pub struct ChatPath {
    /// The path, as the router writes it.
    pub path: &'static str,
    /// The format, and whether replies are in the envelope.
    pub endpoint: Endpoint,
    /// What a POST does.
    pub operation: ChatOperation,
    /// The `operationId` in the OpenAPI document.
    pub operation_id: &'static str,
}

const fn chat_path(
    path: &'static str,
    endpoint: Endpoint,
    operation: ChatOperation,
    operation_id: &'static str,
) -> ChatPath {
    ChatPath {
        path,
        endpoint,
        operation,
        operation_id,
    }
}

/// Every path to which clients POST chats: first those whose replies are in the envelope `{code, data}`, then those of the providers' own APIs. The
/// router and the OpenAPI document are generated from this list.
pub static CHAT_PATHS: &[ChatPath] = &[
    chat_path(
        "/api/v1/chat/completions",
        ENVELOPED_CHAT_COMPLETIONS,
        ChatOperation::ModelInBody,
        "chatCompletions",
    ),
    chat_path(
        "/v1/responses",
        ENVELOPED_RESPONSES,
        ChatOperation::ModelInBody,
        "responses",
    ),
    chat_path(
        "/v1/messages",
        ENVELOPED_MESSAGES,
        ChatOperation::ModelInBody,
        "messages",
    ),
    chat_path(
        "/v1/messages/count_tokens",
        ENVELOPED_MESSAGES,
        ChatOperation::CountTokens,
        "countMessages",
    ),
    chat_path(
        "/v1beta/models/{*named}",
        ENVELOPED_GENERATE_CONTENT,
        ChatOperation::ModelInPath,
        "generateContent",
    ),
    chat_path(
        "/v1/chat/completions",
        BARE_CHAT_COMPLETIONS,
        ChatOperation::ModelInBody,
        "bareChatCompletionsShort",
    ),
    chat_path(
        "/openai/v1/chat/completions",
        BARE_CHAT_COMPLETIONS,
        ChatOperation::ModelInBody,
        "bareChatCompletions",
    ),
    chat_path(
        "/openai/v1/responses",
        BARE_RESPONSES,
        ChatOperation::ModelInBody,
        "bareResponses",
    ),
    chat_path(
        "/anthropic/v1/messages",
        BARE_MESSAGES,
        ChatOperation::ModelInBody,
        "bareMessages",
    ),
    chat_path(
        "/anthropic/v1/messages/count_tokens",
        BARE_MESSAGES,
        ChatOperation::CountTokens,
        "bareCountMessages",
    ),
    chat_path(
        "/gemini/v1beta/models/{*named}",
        BARE_GENERATE_CONTENT,
        ChatOperation::ModelInPath,
        "bareGenerateContent",
    ),
    chat_path(
        "/gemini/v1/models/{*named}",
        BARE_GENERATE_CONTENT,
        ChatOperation::ModelInPath,
        "bareGenerateContentV1",
    ),
];

/// The endpoint whose error format applies to a path, for responses that are not from a chat handler: unknown paths and wrong methods. `None` for all
/// other paths: their errors are in the envelope of the client API.
pub fn by_path(path: &str) -> Option<Endpoint> {
    const PREFIXES: &[(&str, Endpoint)] = &[
        ("/openai/", BARE_CHAT_COMPLETIONS),
        ("/anthropic/", BARE_MESSAGES),
        ("/gemini/", BARE_GENERATE_CONTENT),
        ("/v1beta/", ENVELOPED_GENERATE_CONTENT),
        ("/v1/messages", ENVELOPED_MESSAGES),
        ("/v1/chat/", BARE_CHAT_COMPLETIONS),
    ];
    PREFIXES
        .iter()
        .find(|(prefix, _)| path.starts_with(prefix))
        .map(|(_, endpoint)| *endpoint)
}

/// Whether a path is a chat path, which browser pages of any origin may call.
pub fn is_chat_path(path: &str) -> bool {
    const OTHERS: [&str; 2] = ["/api/v1/chat/", "/v1/responses"];
    by_path(path).is_some() || OTHERS.iter().any(|prefix| path.starts_with(prefix))
}

/// The first parameter of that name in the query, percent-decoded. `None` if there is none.
pub fn query_parameter<'a>(uri: &'a Uri, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    let mut pairs = url::form_urlencoded::parse(uri.query()?.as_bytes());
    pairs
        .find(|(parameter, _)| parameter == name)
        .map(|(_, value)| value)
}
