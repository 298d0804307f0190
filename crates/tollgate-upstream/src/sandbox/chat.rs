//! The sandbox as a provider of chat: speaks every format, obeys the directives, counts its tokens.

mod answer;
mod instance;
mod limit;
mod pictures;
mod playback;
mod words;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use sha2::{Digest as _, Sha256};
use tollgate_chat::hub::{Effort, Fold, Kind, ModelTraits, Part, Reasoning, Request, Role};
use tollgate_chat::{Bad, ErrorWords, FORMATS, Format, Rendering};

use super::directives::{Directives, Doom};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatError, ChatErrorKind, ChatModel, ChatProvider};
use crate::egress::EgressError;
use answer::Script;
use playback::Playback;

/// The most tokens of one reply.
const MAX_OUTPUT: u64 = 128_000;

/// Answers chats from the request alone.
pub(super) struct SandboxChat {
    /// Until the first byte, where no directive says otherwise.
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

    async fn answer(&self, call: &ChatCall<'_>) -> Result<ChatBody, ChatError> {
        let request = call.format.read_request(&call.body);
        let request = request.map_err(|bad| refused(&bad))?;
        let (directives, text) = Directives::parse(&last_message(&request));
        let doom = directives.doom(call.failed_attempts);
        // A failure takes the time that the message asks for, none otherwise: tests of retries should not wait for answers
        // that never come.
        let usual = if doom.is_some() {
            Duration::ZERO
        } else {
            self.time
        };
        tokio::time::sleep(directives.delay.unwrap_or(usual)).await;
        if directives.hang {
            std::future::pending::<()>().await;
        }
        if let Some(doom) = doom {
            return Err(doomed(doom));
        }
        let seed = seed(&[&call.body]);
        let script = Script::new(&request, call.format, &directives, &text, seed);
        Ok(self.perform(call, &request, script, directives.cut))
    }

    /// Writes the reply that `script` says, in the call's format.
    fn perform(
        &self,
        call: &ChatCall<'_>,
        request: &Request,
        script: Script,
        cut: Option<u32>,
    ) -> ChatBody {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // Ids are never the same twice, as those of other providers.
        let id = seed(&[
            &call.body,
            call.request_id.as_bytes(),
            &[call.failed_attempts as u8],
        ]);
        let id = format!("{id:016x}");
        let rendering = Rendering {
            model: call.model,
            created: since.map_or(0, |since| since.as_secs().cast_signed()),
            seed: &id,
            include_usage: request.include_usage,
            prompt_estimate: script.usage.input,
            request: Some(request),
            json_array: false,
        };
        let events = playback::events(script, call.model);
        if call.stream {
            let writer = call.format.stream_writer(&rendering);
            let playback = Playback::new(events, writer, cut);
            return ChatBody::Local(stream::iter(playback).boxed());
        }
        let mut fold = Fold::default();
        for event in events {
            fold.push(&event);
        }
        let bytes = call.format.write_reply(&fold.reply(), &rendering);
        let whole = stream::once(async { Ok::<_, EgressError>(Bytes::from(bytes)) });
        ChatBody::Local(whole.boxed())
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
            wire: upstream_model.to_owned(),
            traits: ModelTraits {
                max_output: Some(MAX_OUTPUT),
                takes_urls: true,
                ..ModelTraits::default()
            },
            reasoning: thinks.then(|| Reasoning {
                effort: Some(Effort::Medium),
                show: Some("auto".to_owned()),
                ..Reasoning::default()
            }),
        }
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ChatError> {
        let patience = call.timeouts.first_byte;
        tokio::time::timeout(patience, self.answer(&call))
            .await
            .unwrap_or_else(|_| Err(ChatError::from(&EgressError::TimedOut(patience))))
    }
}

/// The texts of the last message, where that is the user's and not the model's own. A tool's result is no text: a directive
/// that asks for a call is not obeyed again once the result is there.
fn last_message(request: &Request) -> String {
    let Some(turn) = request.turns.iter().rfind(|turn| turn.role == Role::User) else {
        return String::new();
    };
    let texts = turn.parts.iter().filter_map(text_of);
    texts.collect::<Vec<_>>().join("\n")
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.kind {
        Kind::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// A number that is the same for the same bytes.
fn seed(pieces: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    let hash = hash.finalize();
    u64::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

fn refused(bad: &Bad) -> ChatError {
    ChatError {
        status: Some(400),
        ..ChatError::ours(ChatErrorKind::Rejected, bad.message.clone())
    }
}

fn doomed(doom: Doom) -> ChatError {
    let told = |status: u16, message: String| {
        let words = ErrorWords {
            message,
            ..ErrorWords::default()
        };
        ChatError::told(&Channel::default(), Some(status), words)
    };
    match doom {
        Doom::Moderated => told(
            400,
            "prompt rejected by safety review: the sandbox was told to refuse it ([[sandbox:moderated]])".to_owned(),
        ),
        Doom::Fails => told(500, "the sandbox was told to fail ([[sandbox:fail]])".to_owned()),
        Doom::FailsNow(attempt) => told(
            503,
            format!("the sandbox was told to fail this attempt, number {attempt} ([[sandbox:fail=N]])"),
        ),
        Doom::Status(status) => told(
            status,
            format!("the sandbox answered with HTTP status {status} ([[sandbox:status=N]])"),
        ),
    }
}
