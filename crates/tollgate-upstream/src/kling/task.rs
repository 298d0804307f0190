//! Tasks of both kinds of APIs in a common form.

use serde_json::Value;

/// The state of a task. The older APIs return `succeed`, the newer ones `succeeded`.
pub(super) enum State {
    Open,
    Completed,
    Failed,
}

impl State {
    pub(super) fn parse(status: &Value) -> Self {
        match status.as_str().unwrap_or_default() {
            "succeed" | "succeeded" => Self::Completed,
            "failed" => Self::Failed,
            "submitted" | "processing" => Self::Open,
            other => {
                tracing::warn!(status = other, "an undocumented task status");
                Self::Open
            }
        }
    }
}

/// A video task.
pub(super) struct Task<'t> {
    pub(super) state: State,
    /// Why the task failed; empty if it did not.
    pub(super) message: &'t str,
    pub(super) outputs: Vec<Output<'t>>,
}

/// The links to a video.
pub(super) struct Output<'t> {
    pub(super) plain: Option<&'t str>,
    /// The link to the video with the provider's watermark, if one was requested.
    pub(super) watermarked: Option<&'t str>,
}

impl<'t> Output<'t> {
    pub(super) fn parse(video: &'t Value) -> Self {
        let link = |name: &str| video[name].as_str().filter(|url| !url.is_empty());
        Self {
            plain: link("url"),
            watermarked: link("watermark_url"),
        }
    }
}
