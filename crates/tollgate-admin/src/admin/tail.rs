//! The live tail: server-sent events of what happens to tasks and chats (docs/admin.md#live-tail).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::state::App;
use tollgate_server::tail_hub::{TailItem, TailRead};
use tollgate_store::TailPosition;

use super::authenticate::{Actor, authenticate};
use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::GET,
    path: "/tail",
    access: Access::AnyOf(&[Scope::TasksRead, Scope::ChatsRead]),
    summary: "Server-sent events: `task` when a task is submitted, starts or ends, `chat` when a chat has ended. `Last-Event-ID` resumes the stream.",
    query: &["model", "user_id", "key_id", "channel", "state", "outcome"],
    body: None,
    returns: Returns::Text("text/event-stream"),
    handler: handler!(watch),
}];

/// The header that a resuming client sends.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells proxies not to buffer the events.
const NO_BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);
/// How often a comment is sent, so that proxies do not close the connection as idle.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the gateway checks that the caller is still allowed to watch.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Sent if events are missing: the client must load again what it shows.
const RESET: &str = "event: reset\ndata: {}\n\n";

/// The events that a watcher receives.
struct TailFilter {
    tasks: bool,
    chats: bool,
    /// Members of an event, each with the values to include.
    members: Vec<(&'static str, Vec<String>)>,
}

impl TailFilter {
    fn parse(call: &Call, actor: &Actor) -> Self {
        let lists = call.parameters.iter();
        let members: Vec<_> = lists
            .filter_map(|name| Some((*name, call.query.list(name)?)))
            .collect();
        let has = |name: &str| members.iter().any(|(member, _)| *member == name);
        Self {
            // Chats have no state and tasks no outcome, so these filters exclude them.
            tasks: actor.scopes.contains(Scope::TasksRead) && !has("outcome"),
            chats: actor.scopes.contains(Scope::ChatsRead) && !has("state"),
            members,
        }
    }

    fn includes(&self, item: &TailItem) -> bool {
        let is_of_kind = match item.is_task {
            true => self.tasks,
            false => self.chats,
        };
        is_of_kind
            && self.members.iter().all(|(name, values)| {
                let value = item.data.get(*name).and_then(Value::as_str);
                value.is_some_and(|value| values.iter().any(|wanted| wanted == value))
            })
    }

    /// The events of one read that match the filter, as text.
    fn render(&self, read: &TailRead) -> Bytes {
        let mut text = BytesMut::new();
        for item in read.items.iter().filter(|item| self.includes(item)) {
            text.extend_from_slice(&item.text);
        }
        if read.omitted > 0 {
            let omitted = format!("event: omitted\ndata: {{\"events\":{}}}\n\n", read.omitted);
            text.extend_from_slice(omitted.as_bytes());
        }
        text.freeze()
    }
}

async fn watch(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let after = call.headers.get(LAST_EVENT_ID);
    let after = after.filter(|value| !value.is_empty()).map(|value| {
        let position = value.to_str().ok().and_then(|text| text.parse().ok());
        position.ok_or_else(|| {
            AdminError::invalid("Last-Event-ID", "is not the id of an event of this stream")
        })
    });
    let after: Option<TailPosition> = after.transpose()?;
    let filter = TailFilter::parse(&call, call.actor()?);
    let subscription = call.app.tail.subscribe(after).await?;
    let first = match subscription.missed {
        Some(missed) => filter.render(&missed),
        None => Bytes::from_static(RESET.as_bytes()),
    };
    let start = Instant::now();
    let watcher = Watcher {
        stopping: call.app.stopping.clone(),
        reads: subscription.reads,
        filter,
        // A comment is sent first, so that the client knows at once that it is connected.
        ready: VecDeque::from([Bytes::from_static(b": connected\n\n"), first]),
        heartbeat: interval_at(start + HEARTBEAT, HEARTBEAT),
        check: interval_at(start + CHECK_INTERVAL, CHECK_INTERVAL),
        app: call.app,
        headers: call.headers,
    };
    let events = stream::unfold(watcher, async |mut watcher| {
        let text = watcher.next().await?;
        Some((Ok::<_, Infallible>(text), watcher))
    });
    let body = Body::from_stream(events);
    let (name, value) = NO_BUFFERING;
    Ok(Reply::stream("text/event-stream", body).header(name, value))
}

struct Watcher {
    app: Arc<App>,
    headers: HeaderMap,
    filter: TailFilter,
    reads: broadcast::Receiver<Arc<TailRead>>,
    ready: VecDeque<Bytes>,
    heartbeat: tokio::time::Interval,
    check: tokio::time::Interval,
    stopping: CancellationToken,
}

impl Watcher {
    /// The next piece of the stream. `None` ends the stream: the gateway stops, the caller may no longer watch or cannot be authenticated, or it
    /// reads too slowly. A client that reconnects resumes.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(text) = self.ready.pop_front() {
                if !text.is_empty() {
                    return Some(text);
                }
            }
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return None,
                _ = self.check.tick() => {
                    let actor = authenticate(&self.app, &Method::GET, &self.headers).await.ok()?;
                    let may_read = |scope| actor.scopes.contains(scope);
                    self.filter.tasks &= may_read(Scope::TasksRead);
                    self.filter.chats &= may_read(Scope::ChatsRead);
                    if !self.filter.tasks && !self.filter.chats {
                        return None;
                    }
                }
                read = self.reads.recv() => self.ready.push_back(self.filter.render(&*read.ok()?)),
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}
