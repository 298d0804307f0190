//! A streamed response: pieces are converted and sent when they are received; the end is sent once the charge is on disk.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tollgate_chat::MalformedResponse;
use tollgate_upstream::egress::EgressError;
use tollgate_upstream::{Channel, ChatBody, ProviderError, UpstreamErrorKind};

use crate::chat::billing::Bill;
use crate::chat::context::ChatContext;
use crate::chat::converter::StreamConverter;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::read_on::AbandonedStream;
use crate::chat::stream_watch::StreamWatch;
use crate::otel::ChatContent;
use crate::routing::ChannelPermit;

/// The time without output after which a keep-alive is sent. Some clients time out after 20 s.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A stream whose first piece for the client has arrived.
pub struct StartedStream {
    body: ChatBody,
    converter: StreamConverter,
    watch: StreamWatch,
    first_piece: Bytes,
    /// Whether the upstream's body has ended.
    is_over: bool,
}

/// Waits for the first piece for the client, so that the request can still fail over to another channel if the stream begins with an error.
/// `received_bytes` is set to the bytes of output that were received so far, such as a tool call that is sent in one piece: they are charged if the
/// client leaves.
///
/// # Errors
/// The connection's errors and those of the upstream; timed out after `first_byte_timeout` without a chunk; those of [`StreamWatch::check`].
pub async fn start(
    mut body: ChatBody,
    mut converter: StreamConverter,
    mut watch: StreamWatch,
    channel: &Channel,
    first_byte_timeout: Duration,
    received_bytes: &AtomicU64,
) -> Result<StartedStream, ProviderError> {
    loop {
        let chunk = timeout(first_byte_timeout, body.chunk())
            .await
            .unwrap_or(Err(EgressError::TimedOut(first_byte_timeout)));
        let chunk = chunk.map_err(|e| ProviderError::from(&e))?;
        let is_over = chunk.is_none();
        let converted = match chunk {
            Some(chunk) => converter.push(chunk),
            None => converter.finish(),
        };
        let first_piece = converted.map_err(|error| malformed_response(channel, error))?;
        let delivered = converter.delivered(false);
        received_bytes.store(delivered.text_bytes, Ordering::Relaxed);
        watch.check(&delivered, Instant::now())?;
        if is_over || !first_piece.is_empty() {
            return Ok(StartedStream {
                body,
                converter,
                watch,
                first_piece,
                is_over,
            });
        }
    }
}

/// The values that sending a stream needs beside the stream itself.
pub struct StreamContext {
    /// The parts of the gateway that chats need; used for the caches of signatures and of stored conversations.
    pub chat: Arc<ChatContext>,
    /// The bill of the request.
    pub bill: Bill,
    /// The permit on the channel, kept until the end.
    pub permit: ChannelPermit,
    /// The client's endpoint.
    pub endpoint: Endpoint,
    /// The user, for these caches and the channel's health.
    pub user_id: String,
    /// Whether the provider stores the conversation, so that later requests can continue it.
    pub is_stored: bool,
    /// Records what the client receives, if its key enables that.
    pub content: Option<Arc<ChatContent>>,
}

impl StartedStream {
    /// The body for the client. If it is dropped early, [`AbandonedStream`] ends the upstream's call and settles the bill.
    pub fn into_body(self, mut context: StreamContext) -> Body {
        context.bill.delivered = self.converter.delivered(false);
        context.bill.stream_started();
        // Boxed: the state is moved into and out of a future for every piece.
        let state = ClientStream(Some(Box::new(StreamState {
            body: Some(self.body),
            converter: self.converter,
            watch: self.watch,
            context,
            first_piece: Some(self.first_piece),
            is_over: self.is_over,
            is_done: false,
            last_sent: Instant::now(),
            keep_alive_timer: None,
        })));
        Body::from_stream(stream::unfold(state, |mut state| async move {
            let stream = state.0.as_mut()?;
            let piece = stream.next_piece().await?;
            if let Some(content) = &stream.context.content {
                content.push(&piece);
            }
            Some((Ok::<_, Infallible>(piece), state))
        }))
    }
}

/// Owns a stream that is being sent; its drop handles a client that leaves.
struct ClientStream(Option<Box<StreamState>>);

impl Drop for ClientStream {
    fn drop(&mut self) {
        let Some(state) = self.0.take().map(|state| *state) else {
            return;
        };
        // The upstream's stream has ended, or is being settled: there is nothing left to read.
        let Some(body) = state.body else { return };
        let StreamContext { bill, permit, .. } = state.context;
        let (converter, is_over) = (state.converter, state.is_over);
        AbandonedStream {
            body,
            converter,
            is_over,
            bill,
            permit,
        }
        .settle_in_background();
    }
}

/// A stream that is being sent.
struct StreamState {
    /// `None` once the upstream's stream is over, which closes the connection to the upstream.
    body: Option<ChatBody>,
    converter: StreamConverter,
    watch: StreamWatch,
    context: StreamContext,
    first_piece: Option<Bytes>,
    /// Whether the upstream's body has ended.
    is_over: bool,
    /// Whether the client's stream has ended.
    is_done: bool,
    /// When something was last sent to the client.
    last_sent: Instant,
    /// One timer for the complete stream, which is reset only after it has fired: pieces that are received in time do not touch it.
    keep_alive_timer: Option<Pin<Box<Sleep>>>,
}

