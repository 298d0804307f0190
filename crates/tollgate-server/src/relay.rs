//! A chat's whole life, from the body to the last byte of the reply, as one numbered story.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tollgate_chat::Rendering;
use tollgate_core::{ApiError, Millis, id};
use tollgate_store::{Key, NewChat};
use tollgate_upstream::{
    ChatCall, ChatError, ChatErrorKind, ChatModel, ChatProvider, ChatTimeouts,
};

use crate::access::{self, Caller};
use crate::app::{App, Live};
use crate::chat::bill::{Bill, Bounds, Delivered};
use crate::chat::live::{self, Flow, Sending};
use crate::chat::mount::Mount;
use crate::chat::prepare::{self, Conversation, Prepared};
use crate::chat::refused::Refused;
use crate::chat::whole;
use crate::http::trace::{RequestId, RequestNotes};
use crate::http::{body, reply};
use crate::routing::{Choice, Seat, Tried, Trouble, session};

/// Attempts at one request, over all channels and keys.
const ATTEMPTS: u32 = 5;
/// Pause before a channel that failed is tried again because no other is left; doubled each time.
const PAUSE: Duration = Duration::from_millis(50);
/// What was left out of the request for its upstream.
const DROPPED: HeaderName = HeaderName::from_static("x-tollgate-dropped");

/// One request to a chat endpoint.
pub struct Request {
    /// Where.
    pub mount: Mount,
    /// The model and whether a stream is asked for, where the path says so.
    pub path: Option<(String, bool)>,
    /// generate-content without `alt=sse`: a stream is one JSON array.
    pub json_array: bool,
    /// A key in the query (`?key=`), where the mount takes it there.
    pub query_key: Option<String>,
    /// With which headers.
    pub headers: HeaderMap,
    /// The request's id.
    pub request_id: RequestId,
    /// For the log line.
    pub notes: RequestNotes,
    /// The body.
    pub body: Body,
}

/// Answers a chat request.
pub fn relay(app: Arc<App>, request: Request) -> impl Future<Output = Response> + Send + use<> {
    let mount = request.mount;
    let answering = Box::pin(answer(app, request));
    async move {
        match answering.await {
            Ok(response) => response,
            Err(refused) => refused.into_response(mount),
        }
    }
}

async fn answer(app: Arc<App>, request: Request) -> Result<Response, Refused> {
    let app = &app;
    let Request {
        mount,
        path,
        json_array,
        query_key,
        headers,
        request_id,
        notes,
        body,
    } = request;
    let now = app.clock.now();

    // 1. Who asks, and whether now is the time.
    let mut caller = caller(app, &headers, query_key.as_deref(), &notes, &Method::POST).await?;
    let key = Arc::clone(&caller.key);

    // 2. What is asked: the body is bounded, then looked at, not read.
    let body = body::read_bytes(&headers, body, body::DATA_URI_LIMIT, &app.body_budget).await?;
    let glance = mount.format.glance(&body.bytes)?;
    let (model, stream) = match path {
        Some(named) => named,
        None => (glance.model.clone().unwrap_or_default(), glance.stream),
    };

    // 3. The model: known here, allowed to this key, served by some channel.
    let live = app.routing();
    app.catalogue.chat(&model).map_err(Refused::model)?;
    caller.may_use(&model)?;
    if !live.channels.serves_chat(&model) {
        return Err(Refused::no_channel(&model));
    }

    // 4. The price, frozen; tokens counted against the limits; money held for the worst that this request can cost.
    let bounds = Bounds::new(&glance, &body.bytes, app.config.chat.default_max_tokens);
    let chat = new_chat(&live, mount, &key, &model, stream, &request_id, now);
    let chat_id = chat.id.clone();
    let permit = caller.take_permit();
    let bill = Bill::open(app, chat, bounds, key.needs_hold(), permit).await?;

    // 5. Channels are asked in turn until one begins to answer.
    let session = glance.user.as_deref().map(|user| session(&key.id, user));
    let look = Look {
        created: now / 1000,
        seed: chat_id,
        include_usage: glance.include_usage,
        json_array,
    };
    let strict = prepare::is_strict(&headers);
    let conversation = Conversation::new(&body.bytes, glance, model, stream, strict);
    let mut asking = Asking {
        app,
        live: &live,
        mount,
        key: &key,
        headers: &headers,
        request_id: &request_id,
        conversation,
        bill,
        session,
        look,
    };
    let answering = asking.until_one_answers().await?;
    let mut bill = asking.bill;
    drop(body);

    // 6. The reply: whole, or piece by piece. Either way its end is sent only after the charge is on disk.
    let mut response = match answering.reply {
        Begun::Whole(reply, delivered) => {
            bill.delivered = delivered;
            bill.settle("done").await?;
            whole_reply(mount, &key, reply)
        }
        Begun::Stream(stream) => {
            let sending = Sending {
                bill,
                seat: answering.seat,
                mount,
                user_id: key.user_id.clone(),
            };
            event_stream(stream.into_body(sending), json_array)
        }
    };
    if !answering.dropped.is_empty() {
        let dropped = listed(&answering.dropped);
        response.headers_mut().insert(DROPPED, dropped);
    }
    Ok(response)
}

