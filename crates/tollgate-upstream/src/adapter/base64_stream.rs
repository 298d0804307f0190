//! Decodes files in base64 from a JSON response while it arrives, so that no response is held in memory with its base64.
//!
//! The JSON without the files is kept and parsed at the end. docs/performance.md has the measurement against reading the complete response with
//! `serde_json`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf as _, Bytes};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderMap, StatusCode};

use super::http_request::{HttpRequest, HttpResponse, ProviderClient};
use super::http_request::{after_creation, read_error_body, transport_error};
use crate::egress::ResponseBody;
use crate::error::{ProviderError, UpstreamErrorKind};

/// Maximum size of a response without its files, in bytes.
const MAX_JSON_BYTES: usize = 4 * 1024 * 1024;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A response whose files are decoded while it is read.
pub(crate) struct Base64Stream {
    status: StatusCode,
    headers: HeaderMap,
    /// `None` for an error response, whose body has been read already.
    body: Option<ResponseBody>,
    /// Whether the request creates something, see [`HttpRequest::creating`].
    creates: bool,
    scanner: Scanner,
    /// The part of the current chunk that was not scanned yet.
    unscanned: Bytes,
}

/// A complete response without its files: file number N is replaced by the string `N`.
pub(crate) struct ParsedResponse {
    pub(crate) response: HttpResponse,
    pub(crate) files: Vec<Bytes>,
}

impl ProviderClient {
    /// Sends a request and reads the complete response, with at most `max_bytes` of files in memory. For responses of which only the end reveals
    /// which of their files are results.
    pub(crate) async fn send_and_extract_files(
        &self,
        request: HttpRequest,
        keys: &'static [&'static str],
        max_bytes: usize,
    ) -> Result<ParsedResponse, ProviderError> {
        let creates = request.creates;
        let stream = self.send_for_base64_stream(request, keys).await?;
        let parsed = stream.read_all(max_bytes).await;
        parsed.map_err(|error| match creates {
            true => after_creation(error),
            false => error,
        })
    }

    /// Sends a request. In its response the strings that are members named `keys` are files in base64.
    pub(crate) async fn send_for_base64_stream(
        &self,
        request: HttpRequest,
        keys: &'static [&'static str],
    ) -> Result<Base64Stream, ProviderError> {
        let creates = request.creates;
        let (head, body) = self.send_for_head(request).await?.into_parts();
        let mut scanner = Scanner::new(keys);
        let body = if head.status.is_success() {
            Some(body)
        } else {
            scanner.json = read_error_body(body).await;
            None
        };
        Ok(Base64Stream {
            status: head.status,
            headers: head.headers,
            body,
            creates,
            scanner,
            unscanned: Bytes::new(),
        })
    }
}

impl Base64Stream {
    /// Reads up to the beginning of the next file, skipping the unread part of the previous one. Returns false at the end of the response.
    pub(crate) async fn next_file(&mut self) -> Result<bool, ProviderError> {
        while self.piece().await?.is_some() {}
        while self.fill().await? {
            let (used, is_file_next) = self.scanner.scan_json(&self.unscanned);
            self.unscanned.advance(used);
            if self.scanner.json.len() > MAX_JSON_BYTES {
                return Err(too_large());
            }
            if is_file_next {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next decoded piece of the current file. `None` at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, ProviderError> {
        while self.scanner.is_in_file() {
            if !self.fill().await? {
                return Err(malformed("ends within a file"));
            }
            let (used, piece) = self.scanner.decode_file(&self.unscanned)?;
            self.unscanned.advance(used);
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// The unread part of the current file as a stream.
    pub(crate) fn into_stream(self) -> BoxStream<'static, Result<Bytes, ProviderError>> {
        stream::try_unfold(self, |mut stream| async {
            let piece = stream.piece().await?;
            Ok(piece.map(|piece| (piece, stream)))
        })
        .boxed()
    }

    async fn read_all(mut self, max_bytes: usize) -> Result<ParsedResponse, ProviderError> {
        let (mut files, mut bytes) = (Vec::new(), 0);
        while self.next_file().await? {
            let mut file = Vec::new();
            while let Some(piece) = self.piece().await? {
                bytes += piece.len();
                if bytes > max_bytes {
                    return Err(too_large());
                }
                file.extend_from_slice(&piece);
            }
            files.push(file.into());
        }
        let response = self.into_response();
        Ok(ParsedResponse { response, files })
    }

    /// The response without its files; complete after [`Base64Stream::next_file`] has returned false.
    pub(crate) fn into_response(self) -> HttpResponse {
        HttpResponse {
            status: self.status,
            headers: self.headers,
            body: self.scanner.json.into(),
        }
    }

    /// Reads the next chunk if nothing is unscanned. Returns false at the end of the response.
    async fn fill(&mut self) -> Result<bool, ProviderError> {
        if let Some(body) = self.body.as_mut().filter(|_| self.unscanned.is_empty()) {
            let chunk = body.chunk().await;
            let chunk = chunk.map_err(|error| transport_error(&error, self.creates))?;
            self.unscanned = chunk.unwrap_or_default();
        }
        Ok(!self.unscanned.is_empty())
    }
}

fn too_large() -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Failed,
        "the upstream's response is too large",
    )
}

fn malformed(how: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Unavailable,
        format!("the upstream's response {how}"),
    )
}

/// The position of the scanner in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside of strings.
    Outside,
    /// In a string that is not a file.
    String,
    /// In a string that is not a file, after a backslash.
    StringEscape,
    /// In a file.
    File,
    /// In a file, after a backslash and that many hexadecimal digits, with their value so far.
    FileEscape(u8, u32),
}

