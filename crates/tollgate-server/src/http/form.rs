//! Reads forms with files (`multipart/form-data`) piece by piece in bounded memory, whatever the client sends.
//!
//! `multer` continues to read as long as bytes are available, and searches for the end of a field's headers without a limit. So it receives one piece
//! at a time, and a bounded number of bytes between two results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use multer::{Constraints, Field, Multipart, SizeLimit};

use super::body::check_content_encoding;
use super::body_pace::{BodyPace, TooSlow};

/// Bytes that the parser may read without a result: a field's headers and a few pieces.
const MAX_WITHOUT_RESULT: usize = 256 * 1024;

/// A form that is being read.
pub struct Form<'a> {
    parser: Multipart<'a>,
    without_result: Arc<AtomicUsize>,
}

/// Why reading a form failed.
#[derive(Debug, PartialEq, Eq)]
pub enum FormError {
    /// The form is larger than allowed.
    TooLarge,
    /// It is not a form, is incomplete, is compressed, or was sent too slowly. Contains one sentence for the client.
    Malformed(String),
}

/// Why the body cannot be read further.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    TooSlow(TooSlow),
    #[error("the body broke off before its end")]
    Truncated,
    #[error("the form has something else where a field should begin")]
    NoField,
}

impl<'a> Form<'a> {
    /// A reader of the form in `body`, of at most `limit` bytes.
    ///
    /// # Errors
    /// [`FormError::Malformed`] if the body is compressed, or its `Content-Type` is no multipart form with a boundary.
    pub fn new(headers: &HeaderMap, body: &'a mut Body, limit: u64) -> Result<Self, FormError> {
        check_content_encoding(headers).map_err(|error| FormError::Malformed(error.message))?;
        let content_type = headers.get(header::CONTENT_TYPE);
        let content_type = content_type.map(|v| String::from_utf8_lossy(v.as_bytes()));
        let boundary = multer::parse_boundary(content_type.as_deref().unwrap_or_default());
        let boundary = boundary.map_err(|_| {
            let got = match &content_type {
                Some(got) => format!("{:?}", got.chars().take(80).collect::<String>()),
                None => "none".to_owned(),
            };
            FormError::Malformed(format!(
                "`Content-Type` must be multipart/form-data with a boundary, got {got}"
            ))
        })?;
        let without_result = Arc::new(AtomicUsize::new(0));
        let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(limit));
        let pieces = body_stream(body, Arc::clone(&without_result));
        Ok(Self {
            parser: Multipart::with_constraints(pieces, boundary, constraints),
            without_result,
        })
    }

    /// Returns the next field, `None` after the last one. The previous field must have been dropped.
    pub async fn next_field(&mut self) -> Result<Option<Field<'a>>, FormError> {
        self.without_result.store(0, Ordering::Relaxed);
        self.parser.next_field().await.map_err(form_error)
    }

    /// Returns the next bytes of `field`, `None` at its end.
    pub async fn next_chunk(&mut self, field: &mut Field<'_>) -> Result<Option<Bytes>, FormError> {
        self.without_result.store(0, Ordering::Relaxed);
        field.chunk().await.map_err(form_error)
    }
}

/// The body as a stream of bytes. `without_result` counts the bytes since the parser's last result.
fn body_stream<'a>(
    body: &'a mut Body,
    without_result: Arc<AtomicUsize>,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'a {
    stream::unfold(
        (body, without_result, BodyPace::start()),
        |(body, without_result, mut pace)| async move {
            // The stream is pending once before each piece, so that the parser handles the bytes that it has before it reads more.
            tokio::task::yield_now().await;
            loop {
                let piece = match pace.wait(body.frame()).await {
                    Err(why) => Err(BodyError::TooSlow(why)),
                    Ok(None) => return None,
                    Ok(Some(Err(_))) => Err(BodyError::Truncated),
                    Ok(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) => Ok(data),
                        // Trailers have no meaning in a form.
                        Err(_) => continue,
                    },
                };
                let len = piece.as_ref().map_or(0, Bytes::len);
                let piece = match without_result.fetch_add(len, Ordering::Relaxed) {
                    before if before > MAX_WITHOUT_RESULT => Err(BodyError::NoField),
                    _ => piece,
                };
                pace.add(len);
                return Some((piece, (body, without_result, pace)));
            }
        },
    )
}

