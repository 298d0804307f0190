//! The sandbox as a chat provider: supports every chat format, follows the directives, counts tokens.

mod images;
mod response;
mod schema_instance;
mod stream;
mod text;
mod text_limit;

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream as futures_stream;
use sha2::{Digest as _, Sha256};
use tollgate_chat::hub::{
    Effort, ModelCapabilities, Reasoning, Request, RequestField, ResponseBuilder, Role,
    flatten_namespaces,
};
use tollgate_chat::{FORMATS, Format, InvalidRequest, RenderOptions, UpstreamError};

use crate::directives::{Directives, FailureMode};
use response::Response;
use stream::EventStream;
use text::text_of;
use text_limit::MAX_OUTPUT;
use tollgate_upstream::channel::Channel;
use tollgate_upstream::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use tollgate_upstream::egress::EgressError;
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};

/// Generates chat responses from the request alone.
pub(super) struct SandboxChat {
    /// The time to the first byte without a `delay` directive.
    time: Duration,
    formats: Vec<&'static dyn Format>,
}

impl SandboxChat {
    pub(super) fn new(channel: &Channel, time: Duration) -> Self {
        Self {
            time,
            formats: channel.chat_formats(FORMATS),
        }
    }

    async fn respond(&self, call: &ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let request = call.format.read_request(&call.body);
        let request = request.map_err(|error| invalid_request(&error))?;
        check_support(&request).map_err(|error| invalid_request(&error))?;
        let (directives, text) = Directives::parse(&last_user_text(&request));
        let failure = directives.failure_mode(call.failed_attempts);
        // A failure takes the time of the `delay` directive, or no time without it: tests of retries should not wait for the configured duration of a
        // success.
        let default_delay = if failure.is_some() {
            Duration::ZERO
        } else {
            self.time
        };
        tokio::time::sleep(directives.delay.unwrap_or(default_delay)).await;
        if directives.hang {
            std::future::pending::<()>().await;
        }
        if let Some(failure) = failure {
            return Err(failure_error(failure));
        }
        let flat = flatten_namespaces(&request).map_err(|error| invalid_request(&error))?;
        let response = Response::new(&flat, &directives, &text, content_seed(&request));
        Ok(self.write(call, &request, response, directives.cut))
    }

    /// Writes `response` in the format of the call, streaming or complete.
    fn write(
        &self,
        call: &ChatCall<'_>,
        request: &Request,
        response: Response,
        cut: Option<u32>,
    ) -> ChatBody {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        // Response ids differ between calls, as those of other providers do.
        let id = hash_seed(&[
            &call.body,
            call.request_id.as_bytes(),
            &[call.failed_attempts as u8],
        ]);
        let id = format!("{id:016x}");
        let rendering = RenderOptions {
            model: call.model,
            created: since_1970.map_or(0, |time| time.as_secs().cast_signed()),
            seed: &id,
            include_usage: request.include_usage,
            estimated_prompt_tokens: response.usage.input,
            request: Some(request),
            json_array: false,
        };
        let events = stream::events(response, call.model);
        if call.stream {
            let writer = call.format.stream_writer(&rendering);
            let stream = EventStream::new(events, writer, cut);
            return ChatBody::Local(futures_stream::iter(stream).boxed());
        }
        let mut fold = ResponseBuilder::default();
        for event in events {
            fold.push(&event);
        }
        let bytes = call.format.write_response(&fold.build(), &rendering);
        let complete = futures_stream::once(async { Ok::<_, EgressError>(Bytes::from(bytes)) });
        ChatBody::Local(complete.boxed())
    }
}

#[async_trait]
impl ChatProvider for SandboxChat {
    fn formats(&self) -> &[&'static dyn Format] {
        &self.formats
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        let thinks = ["-thinking", "-think-"]
            .iter()
            .any(|word| upstream_model.contains(word));
        ChatModel {
            upstream_id: upstream_model.to_owned(),
            capabilities: ModelCapabilities {
                max_output_tokens: Some(MAX_OUTPUT),
                accepts_urls: true,
                shows_all_output: true,
                ..ModelCapabilities::default()
            },
            reasoning: thinks.then(|| Reasoning {
                effort: Some(Effort::Medium),
                // The client did not request to see the reasoning.
                display: Some("omitted".to_owned()),
                ..Reasoning::default()
            }),
        }
    }

