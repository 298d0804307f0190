//! Estimates of the tokens that a request can cost, for holds and charges, and upper bounds for the counts of upstreams.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tollgate_chat::hub::{ModelCapabilities, ReasoningControl, RequestField, Usage};
use tollgate_chat::{
    Format, HeldAttachments, RequestSummary, has_open_ended_prompt, held_attachments, tokens,
};
use tollgate_config::PartPrices;
use tollgate_core::{Amount, ApiError, ErrorKind};
use tollgate_store::{TokenCounts, TokenPrices};

use crate::chat::part_charges;
use crate::http::large_work;

/// Tokens that an upstream may add to a prompt itself: tool preambles, framing.
const MAX_FRAMING_TOKENS: u64 = 16_384;
/// Tokens held for framing. A JSON body has more bytes than its texts have tokens, so few are needed.
const HELD_FRAMING_TOKENS: u64 = 16;
/// Tokens that an upstream may count for one attachment, at most.
const MAX_ATTACHMENT_TOKENS: u64 = 50_000;
/// Tokens held for what a provider adds to a prompt: search results, stored conversations.
const HELD_PROVIDER_INPUT: u64 = 50_000;
/// The context window of models for which none is known: the largest that is common.
const DEFAULT_CONTEXT_WINDOW: u64 = 1_048_576;
/// Output tokens of one choice if neither client nor model limits them.
const MAX_UNBOUNDED_OUTPUT: u64 = 1_000_000;
/// Reasoning tokens that some servers do not count towards the client's maximum.
const MAX_UNCOUNTED_REASONING: u64 = 131_072;
/// The maximum number of output tokens that a model generates in a second, for one choice.
const MAX_TOKENS_PER_SECOND: u64 = 150;

/// Estimates and bounds of the tokens that a request can cost.
#[derive(Debug, Clone, Copy)]
pub struct ChargeBounds {
    /// The gateway's estimate of the prompt's tokens.
    pub estimated_prompt: u64,
    /// The highest possible number of prompt tokens, which is held: 1 for each byte of text, because no tokenizer yields more, and for attachments a
    /// number by type and size. 0 if nothing is held.
    held_prompt: u64,
    /// If an upstream reports more prompt tokens than this, the count is wrong, unless the prompt is open-ended.
    max_prompt: u64,
    /// Whether the provider adds to the prompt, so that only the model's context window bounds it.
    is_open_ended: bool,
    /// The maximum of output tokens of one choice that is sent upstream. `None` if none is sent.
    max_output: Option<u64>,
    /// The output tokens that are held for one choice.
    held_output: u64,
    /// The requested number of choices.
    choices: u64,
    /// Whether the client gave a maximum of output tokens.
    has_client_cap: bool,
    /// The prices of parts that are charged separately.
    pub parts: PartPrices,
    /// Whether the request may call tools that have a price for each call.
    has_priced_tools: bool,
}

/// How much output an upstream may generate that is not visible while it handles one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenOutput {
    /// The percentage of the cap that reasoning at the requested effort uses at most. 0: everything is visible.
    pub percent_of_cap: u64,
}

impl ChargeBounds {
    /// The bounds of a request with that body in that format. If it has no maximum of output tokens, `default_max_tokens` and its budget for thinking
    /// are held. The prompt that is held is computed only if `needs_hold`.
    pub fn new(
        format: &dyn Format,
        summary: &RequestSummary,
        body: &[u8],
        default_max_tokens: u64,
        needs_hold: bool,
    ) -> Self {
        let bytes = body.len() as u64;
        let attachments = u64::from(summary.attachments);
        // Without an attachment, base64 is part of the prompt's text.
        let payload_bytes = match attachments {
            0 => 0,
            _ => summary.payload_bytes,
        };
        let is_open_ended =
            summary.has_stored_context || has_open_ended_prompt(format, body, summary);
        let mut held_prompt = 0;
        if needs_hold {
            let files = match attachments {
                0 => HeldAttachments::default(),
                _ => held_attachments(body),
            };
            // What is held for files that the provider fetches covers that it does. It may add to the prompt for other reasons, too.
            let is_open_ended_without_files = match files.tokens {
                0 => is_open_ended,
                _ => {
                    let summary = RequestSummary {
                        attachments: 0,
                        ..summary.clone()
                    };
                    summary.has_stored_context || has_open_ended_prompt(format, body, &summary)
                }
            };
            let by_provider = match is_open_ended_without_files {
                true => HELD_PROVIDER_INPUT,
                false => 0,
            };
            let text = bytes.saturating_sub(files.bytes);
            held_prompt = (text + by_provider + HELD_FRAMING_TOKENS).saturating_add(files.tokens);
        }
        Self {
            estimated_prompt: tokens::estimate_body(body, payload_bytes)
                + attachments * tokens::IMAGE_TOKENS,
            held_prompt,
            max_prompt: bytes + attachments * MAX_ATTACHMENT_TOKENS + MAX_FRAMING_TOKENS,
            is_open_ended,
            max_output: summary.max_tokens,
            held_output: summary.max_tokens.unwrap_or_else(|| {
                default_max_tokens.saturating_add(summary.thinking_budget.unwrap_or(0))
            }),
            choices: u64::from(summary.n.max(1)),
            has_client_cap: summary.max_tokens.is_some(),
            parts: PartPrices::default(),
            has_priced_tools: false,
        }
    }

