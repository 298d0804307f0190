//! Exchanges with providers over HTTP. Of a chat: the request out, the answer's head back, and what its end means; of
//! everything else see [`Ask`].

mod ask;
mod calls;
mod changes;
mod clean;
mod fetch;
mod files;
mod queued;
mod ratio;
mod results;
mod said;
mod sieve;
mod sound;
mod verdict;
mod wait;

pub(crate) use ask::{Answer, Ask, judged, lost};
pub(crate) use calls::{in_calls, unless_stopped};
pub(crate) use changes::{Changes, chosen, is_of_ratio};
pub(crate) use files::{Form, Slots};
pub(crate) use queued::{
    ended, hand_over, lost_answer, most_telling, not_as_asked, segment, unnamed, unpolled,
};
pub(crate) use ratio::ratio;
pub(crate) use results::{Came, Item};
pub(crate) use said::Said;
pub(crate) use sieve::Sifted;
pub(crate) use sound::Sound;

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use tollgate_chat::{ErrorWords, Format};
use tollgate_core::Secret;

use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatError, ChatErrorKind};
use crate::egress::{Client, EgressError, ResponseBody, Timeouts, body};

/// How much of an error's body is read.
const ERROR_BODY_MAX: usize = 64 * 1024;
/// How long that may take.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// A channel's line to its provider.
pub(crate) struct Wire {
    channel: Arc<Channel>,
    client: Client,
}

impl Wire {
    pub(crate) fn new(channel: &Arc<Channel>, client: &Client) -> Self {
        Self {
            channel: Arc::clone(channel),
            client: client.clone(),
        }
    }

    /// Sends `call`'s body to `uri` with the provider's `own` headers.
    pub(crate) fn post<'a, H>(
        &'a self,
        call: ChatCall<'a>,
        uri: Uri,
        own: H,
    ) -> impl Future<Output = Result<ChatBody, ChatError>> + Send + use<'a, H>
    where
        H: IntoIterator<Item = (HeaderName, HeaderValue)>,
    {
        let mut request = Request::new(body(call.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, if call.stream { EVENTS } else { JSON });
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        headers.extend(own);
        let timeouts = Timeouts {
            connect: Some(call.timeouts.connect),
            first_byte: call.timeouts.first_byte,
            idle: call.timeouts.idle,
        };
        let sending = self.client.send(request, timeouts);
        let (stream, format) = (call.stream, call.format);
        async move {
            let answer = sending.await.map_err(|error| ChatError::from(&error))?;
            if answer.status().is_success() && is_as_asked(answer.headers(), stream) {
                return Ok(ChatBody::Wire(answer.into_body()));
            }
            Err(Box::pin(self.refusal(answer, format)).await)
        }
    }

    /// What an answer says that is not the one asked for.
    async fn refusal(&self, answer: Response<ResponseBody>, format: &dyn Format) -> ChatError {
        let (head, rest) = answer.into_parts();
        let text = read_some(rest).await;
        let words = format.read_error(head.status.as_u16(), &text);
        let asked = wait::asked(&head.headers);
        if head.status.is_success() && words.status.is_none() {
            return no_answer(head.status, &head.headers);
        }
        let mut error = ChatError::told(&self.channel, Some(head.status.as_u16()), words);
        error.retry_after = asked.or(error.retry_after);
        error
    }
}

/// A success with something else in it than a chat's answer.
fn no_answer(status: StatusCode, headers: &HeaderMap) -> ChatError {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    tracing::warn!(
        content_type = kind.unwrap_or_default(),
        "an upstream's answer is not of the type asked for: look at the channel's base_url"
    );
    ChatError {
        status: Some(status.as_u16()),
        ..ChatError::ours(
            ChatErrorKind::Unavailable,
            "the upstream's answer is no chat's answer",
        )
    }
}

/// Whether a success has the type that was asked for. A server that does not say is believed.
fn is_as_asked(headers: &HeaderMap, stream: bool) -> bool {
    let compressed = headers.get(CONTENT_ENCODING).is_some_and(|v| v != IDENTITY);
    if compressed {
        return false;
    }
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let value = value.to_str().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if stream {
        return essence.eq_ignore_ascii_case("text/event-stream");
    }
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let tail = essence.len().checked_sub("+json".len());
    let ends = tail.and_then(|at| essence.get(at..));
    is("application/json")
        || is("text/json")
        || ends.is_some_and(|end| end.eq_ignore_ascii_case("+json"))
}

