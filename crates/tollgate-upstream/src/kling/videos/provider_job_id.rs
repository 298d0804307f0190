//! Which of the provider's tasks a video is.

use std::fmt::{self, Display};

/// Where a task was made: there alone it can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the newer APIs, whose tasks are all in one place.
    Newer,
    /// In the older APIs, from text or from images.
    Text,
    Image,
}

/// How a provider job id ends whose video shall have the provider's mark.
const MARKED: &str = "+mark";

/// A task, as it is written down: its id, of the older APIs behind the name of its place (`text2video/8612`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KlingJobId<'t> {
    pub(super) place: Place,
    pub(super) id: &'t str,
    /// Whether the video with the provider's mark is wanted: there is one without it too.
    pub(super) is_marked: bool,
}

impl Place {
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
    /// Reads what was written down.
    pub(super) fn read(text: &'t str) -> Self {
        let unmarked = text.strip_suffix(MARKED);
        let rest = unmarked.unwrap_or(text);
        let older = [Place::Text, Place::Image].into_iter().find_map(|place| {
            let id = rest.strip_prefix(place.name()?)?.strip_prefix('/')?;
            Some((place, id))
        });
        let (place, id) = older.unwrap_or((Place::Newer, rest));
        Self {
            place,
            id,
            is_marked: unmarked.is_some(),
        }
    }
}

impl Display for KlingJobId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.place.name() {
            write!(f, "{name}/")?;
        }
        let mark = if self.is_marked { MARKED } else { "" };
        write!(f, "{}{mark}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (place, id, is_marked, expected) in [
            (Place::Newer, "8612", false, "8612"),
            (Place::Newer, "8612", true, "8612+mark"),
            (Place::Text, "8612", false, "text2video/8612"),
            (Place::Image, "8612", true, "image2video/8612+mark"),
        ] {
            let provider_job_id = KlingJobId {
                place,
                id,
                is_marked,
            };
            let text = provider_job_id.to_string();
            assert_eq!(text, expected);
            assert_eq!(KlingJobId::read(&text), provider_job_id);
        }
    }
}