/// Scans JSON chunk by chunk. It only recognises strings; parsing the remaining JSON later shows whether it is valid.
struct Scanner {
    keys: &'static [&'static str],
    state: State,
    /// The JSON without its files.
    json: Vec<u8>,
    /// The number of files found so far.
    files: usize,
    /// Characters of base64 that were not decoded yet: fewer than four after [`Scanner::decode_file`].
    pending: Vec<u8>,
}

impl Scanner {
    fn new(keys: &'static [&'static str]) -> Self {
        Self {
            keys,
            state: State::Outside,
            json: Vec::new(),
            files: 0,
            pending: Vec::new(),
        }
    }

    fn is_in_file(&self) -> bool {
        matches!(self.state, State::File | State::FileEscape(..))
    }

    /// Scans until a file begins. Returns how many bytes were used, and whether a file begins there.
    fn scan_json(&mut self, chunk: &[u8]) -> (usize, bool) {
        for (at, &byte) in chunk.iter().enumerate() {
            self.json.push(byte);
            self.state = match (self.state, byte) {
                (State::Outside, b'"') if self.is_file_next() => {
                    let index = self.files.to_string();
                    self.json.extend_from_slice(index.as_bytes());
                    self.files += 1;
                    self.state = State::File;
                    return (at + 1, true);
                }
                (State::Outside, b'"') | (State::StringEscape, _) => State::String,
                (State::String, b'"') => State::Outside,
                (State::String, b'\\') => State::StringEscape,
                (state, _) => state,
            };
        }
        (chunk.len(), false)
    }

    /// Whether the string whose opening quote was scanned last is a member with one of the keys.
    fn is_file_next(&self) -> bool {
        let before = self.json[..self.json.len() - 1].trim_ascii_end();
        let Some(before) = before.strip_suffix(b":") else {
            return false;
        };
        let name = before.trim_ascii_end().strip_suffix(b"\"");
        name.is_some_and(|name| {
            let is_key = |key: &&str| {
                let start = name.strip_suffix(key.as_bytes());
                start.is_some_and(|start| start.ends_with(b"\""))
            };
            self.keys.iter().any(is_key)
        })
    }

    /// Decodes base64 until the file ends. Returns how many bytes were used, and the decoded bytes.
    fn decode_file(&mut self, chunk: &[u8]) -> Result<(usize, Vec<u8>), ProviderError> {
        let mut used = 0;
        let mut is_end = false;
        while used < chunk.len() && !is_end {
            let rest = &chunk[used..];
            match self.state {
                State::FileEscape(digits, value) => {
                    self.scan_escape(digits, value, rest[0])?;
                    used += 1;
                }
                _ => {
                    let stop = rest.iter().position(|b| matches!(b, b'"' | b'\\'));
                    self.pending
                        .extend_from_slice(&rest[..stop.unwrap_or(rest.len())]);
                    used += stop.map_or(rest.len(), |stop| stop + 1);
                    match stop.map(|stop| rest[stop]) {
                        Some(b'"') => is_end = true,
                        Some(_) => self.state = State::FileEscape(0, 0),
                        None => {}
                    }
                }
            }
        }
        if is_end {
            self.state = State::Outside;
            self.json.push(b'"');
        }
        Ok((used, self.decode_pending(is_end)?))
    }

    /// One character of an escape: Google writes `=` as `\u003d`, others `/` as `\/`.
    fn scan_escape(&mut self, digits: u8, value: u32, byte: u8) -> Result<(), ProviderError> {
        let digit = char::from(byte).to_digit(16);
        self.state = match (digits, byte, digit) {
            (0, b'u', _) => State::FileEscape(1, 0),
            (0, b'n' | b'r' | b't', _) => State::File,
            (0, _, _) => {
                self.pending.push(byte);
                State::File
            }
            (1..=3, _, Some(digit)) => State::FileEscape(digits + 1, value * 16 + digit),
            (_, _, Some(digit)) => {
                // A character outside ASCII is not base64: `!` makes the decoder report it.
                self.pending
                    .push(u8::try_from(value * 16 + digit).unwrap_or(b'!'));
                State::File
            }
            (_, _, None) => return Err(malformed("is not JSON")),
        };
        Ok(())
    }

    /// Decodes the pending characters, all of them at the end of a file, else whole groups of four.
    fn decode_pending(&mut self, is_end: bool) -> Result<Vec<u8>, ProviderError> {
        for byte in &mut self.pending {
            *byte = match *byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => byte,
            };
        }
        let length = match is_end {
            true => self.pending.len(),
            false => self.pending.len() / 4 * 4,
        };
        let bytes = BASE64.decode(&self.pending[..length]);
        self.pending.drain(..length);
        bytes.map_err(|_| malformed("holds a file that is not base64"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;

    /// The JSON and the files of `text` that arrives in chunks of `step` bytes.
    fn extract_files(text: &str, step: usize) -> Result<(String, Vec<Vec<u8>>), ProviderError> {
        let mut scanner = Scanner::new(&["data", "b64"]);
        let mut files: Vec<Vec<u8>> = Vec::new();
        for part in text.as_bytes().chunks(step) {
            let mut part = part;
            while !part.is_empty() {
                if scanner.is_in_file() {
                    let (used, piece) = scanner.decode_file(part)?;
                    files.last_mut().unwrap().extend(piece);
                    part = &part[used..];
                } else {
                    let (used, found) = scanner.scan_json(part);
                    files.extend(found.then(Vec::new));
                    part = &part[used..];
                }
            }
        }
        Ok((String::from_utf8(scanner.json).unwrap(), files))
    }

    #[test]
    fn files_are_decoded_and_the_rest_of_the_json_is_kept() {
        for (text, rest, files) in rows::<(String, String, Vec<String>)>("base64_files") {
            for step in [1, 2, 3, 5, 1000] {
                let (left, found) = extract_files(&text, step).unwrap();
                assert_eq!(left, rest, "{text} by {step}");
                let found: Vec<_> = found.iter().map(|f| str::from_utf8(f).unwrap()).collect();
                assert_eq!(found, files, "{text} by {step}");
            }
        }
    }

    #[test]
    fn the_url_safe_alphabet_is_decoded_too() {
        for text in [
            r#"{"data":"+/+/"}"#,
            r#"{"data":"-_-_"}"#,
            r#"{"data":"+\/\u002b\u002F"}"#,
        ] {
            let (_, files) = extract_files(text, 3).unwrap();
            assert_eq!(files, [[0xfb, 0xff, 0xbf]], "{text}");
        }
    }

    #[test]
    fn invalid_base64_is_an_error() {
        for text in [
            r#"{"data":"Y2F0!!!!"}"#,
            r#"{"data":"Y2=0Y2F0"}"#,
            r#"{"data":"Y2F0\u00zz"}"#,
            r#"{"data":"Y"}"#,
            r#"{"data":"猫"}"#,
        ] {
            assert_eq!(
                extract_files(text, 4).unwrap_err().kind,
                UpstreamErrorKind::Unavailable,
                "{text}"
            );
        }
    }
}
