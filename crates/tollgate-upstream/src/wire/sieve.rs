//! Answers in JSON that hold files in base64: the files are decoded while they come, and what is left is read as JSON. No
//! answer is held in memory with its base64.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf as _, Bytes};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderMap, StatusCode};

use super::{Answer, Ask, Wire, ask, read_some, results};
use crate::egress::ResponseBody;
use crate::provider::{ProviderError, ProviderErrorKind};

/// Most bytes of an answer beside its files.
const TEXT_MAX: usize = 4 * 1024 * 1024;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An answer whose files are taken out while it is read.
pub(crate) struct Sieve {
    status: StatusCode,
    headers: HeaderMap,
    /// None where it is a refusal, which is read already.
    body: Option<ResponseBody>,
    /// Whether the request made something: [`super::lost`].
    creates: bool,
    scan: Scan,
    /// What came and was not looked at yet.
    ahead: Bytes,
}

/// An answer without its files: where the file number N was, stands the string `N`.
pub(crate) struct Sifted {
    pub(crate) answer: Answer,
    pub(crate) files: Vec<Bytes>,
}

impl Wire {
    /// Asks and reads the whole answer; its files may be `max` bytes together. For answers of which the end tells which of
    /// their files are results.
    pub(crate) async fn sift(
        &self,
        ask: Ask,
        keys: &'static [&'static str],
        max: usize,
    ) -> Result<Sifted, ProviderError> {
        let creates = ask.creates;
        let sieve = self.sieve(ask, keys).await?;
        let sifted = sieve.sifted(max).await;
        sifted.map_err(|error| match creates {
            true => results::made(error),
            false => error,
        })
    }

    /// Asks. In the answer the strings that are members named `keys` are files.
    pub(crate) async fn sieve(
        &self,
        ask: Ask,
        keys: &'static [&'static str],
    ) -> Result<Sieve, ProviderError> {
        let creates = ask.creates;
        let (head, body) = self.open(ask).await?.into_parts();
        let mut scan = Scan::new(keys);
        let body = if head.status.is_success() {
            Some(body)
        } else {
            scan.text = read_some(body).await;
            None
        };
        Ok(Sieve {
            status: head.status,
            headers: head.headers,
            body,
            creates,
            scan,
            ahead: Bytes::new(),
        })
    }
}

impl Sieve {
    /// Reads up to the beginning of the next file; false at the end of the answer. What was not read of the file before is
    /// passed over.
    pub(crate) async fn next_file(&mut self) -> Result<bool, ProviderError> {
        while self.piece().await?.is_some() {}
        while self.fill().await? {
            let (used, found) = self.scan.text(&self.ahead);
            self.ahead.advance(used);
            if self.scan.text.len() > TEXT_MAX {
                return Err(too_large());
            }
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next piece of the file that has been begun; none at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, ProviderError> {
        while self.scan.in_file() {
            if !self.fill().await? {
                return Err(broken("ends within a file"));
            }
            let (used, piece) = self.scan.file(&self.ahead)?;
            self.ahead.advance(used);
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// The rest of the file that has been begun, as a stream of its own.
    pub(crate) fn into_stream(self) -> BoxStream<'static, Result<Bytes, ProviderError>> {
        stream::try_unfold(self, |mut sieve| async {
            let piece = sieve.piece().await?;
            Ok(piece.map(|piece| (piece, sieve)))
        })
        .boxed()
    }

    async fn sifted(mut self, max: usize) -> Result<Sifted, ProviderError> {
        let (mut files, mut bytes) = (Vec::new(), 0);
        while self.next_file().await? {
            let mut file = Vec::new();
            while let Some(piece) = self.piece().await? {
                bytes += piece.len();
                if bytes > max {
                    return Err(too_large());
                }
                file.extend_from_slice(&piece);
            }
            files.push(file.into());
        }
        let answer = self.rest();
        Ok(Sifted { answer, files })
    }

    /// What has been read beside files: the whole answer, once [`Sieve::next_file`] has said that there is no more.
    pub(crate) fn rest(self) -> Answer {
        Answer {
            status: self.status,
            headers: self.headers,
            body: self.scan.text.into(),
        }
    }

    /// Makes sure that there is something ahead; false at the end of the answer.
    async fn fill(&mut self) -> Result<bool, ProviderError> {
        if let Some(body) = self.body.as_mut().filter(|_| self.ahead.is_empty()) {
            let part = body.chunk().await;
            let part = part.map_err(|error| ask::lost(&error, self.creates))?;
            self.ahead = part.unwrap_or_default();
        }
        Ok(!self.ahead.is_empty())
    }
}

fn too_large() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Failed,
        "the upstream's answer is too large",
    )
}

fn broken(how: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Retryable,
        format!("the upstream's answer {how}"),
    )
}