/// The beginning of an error's body, as much of it as comes in time.
async fn read_some(mut rest: ResponseBody) -> Vec<u8> {
    let mut text = Vec::new();
    let reading = async {
        while let Ok(Some(part)) = rest.chunk().await {
            let room = ERROR_BODY_MAX - text.len();
            text.extend_from_slice(&part[..part.len().min(room)]);
            if text.len() == ERROR_BODY_MAX {
                break;
            }
        }
    };
    // What came until then is all there is to say.
    let _ = tokio::time::timeout(ERROR_BODY_TIME, reading).await;
    text
}

/// A header value that is never printed, of `before` and the key.
pub(crate) fn secret_value(before: &str, key: &Secret) -> Result<HeaderValue, ChatError> {
    let text = [before, key.expose()].concat();
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        ChatError::ours(
            ChatErrorKind::KeyRefused,
            "the channel's key has characters that no key has",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// `base` and `path` as one URI. The configuration checks base URLs, so an error here is one of the model's name.
pub(crate) fn uri(base: &str, path: &str) -> Result<Uri, ChatError> {
    let text = [base.trim_end_matches('/'), path].concat();
    Uri::try_from(text).map_err(|_| {
        ChatError::ours(
            ChatErrorKind::ModelMissing,
            "no upstream has a model of this name",
        )
    })
}

impl ChatError {
    /// One of ours, without an upstream's words.
    pub fn ours(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            code: None,
            retry_after: None,
        }
    }

    /// The call is in a format that the provider does not have, or its base URL is none.
    pub(crate) fn other_format() -> Self {
        Self::ours(
            ChatErrorKind::Connect,
            "the channel has no address for requests of this format",
        )
    }

    /// What the words of an upstream on `channel` mean. `status` is its HTTP status; none for words that came inside a good
    /// answer (the error event of a stream), which may tell it themselves.
    pub fn told(channel: &Channel, status: Option<u16>, words: ErrorWords) -> Self {
        let said = status.or(words.status).unwrap_or(500);
        // A 400 and a success are said of many things; there the words know better.
        let meant = match words.status {
            Some(better) if said <= 400 => better,
            _ => said,
        };
        let message = clean::message(&words.message, channel);
        Self {
            kind: verdict::kind(meant, &words.code, &words.message),
            status: Some(said),
            message: if message.is_empty() {
                format!("the upstream answered with HTTP status {said}")
            } else {
                message
            },
            code: Some(clean::message(&words.code, channel)).filter(|code| !code.is_empty()),
            retry_after: words.retry_after.map(|s| Duration::from_secs(s.into())),
        }
    }
}

impl From<&EgressError> for ChatError {
    fn from(error: &EgressError) -> Self {
        let (kind, message) = match error {
            EgressError::Connect | EgressError::Unresolved | EgressError::BadUrl(_) => (
                ChatErrorKind::Connect,
                "no connection could be made to the upstream",
            ),
            EgressError::TimedOut(_) => (
                ChatErrorKind::TimedOut,
                "the upstream did not answer in time",
            ),
            _ => (
                ChatErrorKind::Unavailable,
                "the connection to the upstream broke off before the answer was complete",
            ),
        };
        Self::ours(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_known_by_their_type() {
        let check = |kind: Option<&'static str>, stream: bool| {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            is_as_asked(&headers, stream)
        };
        assert!(check(Some("text/event-stream; charset=utf-8"), true));
        assert!(check(Some("Text/Event-Stream"), true));
        assert!(check(Some("application/json;charset=UTF-8"), false));
        assert!(check(Some("application/problem+json"), false));
        assert!(check(None, true) && check(None, false));
        assert!(!check(Some("application/json"), true));
        assert!(!check(Some("text/event-stream"), false));
        assert!(!check(Some("text/html"), false) && !check(Some("text/html"), true));
        let mut packed = HeaderMap::new();
        packed.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        assert!(!is_as_asked(&packed, true));
    }

    #[test]
    fn a_key_with_a_line_break_is_refused_and_not_printed() {
        let error = secret_value("Bearer ", &Secret::new("sk-1\r\nx: y")).unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::KeyRefused);
        assert!(!error.message.contains("sk-1"));
        let value = secret_value("Bearer ", &Secret::new("sk-1")).unwrap();
        assert!(value.is_sensitive() && !format!("{value:?}").contains("sk-1"));
    }
}