/// Waits until `deadline`; the timer may have been set to an earlier time.
async fn wait_until(mut timer: Pin<&mut Sleep>, deadline: Instant) {
    loop {
        timer.as_mut().await;
        if timer.deadline() >= deadline {
            return;
        }
        timer.as_mut().reset(deadline);
    }
}

impl StreamState {
    /// The next piece for the client, `None` at the end.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first_piece.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        while !self.is_done {
            if self.is_over {
                return Box::pin(self.end()).await;
            }
            let body = self.body.as_mut()?;
            let keep_alive_at = self.last_sent + KEEP_ALIVE_INTERVAL;
            let timer = self
                .keep_alive_timer
                .get_or_insert_with(|| Box::pin(sleep_until(keep_alive_at)));
            let chunk = tokio::select! {
                biased;
                chunk = body.chunk() => chunk,
                () = wait_until(timer.as_mut(), keep_alive_at) => {
                    self.last_sent = Instant::now();
                    let mut out = Vec::new();
                    self.converter.keep_alive(&mut out);
                    if out.is_empty() {
                        continue;
                    }
                    return Some(out.into());
                }
            };
            let received_at = Instant::now();
            let piece = match chunk {
                Ok(Some(chunk)) => self.converter.push(chunk),
                Ok(None) => {
                    self.is_over = true;
                    self.converter.finish()
                }
                Err(e) => return Box::pin(self.fail(ProviderError::from(&e))).await,
            };
            match piece {
                Ok(piece) => {
                    let delivered = self.converter.delivered(false);
                    self.context.bill.delivered = delivered;
                    if let Err(error) = self.watch.check(&delivered, received_at) {
                        return Box::pin(self.fail(error)).await;
                    }
                    // While the upstream sends only what the client does not receive, such as hidden reasoning, keep-alives are due.
                    if !piece.is_empty() {
                        self.last_sent = received_at;
                        return Some(piece);
                    }
                }
                Err(error) => {
                    let channel = &self.context.permit.open.channel;
                    let error = malformed_response(channel, error);
                    return Box::pin(self.fail(error)).await;
                }
            }
        }
        None
    }

    /// Ends a complete stream: charges first, then sends the end.
    async fn end(&mut self) -> Option<Bytes> {
        (self.is_done, self.body) = (true, None);
        let context = &mut self.context;
        context.permit.record_success();
        context.bill.delivered = self.converter.delivered(true);
        for choice in &self.converter.take_tool_calls() {
            context.chat.signatures.insert(&context.user_id, choice);
        }
        if let (true, StreamConverter::Forward(forwarder)) = (context.is_stored, &self.converter)
            && let Some(id) = forwarder.response_id()
        {
            let (user_id, usage) = (&context.user_id, forwarder.usage());
            context
                .chat
                .stored_conversations
                .insert(user_id, id, &context.permit, usage);
        }
        match context.bill.settle("done").await {
            Ok(_) => Some(self.converter.end()).filter(|end| !end.is_empty()),
            Err(error) => self.write_error(&ChatErrorResponse::from(error)),
        }
    }

    /// Ends a stream that broke off: charges what was delivered, and sends an error in the client's format.
    async fn fail(&mut self, error: ProviderError) -> Option<Bytes> {
        (self.is_done, self.body) = (true, None);
        let StreamContext {
            chat,
            permit,
            bill,
            user_id,
            ..
        } = &mut self.context;
        let channel = &permit.open.channel.name;
        tracing::warn!(channel = channel, error = %error, "an upstream's stream failed");
        permit.record_error(bill.model(), user_id, &error);
        bill.add_failed_attempt(channel, &error);
        bill.notes().fail_attempt(error.kind.recorded_name());
        let metrics = &chat.metrics;
        metrics.chat_attempt_failed(channel, error.kind.recorded_name());
        if error.kind == UpstreamErrorKind::TooLarge {
            bill.response_was_too_large();
        }
        // The sentence for the client depends on the kind of error. The status was sent already, and what was delivered is charged.
        let message = error.client_message().into_owned();
        let settled = bill.settle("cut").await;
        let error = ProviderError::new(UpstreamErrorKind::Unavailable, message);
        let error = match settled {
            Ok(_) => ChatErrorResponse::from_upstream(error),
            Err(e) => ChatErrorResponse::from(e),
        };
        self.write_error(&error)
    }

    fn write_error(&mut self, error: &ChatErrorResponse) -> Option<Bytes> {
        let mut out = Vec::new();
        let body = error.to_body(self.context.endpoint);
        self.converter.error(&body, &mut out);
        Some(Bytes::from(out)).filter(|out| !out.is_empty())
    }
}

/// The provider's error for a response that is malformed or contains an error.
pub fn malformed_response(channel: &Channel, error: MalformedResponse) -> ProviderError {
    match error {
        MalformedResponse::Upstream(error) => ProviderError::from_upstream(channel, None, error),
        other => {
            tracing::warn!(channel = channel.name, error = %other, "an upstream's response is malformed");
            let message = "the upstream's response broke off or was malformed";
            ProviderError::new(UpstreamErrorKind::Unavailable, message)
        }
    }
}
