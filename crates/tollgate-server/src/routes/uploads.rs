//! `POST /v1/uploads/images`: a picture streamed into storage, never whole in memory; answers its link.

use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, header};
use multer::Field;
use serde_json::json;
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::image::{FactsError, ImageFacts, ImageFormat, facts};

use crate::access::Caller;
use crate::app::App;
use crate::blobs::{BlobWriter, Blobs, Shelf};
use crate::http::body::{drain, drain_unread};
use crate::http::form::{Form, FormError};
use crate::http::reply::{self, Failure};

/// The largest file, in bytes (SPEC.md › Upload image).
const FILE_MAX: u64 = 20_971_520;
/// What may stand around the file: boundaries, headers, other fields.
const AROUND_MAX: u64 = 1_048_576;
/// Fields that a form may have.
const FIELDS_MAX: usize = 32;
/// How long an upload may take: 20 MB at 25 kB a second.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Pixels that an upload may have, so that whoever decodes it later stays within memory.
const PIXELS_MAX: u64 = 100_000_000;
/// Characters of a file name that are kept.
const NAME_MAX: usize = 255;
const TYPES: &str = "jpeg, png, gif, webp";

/// `POST /v1/uploads/images`. Every error comes in this endpoint's own envelope.
pub async fn image(
    app: State<Arc<App>>,
    caller: Result<Caller, Failure>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let _caller = match caller {
        Ok(caller) => caller,
        Err(failure) => {
            drain_unread(&headers, body).await;
            return Err(failure.for_upload());
        }
    };
    let now = app.clock.now();
    let expires_at = (now + app.config.expiry.long_ms()) / 1000;
    let upload = store(&app.blobs, expires_at, &headers, body)
        .await
        .map_err(Failure::upload)?;
    app.metrics.uploaded(upload.bytes);
    Ok(reply::json(&json!({
        "url": app.blobs.url(&app.public_url, &upload.name),
        "filename": upload.filename,
        "content_type": upload.format.media_type(),
        "bytes": upload.bytes,
        "created_at": now / 1000,
    })))
}

/// A picture that is in storage.
#[derive(Debug)]
struct Upload {
    /// Its name there.
    name: String,
    /// What the client calls it.
    filename: String,
    format: ImageFormat,
    bytes: u64,
}

/// Reads the form in `body` and keeps its picture until `expires_at` (Unix seconds).
async fn store(
    blobs: &Blobs,
    expires_at: i64,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Upload, ApiError> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > FILE_MAX + AROUND_MAX) {
        drain_unread(headers, body).await;
        return Err(too_large());
    }
    let received = tokio::time::timeout(PATIENCE, receive(blobs, expires_at, headers, &mut body));
    let received = received
        .await
        .unwrap_or_else(|_| Err(ApiError::invalid("the upload took too long")));
    // To the end, also of what was refused: the connection stays good, and the client sees the answer.
    if !body.is_end_stream() {
        drain(body).await;
    }
    keep(received?).await
}

/// A file that has come whole and is not looked at yet.
struct Received {
    file: BlobWriter,
    filename: Option<String>,
    bytes: u64,
}

