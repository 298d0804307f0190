//! Handles a chat request, from its body to the last byte of the response, in numbered steps.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};
use tollgate_chat::RenderOptions;
use tollgate_core::{Amount, Millis, id};
use tollgate_store::{Key, NewChat, TokenPrices};
use tollgate_upstream::{
    ChatCall, ChatModel, ChatProvider, ChatTimeouts, ProviderError, UpstreamErrorKind,
};

use crate::chat::billing::{Bill, Delivered};
use crate::chat::bounds::HiddenOutput;
use crate::chat::client_watch::{ClientWatch, WatchedRequest};
use crate::chat::complete;
use crate::chat::context::ChatContext;
use crate::chat::converter::StreamConverter;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::http_response::{complete_response, event_stream, header_list};
use crate::chat::priced_request::{PricedRequest, UnpricedRequest};
use crate::chat::request::{ChatRequest, authenticate};
use crate::chat::stored_conversations::ConversationHome;
use crate::chat::stream::{self, StartedStream, StreamContext};
use crate::chat::stream_watch::StreamWatch;
use crate::chat::translate::{self, Conversation, PreparedRequest};
use crate::http::body_memory::MAX_BODY_WITH_FILES;
use crate::http::request_notes::RequestNotes;
use crate::http::{body, large_work};
use crate::otel::ChatContent;
use crate::reloadable::Reloadable;
use crate::routing::{ChannelPermit, ModelBinding, Selection, TriedKey, session_hash};

/// Attempts for one request, over all channels and keys.
const MAX_ATTEMPTS: u32 = 5;
/// Backoff before failed channels are retried because no other channel is left; doubled each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
/// The header that lists the request fields that the upstream has no equivalent for.
const X_TOLLGATE_DROPPED: HeaderName = HeaderName::from_static("x-tollgate-dropped");

/// Handles a chat request and returns its response.
pub fn handle(
    context: Arc<ChatContext>,
    request: ChatRequest,
) -> impl Future<Output = Response> + Send + use<> {
    let endpoint = request.endpoint;
    let watch = Arc::new(ClientWatch::default());
    let closing = context.billing.closing.clone();
    let handler = try_handle(context, request, Arc::clone(&watch));
    let response = WatchedRequest::new(handler, watch, closing);
    async move {
        match response.await {
            Ok(response) => response,
            Err(error) => error.into_response(endpoint),
        }
    }
}

async fn try_handle(
    context: Arc<ChatContext>,
    request: ChatRequest,
    watch: Arc<ClientWatch>,
) -> Result<Response, ChatErrorResponse> {
    let (endpoint, json_array) = (request.endpoint, request.json_array);
    let headers = &request.headers;
    let now = context.clock.now();

    // 1. Authenticate the caller and admit the request by its rate limits.
    let (query_key, notes) = (request.query_key.as_deref(), &request.notes);
    let mut caller = authenticate(&context, headers, query_key, notes, &Method::POST).await?;
    let key = Arc::clone(&caller.key);

    // 2. Read the body within its bounds, and summarize it without parsing it completely.
    let budget = context.body_budget.of_user(&key.user_id);
    let body = body::read_bytes(headers, request.body, MAX_BODY_WITH_FILES, budget).await?;
    let size = body.bytes.len();
    let summarize = || endpoint.format.summarize_request(&body.bytes);
    let summary = large_work::run_in_place(size, summarize)?;
    let (model, is_stream) = match request.model_in_path {
        Some(in_path) => in_path,
        None => (summary.model.clone().unwrap_or_default(), summary.stream),
    };

    // 3. Check the model: in the catalogue, allowed for this key, served by some channel. Freeze the price, and compute the highest cost of this
    //    request. The output tokens that are held are also its limit.
    context.fetch_stored(&key.user_id, &summary).await?;
    let reloadable = context.reloadable.current();
    let unpriced = UnpricedRequest {
        endpoint,
        headers,
        body: &body.bytes,
        model: &model,
        caller: Some(&caller),
        has_limit: key.needs_hold(),
    };
    let PricedRequest {
        channel_model,
        stored_at,
        options,
        prices,
        needs_hold,
        raw,
        summary,
        bounds,
    } = PricedRequest::new(&context, &reloadable, &unpriced, summary)?;

    // 4. Count the estimated tokens against the limits, and hold the highest cost.
    let request_id = request.request_id.as_str();
    let name = &channel_model;
    let chat = new_chat(endpoint, &key, name, is_stream, request_id, prices, now);
    let chat_id = chat.id.clone();
    let (permit, notes) = (caller.take_permit(), request.notes.clone());
    let content = || ChatContent::new(endpoint.format, &body.bytes, is_stream, json_array);
    notes.record_content(&key, content);
    let bill = Bill::open(&context.billing, chat, bounds, needs_hold, permit, notes).await?;

    // 5. Try channels one after the other until one begins to respond.
    let session = summary.user.as_deref();
    let session = session.map(|user| session_hash(&key.id, user));
    let strict = translate::is_strict(headers);
    let mut failover = ChannelFailover {
        context: &context,
        reloadable: &reloadable,
        endpoint,
        key: &key,
        headers,
        request_id,
        channel_model,
        stored_at,
        include_usage: summary.include_usage,
        conversation: Conversation::new(&raw, summary, model, is_stream, strict, options),
        bill,
        notes: &request.notes,
        watch: &watch,
        session,
        received_at: now,
        seed: chat_id,
        json_array,
    };
    let received = failover.try_channels().await?;
    let mut bill = failover.bill;
    bill.set_dropped(&received.dropped);
    drop(body);

    // 6. Send the response, complete or as a stream. In both cases its end is sent only after the charge is on disk.
    let is_gone = watch.is_gone();
    send_response(context, &key, endpoint, json_array, bill, received, is_gone).await
}

