//! Recognises requests to whose prompt the provider adds more than the client's bytes: searches, files that it downloads or stores, documents,
//! conversations that it stores.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

use crate::chat_completions::has_plain_fields_only;
use crate::format::{Format, RequestSummary};

static TOOLS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tools\""));
/// Parts of the names of tools that run at the provider.
static SERVER_TOOLS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    finders(&[
        "web_search",
        "web_fetch",
        "file_search",
        "code_interpreter",
        "code_execution",
        "codeExecution",
        "google_search",
        "googleSearch",
        "googleMaps",
        "url_context",
        "urlContext",
        "image_generation",
        "\"computer",
        "mcp",
        "tool_search",
    ])
});
/// Texts in attachments other than images inside the body.
static OTHER_ATTACHMENTS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    finders(&[
        "\"http",
        "\"gs:",
        "file_id",
        "fileUri",
        "file_uri",
        "fileData",
        "file_data",
        "input_audio",
        "application/",
        "application\\/",
        "audio/",
        "audio\\/",
        "video/",
        "video\\/",
        "JVBERi0",
    ])
});

fn finders(names: &[&'static str]) -> Vec<Finder<'static>> {
    names.iter().map(|name| Finder::new(*name)).collect()
}

fn finds_any(finders: &[Finder<'_>], body: &[u8]) -> bool {
    finders.iter().any(|finder| finder.find(body).is_some())
}

/// Whether the prompt may be longer than its bytes allow, so that only the model's context window limits it. May be true although it is not so (a
/// text that mentions such a tool), but is never false if it is so.
pub fn has_open_ended_prompt(format: &dyn Format, body: &[u8], summary: &RequestSummary) -> bool {
    if summary.attachments > 0 && (finds_any(&OTHER_ATTACHMENTS, body) || has_escaped_letters(body))
    {
        return true;
    }
    // Most requests have no field that could make the provider add to the prompt.
    if has_plain_fields_only(summary.members) {
        return false;
    }
    let mut members = format.prompt_extending_members().iter();
    members.any(|member| memmem::find(body, member.as_bytes()).is_some())
        || (TOOLS.find(body).is_some() && finds_any(&SERVER_TOOLS, body))
        || has_escaped_letters(body)
}

/// Whether a character that can occur in a searched text is escaped (`\u0061` for `a`), which hides the text.
pub(crate) fn has_escaped_letters(body: &[u8]) -> bool {
    count_escaped_letters(body) > 0
}

/// The number of escaped letters, digits and characters of `_-./:`. Other ASCII characters are escaped by ordinary clients: .NET's by default
/// ``"&'+<>` `` and U+007F, others control characters and `=`.
pub(crate) fn count_escaped_letters(body: &[u8]) -> usize {
    let is_hidden = |at: &usize| {
        // After an odd number of backslashes, this one is escaped itself, and `u00` is a text.
        let before = body[..*at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        let digits = body
            .get(at + 4..at + 6)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        before % 2 == 0
            && byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte))
    };
    memmem::find_iter(body, b"\\u00").filter(is_hidden).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;
    use crate::test_tables::rows;

    #[test]
    fn prompts_that_the_provider_extends_are_recognised() {
        for (format, body, attachments, expected) in
            rows::<(String, String, u32, bool)>("open_ended_prompts")
        {
            let format = by_name(&format).unwrap();
            let read = format
                .summarize_request(body.as_bytes())
                .unwrap_or_default();
            let summary = RequestSummary {
                attachments,
                ..read
            };
            let found = has_open_ended_prompt(format, body.as_bytes(), &summary);
            assert_eq!(found, expected, "{body}");
        }
    }
}
