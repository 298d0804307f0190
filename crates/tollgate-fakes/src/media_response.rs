//! The response to a request for media.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::media_files::Blob;

/// The body of a response.
pub(crate) enum Content {
    Json(Value),
    /// A file with its media type.
    File(&'static str, Blob),
    Nothing,
}

/// A response.
pub(crate) struct MediaResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) content: Content,
    /// The delay before the response is sent.
    pub(crate) hold: Duration,
}

impl MediaResponse {
    fn new(status: u16, content: Content) -> Self {
        Self {
            status,
            headers: Vec::new(),
            content,
            hold: Duration::ZERO,
        }
    }

    pub(crate) fn json(value: Value) -> Self {
        Self::new(200, Content::Json(value))
    }

    pub(crate) fn file(media_type: &'static str, blob: Blob) -> Self {
        Self::new(200, Content::File(media_type, blob))
    }

    pub(crate) fn text(status: u16, media_type: &'static str, text: &'static str) -> Self {
        let blob = Blob::new(Bytes::from_static(text.as_bytes()));
        Self::new(status, Content::File(media_type, blob))
    }

    pub(crate) fn nothing(status: u16) -> Self {
        Self::new(status, Content::Nothing)
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Delays the response by `delay`.
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.hold = delay;
        self
    }
}