    /// The same bounds, with `tokens` of a conversation that the upstream stores and adds to the prompt.
    pub fn with_stored_tokens(self, tokens: u64) -> Self {
        let held = match self.held_prompt {
            0 => 0,
            held => held.saturating_add(tokens),
        };
        Self {
            estimated_prompt: self.estimated_prompt.saturating_add(tokens),
            held_prompt: held,
            ..self
        }
    }

    /// Sets whether the client set the maximum of output tokens.
    pub fn with_client_cap(self, has_client_cap: bool) -> Self {
        Self {
            has_client_cap,
            ..self
        }
    }

    /// The same bounds, with the prices of parts that are charged separately.
    pub fn with_parts(self, parts: PartPrices, has_priced_tools: bool) -> Self {
        Self {
            parts,
            has_priced_tools,
            ..self
        }
    }

    /// The amount held for parts that are charged separately. `None` if it is out of range.
    pub fn held_parts(&self, held: &TokenCounts, prices: &TokenPrices) -> Option<Amount> {
        part_charges::held_parts(held, prices, &self.parts, self.has_priced_tools)
    }

    /// If the client set no maximum of output tokens, adds to the error of a hold that is not covered which field lowers the hold.
    pub fn suggest_smaller_limit(&self, mut error: ApiError, format: &str) -> ApiError {
        if !self.has_client_cap && error.kind == ErrorKind::PaymentRequired {
            let format = tollgate_chat::by_name(format).map(Format::client_format);
            let field = format.map_or("max_tokens", |f| (f.field_name)(RequestField::MaxTokens));
            let default = self.held_output;
            error.message +=
                &format!("; a smaller `{field}` than the default of {default} lowers the need");
        }
        error
    }

    /// The tokens that are held: the highest possible prompt, and the maximum of output for every choice. If two prices may apply to a token, the
    /// higher one counts.
    pub fn held_tokens(&self, prices: &TokenPrices) -> TokenCounts {
        let prompt = self.held_prompt;
        let output = self.held_output.saturating_mul(self.choices);
        let mut held = TokenCounts::default();
        if prices.cache_write > prices.input {
            held.cache_write = prompt;
        } else {
            held.input = prompt;
        }
        if prices.reasoning > prices.output {
            held.reasoning = output;
        } else {
            held.output = output;
        }
        held
    }

    /// Tokens that count against the rate limits until the actual number is known.
    pub fn reserved_tokens(&self) -> u64 {
        self.estimated_prompt.saturating_add(self.held_output())
    }

    /// The output tokens that are held.
    pub fn held_output(&self) -> u64 {
        self.held_output.saturating_mul(self.choices)
    }

    /// The output tokens that the request allows; if the model `reasons`, reasoning tokens are included.
    pub fn max_output(&self, reasons: bool) -> u64 {
        let output = self.max_output.unwrap_or(MAX_UNBOUNDED_OUTPUT);
        let reasoning = if reasons { MAX_UNCOUNTED_REASONING } else { 0 };
        let output = output.saturating_add(reasoning);
        output.saturating_mul(self.choices)
    }

