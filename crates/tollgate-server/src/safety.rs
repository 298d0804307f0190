//! The safety review before a submission is taken: blocked patterns, then the provider's own review.

use tollgate_core::ApiError;
use tollgate_media::TaskModel;
use tollgate_upstream::ProviderErrorKind;

use crate::app::{App, Live};

/// How a refusal begins (DECISIONS.md › Status codes).
pub const REFUSAL: &str = "prompt rejected by safety review";

/// Refuses a prompt that the review of the model's family finds wrong. Families without review pass.
pub async fn review(
    app: &App,
    live: &Live,
    model: &TaskModel,
    prompt: &str,
) -> Result<(), ApiError> {
    let safety = &app.config.safety;
    let family = model.family;
    let reviewed = family.safety_review() || safety.families.iter().any(|f| f == family.name());
    if !reviewed {
        return Ok(());
    }
    if safety.blocks(prompt) {
        return Err(ApiError::invalid(format!(
            "{REFUSAL}: it holds blocked words"
        )));
    }
    let Some(reviewer) = live.channels.reviewer(family.kind(), &model.name) else {
        return Ok(());
    };
    let Some(review) = &reviewer.provider.review else {
        return Ok(());
    };
    match review.review(prompt).await {
        Err(e) if e.kind == ProviderErrorKind::Moderated => {
            Err(ApiError::invalid(format!("{REFUSAL}: {}", e.message)))
        }
        // No verdict is no refusal: the provider reviews again when it makes the picture.
        Err(e) => {
            tracing::warn!(channel = reviewer.channel.name, error = %e, "no verdict of the safety review");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
