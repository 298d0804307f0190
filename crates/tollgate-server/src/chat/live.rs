//! A reply that is streamed: pieces go on as they come, the end waits for the charge.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tollgate_chat::hub::{Event, Fold};
use tollgate_chat::{
    Garbled, Rendering, StreamForward, StreamReader, StreamWriter, WireError, custom_tool,
    json_tool,
};
use tollgate_upstream::egress::EgressError;
use tollgate_upstream::{Channel, ChatBody, ChatError, ChatErrorKind};

use super::bill::{Bill, Delivered};
use super::mount::Mount;
use super::prepare::Prepared;
use super::refused::Refused;
use super::whole::name_back;
use crate::routing::Seat;

/// Silence after which a keep-alive is sent. Some clients give up after 20 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How pieces become the client's.
pub enum Flow {
    /// Both sides speak the same format.
    Forward(Box<dyn StreamForward>),
    /// Through the hub.
    Translate(Box<Translation>),
}

/// Reads one format and writes another.
pub struct Translation {
    /// The upstream's side.
    reader: Box<dyn StreamReader>,
    /// The client's side.
    writer: Box<dyn StreamWriter>,
    /// Tool names to change back.
    renamed: Vec<(String, String)>,
    /// Undoes the tool that stands in for JSON output.
    json_tool: Option<json_tool::Undo>,
    /// Undoes the functions that stand in for free-text tools.
    custom_tools: Option<custom_tool::Undo>,
    /// Gathers tool calls with their signatures, for [`super::memory`].
    fold: Fold,
    events: Vec<Event>,
    delivered: Delivered,
}

impl Translation {
    fn write_events(&mut self, out: &mut Vec<u8>) {
        let mut events = std::mem::take(&mut self.events);
        if let Some(undo) = &mut self.json_tool {
            undo.events(&mut events);
        }
        for event in &mut events {
            if let Event::ToolStart { name, .. } = event {
                name_back(&self.renamed, name);
            }
        }
        if let Some(undo) = &mut self.custom_tools {
            undo.events(&mut events);
        }
        for event in &events {
            match event {
                Event::Text { text, .. }
                | Event::Refusal { text, .. }
                | Event::Reasoning { text, .. } => {
                    self.delivered.text_bytes += text.len() as u64;
                }
                Event::ToolArguments { json, .. } => self.delivered.text_bytes += json.len() as u64,
                Event::Usage(usage)
                | Event::Start {
                    usage: Some(usage), ..
                } => self.delivered.usage = Some(*usage),
                _ => {}
            }
            if worth_keeping(event) {
                self.fold.push(event);
            }
            self.writer.write(event, out);
        }
        events.clear();
        self.events = events;
    }
}

fn custom_tools(prepared: &Prepared) -> Option<custom_tool::Undo> {
    let names = &prepared.custom_tools;
    (!names.is_empty()).then(|| custom_tool::Undo::new(names.clone()))
}

/// Only tool calls and signed thinking are gathered: text is not, so a stream's memory stays small.
fn worth_keeping(event: &Event) -> bool {
    matches!(
        event,
        Event::ReasoningEnd { .. }
            | Event::Reasoning { .. }
            | Event::Redacted { .. }
            | Event::ToolStart { .. }
            | Event::ToolEnd { .. }
    )
}

impl Flow {
    /// From the upstream that `prepared` is for to the client at `mount`.
    pub fn new(mount: Mount, prepared: &Prepared, rendering: &Rendering<'_>) -> Self {
        if prepared.forward {
            return Self::Forward(mount.format.forward_stream(rendering));
        }
        Self::Translate(Box::new(Translation {
            reader: prepared.format.stream_reader(),
            writer: mount.format.stream_writer(rendering),
            renamed: prepared.renamed.clone(),
            json_tool: prepared.json_tool.as_deref().map(json_tool::Undo::new),
            custom_tools: custom_tools(prepared),
            fold: Fold::default(),
            events: Vec::new(),
            delivered: Delivered::default(),
        }))
    }

