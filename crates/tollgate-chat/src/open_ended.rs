//! Recognises requests to whose prompt the provider adds more than the client's bytes: searches, files that it downloads or stores, documents,
//! conversations that it stores.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

use crate::chat_completions::has_plain_fields_only;
use crate::escaped_letters::has_escaped_letters;
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