    /// The upstream's usage, with counts that are too high for this request lowered, and by how many tokens they were lowered. `visible` is the
    /// gateway's estimate of the visible output.
    pub fn clamp(&self, usage: Usage, context_window: Option<u64>, visible: u64) -> (Usage, u64) {
        let mut clamped = 0_u64;
        let mut limit = |count: &mut u64, max: u64| {
            clamped = clamped.saturating_add(count.saturating_sub(max));
            *count = (*count).min(max);
        };
        let mut usage = usage;
        let max_prompt = match self.is_open_ended {
            true => context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            false => 0,
        };
        let max_prompt = max_prompt.max(self.max_prompt).max(self.estimated_prompt);
        limit(&mut usage.input, max_prompt);
        limit(&mut usage.cache_read, usage.input);
        limit(&mut usage.cache_write, usage.input - usage.cache_read);
        let max_output = self.max_output.unwrap_or(MAX_UNBOUNDED_OUTPUT);
        let max_output = max_output.saturating_mul(self.choices).max(visible);
        limit(&mut usage.reasoning, usage.output);
        let mut visible_output = usage.output - usage.reasoning;
        limit(&mut visible_output, max_output);
        limit(
            &mut usage.reasoning,
            max_output.saturating_add(MAX_UNCOUNTED_REASONING),
        );
        usage.output = visible_output.saturating_add(usage.reasoning);
        (usage, clamped)
    }

    /// The maximum number of tokens that may have been generated invisibly in `elapsed`, beside the visible ones: what cap, effort and time allow.
    pub fn unseen_output(&self, hidden: HiddenOutput, elapsed: Duration, visible: u64) -> u64 {
        let cap = self.max_output.unwrap_or(MAX_UNBOUNDED_OUTPUT);
        let cap = cap.saturating_mul(self.choices);
        let by_effort = cap.saturating_mul(hidden.percent_of_cap) / 100;
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let by_time = milliseconds.saturating_mul(MAX_TOKENS_PER_SECOND * self.choices) / 1_000;
        cap.saturating_sub(visible)
            .min(by_effort)
            .min(by_time.saturating_sub(visible))
    }
}

impl HiddenOutput {
    /// Everything is visible as it is generated.
    pub const NONE: Self = Self { percent_of_cap: 0 };
    /// Nothing is visible before the end.
    pub const ALL: Self = Self {
        percent_of_cap: 100,
    };

    /// How much output a model generates invisibly when it responds to `body` with a stream of this format.
    ///
    /// OpenAI's formats show no reasoning, or a summary, and count it at the end. Anthropic's has none unless thinking is on. Google's counts it in
    /// every chunk, but sends the first chunk after it.
    pub fn of_stream(
        format: &dyn Format,
        capabilities: &ModelCapabilities,
        is_thinking_set: bool,
        body: &[u8],
    ) -> Self {
        let may_reason = !capabilities.shows_all_output
            && capabilities.thinking != ReasoningControl::Unsupported;
        match may_reason && (is_thinking_set || !format.reasons_only_on_request()) {
            true => Self {
                percent_of_cap: effort_percent(body),
            },
            false => Self::NONE,
        }
    }

    /// Whether all output is visible.
    pub fn is_none(self) -> bool {
        self.percent_of_cap == 0
    }
}