    /// Takes a piece of the upstream's stream; gives what the client gets for it.
    fn push(&mut self, bytes: Bytes) -> Result<Bytes, Garbled> {
        match self {
            Self::Forward(forward) => Ok(forward.push(bytes)?.now),
            Self::Translate(t) => {
                let mut out = Vec::new();
                let read = t.reader.push(&bytes, &mut t.events);
                t.write_events(&mut out);
                // What came before the fault is the client's; the fault is seen again at the next piece.
                match read {
                    Err(fault) if out.is_empty() => Err(fault),
                    _ => Ok(out.into()),
                }
            }
        }
    }

    /// The upstream's body ended.
    fn finish(&mut self) -> Result<Bytes, Garbled> {
        match self {
            Self::Forward(forward) => forward.finish().map(|()| Bytes::new()),
            Self::Translate(t) => {
                let mut out = Vec::new();
                let read = t.reader.finish(&mut t.events);
                t.write_events(&mut out);
                read?;
                Ok(out.into())
            }
        }
    }

    fn end(&mut self) -> Bytes {
        match self {
            Self::Forward(forward) => forward.end(),
            Self::Translate(t) => {
                let mut out = Vec::new();
                t.writer.end(&mut out);
                out.into()
            }
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Forward(forward) => forward.keep_alive(out),
            Self::Translate(t) => t.writer.keep_alive(out),
        }
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        match self {
            Self::Forward(forward) => forward.error(error, out),
            Self::Translate(t) => t.writer.error(error, out),
        }
    }

    fn delivered(&self, complete: bool) -> Delivered {
        match self {
            Self::Forward(forward) => Delivered {
                usage: forward.usage(),
                text_bytes: forward.text_bytes(),
                complete,
            },
            Self::Translate(t) => Delivered {
                complete,
                ..t.delivered
            },
        }
    }
}

/// A stream that has begun: its first piece is there.
pub struct Begun {
    body: ChatBody,
    flow: Flow,
    first: Bytes,
    /// The upstream's body is over already.
    over: bool,
}

/// Waits for the first piece that is the client's, so that a stream that begins with an error can still go to another channel.
pub async fn begin(
    mut body: ChatBody,
    mut flow: Flow,
    channel: &Channel,
    patience: Duration,
) -> Result<Begun, ChatError> {
    loop {
        let chunk = timeout(patience, body.chunk())
            .await
            .unwrap_or(Err(EgressError::TimedOut(patience)));
        let Some(chunk) = chunk.map_err(|e| ChatError::from(&e))? else {
            let first = flow.finish().map_err(|fault| garbled(channel, fault))?;
            return Ok(Begun {
                body,
                flow,
                first,
                over: true,
            });
        };
        let first = flow.push(chunk).map_err(|fault| garbled(channel, fault))?;
        if !first.is_empty() {
            return Ok(Begun {
                body,
                flow,
                first,
                over: false,
            });
        }
    }
}

/// What [`Begun::into_body`] needs beside the stream.
pub struct Sending {
    /// What is to be paid.
    pub bill: Bill,
    /// The room on the channel, kept until the end.
    pub seat: Seat,
    /// Where the client asked.
    pub mount: Mount,
    /// The user, for [`super::memory`].
    pub user_id: String,
}

impl Begun {
    /// The body that the client reads. Dropped early, it ends the upstream's call and settles for what was delivered.
    pub fn into_body(self, mut sending: Sending) -> Body {
        sending.bill.delivered = self.flow.delivered(false);
        // Boxed: the state travels in and out of a future for every piece.
        let live = Box::new(Live {
            body: Some(self.body),
            flow: self.flow,
            sending,
            ready: Some(self.first),
            over: self.over,
            done: false,
            spoken: Instant::now(),
            alarm: None,
        });
        Body::from_stream(stream::unfold(live, |mut live| async move {
            let piece = live.next().await?;
            Some((Ok::<_, Infallible>(piece), live))
        }))
    }
}

