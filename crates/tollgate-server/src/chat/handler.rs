//! Answering a chat request, from its body to the last byte of the response, as one numbered story.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tollgate_chat::RenderOptions;
use tollgate_core::{Millis, id};
use tollgate_store::{Key, NewChat, TokenPrices};
use tollgate_upstream::{ChatCall, ChatModel, ChatProvider, ChatTimeouts, ProviderError};

use crate::chat::billing::{Bill, ChargeBounds, Delivered};
use crate::chat::complete;
use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::request::{ChatRequest, authenticate};
use crate::chat::stream::{self, StartedStream, StreamContext, StreamConverter};
use crate::chat::translate::{self, Conversation, PreparedRequest};
use crate::http::{body, reply};
use crate::reloadable::Reloadable;
use crate::routing::{ChannelPermit, Selection, TriedKey, session_hash};

/// Attempts at one request, over all channels and keys.
const MAX_ATTEMPTS: u32 = 5;
/// Backoff before failed channels are tried again because no other is left; doubled each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
/// Names the request fields that the upstream has no equivalent for.
const X_TOLLGATE_DROPPED: HeaderName = HeaderName::from_static("x-tollgate-dropped");

/// Answers a chat request.
pub fn handle(
    context: Arc<ChatContext>,
    request: ChatRequest,
) -> impl Future<Output = Response> + Send + use<> {
    let endpoint = request.endpoint;
    let response = Box::pin(try_handle(context, request));
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
) -> Result<Response, ChatErrorResponse> {
    let (endpoint, json_array) = (request.endpoint, request.json_array);
    let headers = &request.headers;
    let now = context.clock.now();

    // 1. Authenticate the caller and admit the request by its rate limits.
    let (query_key, notes) = (request.query_key.as_deref(), &request.notes);
    let mut caller = authenticate(&context, headers, query_key, notes, &Method::POST).await?;
    let key = Arc::clone(&caller.key);

    // 2. Read the body within its bounds, and summarize it without parsing it completely.
    let budget = &context.body_budget;
    let body = body::read_bytes(headers, request.body, body::MAX_BODY_WITH_FILES, budget).await?;
    let summary = endpoint.format.summarize_request(&body.bytes)?;
    let (model, is_stream) = match request.model_in_path {
        Some(in_path) => in_path,
        None => (summary.model.clone().unwrap_or_default(), summary.stream),
    };

    // 3. Check the model: in the catalogue, allowed for this key, served by some channel.
    let reloadable = context.reloadable.current();
    let known = context.catalogue.check_chat_model(&model);
    known.map_err(ChatErrorResponse::invalid_model)?;
    caller.check_may_use(&model)?;
    if !reloadable.routing.serves_chat(&model) {
        return Err(ChatErrorResponse::no_channel(&model));
    }

    // 4. Freeze the price, count the estimated tokens against the limits, and hold the most that this request can cost.
    let default_max_tokens = context.settings.default_max_tokens;
    let bounds = ChargeBounds::new(&summary, &body.bytes, default_max_tokens);
    let prices = reloadable.prices.chat(&model);
    let request_id = request.request_id.as_str();
    let chat = new_chat(endpoint, &key, &model, is_stream, request_id, prices, now);
    let chat_id = chat.id.clone();
    let permit = caller.take_permit();
    let bill = Bill::open(&context.billing, chat, bounds, key.needs_hold(), permit).await?;

    // 5. Try channels in turn until one begins to answer.
    let session = summary.user.as_deref();
    let session = session.map(|user| session_hash(&key.id, user));
    let include_usage = summary.include_usage;
    let strict = translate::is_strict(headers);
    let mut failover = ChannelFailover {
        context: &context,
        reloadable: &reloadable,
        endpoint,
        key: &key,
        headers,
        request_id,
        conversation: Conversation::new(&body.bytes, summary, model, is_stream, strict),
        bill,
        session,
        received_at: now,
        seed: chat_id,
        include_usage,
        json_array,
    };
    let answer = failover.try_channels().await?;
    let mut bill = failover.bill;
    drop(body);

    // 6. Send the response, complete or as a stream. Either way its end is sent only after the charge is on disk.
    let mut response = match answer.response {
        UpstreamResponse::Complete(response, delivered) => {
            bill.delivered = delivered;
            bill.settle("done").await?;
            complete_response(endpoint, &key, response)
        }
        UpstreamResponse::Stream(stream) => {
            let (chat, permit, user_id) = (context, answer.permit, key.user_id.clone());
            let body = stream.into_body(StreamContext {
                chat,
                bill,
                permit,
                endpoint,
                user_id,
            });
            event_stream(body, json_array)
        }
    };
    if !answer.dropped.is_empty() {
        let dropped = header_list(&answer.dropped);
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
    conversation: Conversation,
    bill: Bill,
    session: Option<u64>,
    received_at: Millis,
    /// Seeds the ids in the response.
    seed: String,
    include_usage: bool,
    json_array: bool,
}

/// The answer of a channel.
struct ChannelAnswer {
    permit: ChannelPermit,
    /// The request fields that the upstream's format has no equivalent for.
    dropped: Vec<String>,
    response: UpstreamResponse,
}

/// A response whose first bytes have arrived: no other channel is tried from here on.
enum UpstreamResponse {
    Complete(Bytes, Delivered),
    Stream(StartedStream),
}

impl ChannelFailover<'_> {
    /// 5.1 Select a channel by priority, weight and health; 5.2 write the request in its format; 5.3 call it; 5.4 wait for the
    /// first piece of the response. After a failure of the channel the next one is tried, because the client has received
    /// nothing yet.
    async fn try_channels(&mut self) -> Result<ChannelAnswer, ChatErrorResponse> {
        let mut tried: Vec<TriedKey> = Vec::new();
        let mut last_error: Option<ProviderError> = None;
        let mut unsupported: Option<ChatErrorResponse> = None;
        let mut backoff = INITIAL_BACKOFF;
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            let model = self.conversation.model.clone();
            let model = model.as_str();
            let routing = &self.reloadable.routing;
            let permit = match routing.select_for_chat(model, &tried, self.session) {
                Selection::Permit(permit) => permit,
                Selection::AllBusy if last_error.is_none() => {
                    return Err(ChatErrorResponse::all_channels_busy(model));
                }
                Selection::CoolingDown(left) if last_error.is_none() => {
                    return Err(ChatErrorResponse::rate_limited_upstream(model, left));
                }
                Selection::AllBusy | Selection::CoolingDown(_) => break,
                Selection::None => match &last_error {
                    // No other channel is left: after a backoff, the failed ones are tried again.
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
            let prepared = self
                .conversation
                .prepare(self.context, self.endpoint, user_id, &binding)
                .await;
            let prepared = match prepared {
                Ok(prepared) => prepared,
                // This channel's format cannot express the request; another channel's may.
                Err(error) => {
                    tried.push(permit.tried_key());
                    unsupported = unsupported.or(Some(error));
                    continue;
                }
            };
            let call = self.call(&permit, &**provider, &binding.model, prepared, attempts);
            match call.await {
                Ok((response, dropped)) => {
                    let channel = &permit.open.channel.name;
                    self.bill.set_channel(channel, &binding.upstream_name);
                    return Ok(ChannelAnswer {
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
            (Some(error), _) => ChatErrorResponse::from_upstream(error),
            (None, Some(error)) => error,
            (None, None) => ChatErrorResponse::no_channel(&self.conversation.model),
        };
        Err(self.give_up(error).await)
    }

    /// Calls one channel and waits for the complete response, or for the first piece of the stream.
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
        let call = ChatCall {
            format: prepared.format,
            model: &model.upstream_id,
            stream: self.conversation.stream,
            body: prepared.body.clone(),
            key: permit.key(),
            headers: self.headers,
            request_id: self.request_id,
            failed_attempts,
            timeouts,
        };
        let body = provider.send(call).await?;
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
            let started = stream::start(body, converter, channel, timeouts.first_byte).await?;
            UpstreamResponse::Stream(started)
        } else {
            let bytes = body
                .collect(complete::MAX_RESPONSE)
                .await
                .map_err(|e| ProviderError::from(&e))?;
            let converted = complete::convert_response(
                &self.context.signatures,
                self.endpoint,
                &prepared,
                &self.key.user_id,
                bytes,
                &options,
            );
            let (response, delivered) =
                converted.map_err(|error| stream::malformed_response(channel, error))?;
            permit.record_success();
            UpstreamResponse::Complete(response, delivered)
        };
        Ok((response, prepared.dropped))
    }

    /// Records a failed attempt in the channel's health, the bill, the log and the metrics.
    fn record_failed_attempt(&mut self, permit: &ChannelPermit, error: &ProviderError) {
        let channel = &permit.open.channel.name;
        permit.record_error(&self.conversation.model, error);
        self.bill.add_failed_attempt(channel, error);
        tracing::warn!(
            request_id = self.request_id,
            channel = channel,
            model = self.conversation.model,
            kind = ?error.kind,
            status = error.status,
            error = error.message,
            "a channel did not answer"
        );
        self.context.metrics.chat_attempt_failed(channel);
    }

    /// Ends a chat of which nothing was delivered: nothing is charged, the attempts are recorded. The client's error does not
    /// depend on whether that record can be written.
    async fn give_up(&mut self, error: ChatErrorResponse) -> ChatErrorResponse {
        if let Err(e) = self.bill.settle("failed").await {
            tracing::error!(error = %e, "a failed chat could not be recorded");
        }
        error
    }
}

fn complete_response(endpoint: Endpoint, key: &Key, bare: Bytes) -> Response {
    if endpoint.bare || key.limits.bare_envelope {
        return reply::json_text(bare);
    }
    reply::json_text(complete::wrap_in_envelope(endpoint, bare))
}

fn event_stream(body: Body, json_array: bool) -> Response {
    let content_type = if json_array {
        "application/json"
    } else {
        "text/event-stream; charset=utf-8"
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Tells nginx not to buffer the stream.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

/// The names as one header value; characters that no header can contain are left out.
fn header_list(names: &[String]) -> HeaderValue {
    let clean = |name: &String| {
        name.chars()
            .filter(|c| c.is_ascii_graphic() && *c != ',')
            .collect::<String>()
    };
    let text = names.iter().map(clean).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("some"))
}
