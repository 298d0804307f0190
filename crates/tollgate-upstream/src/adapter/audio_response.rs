//! Sends a speech request and returns its response as a stream of audio.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

use super::http_request::ProviderClient;
use super::http_request::{HttpRequest, HttpResponse, read_error_body, transport_error};
use crate::egress::ResponseBody;
use crate::error::ProviderError;

/// The response to a speech request.
pub(crate) enum AudioResponse {
    /// The audio, chunk by chunk.
    Audio(BoxStream<'static, Result<Bytes, ProviderError>>),
    /// Anything else: an error, whatever its status.
    Other(HttpResponse),
}

impl ProviderClient {
    /// Sends a speech request. Some servers send errors with status 200, so the content type decides.
    pub(crate) async fn send_for_audio(
        &self,
        request: HttpRequest,
    ) -> Result<AudioResponse, ProviderError> {
        let creates = request.creates;
        let (head, body) = self.send_for_head(request).await?.into_parts();
        if head.status.is_success() && may_be_audio(&head.headers) {
            return Ok(AudioResponse::Audio(chunks(body, creates)));
        }
        Ok(AudioResponse::Other(HttpResponse {
            status: head.status,
            headers: head.headers,
            body: read_error_body(body).await.into(),
        }))
    }
}

/// Whether the body may be audio by its content type; the file itself is checked when it is stored.
fn may_be_audio(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let Some(Ok(value)) = value else {
        return value.is_none();
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let is_text = essence.starts_with("text/")
        || essence.ends_with("/json")
        || essence.ends_with("+json")
        || essence.ends_with("xml");
    !is_text
}

fn chunks(body: ResponseBody, creates: bool) -> BoxStream<'static, Result<Bytes, ProviderError>> {
    let chunks = stream::try_unfold(body, move |mut body| async move {
        let chunk = body.chunk().await;
        let chunk = chunk.map_err(|error| transport_error(&error, creates))?;
        Ok(chunk.map(|chunk| (chunk, body)))
    });
    chunks.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_is_recognised_by_its_content_type() {
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
            assert_eq!(may_be_audio(&headers), expected, "{kind:?}");
        }
    }
}
