//! The provider job id: the endpoint and the task's id.

use std::fmt::{self, Display};

/// The API that created a task: the task can be polled only there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The newer APIs, which poll all tasks at one endpoint.
    Newer,
    /// The older APIs, from text or from images.
    Text,
    Image,
}

/// The suffix of the provider job id if the video with the provider's watermark is requested.
const WATERMARK: &str = "+mark";

/// A task's id, with its endpoint if that is one of the older APIs (`text2video/8612`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KlingJobId<'t> {
    pub(super) endpoint: Endpoint,
    pub(super) id: &'t str,
    /// Whether the video with the provider's watermark is delivered instead of the one without.
    pub(super) with_watermark: bool,
}

impl Endpoint {
    /// The segment of the older APIs' paths.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Newer => None,
            Self::Text => Some("text2video"),
            Self::Image => Some("image2video"),
        }
    }

    /// The older API's path.
    pub(super) fn path(self) -> Option<String> {
        self.name().map(|name| format!("/v1/videos/{name}"))
    }
}

impl<'t> KlingJobId<'t> {
    /// Parses a provider job id.
    pub(super) fn parse(text: &'t str) -> Self {
        let without_suffix = text.strip_suffix(WATERMARK);
        let rest = without_suffix.unwrap_or(text);
        let older = [Endpoint::Text, Endpoint::Image]
            .into_iter()
            .find_map(|endpoint| {
                let id = rest.strip_prefix(endpoint.name()?)?.strip_prefix('/')?;
                Some((endpoint, id))
            });
        let (endpoint, id) = older.unwrap_or((Endpoint::Newer, rest));
        Self {
            endpoint,
            id,
            with_watermark: without_suffix.is_some(),
        }
    }
}

impl Display for KlingJobId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.endpoint.name() {
            write!(f, "{name}/")?;
        }
        let mark = if self.with_watermark { WATERMARK } else { "" };
        write!(f, "{}{mark}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_parsed_as_it_was_written() {
        for (endpoint, id, with_watermark, expected) in [
            (Endpoint::Newer, "8612", false, "8612"),
            (Endpoint::Newer, "8612", true, "8612+mark"),
            (Endpoint::Text, "8612", false, "text2video/8612"),
            (Endpoint::Image, "8612", true, "image2video/8612+mark"),
        ] {
            let provider_job_id = KlingJobId {
                endpoint,
                id,
                with_watermark,
            };
            let text = provider_job_id.to_string();
            assert_eq!(text, expected);
            assert_eq!(KlingJobId::parse(&text), provider_job_id);
        }
    }
}