/// Where in the JSON the scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between strings.
    Outside,
    /// In a string that stays.
    String,
    /// In one, behind a backslash.
    StringEscape,
    /// In a file.
    File,
    /// In a file, behind a backslash and that many hexadecimal digits; their value so far.
    FileEscape(u8, u32),
}

/// Goes through JSON part by part. It knows strings and nothing else: what is no JSON is seen when the rest is read.
struct Scan {
    keys: &'static [&'static str],
    place: Place,
    /// What stays.
    text: Vec<u8>,
    /// How many files there were.
    files: usize,
    /// Characters of a file's base64 that do not make whole bytes yet.
    carry: Vec<u8>,
}

impl Scan {
    fn new(keys: &'static [&'static str]) -> Self {
        Self {
            keys,
            place: Place::Outside,
            text: Vec::new(),
            files: 0,
            carry: Vec::new(),
        }
    }

    fn in_file(&self) -> bool {
        matches!(self.place, Place::File | Place::FileEscape(..))
    }

    /// Takes text until a file begins. How much was used, and whether one has begun.
    fn text(&mut self, part: &[u8]) -> (usize, bool) {
        for (at, &byte) in part.iter().enumerate() {
            self.text.push(byte);
            self.place = match (self.place, byte) {
                (Place::Outside, b'"') if self.is_file_next() => {
                    let number = self.files.to_string();
                    self.text.extend_from_slice(number.as_bytes());
                    self.files += 1;
                    self.place = Place::File;
                    return (at + 1, true);
                }
                (Place::Outside, b'"') | (Place::StringEscape, _) => Place::String,
                (Place::String, b'"') => Place::Outside,
                (Place::String, b'\\') => Place::StringEscape,
                (place, _) => place,
            };
        }
        (part.len(), false)
    }

    /// Whether the string whose opening quote has just been taken is a member of one of the keys.
    fn is_file_next(&self) -> bool {
        let before = self.text[..self.text.len() - 1].trim_ascii_end();
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

    /// Takes base64 until the file ends. How much was used, and the bytes that it makes.
    fn file(&mut self, part: &[u8]) -> Result<(usize, Vec<u8>), ProviderError> {
        let mut used = 0;
        let mut ends = false;
        while used < part.len() && !ends {
            let rest = &part[used..];
            match self.place {
                Place::FileEscape(digits, value) => {
                    self.escape(digits, value, rest[0])?;
                    used += 1;
                }
                _ => {
                    let stop = rest.iter().position(|b| matches!(b, b'"' | b'\\'));
                    self.carry
                        .extend_from_slice(&rest[..stop.unwrap_or(rest.len())]);
                    used += stop.map_or(rest.len(), |stop| stop + 1);
                    match stop.map(|stop| rest[stop]) {
                        Some(b'"') => ends = true,
                        Some(_) => self.place = Place::FileEscape(0, 0),
                        None => {}
                    }
                }
            }
        }
        if ends {
            self.place = Place::Outside;
            self.text.push(b'"');
        }
        Ok((used, self.decode(ends)?))
    }

    /// One character of an escape: Google writes `=` as `\u003d`, others `/` as `\/`.
    fn escape(&mut self, digits: u8, value: u32, byte: u8) -> Result<(), ProviderError> {
        let digit = char::from(byte).to_digit(16);
        self.place = match (digits, byte, digit) {
            (0, b'u', _) => Place::FileEscape(1, 0),
            (0, b'n' | b'r' | b't', _) => Place::File,
            (0, _, _) => {
                self.carry.push(byte);
                Place::File
            }
            (1..=3, _, Some(digit)) => Place::FileEscape(digits + 1, value * 16 + digit),
            (_, _, Some(digit)) => {
                // What is no ASCII is no base64 either, and is seen when it is decoded.
                self.carry
                    .push(u8::try_from(value * 16 + digit).unwrap_or(b'!'));
                Place::File
            }
            (_, _, None) => return Err(broken("is not JSON")),
        };
        Ok(())
    }

    fn decode(&mut self, is_end: bool) -> Result<Vec<u8>, ProviderError> {
        for byte in &mut self.carry {
            *byte = match *byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => byte,
            };
        }
        let whole = match is_end {
            true => self.carry.len(),
            false => self.carry.len() / 4 * 4,
        };
        let bytes = BASE64.decode(&self.carry[..whole]);
        self.carry.drain(..whole);
        bytes.map_err(|_| broken("holds a file that is not base64"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of `text` that comes in parts of `step` bytes.
    fn sift(text: &str, step: usize) -> Result<(String, Vec<Vec<u8>>), ProviderError> {
        let mut scan = Scan::new(&["data", "b64"]);
        let mut files: Vec<Vec<u8>> = Vec::new();
        for part in text.as_bytes().chunks(step) {
            let mut part = part;
            while !part.is_empty() {
                if scan.in_file() {
                    let (used, piece) = scan.file(part)?;
                    files.last_mut().unwrap().extend(piece);
                    part = &part[used..];
                } else {
                    let (used, found) = scan.text(part);
                    files.extend(found.then(Vec::new));
                    part = &part[used..];
                }
            }
        }
        Ok((String::from_utf8(scan.text).unwrap(), files))
    }

    #[test]
    fn files_are_taken_out_and_the_rest_stays() {
        for (text, rest, files) in [
            (
                r#"{"a":{"data":"Y2F0"},"data" : "ZG9ncw=="}"#,
                r#"{"a":{"data":"0"},"data" : "1"}"#,
                &["cat", "dogs"][..],
            ),
            (
                r#"{"data":"ZG9ncw\u003d\u003D","b64":"ZG9ncw"}"#,
                r#"{"data":"0","b64":"1"}"#,
                &["dogs", "dogs"],
            ),
            (
                r#"{"text":"\"data\":\"Y2F0\"","c":"\\"}"#,
                r#"{"text":"\"data\":\"Y2F0\"","c":"\\"}"#,
                &[],
            ),
            (
                r#"["data","Y2F0",{"mydata":"Y2F0","data":null}]"#,
                r#"["data","Y2F0",{"mydata":"Y2F0","data":null}]"#,
                &[],
            ),
            (r#"{"data":""}"#, r#"{"data":"0"}"#, &[""]),
            ("no JSON \" at all", "no JSON \" at all", &[]),
        ] {
            for step in [1, 2, 3, 5, 1000] {
                let (left, found) = sift(text, step).unwrap();
                assert_eq!(left, rest, "{text} by {step}");
                let found: Vec<_> = found.iter().map(|f| str::from_utf8(f).unwrap()).collect();
                assert_eq!(found, files, "{text} by {step}");
            }
        }
    }

    #[test]
    fn either_alphabet_is_read() {
        for text in [
            r#"{"data":"+/+/"}"#,
            r#"{"data":"-_-_"}"#,
            r#"{"data":"+\/\u002b\u002F"}"#,
        ] {
            let (_, files) = sift(text, 3).unwrap();
            assert_eq!(files, [[0xfb, 0xff, 0xbf]], "{text}");
        }
    }

    #[test]
    fn what_is_no_base64_is_an_error() {
        for text in [
            r#"{"data":"Y2F0!!!!"}"#,
            r#"{"data":"Y2=0Y2F0"}"#,
            r#"{"data":"Y2F0\u00zz"}"#,
            r#"{"data":"Y"}"#,
            r#"{"data":"猫"}"#,
        ] {
            assert_eq!(
                sift(text, 4).unwrap_err().kind,
                ProviderErrorKind::Retryable,
                "{text}"
            );
        }
    }
}