fn whole_reply(mount: Mount, key: &Key, bare: Bytes) -> Response {
    let as_it_is = mount.bare || key.limits.bare_envelope;
    let enveloped = |bare| whole::in_envelope(mount, bare);
    reply::json_text(if as_it_is { bare } else { enveloped(bare) })
}

/// Who asks, let in by the limits.
///
/// # Errors
/// 401, 403, 429.
pub async fn caller(
    app: &App,
    headers: &HeaderMap,
    query_key: Option<&str>,
    notes: &RequestNotes,
    method: &Method,
) -> Result<Caller, Refused> {
    let presented = access::presented(headers, query_key);
    let key = app
        .access
        .authenticate_any(app, &presented)
        .await
        .map_err(ApiError::from)?;
    notes.set_key(&key);
    Ok(Caller::admit(app, key, method)?)
}

fn new_chat(
    live: &Live,
    mount: Mount,
    key: &Key,
    model: &str,
    streamed: bool,
    request_id: &RequestId,
    now: Millis,
) -> NewChat {
    NewChat {
        id: id::chat_id(now),
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
        model: model.to_owned(),
        format: mount.format.name(),
        streamed,
        request_id: request_id.as_str().to_owned(),
        prices: live.prices.chat(model),
        opened_at: now,
    }
}

/// How the reply is to look.
struct Look {
    created: i64,
    seed: String,
    include_usage: bool,
    json_array: bool,
}

/// A request on its way through the channels.
struct Asking<'a> {
    app: &'a Arc<App>,
    live: &'a Live,
    mount: Mount,
    key: &'a Key,
    headers: &'a HeaderMap,
    request_id: &'a RequestId,
    conversation: Conversation,
    bill: Bill,
    session: Option<u64>,
    look: Look,
}

/// A channel that answers.
struct Answering {
    seat: Seat,
    dropped: Vec<String>,
    reply: Begun,
}

/// An answer that has begun: it is this channel's from here on.
enum Begun {
    Whole(Bytes, Delivered),
    Stream(live::Begun),
}