/// The percentage of the cap that reasoning uses at the effort that the body requests, or at any effort if it requests none. The percentages are
/// those that <https://openrouter.ai/docs/use-cases/reasoning-tokens> documents, plus a half.
fn effort_percent(body: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Body {
        reasoning_effort: Option<Value>,
        reasoning: Option<Value>,
        output_config: Option<Value>,
    }
    if memchr::memmem::find(body, b"effort\"").is_none() {
        return 100;
    }
    let parse = || serde_json::from_slice::<Body>(body);
    let Ok(body) = large_work::run_in_place(body.len(), parse) else {
        return 100;
    };
    let nested = |settings: Option<Value>| settings?.get("effort").cloned();
    let efforts = [
        body.reasoning_effort,
        nested(body.reasoning),
        nested(body.output_config),
    ];
    let percents = efforts
        .iter()
        .flatten()
        .map(|effort| match effort.as_str() {
            Some("none") => 0,
            Some("minimal") => 15,
            Some("low") => 30,
            Some("medium") => 75,
            _ => 100,
        });
    percents.max().unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_chat::by_name;

    fn bounds(body: &str, needs_hold: bool) -> ChargeBounds {
        let format = by_name("chat-completions").unwrap();
        let summary = format.summarize_request(body.as_bytes()).unwrap();
        ChargeBounds::new(format, &summary, body.as_bytes(), 8_192, needs_hold)
    }

    const PLAIN: &str =
        r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}"#;

    #[test]
    fn effort_of_another_member_hides_no_reasoning() {
        for (body, percent) in [
            (r#"{"metadata":{"effort":"none"}}"#, 100),
            (
                r#"{"reasoning":{"effort":"none"},"tools":[{"effort":"high"}]}"#,
                0,
            ),
            (
                r#"{"reasoning_effort":"low","reasoning_effort":"none"}"#,
                100,
            ),
            (r#"{"output_config":{"effort":"low"}}"#, 30),
        ] {
            assert_eq!(effort_percent(body.as_bytes()), percent, "{body}");
        }
    }

    #[test]
    fn text_that_looks_like_a_file_is_part_of_the_prompt() {
        let text = "x;base64, ".to_owned() + &"a word ".repeat(1_000);
        for (format, body) in [
            (
                "responses",
                serde_json::json!({"model": "m", "input": text}),
            ),
            (
                "messages",
                serde_json::json!({"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t", "name": "f", "input": {"data": "a".repeat(7_000)}},
                ]}]}),
            ),
        ] {
            let body = body.to_string();
            let format = by_name(format).unwrap();
            let summary = format.summarize_request(body.as_bytes()).unwrap();
            let bounds = ChargeBounds::new(format, &summary, body.as_bytes(), 8_192, true);
            assert!(bounds.held_prompt > 7_000, "{body}");
            assert!(bounds.estimated_prompt > 1_000, "{body}");
        }
    }

    #[test]
    fn an_impossible_count_is_lowered_to_the_bound_and_no_further() {
        let plain = bounds(PLAIN, false);
        let absurd = Usage {
            input: u64::MAX,
            output: u64::MAX,
            ..Usage::default()
        };
        let (usage, clamped) = plain.clamp(absurd, None, 7);
        let max = PLAIN.len() as u64 + MAX_FRAMING_TOKENS;
        assert_eq!((usage.input, usage.output), (max, 100));
        assert!(clamped > 1 << 62);
        // The visible output is never lowered.
        assert_eq!(plain.clamp(absurd, None, 300).0.output, 300);
        let honest = Usage {
            input: 70,
            cache_read: 16,
            output: 99,
            reasoning: 50,
            ..Usage::default()
        };
        assert_eq!(plain.clamp(honest, None, 7), (honest, 0));
        // The parts are larger than the total.
        let parts = Usage {
            input: 70,
            cache_read: 80,
            cache_write: 80,
            output: 9,
            reasoning: 10,
            ..Usage::default()
        };
        let (usage, clamped) = plain.clamp(parts, None, 0);
        assert_eq!((usage.cache_read, usage.cache_write), (70, 0));
        assert_eq!((usage.output, usage.reasoning, clamped), (9, 9, 91));
    }

    #[test]
    fn a_prompt_that_the_provider_adds_to_is_bounded_by_the_context_window() {
        let search = PLAIN.replace("\"max_tokens\"", "\"web_search_options\":{},\"max_tokens\"");
        let usage = Usage {
            input: 400_000,
            output: 5,
            ..Usage::default()
        };
        assert_eq!(bounds(&search, false).clamp(usage, None, 5), (usage, 0));
        let (usage, clamped) = bounds(&search, false).clamp(usage, Some(128_000), 5);
        assert_eq!((usage.input, clamped), (128_000, 272_000));
    }

    #[test]
    fn a_hold_covers_text_at_a_token_for_each_byte() {
        let prices = TokenPrices::default();
        let held = bounds(PLAIN, true).held_tokens(&prices);
        assert_eq!((held.input, held.output), (PLAIN.len() as u64 + 16, 100));
        let search = PLAIN.replace("\"max_tokens\"", "\"plugins\":[],\"max_tokens\"");
        let held = bounds(&search, true).held_tokens(&prices);
        assert_eq!(held.input, search.len() as u64 + 16 + 50_000);
    }

    #[test]
    fn unseen_output_is_bounded_by_cap_effort_and_time() {
        let plain = bounds(PLAIN, false);
        let seconds = Duration::from_secs;
        assert_eq!(plain.unseen_output(HiddenOutput::ALL, seconds(30), 10), 90);
        assert_eq!(plain.unseen_output(HiddenOutput::NONE, seconds(30), 10), 0);
        let low = HiddenOutput { percent_of_cap: 30 };
        assert_eq!(plain.unseen_output(low, seconds(30), 10), 30);
        let brief = Duration::from_millis(400);
        assert_eq!(plain.unseen_output(HiddenOutput::ALL, brief, 10), 50);
        for (body, percent) in [
            (r#"{"reasoning_effort":"low"}"#, 30),
            (r#"{"reasoning": {"effort" : "none"}}"#, 0),
            (r#"{"messages":[]}"#, 100),
            (
                r#"{"metadata":{"effort":"none"},"reasoning_effort":"high"}"#,
                100,
            ),
            (
                r#"{"messages":[{"content":"no effort"}],"reasoning_effort":"low"}"#,
                30,
            ),
        ] {
            assert_eq!(effort_percent(body.as_bytes()), percent, "{body}");
        }
    }
}