/// Writes the first field `file` into storage and passes over all others.
async fn receive(
    blobs: &Blobs,
    expires_at: i64,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<Received, ApiError> {
    let mut form = Form::read(headers, body, FILE_MAX + AROUND_MAX).map_err(refused)?;
    let mut received = None;
    for _ in 0..FIELDS_MAX {
        let Some(mut field) = form.next_field().await.map_err(refused)? else {
            let missing = || {
                ApiError::invalid(format!(
                    "the form has no field `file`: send the image in it ({TYPES})"
                ))
            };
            return received.ok_or_else(missing);
        };
        if field.name() == Some("file") && received.is_none() {
            let file = blobs
                .create(Shelf::Public, expires_at, "bin")
                .await
                .map_err(failed)?;
            received = Some(write(&mut form, field, file).await?);
        } else {
            while form.chunk(&mut field).await.map_err(refused)?.is_some() {}
        }
    }
    Err(ApiError::invalid(format!(
        "the form has more than {FIELDS_MAX} fields"
    )))
}

async fn write(
    form: &mut Form<'_>,
    mut field: Field<'_>,
    mut file: BlobWriter,
) -> Result<Received, ApiError> {
    let filename = field.file_name().and_then(plain_name);
    let mut bytes = 0;
    while let Some(chunk) = form.chunk(&mut field).await.map_err(refused)? {
        bytes += chunk.len() as u64;
        if bytes > FILE_MAX {
            return Err(too_large());
        }
        file.write(&chunk).await.map_err(failed)?;
    }
    if bytes == 0 {
        return Err(ApiError::invalid(
            "field `file` is empty: send the image in it",
        ));
    }
    Ok(Received {
        file,
        filename,
        bytes,
    })
}

/// Looks at what came and shows it under its name, or lets go of it.
async fn keep(received: Received) -> Result<Upload, ApiError> {
    let Received {
        mut file,
        filename,
        bytes,
    } = received;
    let path = file.so_far().await.map_err(failed)?;
    let looked = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path)?;
        facts::read(BufReader::new(file), bytes)
    });
    let facts = looked.await.map_err(failed)?.map_err(|e| match e {
        FactsError::Io(e) => failed(e),
        FactsError::NotAnImage(why) => ApiError::invalid(format!(
            "field `file` must hold an image ({TYPES}), but {why}"
        )),
    })?;
    check(&facts)?;
    file.set_extension(facts.format.extension());
    Ok(Upload {
        name: file.finish().await.map_err(failed)?,
        filename: filename.unwrap_or_else(|| format!("image.{}", facts.format.extension())),
        format: facts.format,
        bytes,
    })
}

fn check(facts: &ImageFacts) -> Result<(), ApiError> {
    if facts.format == ImageFormat::Bmp {
        let message = format!("field `file` is a BMP image, but the types are {TYPES}");
        return Err(ApiError::invalid(message));
    }
    if facts.size.pixels() > PIXELS_MAX {
        return Err(ApiError::invalid(format!(
            "field `file` is an image of {} pixels, but at most {PIXELS_MAX} pixels in all are allowed",
            facts.size
        )));
    }
    Ok(())
}

/// The client's file name without folders and control characters; none where nothing is left.
fn plain_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .filter(|c| !c.is_control())
        .take(NAME_MAX)
        .collect();
    let plain = plain.trim();
    (!plain.is_empty() && plain != "." && plain != "..").then(|| plain.to_owned())
}

fn refused(error: FormError) -> ApiError {
    match error {
        FormError::TooLarge => too_large(),
        FormError::Broken(why) => ApiError::invalid(why),
    }
}

fn too_large() -> ApiError {
    let message =
        format!("field `file` is too large: at most {FILE_MAX} bytes (20 MB) are allowed");
    ApiError::new(ErrorKind::TooLarge, message)
}