/// 6. Sends the response of the channel. `is_gone` states whether the client has left.
async fn send_response(
    context: Arc<ChatContext>,
    key: &Key,
    endpoint: Endpoint,
    json_array: bool,
    mut bill: Bill,
    received: ChannelResponse,
    is_gone: bool,
) -> Result<Response, ChatErrorResponse> {
    let content = bill.content();
    let mut response = match received.response {
        UpstreamResponse::Complete(response, delivered, id) => {
            if let (Some(id), true) = (id, received.is_stored) {
                let (user_id, permit) = (&key.user_id, &received.permit);
                context
                    .stored_conversations
                    .insert(user_id, &id, permit, delivered.usage);
            }
            bill.delivered = delivered;
            bill.settle(if is_gone { "client_gone" } else { "done" })
                .await?;
            if let Some(content) = content {
                content.push(&response);
            }
            complete_response(endpoint, key, response)
        }
        UpstreamResponse::Stream(stream) => {
            let (chat, permit, user_id) = (context, received.permit, key.user_id.clone());
            let body = stream.into_body(StreamContext {
                chat,
                bill,
                permit,
                endpoint,
                user_id,
                is_stored: received.is_stored,
                content,
            });
            event_stream(body, json_array)
        }
    };
    if !received.dropped.is_empty() {
        let dropped = header_list(&received.dropped);
        response.headers_mut().insert(X_TOLLGATE_DROPPED, dropped);
    }
    Ok(response)
}

fn new_chat(
    endpoint: Endpoint,
    key: &Key,
    model: &str,
    is_stream: bool,
    request_id: &str,
    prices: TokenPrices,
    opened_at: Millis,
) -> NewChat {
    NewChat {
        id: id::chat_id(opened_at),
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
        model: model.to_owned(),
        format: endpoint.format.name(),
        streamed: is_stream,
        request_id: request_id.to_owned(),
        prices,
        held_parts: Amount::ZERO,
        opened_at,
    }
}

/// Failover over the channels that serve one request.
struct ChannelFailover<'a> {
    context: &'a ChatContext,
    reloadable: &'a Reloadable,
    endpoint: Endpoint,
    key: &'a Key,
    headers: &'a HeaderMap,
    request_id: &'a str,
    /// The name that channels use for the model: the client's name may be an alias.
    channel_model: String,
    /// The channel and key that store the conversation which the request continues: no other can respond.
    stored_at: Option<Arc<ConversationHome>>,
    conversation: Conversation,
    bill: Bill,
    notes: &'a RequestNotes,
    watch: &'a ClientWatch,
    session: Option<u64>,
    received_at: Millis,
    /// The seed of generated ids in the response.
    seed: String,
    include_usage: bool,
    json_array: bool,
}

/// The response of a channel.
struct ChannelResponse {
    permit: ChannelPermit,
    /// The request fields that have no equivalent in the upstream's format.
    dropped: Vec<String>,
    /// Whether the provider stores the conversation, so that later requests can continue it.
    is_stored: bool,
    response: UpstreamResponse,
}

/// A response whose first bytes were received: from here on there is no failover.
enum UpstreamResponse {
    /// The complete response, and its id in formats whose providers store conversations.
    Complete(Bytes, Delivered, Option<String>),
    Stream(StartedStream),
}