impl Asking<'_> {
    /// 5.1 A channel by priority, weight and health; 5.2 the request in its format; 5.3 the call; 5.4 the first piece of the reply.
    /// What fails on the channel's side goes on to the next one, as long as the client has got nothing.
    async fn until_one_answers(&mut self) -> Result<Answering, Refused> {
        let mut tried: Vec<Tried> = Vec::new();
        let mut last: Option<ChatError> = None;
        let mut unable: Option<Refused> = None;
        let mut pause = PAUSE;
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            let model = self.conversation.model.clone();
            let model = model.as_str();
            let seat = match self.live.channels.choose_chat(model, &tried, self.session) {
                Choice::Seat(seat) => seat,
                Choice::Full if last.is_none() => return Err(Refused::full(model)),
                Choice::Resting(wait) if last.is_none() => {
                    return Err(Refused::resting(model, wait));
                }
                Choice::Full | Choice::Resting(_) => break,
                Choice::None => match &last {
                    // No other channel is left: the ones that failed are asked again, after a pause.
                    Some(error) if goes_better(error) => {
                        tokio::time::sleep(pause).await;
                        (pause, last) = (pause * 2, last.take());
                        tried.clear();
                        continue;
                    }
                    _ => break,
                },
            };
            let Some((provider, spoken)) = seat.spoken(model) else {
                break;
            };
            let prepared = self
                .conversation
                .prepare(self.app, self.mount, &self.key.user_id, &spoken)
                .await;
            let prepared = match prepared {
                Ok(prepared) => prepared,
                // This format cannot carry the request; another channel's may.
                Err(refused) => {
                    tried.push(seat.tried());
                    unable = unable.or(Some(refused));
                    continue;
                }
            };
            let timeouts = timeouts(self.app, &seat);
            match self
                .call(
                    &seat,
                    &**provider,
                    &spoken.model,
                    prepared,
                    timeouts,
                    attempts,
                )
                .await
            {
                Ok((reply, dropped)) => {
                    self.bill
                        .answered_by(&seat.open.channel.name, &spoken.upstream);
                    return Ok(Answering {
                        seat,
                        dropped,
                        reply,
                    });
                }
                Err(error) => {
                    report(&seat, model, &error);
                    self.bill.attempt_failed(&seat.open.channel.name, &error);
                    self.say(&seat, &error);
                    if error.kind == ChatErrorKind::Rejected {
                        return Err(self.give_up(Refused::upstream(error)).await);
                    }
                    tried.push(seat.tried());
                    last = Some(error);
                    attempts += 1;
                }
            }
        }
        let refused = match (last, unable) {
            (Some(error), _) => Refused::upstream(error),
            (None, Some(refused)) => refused,
            (None, None) => Refused::no_channel(&self.conversation.model),
        };
        Err(self.give_up(refused).await)
    }

    async fn call(
        &self,
        seat: &Seat,
        provider: &dyn ChatProvider,
        known: &ChatModel,
        prepared: Prepared,
        timeouts: ChatTimeouts,
        failed_attempts: u32,
    ) -> Result<(Begun, Vec<String>), ChatError> {
        let call = ChatCall {
            format: prepared.format,
            model: &known.wire,
            stream: self.conversation.stream,
            body: prepared.body.clone(),
            key: seat.key(),
            headers: self.headers,
            request_id: self.request_id.as_str(),
            failed_attempts,
            timeouts,
        };
        let body = provider.send(call).await?;
        let rendering = Rendering {
            model: &self.conversation.model,
            created: self.look.created,
            seed: &self.look.seed,
            include_usage: self.look.include_usage,
            prompt_estimate: self.bill.prompt(),
            request: self.conversation.hub.as_ref(),
            json_array: self.look.json_array,
        };
        let reply = if self.conversation.stream {
            let flow = Flow::new(self.mount, &prepared, &rendering);
            Begun::Stream(live::begin(body, flow, &seat.open.channel, timeouts.first_byte).await?)
        } else {
            let bytes = body
                .collect(whole::REPLY_MAX)
                .await
                .map_err(|e| ChatError::from(&e))?;
            let (reply, delivered) = whole::answer(
                self.app,
                self.mount,
                &prepared,
                &self.key.user_id,
                bytes,
                &rendering,
            )
            .map_err(|fault| live::garbled(&seat.open.channel, fault))?;
            seat.succeeded();
            Begun::Whole(reply, delivered)
        };
        Ok((reply, prepared.dropped))
    }

    fn say(&self, seat: &Seat, error: &ChatError) {
        tracing::warn!(
            request_id = self.request_id.as_str(),
            channel = seat.open.channel.name,
            model = self.conversation.model,
            kind = ?error.kind,
            status = error.status,
            error = error.message,
            "a channel did not answer"
        );
        self.app
            .metrics
            .chat_attempt_failed(&seat.open.channel.name);
    }

    /// Nothing was delivered: nothing is charged, the attempts are recorded. What the client hears does not hang on that record.
    async fn give_up(&mut self, refused: Refused) -> Refused {
        match self.bill.settle("failed").await {
            Ok(_) => refused,
            Err(e) => {
                tracing::error!(error = %e, "a failed chat could not be recorded");
                refused
            }
        }
    }
}

/// Whether asking the same channel again may help.
fn goes_better(error: &ChatError) -> bool {
    matches!(
        error.kind,
        ChatErrorKind::Connect | ChatErrorKind::Unavailable
    )
}

/// Tells the channel's health what happened.
pub fn report(seat: &Seat, model: &str, error: &ChatError) {
    let trouble = match error.kind {
        ChatErrorKind::Rejected => return seat.succeeded(),
        ChatErrorKind::Connect | ChatErrorKind::TimedOut | ChatErrorKind::Unavailable => {
            Trouble::Down
        }
        ChatErrorKind::RateLimited => Trouble::RateLimited(error.retry_after),
        ChatErrorKind::KeyRefused => Trouble::KeyRefused,
        ChatErrorKind::QuotaExhausted => Trouble::QuotaExhausted,
        ChatErrorKind::ModelMissing => Trouble::ModelMissing,
    };
    seat.failed(model, trouble);
}

fn timeouts(app: &App, seat: &Seat) -> ChatTimeouts {
    let (ours, theirs) = (&app.config.time_limits, &seat.open.channel.time_limits);
    ChatTimeouts {
        connect: theirs.connect.unwrap_or(ours.chat_connect),
        first_byte: theirs.first_byte.unwrap_or(ours.chat_first_byte),
        idle: theirs.idle.unwrap_or(ours.chat_idle),
    }
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
        // Proxies in front must not gather what is meant to flow.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

/// Names in one header value: what no header can hold is left out of them.
fn listed(names: &[String]) -> HeaderValue {
    let clean = |name: &String| {
        name.chars()
            .filter(|c| c.is_ascii_graphic() && *c != ',')
            .collect::<String>()
    };
    let text = names.iter().map(clean).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("some"))
}