/// Storage did not do its part: the log hears why, the client that it failed.
fn failed(error: impl std::fmt::Display) -> ApiError {
    tracing::error!(%error, "cannot store an upload");
    ApiError::new(ErrorKind::Internal, "failed to upload image")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tollgate_core::id;

    /// A PNG file's beginning that says how large the picture is.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 2, 0, 0, 0]);
        bytes.extend([0; 4]);
        bytes.extend(b"\0\0\0\0IDAT\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82");
        bytes
    }

    fn form(fields: &[(&str, &str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, file, content) in fields {
            let head = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
                 Content-Type: text/plain\r\n\r\n"
            );
            body.extend(head.as_bytes());
            body.extend(*content);
            body.extend(b"\r\n");
        }
        body.extend(b"--b--\r\n");
        body
    }

    struct Site {
        blobs: Blobs,
        root: PathBuf,
    }

    impl Site {
        fn new() -> Self {
            let root = std::env::temp_dir().join(id::short_id("tollgate-uploads-"));
            let blobs = Blobs::open(&root).unwrap();
            Self { blobs, root }
        }

        async fn send(&self, body: impl Into<Body>) -> Result<Upload, ApiError> {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::CONTENT_TYPE,
                "multipart/form-data; boundary=b".parse().unwrap(),
            );
            store(&self.blobs, 4_000_000_000, &headers, body.into()).await
        }

        /// The error of a form with this file, and that nothing of it is left.
        async fn refusal(&self, body: impl Into<Body>) -> ApiError {
            let error = self.send(body).await.unwrap_err();
            for folder in ["tmp", "public"] {
                assert_eq!(
                    std::fs::read_dir(self.root.join(folder)).unwrap().count(),
                    0,
                    "{error}"
                );
            }
            error
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[tokio::test]
    async fn the_first_file_is_kept_under_the_type_of_its_bytes() {
        let site = Site::new();
        let picture = png(3, 2);
        let fields: &[(&str, &str, &[u8])] = &[
            ("note", "", b"hello"),
            ("file", "C:\\pictures/a b\u{fc}.gif", &picture),
            ("file", "second.png", b"no picture"),
        ];
        let upload = site.send(form(fields)).await.unwrap();
        assert_eq!(upload.filename, "a b\u{fc}.gif");
        assert_eq!(
            (upload.format, upload.bytes),
            (ImageFormat::Png, picture.len() as u64)
        );
        assert!(upload.name.ends_with(".png"));
        let path = site.blobs.path(Shelf::Public, &upload.name, 0).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), picture);
    }

    #[tokio::test]
    async fn exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        let site = Site::new();
        let mut file = png(3, 2);
        file.resize(usize::try_from(FILE_MAX).unwrap() + 1, 0);
        assert_eq!(
            site.refusal(form(&[("file", "a", &file)])).await.kind,
            ErrorKind::TooLarge
        );
        file.pop();
        assert_eq!(
            site.send(form(&[("file", "a", &file)]))
                .await
                .unwrap()
                .bytes,
            FILE_MAX
        );
    }

    #[tokio::test]
    async fn what_is_no_picture_is_refused() {
        let site = Site::new();
        let bmp = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0";
        let bmp = [&bmp[..], &[0; 40]].concat();
        for (body, says) in [
            (
                form(&[("file", "a.png", b"GIF")]),
                "must hold an image (jpeg, png, gif, webp), but",
            ),
            (
                form(&[(
                    "file",
                    "a.png",
                    b"<svg xmlns='http://www.w3.org/2000/svg'/>",
                )]),
                "must hold an image",
            ),
            (form(&[("file", "a.png", &bmp)]), "BMP"),
            (form(&[("file", "a.png", b"")]), "is empty"),
            (
                form(&[("file", "a.png", &png(20_000, 5_001))]),
                "20000x5001 pixels",
            ),
            (form(&[("image", "a.png", &png(1, 1))]), "no field `file`"),
            (form(&[("a", "", &b"1"[..]); 40]), "more than 32 fields"),
            (form(&[]), "no field `file`"),
            (
                form(&[("file", "a.png", &png(1, 1))])[..90].to_vec(),
                "broke off",
            ),
            (b"{}".to_vec(), "broke off"),
        ] {
            let error = site.refusal(body).await;
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{error}");
            assert!(error.message.contains(says), "{error}, not {says}");
        }
    }

    #[test]
    fn file_names_are_cleaned() {
        for (name, plain) in [
            ("a.png", Some("a.png")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\x\\y.jpg", Some("y.jpg")),
            ("a\r\nb\0.png", Some("ab.png")),
            ("", None),
            ("..", None),
            ("dir/", None),
            (" \u{7} ", None),
        ] {
            assert_eq!(plain_name(name).as_deref(), plain, "{name:?}");
        }
        assert_eq!(
            plain_name(&"\u{fc}".repeat(300)).unwrap().chars().count(),
            255
        );
    }
}