impl ChannelFailover<'_> {
    /// 5.1 Select a channel by priority, weight and health; 5.2 write the request in its format; 5.3 call it; 5.4 wait for the first piece of the
    /// response. If the channel fails, the request fails over to the next one, because the client has received nothing yet.
    async fn try_channels(&mut self) -> Result<ChannelResponse, ChatErrorResponse> {
        let mut tried: Vec<TriedKey> = Vec::new();
        let mut last_error: Option<ProviderError> = None;
        let mut unsupported: Option<ChatErrorResponse> = None;
        let mut backoff = INITIAL_BACKOFF;
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS && !(self.watch.is_gone() && attempts > 0) {
            let model = self.channel_model.clone();
            let model = model.as_str();
            let permit = match self.select(model, &tried).await {
                Selection::Permit(permit) => permit,
                Selection::AllBusy if last_error.is_none() => {
                    return Err(ChatErrorResponse::all_channels_busy(
                        &self.conversation.model,
                    ));
                }
                Selection::CoolingDown(left) if last_error.is_none() => {
                    return Err(self.no_channel_ready(model, left));
                }
                Selection::AllBusy | Selection::CoolingDown(_) => break,
                Selection::None => match &last_error {
                    // No other channel is left: after a backoff, the failed ones are retried.
                    Some(error) if error.kind.policy().retry_at_once => {
                        tokio::time::sleep(backoff).await;
                        backoff *= 2;
                        tried.clear();
                        continue;
                    }
                    _ => break,
                },
            };
            let Some((provider, binding)) = permit.model_binding(model) else {
                break;
            };
            let user_id = &self.key.user_id;
            let channel = (&*permit.open.channel, self.headers);
            let prepared = self
                .conversation
                .prepare(self.context, self.endpoint, user_id, channel, &binding)
                .await;
            let prepared = match prepared {
                Ok(prepared) => prepared,
                // This channel's format cannot express the request; that of another channel may.
                Err(error) => {
                    tried.push(permit.tried_key());
                    unsupported = unsupported.or(Some(error));
                    continue;
                }
            };
            self.request_sent(&permit, &binding, &prepared);
            let call = self.call(&permit, &**provider, &binding.model, prepared, attempts);
            match call.await {
                Ok((response, dropped)) => {
                    let routing = &self.reloadable.routing;
                    routing.confirm_failures(model, &tried, &self.key.user_id);
                    return Ok(ChannelResponse {
                        is_stored: self.conversation.is_stored_at(&permit.open.channel),
                        permit,
                        dropped,
                        response,
                    });
                }
                Err(error) => {
                    self.record_failed_attempt(&permit, &error);
                    if !error.kind.policy().failover {
                        let error = ChatErrorResponse::from_upstream(error);
                        return Err(self.give_up(error).await);
                    }
                    tried.push(permit.tried_key());
                    last_error = Some(error);
                    attempts += 1;
                }
            }
        }
        let error = match (last_error, unsupported) {
            // If the client drops the thread, another channel may respond.
            _ if self.stored_at.is_some() && self.conversation.summary.thread.is_some() => {
                ChatErrorResponse::thread_not_found()
            }
            (Some(_), Some(error)) if self.conversation.summary.thread.is_some() => error,
            (Some(error), _) => ChatErrorResponse::from_upstream(error),
            (None, Some(error)) => error,
            (None, None) => ChatErrorResponse::no_channel(&self.conversation.model),
        };
        Err(self.give_up(error).await)
    }

    /// The error if every channel is paused: by an operator, or because its upstream requested a pause of which `left` remains.
    fn no_channel_ready(&self, model: &str, left: Duration) -> ChatErrorResponse {
        let name = &self.conversation.model;
        if self.reloadable.routing.is_paused_for_chat(model) {
            return ChatErrorResponse::all_channels_paused(name);
        }
        ChatErrorResponse::rate_limited_upstream(name, left)
    }

    /// Selects a channel and key: the ones that store the conversation, or any that has not been tried.
    async fn select(&self, model: &str, tried: &[TriedKey]) -> Selection {
        let (routing, user_id) = (&self.reloadable.routing, &self.key.user_id);
        let by_health = || routing.select_for_chat(model, tried, self.session, user_id);
        let Some(home) = &self.stored_at else {
            return by_health().await;
        };
        let selected =
            routing.select_by_name(&home.channel, home.key.as_deref(), model, tried, user_id);
        match selected.await {
            // That channel or key is not configured any more: another one's provider decides whether it knows the stored response.
            Selection::None if tried.is_empty() && self.conversation.summary.thread.is_none() => {
                by_health().await
            }
            selected => selected,
        }
    }

    /// Records that the request is sent to an upstream, and how much output it may generate invisibly.
    fn request_sent(
        &mut self,
        permit: &ChannelPermit,
        binding: &ModelBinding,
        prepared: &PreparedRequest,
    ) {
        let model = &binding.model;
        let hidden = if self.conversation.stream {
            let is_thinking_set =
                self.conversation.summary.has_reasoning_settings || model.reasoning.is_some();
            let (format, body) = (prepared.format, &prepared.body);
            HiddenOutput::of_stream(format, &model.capabilities, is_thinking_set, body)
        } else {
            HiddenOutput::ALL
        };
        self.watch.request_sent(!hidden.is_none());
        let channel = &permit.open.channel.name;
        let context_window = model.capabilities.context_window;
        self.bill
            .request_sent(channel, &binding.upstream_name, hidden, context_window);
    }

    /// Calls one channel, and waits for the complete response or for the first piece of the stream.
    async fn call(
        &self,
        permit: &ChannelPermit,
        provider: &dyn ChatProvider,
        model: &ChatModel,
        prepared: PreparedRequest,
        failed_attempts: u32,
    ) -> Result<(UpstreamResponse, Vec<String>), ProviderError> {
        let channel = &permit.open.channel;
        let timeouts: ChatTimeouts = self.context.settings.timeouts(channel);
        let trace = self.notes.begin_attempt(channel, &model.upstream_id);
        let call = ChatCall {
            format: prepared.format,
            model: &model.upstream_id,
            stream: self.conversation.stream,
            body: prepared.body.clone(),
            key: permit.key(),
            headers: prepared.headers.as_deref().unwrap_or(self.headers),
            request_id: self.request_id,
            trace: trace.as_ref(),
            failed_attempts,
            timeouts,
        };
        // The names of fields and the details of an error are valid only in the format of the upstream.
        let in_client_format = |error: ProviderError| match prepared.forward {
            true => error,
            false => error.without_field_names(),
        };
        let body = provider.send(call).await.map_err(in_client_format)?;
        let options = RenderOptions {
            model: &self.conversation.model,
            created: self.received_at / 1000,
            seed: &self.seed,
            include_usage: self.include_usage,
            estimated_prompt_tokens: self.bill.estimated_prompt_tokens(),
            request: self.conversation.hub.as_ref(),
            json_array: self.json_array,
        };
        let response = if self.conversation.stream {
            let converter = StreamConverter::new(self.endpoint, &prepared, &options);
            let received = &self.bill.received_before_start;
            let first_byte = timeouts.first_byte;
            // A silence that the timeouts allow before and between chunks is also allowed if only keep-alives are received.
            let max_silence = first_byte.max(timeouts.idle);
            let watch = StreamWatch::start(max_silence, self.bill.max_output());
            let started = stream::start(body, converter, watch, channel, first_byte, received);
            let started = started.await.map_err(in_client_format)?;
            UpstreamResponse::Stream(started)
        } else {
            let buffered = self.context.response_budget.collect(body).await?;
            let converted = complete::convert_response(
                &self.context.signatures,
                self.endpoint,
                &prepared,
                &self.key.user_id,
                buffered.bytes.clone(),
                &options,
            );
            let (response, delivered, id) = converted
                .map_err(|error| in_client_format(stream::malformed_response(channel, error)))?;
            permit.record_success();
            UpstreamResponse::Complete(response, delivered, id)
        };
        Ok((response, prepared.dropped))
    }

    /// Records a failed attempt in the channel's health, the bill, the log and the metrics.
    fn record_failed_attempt(&mut self, permit: &ChannelPermit, error: &ProviderError) {
        let channel = &permit.open.channel.name;
        permit.record_error(&self.channel_model, &self.key.user_id, error);
        self.bill.add_failed_attempt(channel, error);
        self.notes.fail_attempt(error.kind.recorded_name());
        // If the client left before the upstream timed out, it pays, because the provider may charge for the request. A client that has not left gets
        // an error.
        match error.kind == UpstreamErrorKind::TimedOut && self.watch.is_gone() {
            true => self.bill.client_left(),
            false => {
                self.bill.request_failed();
                self.watch.request_failed();
            }
        }
        tracing::warn!(
            request_id = self.request_id,
            channel = channel,
            model = self.conversation.model,
            kind = ?error.kind,
            status = error.status,
            error = error.message,
            "a request to a channel failed"
        );
        let metrics = &self.context.metrics;
        metrics.chat_attempt_failed(channel, error.kind.recorded_name());
    }

    /// Ends a chat of which nothing was delivered: nothing is charged, the attempts are recorded. The client's error is the same whether or not that
    /// record can be written.
    async fn give_up(&mut self, error: ChatErrorResponse) -> ChatErrorResponse {
        let outcome = match self.bill.has_client_left() {
            true => "client_gone",
            false => "failed",
        };
        if let Err(e) = self.bill.settle(outcome).await {
            tracing::error!(error = %e, "a failed chat could not be recorded");
        }
        error
    }
}
