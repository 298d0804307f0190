//! Forwards a request. Model and stream are in the path, so most bodies pass unchanged.

use bytes::Bytes;
use memchr::memmem;

use crate::error::InvalidRequest;
use crate::format::{ForwardedRequest, RequestSummary, Target};
use crate::generate_content::request_summary::{self, GenerationConfig};
use crate::generate_content::{request_read, request_write};
use crate::hub::{ReasoningControl, SamplingSupport};

/// See [`crate::Format::forward_request`]. A request with settings that the model does not support
/// is read and written through the hub, which adapts them.
pub(crate) fn forward_request(
    body: &Bytes,
    summary: &RequestSummary,
    target: &Target<'_>,
) -> Result<ForwardedRequest, InvalidRequest> {
    if !needs_rewrite(body, summary, target) {
        return Ok(ForwardedRequest::unchanged(body));
    }
    let request = request_read::read_request(body)?;
    request_write::write_request(&request, target).map(ForwardedRequest::from)
}

fn needs_rewrite(body: &[u8], summary: &RequestSummary, target: &Target<'_>) -> bool {
    let capabilities = target.capabilities;
    let has = |word: &str| memmem::find(body, word.as_bytes()).is_some();
    let too_long = summary.max_tokens > capabilities.max_output_tokens.or(Some(u64::MAX));
    let unsigned = capabilities.requires_signatures
        && (has("\"functionCall\"") || has("\"function_call\""))
        && !has("\"thoughtSignature\"")
        && !has("\"thought_signature\"");
    let forced = !capabilities.supports_forced_tools && (has("\"ANY\"") || has("\"any\""));
    let requests_settings = capabilities.sampling != SamplingSupport::All
        || !capabilities.supports_tools_with_json
        || (summary.has_reasoning_settings
            && !matches!(capabilities.thinking, ReasoningControl::Effort { .. }));
    !summary.is_native
        || too_long
        || unsigned
        || forced
        || (requests_settings
            && request_summary::generation_config(body)
                .is_some_and(|config| has_unsupported_settings(&config, target, has)))
}

/// Whether the model does not support one of these settings.
fn has_unsupported_settings(
    config: &GenerationConfig<'_>,
    target: &Target<'_>,
    has: impl Fn(&str) -> bool,
) -> bool {
    let capabilities = target.capabilities;
    let sampling = match capabilities.sampling {
        SamplingSupport::All => false,
        SamplingSupport::TemperatureOrTopP => {
            config.temperature.is_some() && config.top_p.is_some()
        }
        SamplingSupport::None => {
            config.temperature.is_some() || config.top_p.is_some() || config.top_k.is_some()
        }
    };
    let json_with_tools = !capabilities.supports_tools_with_json
        && config
            .response_mime_type
            .is_some_and(|mime| mime.get().contains("json"))
        && has("\"tools\"");
    sampling || json_with_tools || has_unsupported_thinking(config, capabilities.thinking)
}

fn has_unsupported_thinking(config: &GenerationConfig<'_>, model: ReasoningControl) -> bool {
    let Some(raw) = config.thinking_config else {
        return false;
    };
    let Ok(requested) = request_summary::parse_thinking_config(raw) else {
        return false;
    };
    match model {
        ReasoningControl::Unsupported => true,
        ReasoningControl::Effort { .. } => false,
        // Models with thinking levels accept a budget too.
        ReasoningControl::Level { .. } => requested
            .thinking_level
            .is_some_and(|level| !level.get().contains("HIGH")),
        ReasoningControl::Budget {
            min,
            max,
            can_disable,
        } => {
            let budget = requested
                .thinking_budget
                .and_then(|budget| budget.get().parse::<i64>().ok());
            let fits = |budget: i64| match budget {
                -1 => true,
                0 => can_disable,
                budget => (i64::from(min)..=i64::from(max)).contains(&budget),
            };
            requested.thinking_level.is_some() || budget.is_some_and(|budget| !fits(budget))
        }
    }
}