    fn stores_threads(&self, _: &str) -> bool {
        false
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let timeout = call.timeouts.first_byte;
        tokio::time::timeout(timeout, self.respond(&call))
            .await
            .unwrap_or_else(|_| Err(ProviderError::from(&EgressError::TimedOut(timeout))))
    }
}

/// Rejects what the sandbox does not support: state of earlier requests, background work, media in a response, tools of other servers, and a forced
/// tool that the request does not offer.
fn check_support(request: &Request) -> Result<(), InvalidRequest> {
    if let Some(field) = request.essential_extra_unknown_to("") {
        let why = match field {
            "previous_response_id" | "conversation" => "names nothing that the sandbox has stored",
            _ => "is not supported by the sandbox",
        };
        return Err(InvalidRequest::new(field, why));
    }
    if let Some(name) = request.forced_tool_not_offered() {
        let field = request.client_field_name(RequestField::ToolChoice);
        let why = format!("forces {name:?}, which is not among the request's tools");
        return Err(InvalidRequest::new(field, why));
    }
    Ok(())
}

/// The text of the last user turn, without tool results: otherwise a `tool` directive in an earlier message would be followed again.
fn last_user_text(request: &Request) -> String {
    let Some(turn) = request.turns.iter().rfind(|turn| turn.role == Role::User) else {
        return String::new();
    };
    let texts = turn.parts.iter().filter_map(text_of);
    texts.collect::<Vec<_>>().join("\n")
}

/// A hash of the request fields that determine the text of a response: the same whether the response is streamed or not.
fn content_seed(request: &Request) -> u64 {
    struct HashWriter(Sha256);
    impl fmt::Write for HashWriter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut hash = HashWriter(Sha256::new());
    let Request {
        model,
        turns,
        max_tokens,
        temperature,
        top_p,
        stop,
        seed,
        output,
        tools,
        tool_choice,
        ..
    } = request;
    let content = (model, turns, max_tokens, temperature, top_p, stop);
    let settings = (seed, output, tools, tool_choice);
    // Writing to a hash cannot fail.
    let _ = write!(hash, "{content:?}{settings:?}");
    first_bytes(hash.0)
}

/// A 64-bit hash of `pieces`, the same on every machine.
fn hash_seed(pieces: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    first_bytes(hash)
}

fn first_bytes(hash: Sha256) -> u64 {
    let hash = hash.finalize();
    u64::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

/// The error for a request that cannot be parsed or that the sandbox does not support.
fn invalid_request(error: &InvalidRequest) -> ProviderError {
    ProviderError {
        status: Some(400),
        ..ProviderError::new(UpstreamErrorKind::Rejected, error.message.clone())
    }
}

fn failure_error(failure: FailureMode) -> ProviderError {
    let upstream_error = |status: u16, message: String| {
        let body = UpstreamError {
            message,
            ..UpstreamError::default()
        };
        ProviderError::from_upstream(&Channel::default(), Some(status), body)
    };
    match failure {
        FailureMode::Moderated => upstream_error(
            400,
            "prompt rejected by safety review, as the directive requests ([[sandbox:moderated]])"
                .to_owned(),
        ),
        // Without a status, the message counts as the gateway's own and is sent to clients.
        FailureMode::Fails => ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "the request's directive says that it fails ([[sandbox:fail]])",
        ),
        FailureMode::FailsAttempt(attempt) => ProviderError::new(
            UpstreamErrorKind::Unavailable,
            format!(
                "the request's directive says that attempt {attempt} fails ([[sandbox:fail=N]])"
            ),
        ),
        FailureMode::Status(status) => upstream_error(
            status,
            format!("the sandbox responded with HTTP status {status} ([[sandbox:status=N]])"),
        ),
    }
}
