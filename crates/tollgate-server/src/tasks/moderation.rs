//! Moderation of prompts before a submission is accepted: blocked phrases, then the provider's own moderation.

use tollgate_config::Safety;
use tollgate_core::ApiError;
use tollgate_media::TaskModel;
use tollgate_upstream::UpstreamErrorKind;

use crate::routing::Routing;

/// The beginning of the error message for a rejected prompt.
pub const REJECTION: &str = "prompt rejected by safety review";

/// Rejects a prompt that contains blocked words; returns whether prompts of the model are moderated at all.
///
/// # Errors
/// 400 that begins with [`REJECTION`].
pub fn check_blocked_words(
    safety: &Safety,
    model: &TaskModel,
    prompt: &str,
) -> Result<bool, ApiError> {
    let family = model.family;
    let is_moderated = family.safety_review() || safety.families.iter().any(|f| f == family.name());
    if is_moderated && safety.blocks(prompt) {
        return Err(ApiError::invalid(format!(
            "{REJECTION}: it holds blocked words"
        )));
    }
    Ok(is_moderated)
}

/// Rejects a prompt that moderation does not allow. Prompts of families without moderation are accepted.
///
/// # Errors
/// 400 that begins with [`REJECTION`].
pub async fn check_prompt(
    safety: &Safety,
    routing: &Routing,
    model: &TaskModel,
    prompt: &str,
) -> Result<(), ApiError> {
    if !check_blocked_words(safety, model, prompt)? {
        return Ok(());
    }
    let family = model.family;
    let Some(moderator) = routing.moderator(family.kind(), routing.name_of(model.names())) else {
        return Ok(());
    };
    let Some(moderation) = &moderator.provider.moderation else {
        return Ok(());
    };
    match moderation.check_prompt(prompt).await {
        Err(e) if e.kind == UpstreamErrorKind::Moderated => {
            Err(ApiError::invalid(format!("{REJECTION}: {}", e.message)))
        }
        // If the moderation request fails, the prompt is accepted: the provider moderates it again when it generates.
        Err(e) => {
            tracing::warn!(channel = moderator.channel.name, error = %e, "the moderation of a prompt failed");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