fn form_error(error: multer::Error) -> FormError {
    match error {
        multer::Error::StreamSizeExceeded { .. } => FormError::TooLarge,
        multer::Error::StreamReadFailed(error) => FormError::Malformed(error.to_string()),
        multer::Error::IncompleteFieldData { .. }
        | multer::Error::IncompleteHeaders
        | multer::Error::IncompleteStream => {
            FormError::Malformed("the form broke off before its closing boundary".to_owned())
        }
        _ => FormError::Malformed("the form has a field whose head cannot be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=XX-1";

    /// Returns name, file name and content of every field, or the error.
    async fn fields(
        content_type: &str,
        body: &[u8],
        piece: usize,
        limit: u64,
    ) -> Result<Vec<(String, String, Vec<u8>)>, FormError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        let pieces: Vec<_> = body
            .chunks(piece)
            .map(|p| Ok::<_, BodyError>(p.to_vec()))
            .collect();
        let mut body = Body::from_stream(stream::iter(pieces));
        let mut form = Form::new(&headers, &mut body, limit)?;
        let mut found = Vec::new();
        while let Some(mut field) = form.next_field().await? {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            let (name, file) = (text(field.name()), text(field.file_name()));
            let mut content = Vec::new();
            while let Some(chunk) = form.next_chunk(&mut field).await? {
                let len = chunk.len();
                assert!(len <= 4 * piece + 80, "{len} bytes at once of {piece}");
                content.extend_from_slice(&chunk);
            }
            found.push((name, file, content));
        }
        Ok(found)
    }

    fn part(name: &str, content: &str) -> String {
        format!(
            "--XX-1\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n{content}\r\n"
        )
    }

    #[tokio::test]
    async fn fields_are_the_same_in_pieces_of_every_size() {
        let long = "line\r\n--XX-0\r\n".repeat(500);
        let text = format!(
            "preamble\r\n{}{}--XX-1--\r\n",
            part("a", &long),
            part("b", "")
        );
        for piece in [1, 2, 7, 64, 1000, 100_000] {
            let found = fields(TYPE, text.as_bytes(), piece, 1_000_000)
                .await
                .unwrap();
            let field = |name: &str, content: &str| {
                (name.to_owned(), "f".to_owned(), content.as_bytes().to_vec())
            };
            assert_eq!(found, [field("a", &long), field("b", "")], "{piece}");
        }
    }

    #[tokio::test]
    async fn a_malformed_form_is_rejected_within_bounded_memory() {
        let malformed = |why: &str| Err(FormError::Malformed(why.to_owned()));
        for content_type in ["application/json", "multipart/form-data", "x"] {
            let no_boundary = format!(
                "`Content-Type` must be multipart/form-data with a boundary, got {content_type:?}"
            );
            assert_eq!(
                fields(content_type, b"", 1, 10).await,
                malformed(&no_boundary)
            );
        }
        let cut = "the form broke off before its closing boundary";
        let complete = format!("{}--XX-1--\r\n", part("a", "b"));
        for end in [0, 1, 20, complete.len() - 5] {
            assert_eq!(
                fields(TYPE, &complete.as_bytes()[..end], 9, 1000).await,
                malformed(cut),
                "{end}"
            );
        }
        let endless = "the form has something else where a field should begin";
        let junk = "x".repeat(1_000_000);
        assert_eq!(
            fields(TYPE, junk.as_bytes(), 1000, 10_000_000).await,
            malformed(endless)
        );
        let head = format!("--XX-1\r\nx: {junk}");
        assert_eq!(
            fields(TYPE, head.as_bytes(), 1000, 10_000_000).await,
            malformed(endless)
        );
        assert_eq!(
            fields(TYPE, complete.as_bytes(), 9, 50).await,
            Err(FormError::TooLarge)
        );
        let unread = "the form has a field whose head cannot be read";
        let head = "--XX-1\r\nbad head\r\n\r\n--XX-1--";
        assert_eq!(
            fields(TYPE, head.as_bytes(), 9, 500).await,
            malformed(unread)
        );
    }
}
