//! The log line of a request: written without the machinery of events, because every request can have one.

use std::fmt;
use std::io::{self, Write as _};
use std::net::IpAddr;

use jiff::Timestamp;
use tollgate_core::Amount;

use super::clock::Clock;

/// The contents of a request's log line.
#[derive(Debug, Clone)]
pub struct RequestLine<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its path, without the query, which may contain a key.
    pub path: &'a str,
    /// The response's status; 499 if the client left before it.
    pub status: u16,
    /// Microseconds until the response's head.
    pub micros: u128,
    /// Its id.
    pub request_id: &'a str,
    /// The id (not the secret) of its key.
    pub key_id: Option<&'a str>,
    /// The client's address. `None` if the request came over no connection.
    pub client: Option<IpAddr>,
    /// `None` if the request is not a chat that was recorded.
    pub chat: Option<ChatSummary<'a>>,
}

/// What a chat was charged for.
#[derive(Debug, Clone)]
pub struct ChatSummary<'a> {
    /// The model by the name that channels use.
    pub model: &'a str,
    /// The channel that responded. `None` if none did.
    pub channel: Option<&'a str>,
    /// Requests that were sent to channels.
    pub attempts: u32,
    /// Tokens of the prompt, cached ones too.
    pub input_tokens: u64,
    /// Generated tokens, reasoning too.
    pub output_tokens: u64,
    /// What was charged.
    pub cost: Amount,
    /// `done`, `cut`, `client_gone`, `failed`, …
    pub outcome: &'static str,
    /// Microseconds until the end of the response.
    pub total_micros: u128,
}

impl RequestLine<'_> {
    /// Writes the line as a JSON object.
    pub(super) fn write_json(&self, clock: &mut Clock, out: &mut Vec<u8>) -> io::Result<()> {
        let (mut status, mut micros) = (itoa::Buffer::new(), itoa::Buffer::new());
        out.extend(b"{\"timestamp\":\"");
        clock.write(Timestamp::now(), out)?;
        out.extend(b"\",\"level\":\"INFO\",\"method\":\"");
        out.extend(self.method.as_bytes());
        out.extend(b"\",\"path\":");
        serde_json::to_writer(&mut *out, &Shown(self.path))?;
        out.extend(b",\"status\":");
        out.extend(status.format(self.status).as_bytes());
        out.extend(b",\"us\":");
        out.extend(micros.format(self.micros).as_bytes());
        out.extend(b",\"request_id\":\"");
        out.extend(self.request_id.as_bytes());
        out.push(b'"');
        if let Some(client) = self.client {
            out.extend(b",\"client\":\"");
            write_address(client, out)?;
            out.push(b'"');
        }
        if let Some(key_id) = self.key_id {
            out.extend(b",\"key\":\"");
            out.extend(key_id.as_bytes());
            out.push(b'"');
        }
        if let Some(chat) = &self.chat {
            chat.write_json(out)?;
        }
        out.extend(b",\"target\":\"tollgate::request\"}\n");
        Ok(())
    }

    /// Writes the line as text; with the time unless `has_time` is false.
    pub(super) fn write_text(&self, has_time: bool, out: &mut Vec<u8>) -> io::Result<()> {
        if has_time {
            write!(out, "{:.6}  ", Timestamp::now())?;
        }
        let millis = self.micros as f64 / 1000.0;
        let Self {
            method,
            path,
            status,
            request_id,
            ..
        } = self;
        write!(
            out,
            "INFO {status} {method} {} {millis:.1} ms {request_id}",
            Shown(path)
        )?;
        if let Some(client) = self.client {
            write!(out, " from {client}")?;
        }
        if let Some(chat) = &self.chat {
            let ChatSummary {
                attempts,
                input_tokens,
                output_tokens,
                cost,
                outcome,
                ..
            } = chat;
            let (model, channel) = (Shown(chat.model), Shown(chat.channel.unwrap_or("none")));
            write!(
                out,
                " {model} by {channel}, attempts {attempts}, tokens {input_tokens}+{output_tokens}, cost {cost}, {outcome}"
            )?;
        }
        out.push(b'\n');
        Ok(())
    }
}

