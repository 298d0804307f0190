//! The capabilities of OpenAI's chat models, and of well-known models on compatible servers.

use tollgate_chat::hub::{ModelCapabilities, ReasoningControl, SamplingSupport};

/// A family of models, recognised by the beginning of their ids; the first row that matches is used.
struct Row {
    starts: &'static str,
    /// Another text that the id must contain.
    has: &'static str,
    max_output_tokens: Option<u64>,
    kind: Kind,
}

/// Groups of families that accept and reject the same settings.
#[derive(Clone, Copy)]
enum Kind {
    /// Supports the sampling fields and does not think.
    Plain,
    /// Like `Plain`, but older than the support of JSON schemas.
    Old,
    /// Always thinks: no sampling, no stop sequences.
    Thinks,
    /// Like `Thinks`, but thinking can be turned off.
    MayThink,
}

const fn row(starts: &'static str, has: &'static str, max_output_tokens: u64, kind: Kind) -> Row {
    Row {
        starts,
        has,
        max_output_tokens: if max_output_tokens == 0 {
            None
        } else {
            Some(max_output_tokens)
        },
        kind,
    }
}

/// OpenAI's own models.
const MODELS: &[Row] = &[
    row("gpt-5", "chat", 16_384, Kind::Plain),
    row("gpt-5-pro", "", 272_000, Kind::Thinks),
    row("gpt-5.", "", 128_000, Kind::MayThink),
    row("gpt-5", "", 128_000, Kind::Thinks),
    row("codex-", "", 100_000, Kind::Thinks),
    row("o1-mini", "", 65_536, Kind::Thinks),
    row("o1-preview", "", 32_768, Kind::Thinks),
    row("o1", "", 100_000, Kind::Thinks),
    row("o3", "", 100_000, Kind::Thinks),
    row("o4", "", 100_000, Kind::Thinks),
    row("gpt-4o", "2024-05-13", 4_096, Kind::Old),
    row("gpt-4o", "", 16_384, Kind::Plain),
    row("chatgpt-4o", "", 16_384, Kind::Plain),
    row("gpt-4.1", "", 32_768, Kind::Plain),
    row("gpt-4.5", "", 16_384, Kind::Plain),
    row("gpt-4-turbo", "", 4_096, Kind::Old),
    row("gpt-4", "preview", 4_096, Kind::Old),
    row("gpt-4", "", 8_192, Kind::Old),
    row("gpt-3.5", "", 4_096, Kind::Old),
];

