//! Limits a request's token maximum and reasoning effort to what a model supports.

use crate::hub::{Effort, ModelCapabilities, ReasoningControl};

/// The requested maximum of tokens, limited to what the model supports.
pub(super) fn limit_max_tokens(requested: u64, capabilities: &ModelCapabilities) -> u64 {
    capabilities
        .max_output_tokens
        .map_or(requested, |max| requested.min(max))
}

/// The nearest effort that the model supports. `None` if it does not reason.
pub(super) fn supported_effort(requested: Effort, control: ReasoningControl) -> Option<Effort> {
    Some(match (control, requested) {
        (ReasoningControl::Unsupported, _) => return None,
        (ReasoningControl::Effort { can_disable: false }, Effort::None) => Effort::Low,
        (
            ReasoningControl::Budget {
                can_disable: false, ..
            },
            Effort::None,
        ) => Effort::Low,
        (ReasoningControl::Level { minimal: true, .. }, Effort::None) => Effort::Minimal,
        (ReasoningControl::Level { minimal: false, .. }, Effort::None | Effort::Minimal) => {
            Effort::Low
        }
        (ReasoningControl::Level { medium: false, .. }, Effort::Medium) => Effort::High,
        (ReasoningControl::Level { .. }, Effort::XHigh | Effort::Max) => Effort::High,
        (_, requested) => requested,
    })
}
