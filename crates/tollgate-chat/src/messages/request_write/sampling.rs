//! Limits the sampling parameters and the token limit to what a model accepts.

use super::thinking::expected_thinking;
use crate::format::Target;
use crate::hub::{ModelCapabilities, Reasoning, SamplingSupport};

/// Sampling parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) top_k: Option<u64>,
}

impl Sampling {
    /// Without the parameters that the model does not support.
    pub(crate) fn supported_by(self, capabilities: &ModelCapabilities) -> Self {
        match capabilities.sampling {
            SamplingSupport::All => self,
            SamplingSupport::TemperatureOrTopP => Self {
                top_p: self.top_p.filter(|_| self.temperature.is_none()),
                ..self
            },
            SamplingSupport::None => Self::default(),
        }
    }

    /// Without the parameters that the API rejects together with thinking.
    pub(crate) fn allowed_with_thinking(self) -> Self {
        Self {
            temperature: self.temperature.filter(|t| *t == 1.0),
            top_p: self.top_p.filter(|p| *p >= 0.95),
            top_k: None,
        }
    }
}

/// The `max_tokens` to send: the client's, or the target's default, at most the model's limit. Thinking counts towards `max_tokens`, so the requested
/// thinking is added to the default, which is meant for the text alone.
pub(crate) fn limit_max_tokens(
    requested: Option<u64>,
    reasoning: Option<&Reasoning>,
    target: &Target<'_>,
) -> u64 {
    let default = || {
        let thinking = reasoning.map_or(0, |r| expected_thinking(r, target.capabilities));
        target.default_max_tokens.saturating_add(thinking)
    };
    let cap = requested.unwrap_or_else(default).max(1);
    cap.min(target.capabilities.max_output_tokens.unwrap_or(u64::MAX))
}
