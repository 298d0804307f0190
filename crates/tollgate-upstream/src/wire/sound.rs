//! Speech that an upstream sends as it is made.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

use super::ask::{Answer, Ask, lost};
use super::{Wire, read_some};
use crate::egress::ResponseBody;
use crate::provider::ProviderError;

/// An answer to a request for sound.
pub(crate) enum Sound {
    /// The sound, part by part.
    Made(BoxStream<'static, Result<Bytes, ProviderError>>),
    /// Something else: a refusal, whatever its status.
    Refused(Answer),
}

impl Wire {
    /// Asks for sound. Some servers answer their errors with a good status: only the type tells.
    pub(crate) async fn ask_sound(&self, ask: Ask) -> Result<Sound, ProviderError> {
        let creates = ask.creates;
        let (head, body) = self.open(ask).await?.into_parts();
        if head.status.is_success() && is_sound(&head.headers) {
            return Ok(Sound::Made(parts(body, creates)));
        }
        Ok(Sound::Refused(Answer {
            status: head.status,
            headers: head.headers,
            body: read_some(body).await.into(),
        }))
    }
}

/// Whether the body may be sound: the file itself is looked at when it is stored.
fn is_sound(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let Some(Ok(value)) = value else {
        return value.is_none();
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let is_words = essence.starts_with("text/")
        || essence.ends_with("/json")
        || essence.ends_with("+json")
        || essence.ends_with("xml");
    !is_words
}

fn parts(body: ResponseBody, creates: bool) -> BoxStream<'static, Result<Bytes, ProviderError>> {
    let parts = stream::try_unfold(body, move |mut body| async move {
        let part = body.chunk().await;
        let part = part.map_err(|error| lost(&error, creates))?;
        Ok(part.map(|part| (part, body)))
    });
    parts.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_known_by_its_type() {
        for (kind, expected) in [
            (None, true),
            (Some("audio/mpeg"), true),
            (Some("application/octet-stream"), true),
            (Some("application/json; charset=utf-8"), false),
            (Some("application/problem+json"), false),
            (Some("Text/HTML"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            assert_eq!(is_sound(&headers), expected, "{kind:?}");
        }
    }
}