/// Context windows in tokens, by the beginning of ids; the first row that matches is used. <https://platform.openai.com/docs/models>
const CONTEXT_WINDOWS: &[(&str, u64)] = &[
    ("gpt-5-chat", 128_000),
    ("gpt-5.1", 400_000),
    ("gpt-5.2", 400_000),
    ("gpt-5-", 400_000),
    ("codex-", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-1106", 128_000),
    ("gpt-4-0125", 128_000),
    ("gpt-3.5", 16_385),
];

/// The context window of a model. `None` if it is not known.
fn context_window(id: &str) -> Option<u64> {
    match id {
        "gpt-5" => Some(400_000),
        "gpt-4" => Some(8_192),
        id => CONTEXT_WINDOWS
            .iter()
            .find(|(start, _)| id.starts_with(start))
            .map(|(_, tokens)| *tokens),
    }
}

/// The capabilities of a model. `is_vendor`: the server is OpenAI itself, where only documented fields may be sent.
pub(super) fn capabilities(model: &str, is_vendor: bool) -> ModelCapabilities {
    let id = bare(model);
    let known = MODELS
        .iter()
        .find(|row| id.starts_with(row.starts) && id.contains(row.has));
    let capabilities = match known {
        Some(row) => known_model(row),
        // A new model of OpenAI: most likely it thinks and accepts the token limit under its new name.
        None if is_vendor => known_model(&row("", "", 0, Kind::MayThink)),
        None => unknown_model(&id),
    };
    // Of OpenAI's models, those with built-in search have the option; the others have a search tool in the responses format.
    let supports_chat_search =
        id.contains("search") || !(is_vendor || capabilities.uses_max_completion_tokens);
    ModelCapabilities {
        rejects_unknown_fields: is_vendor,
        supports_chat_search,
        context_window: context_window(&id),
        ..capabilities
    }
}

fn known_model(row: &Row) -> ModelCapabilities {
    let (thinks, can_disable) = match row.kind {
        Kind::Plain | Kind::Old => (false, true),
        Kind::Thinks => (true, false),
        Kind::MayThink => (true, true),
    };
    ModelCapabilities {
        max_output_tokens: row.max_output_tokens,
        sampling: if thinks {
            SamplingSupport::None
        } else {
            SamplingSupport::All
        },
        accepts_top_k: false,
        thinking: if thinks {
            ReasoningControl::Effort { can_disable }
        } else {
            ReasoningControl::Unsupported
        },
        supports_json_schema: !matches!(row.kind, Kind::Old),
        uses_max_completion_tokens: thinks,
        accepts_stop: !thinks,
        ..ModelCapabilities::default()
    }
}

/// A model of another vendor behind the same formats: every setting is sent, and the server validates it.
fn unknown_model(id: &str) -> ModelCapabilities {
    let is_deepseek = id.contains("deepseek");
    let is_thinking = ["think", "reasoner", "-r1"]
        .iter()
        .any(|word| id.contains(word));
    ModelCapabilities {
        // In thinking mode, these models reject a forced call.
        supports_forced_tools: !(is_deepseek && is_thinking),
        requires_past_reasoning: is_deepseek || id.contains("kimi"),
        ..ModelCapabilities::default()
    }
}

/// Whether the model is not available in chat-completions.
pub(super) fn is_responses_only(model: &str) -> bool {
    let id = bare(model);
    let is_pro = |family: &str| id.starts_with(family) && id.contains("-pro");
    ["o1-pro", "o3-pro", "o3-deep", "o4-mini-deep", "codex-"]
        .iter()
        .any(|start| id.starts_with(start))
        || is_pro("gpt-5")
        || (id.starts_with("gpt-5") && id.contains("codex"))
}

/// The id without the vendor's prefix (`openai/gpt-5`), in lower case.
fn bare(model: &str) -> String {
    let id = model.rsplit('/').next().unwrap_or(model);
    id.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_models_support_no_sampling_and_use_max_completion_tokens() {
        let thinking = "gpt-5 gpt-5-mini-2025-08-07 gpt-5.2 o3 o4-mini openai/gpt-5 o1";
        for id in thinking.split(' ') {
            let capabilities = capabilities(id, true);
            assert_eq!(capabilities.sampling, SamplingSupport::None, "{id}");
            assert!(
                capabilities.uses_max_completion_tokens
                    && capabilities.rejects_unknown_fields
                    && !capabilities.accepts_stop
            );
            let can_disable = id.contains('.');
            assert_eq!(
                capabilities.thinking,
                ReasoningControl::Effort { can_disable },
                "{id}"
            );
        }
        for id in "gpt-4o gpt-4.1-mini gpt-5-chat-latest gpt-3.5-turbo".split(' ') {
            let capabilities = capabilities(id, true);
            assert_eq!(
                (capabilities.sampling, capabilities.thinking),
                (SamplingSupport::All, ReasoningControl::Unsupported),
                "{id}"
            );
            assert!(capabilities.accepts_stop && !capabilities.uses_max_completion_tokens);
        }
        assert!(
            !capabilities("gpt-4-turbo", true).supports_json_schema
                && capabilities("gpt-4o", true).supports_json_schema
        );
    }

    #[test]
    fn context_windows_are_those_that_are_published() {
        for (id, tokens) in [
            ("gpt-5", Some(400_000)),
            ("gpt-5-mini-2025-08-07", Some(400_000)),
            ("gpt-5-chat-latest", Some(128_000)),
            ("openai/gpt-4o-mini", Some(128_000)),
            ("gpt-4.1-nano", Some(1_047_576)),
            ("o3-pro", Some(200_000)),
            ("gpt-4", Some(8_192)),
            ("gpt-3.5-turbo", Some(16_385)),
            ("gpt-6", None),
            ("llama-3.3-70b", None),
        ] {
            assert_eq!(capabilities(id, true).context_window, tokens, "{id}");
        }
    }

    #[test]
    fn unknown_models_support_every_field() {
        let plain = capabilities("llama-3.3-70b", false);
        assert!(
            !plain.rejects_unknown_fields
                && !plain.uses_max_completion_tokens
                && plain.supports_forced_tools
        );
        assert_eq!(plain.sampling, SamplingSupport::All);
        assert!(!plain.requires_past_reasoning);
        assert!(capabilities("moonshotai/Kimi-K2-Thinking", false).requires_past_reasoning);
        let deepseek = capabilities("deepseek-v3.1-think-250821", false);
        assert!(deepseek.requires_past_reasoning && !deepseek.supports_forced_tools);
        assert!(capabilities("deepseek-v3-0324", false).supports_forced_tools);
        assert!(!capabilities("gpt-5", false).rejects_unknown_fields);
        assert!(plain.accepts_top_k && !capabilities("gpt-4o", false).accepts_top_k);
    }

    #[test]
    fn some_models_support_only_responses() {
        for (id, expected) in [
            ("gpt-5-pro", true),
            ("gpt-5.2-pro-2026-01-01", true),
            ("gpt-5-codex", true),
            ("o3-pro", true),
            ("gpt-5", false),
            ("gpt-5-mini", false),
            ("o3", false),
            ("gemini-2.5-pro", false),
        ] {
            assert_eq!(is_responses_only(id), expected, "{id}");
        }
    }
}
