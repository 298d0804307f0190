//! Request bodies that consist of text and files, optionally in base64: files are read while they are sent, never held in memory.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt as _, ReadBuf};

/// Bytes of a file that are read at a time: a multiple of 3, so that only the last piece's base64 has padding.
const PIECE_BYTES: usize = 48 * 1024;

/// The body of a request: bytes, or [`BodyParts`] that are read while they are sent. Boxed to stay small, as connections hold
/// many of them.
pub type RequestBody = Either<Full<Bytes>, Pin<Box<BodyPartsStream>>>;

/// A request body of `bytes`.
pub fn body(bytes: impl Into<Bytes>) -> RequestBody {
    Either::Left(Full::new(bytes.into()))
}

impl From<BodyParts> for RequestBody {
    fn from(parts: BodyParts) -> Self {
        Self::Right(Box::pin(parts.into()))
    }
}

/// Builds a request body whose length is known before it is sent.
#[derive(Debug, Default)]
pub struct BodyParts {
    parts: VecDeque<Part>,
    bytes: u64,
}

#[derive(Debug)]
enum Part {
    Text(Bytes),
    File {
        path: PathBuf,
        first: u64,
        left: u64,
        base64: bool,
    },
}

impl BodyParts {
    /// An empty body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `text`.
    pub fn text(&mut self, text: impl Into<Bytes>) {
        let text = text.into();
        self.bytes += text.len() as u64;
        self.parts.push_back(Part::Text(text));
    }

    /// Appends the first `bytes` bytes of a file. Sending fails if the file is shorter when it is read.
    pub fn file(&mut self, path: impl Into<PathBuf>, bytes: u64) {
        self.file_part(path, 0, bytes);
    }

    /// Appends `bytes` bytes of a file from byte `first` on. Sending fails if the file is shorter when it is read.
    pub fn file_part(&mut self, path: impl Into<PathBuf>, first: u64, bytes: u64) {
        self.bytes += bytes;
        self.parts.push_back(Part::File {
            path: path.into(),
            first,
            left: bytes,
            base64: false,
        });
    }

    /// Appends the first `bytes` bytes of a file in base64 with padding.
    pub fn base64(&mut self, path: impl Into<PathBuf>, bytes: u64) {
        self.bytes += bytes.div_ceil(3) * 4;
        self.parts.push_back(Part::File {
            path: path.into(),
            first: 0,
            left: bytes,
            base64: true,
        });
    }

    /// The length of the body in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// A body while it is sent.
pub struct BodyPartsStream {
    parts: BodyParts,
    open: Option<OpenFile>,
}

struct OpenFile {
    file: FileState,
    left: u64,
    base64: bool,
    buffer: Vec<u8>,
    filled: usize,
}

enum FileState {
    Opening(Pin<Box<dyn Future<Output = io::Result<File>> + Send + Sync>>),
    Open(File),
}

impl From<BodyParts> for BodyPartsStream {
    fn from(parts: BodyParts) -> Self {
        Self { parts, open: None }
    }
}

impl Body for BodyPartsStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        loop {
            if let Some(open) = &mut this.open {
                match ready!(open.poll_piece(context)) {
                    Ok(Some(piece)) => {
                        this.parts.bytes = this.parts.bytes.saturating_sub(piece.len() as u64);
                        return Poll::Ready(Some(Ok(Frame::data(piece))));
                    }
                    Ok(None) => this.open = None,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
                continue;
            }
            match this.parts.parts.pop_front() {
                None => return Poll::Ready(None),
                Some(Part::Text(text)) if text.is_empty() => {}
                Some(Part::Text(text)) => {
                    this.parts.bytes = this.parts.bytes.saturating_sub(text.len() as u64);
                    return Poll::Ready(Some(Ok(Frame::data(text))));
                }
                Some(Part::File {
                    path,
                    first,
                    left,
                    base64,
                }) => {
                    this.open = Some(OpenFile {
                        file: FileState::Opening(Box::pin(open_at(path, first))),
                        left,
                        base64,
                        buffer: Vec::new(),
                        filled: 0,
                    });
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.open.is_none() && self.parts.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.bytes)
    }
}

/// Opens a file for reading from byte `first` on.
async fn open_at(path: PathBuf, first: u64) -> io::Result<File> {
    let mut file = File::open(path).await?;
    if first > 0 {
        file.seek(io::SeekFrom::Start(first)).await?;
    }
    Ok(file)
}

impl OpenFile {
    /// The next piece of the file. `None` at its end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(Ok(None));
        }
        if let FileState::Opening(opening) = &mut self.file {
            let file = ready!(opening.as_mut().poll(context))?;
            self.file = FileState::Open(file);
        }
        let FileState::Open(file) = &mut self.file else {
            return Poll::Ready(Ok(None));
        };
        let wanted = usize::try_from(self.left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        self.buffer.resize(wanted, 0);
        while self.filled < wanted {
            let mut rest = ReadBuf::new(&mut self.buffer[self.filled..]);
            ready!(Pin::new(&mut *file).poll_read(context, &mut rest))?;
            match rest.filled().len() {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => self.filled += read,
            }
        }
        self.left -= wanted as u64;
        self.filled = 0;
        let piece = if self.base64 {
            Bytes::from(STANDARD.encode(&self.buffer))
        } else {
            Bytes::from(std::mem::take(&mut self.buffer))
        };
        Poll::Ready(Ok(Some(piece)))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn sent(parts: BodyParts) -> Vec<u8> {
        let length = parts.len();
        let body = BodyPartsStream::from(parts);
        assert_eq!(body.size_hint().exact(), Some(length));
        let all = body.collect().await.unwrap().to_bytes();
        assert_eq!(all.len() as u64, length);
        all.to_vec()
    }

    #[tokio::test]
    async fn text_and_files_are_sent_in_order_with_a_content_length() {
        let folder = std::env::temp_dir();
        let path = folder.join(tollgate_core::id::short_id("tollgate-parts-"));
        for size in [
            0,
            1,
            2,
            3,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            PIECE_BYTES + 1,
            3 * PIECE_BYTES + 7,
        ] {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let mut parts = BodyParts::new();
            parts.text("{\"a\":\"");
            parts.base64(&path, size as u64);
            parts.text("\"}");
            parts.file(&path, size as u64);
            parts.file_part(&path, size as u64 / 3, size as u64 / 2);
            let encoded = STANDARD.encode(&bytes);
            let part = &bytes[size / 3..size / 3 + size / 2];
            let expected = [
                b"{\"a\":\"".as_slice(),
                encoded.as_bytes(),
                b"\"}",
                &bytes,
                part,
            ];
            assert_eq!(sent(parts).await, expected.concat(), "{size}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn a_missing_or_shorter_file_fails_the_body() {
        let path = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-parts-"));
        let mut parts = BodyParts::new();
        parts.file(&path, 5);
        assert!(BodyPartsStream::from(parts).collect().await.is_err());
        std::fs::write(&path, "four").unwrap();
        let mut parts = BodyParts::new();
        parts.file(&path, 5);
        assert!(BodyPartsStream::from(parts).collect().await.is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
