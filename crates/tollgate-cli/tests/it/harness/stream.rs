//! A response that is read while it arrives: server-sent events, one after the other.

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;

use super::{Client, TIMEOUT};

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The `event:` line; empty if there is none.
    pub(crate) name: String,
    /// The `id:` line; empty if there is none.
    pub(crate) id: String,
    /// The `data:` lines.
    pub(crate) data: String,
}

impl Event {
    /// The data's JSON; null if it is not JSON, such as `[DONE]`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }
}

/// A response whose body has not been read yet. Dropping it closes the connection.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
    /// Whether the connection broke before the body's end.
    pub(crate) broken: bool,
}

impl Client {
    /// Sends a POST with a JSON body; the response is read as it arrives.
    pub(crate) async fn open(&self, path: &str, body: &Value) -> Stream {
        self.open_with(path, body, &[]).await
    }

    /// The same with more headers.
    pub(crate) async fn open_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Stream {
        let request = self.request(Method::POST, path);
        let request = request.header("content-type", "application/json");
        self.open_request(request, headers, body.to_string()).await
    }

    /// Sends a GET whose response is a stream.
    pub(crate) async fn watch(&self, path: &str, headers: &[(&str, &str)]) -> Stream {
        let request = self.request(Method::GET, path);
        self.open_request(request, headers, String::new()).await
    }

    async fn open_request(
        &self,
        mut request: http::request::Builder,
        headers: &[(&str, &str)],
        body: String,
    ) -> Stream {
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let response = tokio::time::timeout(TIMEOUT, self.http().request(request)).await;
        let (head, body) = response.expect("in time").expect("a response").into_parts();
        Stream {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            buffer: Vec::new(),
            broken: false,
        }
    }
}

impl Stream {
    /// The next chunk of the body; `None` at the end.
    pub(crate) async fn piece(&mut self) -> Option<Bytes> {
        loop {
            let frame = tokio::time::timeout(TIMEOUT, self.body.frame()).await;
            match frame.expect("a piece in time")? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Some(data),
                    _ => {}
                },
                Err(_) => {
                    self.broken = true;
                    return None;
                }
            }
        }
    }

    /// The next event; comments and blank lines are skipped. `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.buffered() {
                return Some(event);
            }
            let piece = self.piece().await?;
            // Some servers end lines with `\r\n`; JSON never contains a raw `\r`.
            self.buffer
                .extend(piece.iter().filter(|byte| **byte != b'\r'));
        }
    }

    /// All remaining events.
    pub(crate) async fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// The remaining body as text.
    pub(crate) async fn text(&mut self) -> String {
        while let Some(piece) = self.piece().await {
            self.buffer.extend_from_slice(&piece);
        }
        String::from_utf8(std::mem::take(&mut self.buffer)).expect("text")
    }

    fn buffered(&mut self) -> Option<Event> {
        loop {
            let end = self.buffer.windows(2).position(|two| two == b"\n\n")?;
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let block = String::from_utf8(block).expect("text");
            let mut event = Event {
                name: String::new(),
                id: String::new(),
                data: String::new(),
            };
            for line in block.lines() {
                if let Some(name) = line.strip_prefix("event: ") {
                    name.clone_into(&mut event.name);
                } else if let Some(id) = line.strip_prefix("id: ") {
                    id.clone_into(&mut event.id);
                } else if let Some(data) = line.strip_prefix("data: ") {
                    event.data.push_str(data);
                } else {
                    assert!(line.is_empty() || line.starts_with(':'), "{line:?}");
                }
            }
            if !event.data.is_empty() {
                return Some(event);
            }
        }
    }
}