struct Live {
    /// None once it is over: drops the connection to the upstream.
    body: Option<ChatBody>,
    flow: Flow,
    sending: Sending,
    ready: Option<Bytes>,
    over: bool,
    done: bool,
    /// When the client last got something.
    spoken: Instant,
    /// One timer for the whole stream, set again only when it has gone off: pieces that come in time cost it nothing.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// Ready once it is `until`.
async fn silence(mut alarm: Pin<&mut Sleep>, until: Instant) {
    loop {
        alarm.as_mut().await;
        if alarm.deadline() >= until {
            return;
        }
        alarm.as_mut().reset(until);
    }
}

impl Live {
    /// The next piece for the client; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.ready.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        while !self.done {
            if self.over {
                return Box::pin(self.end()).await;
            }
            let body = self.body.as_mut()?;
            let quiet_until = self.spoken + KEEP_ALIVE;
            let alarm = self
                .alarm
                .get_or_insert_with(|| Box::pin(sleep_until(quiet_until)));
            let chunk = tokio::select! {
                biased;
                chunk = body.chunk() => chunk,
                () = silence(alarm.as_mut(), quiet_until) => {
                    self.spoken = Instant::now();
                    let mut out = Vec::new();
                    self.flow.keep_alive(&mut out);
                    if out.is_empty() {
                        continue;
                    }
                    return Some(out.into());
                }
            };
            self.spoken = Instant::now();
            let piece = match chunk {
                Ok(Some(chunk)) => self.flow.push(chunk),
                Ok(None) => {
                    self.over = true;
                    self.flow.finish()
                }
                Err(e) => return Box::pin(self.fail(ChatError::from(&e))).await,
            };
            match piece {
                Ok(piece) => {
                    self.sending.bill.delivered = self.flow.delivered(false);
                    if !piece.is_empty() {
                        return Some(piece);
                    }
                }
                Err(fault) => {
                    return Box::pin(self.fail(garbled(&self.sending.seat.open.channel, fault)))
                        .await;
                }
            }
        }
        None
    }

    /// The good end: charged first, sent then.
    async fn end(&mut self) -> Option<Bytes> {
        (self.done, self.body) = (true, None);
        self.sending.seat.succeeded();
        self.sending.bill.delivered = self.flow.delivered(true);
        if let Flow::Translate(t) = &mut self.flow {
            for choice in &std::mem::take(&mut t.fold).reply().choices {
                self.sending
                    .bill
                    .app()
                    .memory
                    .keep(&self.sending.user_id, choice);
            }
        }
        match self.sending.bill.settle("done").await {
            Ok(_) => Some(self.flow.end()).filter(|end| !end.is_empty()),
            Err(error) => self.error(&Refused::from(error)),
        }
    }

    /// The upstream broke off: what was delivered is charged, the client is told in its format.
    async fn fail(&mut self, error: ChatError) -> Option<Bytes> {
        (self.done, self.body) = (true, None);
        tracing::warn!(channel = self.sending.seat.open.channel.name, error = %error, "a stream broke off");
        crate::relay::report(&self.sending.seat, self.sending.bill.model(), &error);
        self.sending
            .bill
            .attempt_failed(&self.sending.seat.open.channel.name, &error);
        let settled = self.sending.bill.settle("cut").await;
        let error = ChatError {
            kind: ChatErrorKind::Unavailable,
            ..error
        };
        self.error(&settled.map_or_else(Refused::from, |_| Refused::upstream(error)))
    }

    fn error(&mut self, refused: &Refused) -> Option<Bytes> {
        let mut out = Vec::new();
        self.flow.error(&refused.wire(self.sending.mount), &mut out);
        Some(Bytes::from(out)).filter(|out| !out.is_empty())
    }
}

/// A reply that is none of its format, or that carries an error.
pub fn garbled(channel: &Channel, fault: Garbled) -> ChatError {
    match fault {
        Garbled::Upstream(words) => ChatError::told(channel, None, words),
        other => {
            tracing::warn!(channel = channel.name, error = %other, "an upstream's answer is garbled");
            let message = "the upstream's answer broke off or was malformed";
            ChatError::ours(ChatErrorKind::Unavailable, message)
        }
    }
}