impl ChatSummary<'_> {
    fn write_json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend(b",\"model\":");
        serde_json::to_writer(&mut *out, &Shown(self.model))?;
        if let Some(channel) = self.channel {
            out.extend(b",\"channel\":");
            serde_json::to_writer(&mut *out, &Shown(channel))?;
        }
        let Self {
            attempts,
            input_tokens,
            output_tokens,
            cost,
            outcome,
            total_micros,
            ..
        } = self;
        let mut number = itoa::Buffer::new();
        out.extend(b",\"attempts\":");
        out.extend(number.format(*attempts).as_bytes());
        out.extend(b",\"input_tokens\":");
        out.extend(number.format(*input_tokens).as_bytes());
        out.extend(b",\"output_tokens\":");
        out.extend(number.format(*output_tokens).as_bytes());
        write!(out, ",\"cost\":{cost}")?;
        out.extend(b",\"outcome\":\"");
        out.extend(outcome.as_bytes());
        out.extend(b"\",\"total_us\":");
        out.extend(number.format(*total_micros).as_bytes());
        Ok(())
    }
}

/// Writes an address as `Display` does; an IPv4 address without the formatting machinery.
fn write_address(address: IpAddr, out: &mut Vec<u8>) -> io::Result<()> {
    let IpAddr::V4(v4) = address else {
        return write!(out, "{address}");
    };
    let mut number = itoa::Buffer::new();
    for (at, octet) in v4.octets().into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        out.extend(number.format(octet).as_bytes());
    }
    Ok(())
}

/// A client's text in a line: cut to 200 characters, without characters that could end the line.
struct Shown<'a>(&'a str);

impl Shown<'_> {
    /// Whether the text can be written unchanged.
    fn is_plain(&self) -> bool {
        self.0.len() <= 200 && self.0.bytes().all(|b| (b' '..=b'~').contains(&b))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::fmt::Write as _;
        if self.is_plain() {
            return f.write_str(self.0);
        }
        for c in self.0.chars().take(200) {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?
            } else {
                f.write_char(c)?
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Shown<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.is_plain() {
            true => s.serialize_str(self.0),
            false => s.collect_str(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_whatever_its_path() {
        let long = "x".repeat(300);
        let mut line = RequestLine {
            method: "GET",
            path: "/a\nb\u{1b}\"\\ü",
            status: 404,
            micros: 1234,
            request_id: "req_1",
            key_id: Some("key_1"),
            client: Some(IpAddr::from([203, 0, 113, 7])),
            chat: Some(ChatSummary {
                model: "m\n\"",
                channel: Some("a"),
                attempts: 2,
                input_tokens: 10,
                output_tokens: 20,
                cost: Amount::from_nanos(1_500_000),
                outcome: "done",
                total_micros: 5678,
            }),
        };
        let mut out = Vec::new();
        line.write_json(&mut Clock::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json["timestamp"].take().is_string());
        let expected = serde_json::json!({
            "timestamp": null, "level": "INFO", "method": "GET", "path": "/a\\nb\\u{1b}\"\\ü", "status": 404, "us": 1234,
            "request_id": "req_1", "client": "203.0.113.7", "key": "key_1", "model": "m\\n\"", "channel": "a", "attempts": 2,
            "input_tokens": 10, "output_tokens": 20, "cost": 0.0015, "outcome": "done", "total_us": 5678,
            "target": "tollgate::request",
        });
        assert_eq!(json, expected);

        line.path = &long;
        let mut out = Vec::new();
        line.write_text(false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let path = "x".repeat(200);
        let rest = "1.2 ms req_1 from 203.0.113.7 m\\n\" by a, attempts 2, tokens 10+20, cost 0.0015, done\n";
        assert_eq!(
            text,
            format!("INFO 404 GET /{path} {rest}").replacen("GET /x", "GET x", 1)
        );
    }
}
