//! Where a format is served: on SPEC.md's paths in its envelope, or bare, as the provider's own API.

use http::Uri;
use tollgate_chat::Format;
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::generate_content::GenerateContent;
use tollgate_chat::messages::Messages;
use tollgate_chat::responses::Responses;

/// A format at a place.
#[derive(Clone, Copy)]
pub struct Mount {
    /// What clients speak here.
    pub format: &'static dyn Format,
    /// Whether replies are bare and errors the vendor's own (DECISIONS.md › Paths and shapes).
    pub bare: bool,
    /// Whether the key may come as `?key=`, and streams without `alt=sse` are JSON arrays.
    pub gemini: bool,
    /// The status of an answer when no channel can serve the model now.
    pub no_channel: u16,
}

const fn mount(format: &'static dyn Format, bare: bool) -> Mount {
    Mount {
        format,
        bare,
        gemini: false,
        no_channel: 502,
    }
}

/// `/api/v1/chat/completions`.
pub const SPEC_CHAT: Mount = mount(&ChatCompletions, false);
/// `/openai/v1/chat/completions` and `/v1/chat/completions`.
pub const BARE_CHAT: Mount = mount(&ChatCompletions, true);
/// `/v1/responses`.
pub const SPEC_RESPONSES: Mount = mount(&Responses, false);
/// `/openai/v1/responses`.
pub const BARE_RESPONSES: Mount = mount(&Responses, true);
/// `/v1/messages`.
pub const SPEC_MESSAGES: Mount = mount(&Messages, false);
/// `/anthropic/v1/messages`.
pub const BARE_MESSAGES: Mount = mount(&Messages, true);
/// `/v1beta/models/…`.
pub const SPEC_GENERATE: Mount = Mount {
    no_channel: 503,
    ..mount(&GenerateContent, false)
};
/// `/gemini/v1beta/models/…` and `/gemini/v1/models/…`.
pub const BARE_GENERATE: Mount = Mount {
    gemini: true,
    no_channel: 503,
    ..mount(&GenerateContent, true)
};

/// The mount whose error shape a path has, for answers that no handler of a mount gives: unknown paths, wrong methods,
/// missing keys.
pub fn of_path(path: &str) -> Option<Mount> {
    const PREFIXES: &[(&str, Mount)] = &[
        ("/openai/", BARE_CHAT),
        ("/anthropic/", BARE_MESSAGES),
        ("/gemini/", BARE_GENERATE),
        ("/v1beta/", SPEC_GENERATE),
        ("/v1/messages", SPEC_MESSAGES),
    ];
    PREFIXES
        .iter()
        .find(|(prefix, _)| path.starts_with(prefix))
        .map(|(_, mount)| *mount)
}

/// Whether a path is one of chat's, which are open to browsers.
pub fn is_chat(path: &str) -> bool {
    const OTHERS: [&str; 3] = ["/api/v1/chat/", "/v1/chat/", "/v1/responses"];
    of_path(path).is_some() || OTHERS.iter().any(|prefix| path.starts_with(prefix))
}

/// A member of the query, percent-decoded.
pub fn query<'a>(uri: &'a Uri, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    let pairs = url::form_urlencoded::parse(uri.query()?.as_bytes());
    pairs
        .filter(|(member, _)| member == name)
        .map(|(_, value)| value)
        .next()
}
