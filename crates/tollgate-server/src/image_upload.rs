//! Image uploads: streams the file of a form into storage without loading it into memory, checks it, and makes it visible.

use std::io::BufReader;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use http::{HeaderMap, header};
use multer::Field;
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::image::{ImageFormat, ImageMetadata, ImageMetadataError};
use tollgate_storage::files::{FileStorage, FileWriter, Visibility};

use crate::http::body::{drain, drain_unread};
use crate::http::errors;
use crate::http::form::{Form, FormError};

/// The largest file, in bytes.
const MAX_FILE: u64 = 20_971_520;
/// Bytes around the file: boundaries, headers, other fields.
const MAX_OVERHEAD: u64 = 1_048_576;
/// Fields that a form may have.
const MAX_FIELDS: usize = 32;
/// How long an upload may take: 20 MB at 25 kB a second.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Timeout of the gateway's own storage for storing a complete file.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// Pixels that an image may have, so that decoding it later stays within memory.
const MAX_PIXELS: u64 = 100_000_000;
/// Characters of a client's file name that are kept.
const MAX_NAME: usize = 255;
/// The accepted types, for error messages.
const TYPES: &str = "jpeg, png, gif, webp";

/// An uploaded image in storage.
#[derive(Debug)]
pub struct Upload {
    /// Its name in storage.
    pub name: String,
    /// The client's name of the file.
    pub filename: String,
    /// The format, recognized by the image's bytes.
    pub format: ImageFormat,
    /// The file's size.
    pub bytes: u64,
}

/// Reads the form in `body` and stores the image in its field `file` until `expires_at` (Unix seconds).
///
/// # Errors
/// 400 for a malformed form or a file that is not an accepted image, 413 for a file over the limit, 500 with `retry-after` if our storage takes no writes.
pub async fn store_upload(
    storage: &FileStorage,
    expires_at: i64,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Upload, ApiError> {
    if !storage.is_available().await {
        drain_unread(headers, body);
        return Err(storage_error("it takes no writes now"));
    }
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > MAX_FILE + MAX_OVERHEAD) {
        drain_unread(headers, body);
        return Err(too_large());
    }
    let received = tokio::time::timeout(
        UPLOAD_TIMEOUT,
        receive(storage, expires_at, headers, &mut body),
    );
    let received = received
        .await
        .unwrap_or_else(|_| Err(ApiError::invalid("the upload took too long")));
    // The body of a rejected upload is read to its end too: the connection stays usable, and the client receives the response.
    if !body.is_end_stream() {
        drain(body);
    }
    publish(storage, received?).await
}

/// A file that was received completely and not inspected yet.
struct Received {
    file: FileWriter,
    filename: Option<String>,
    bytes: u64,
}

/// Writes the first field `file` into storage and skips all others.
async fn receive(
    storage: &FileStorage,
    expires_at: i64,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<Received, ApiError> {
    let mut form = Form::new(headers, body, MAX_FILE + MAX_OVERHEAD).map_err(form_error)?;
    let mut received = None;
    for _ in 0..=MAX_FIELDS {
        let Some(mut field) = form.next_field().await.map_err(form_error)? else {
            let missing = || {
                ApiError::invalid(format!(
                    "the form has no field `file`: send the image in it ({TYPES})"
                ))
            };
            return received.ok_or_else(missing);
        };
        if field.name() == Some("file") && received.is_none() {
            let file = storage
                .create(Visibility::Public, expires_at, "bin")
                .await
                .map_err(storage_error)?;
            received = Some(write_file(&mut form, field, file).await?);
        } else {
            while form
                .next_chunk(&mut field)
                .await
                .map_err(form_error)?
                .is_some()
            {}
        }
    }
    Err(ApiError::invalid(format!(
        "the form has more than {MAX_FIELDS} fields"
    )))
}

async fn write_file(
    form: &mut Form<'_>,
    mut field: Field<'_>,
    mut file: FileWriter,
) -> Result<Received, ApiError> {
    let filename = field.file_name().and_then(sanitize_name);
    let mut bytes = 0;
    while let Some(chunk) = form.next_chunk(&mut field).await.map_err(form_error)? {
        bytes += chunk.len() as u64;
        if bytes > MAX_FILE {
            return Err(too_large());
        }
        file.write(&chunk).await.map_err(storage_error)?;
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

/// Checks the file and makes it visible under its name; a rejected file is deleted.
async fn publish(storage: &FileStorage, received: Received) -> Result<Upload, ApiError> {
    let Received {
        mut file,
        filename,
        bytes,
    } = received;
    let path = file.flush_to_path().await.map_err(storage_error)?;
    let read = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path)?;
        ImageMetadata::read_complete(BufReader::new(file), bytes)
    });
    let metadata = read.await.map_err(storage_error)?.map_err(|e| match e {
        ImageMetadataError::Io(e) => storage_error(e),
        ImageMetadataError::NotAnImage(why) => ApiError::invalid(format!(
            "field `file` must hold an image ({TYPES}), but {why}"
        )),
    })?;
    check_image(&metadata)?;
    file.set_extension(metadata.format.extension());
    let finished = tokio::time::timeout(FINISH_TIMEOUT, file.finish()).await;
    let finished = finished.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
    Ok(Upload {
        name: finished.map_err(|error| {
            // Further uploads fail at once, until a probe of the storage succeeds.
            storage.record_write_error(&error);
            storage_error(error)
        })?,
        filename: filename.unwrap_or_else(|| format!("image.{}", metadata.format.extension())),
        format: metadata.format,
        bytes,
    })
}

fn check_image(metadata: &ImageMetadata) -> Result<(), ApiError> {
    if metadata.format == ImageFormat::Bmp {
        let message = format!("field `file` is a BMP image, but the types are {TYPES}");
        return Err(ApiError::invalid(message));
    }
    if metadata.size.pixels() > MAX_PIXELS {
        return Err(ApiError::invalid(format!(
            "field `file` is an image of {} pixels, but at most {MAX_PIXELS} pixels in all are allowed",
            metadata.size
        )));
    }
    Ok(())
}

/// The client's file name without folders and control characters. `None` if nothing is left.
fn sanitize_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_NAME)
        .collect();
    let name = name.trim();
    (!name.is_empty() && name != "." && name != "..").then(|| name.to_owned())
}

fn form_error(error: FormError) -> ApiError {
    match error {
        FormError::TooLarge => too_large(),
        FormError::Malformed(why) => ApiError::invalid(why),
    }
}

fn too_large() -> ApiError {
    let message =
        format!("field `file` is too large: at most {MAX_FILE} bytes (20 MB) are allowed");
    ApiError::new(ErrorKind::TooLarge, message)
}

/// The error if storing failed: the cause is logged and not sent to the client.
fn storage_error(error: impl std::fmt::Display) -> ApiError {
    tracing::error!(%error, "cannot store an upload");
    ApiError {
        retry_after: Some(errors::STORAGE_RETRY_S),
        ..ApiError::new(ErrorKind::Internal, "failed to upload image")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tollgate_core::id;

    /// The start of a PNG file of that width and height.
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

    struct Fixture {
        storage: FileStorage,
        root: PathBuf,
    }

    impl Fixture {
        fn new() -> Self {
            let root = std::env::temp_dir().join(id::short_id("tollgate-uploads-"));
            let storage = FileStorage::open(&root, "https://gateway.example").unwrap();
            Self { storage, root }
        }

        async fn upload(&self, body: impl Into<Body>) -> Result<Upload, ApiError> {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::CONTENT_TYPE,
                "multipart/form-data; boundary=b".parse().unwrap(),
            );
            store_upload(&self.storage, 4_000_000_000, &headers, body.into()).await
        }

        /// Uploads `body` and returns the error, after a check that no file remains.
        async fn upload_error(&self, body: impl Into<Body>) -> ApiError {
            let error = self.upload(body).await.unwrap_err();
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

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[tokio::test]
    async fn the_first_file_is_stored_with_the_type_of_its_bytes() {
        let fixture = Fixture::new();
        let image = png(3, 2);
        let fields: &[(&str, &str, &[u8])] = &[
            ("note", "", b"hello"),
            ("file", "C:\\images/a b\u{fc}.gif", &image),
            ("file", "second.png", b"not an image"),
        ];
        let upload = fixture.upload(form(fields)).await.unwrap();
        assert_eq!(upload.filename, "a b\u{fc}.gif");
        assert_eq!(
            (upload.format, upload.bytes),
            (ImageFormat::Png, image.len() as u64)
        );
        assert!(upload.name.ends_with(".png"));
        let stored = fixture
            .storage
            .local_copy(Visibility::Public, &upload.name, 0)
            .await
            .unwrap();
        assert_eq!(std::fs::read(stored.path()).unwrap(), image);
    }

    #[tokio::test]
    async fn files_that_are_not_accepted_images_are_rejected() {
        let fixture = Fixture::new();
        let bmp = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0";
        let bmp = [&bmp[..], &[0; 40]].concat();
        let file = |content: &[u8]| form(&[("file", "a.png", content)]);
        let svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>";
        let none = "must hold an image (jpeg, png, gif, webp), but";
        for (body, expected) in [
            (file(b"GIF"), none),
            (file(svg), "must hold an image"),
            (file(&bmp), "BMP"),
            (file(b""), "is empty"),
            (file(&png(20_000, 5_001)), "20000x5001 pixels"),
            (form(&[("image", "a.png", &png(1, 1))]), "no field `file`"),
            (form(&[("a", "", &b"1"[..]); 33]), "more than 32 fields"),
            (form(&[("a", "", &b"1"[..]); 32]), "no field `file`"),
            (form(&[]), "no field `file`"),
            (file(&png(1, 1))[..90].to_vec(), "broke off"),
            (b"{}".to_vec(), "broke off"),
        ] {
            let error = fixture.upload_error(body).await;
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{error}");
            assert!(error.message.contains(expected), "{error}, not {expected}");
        }
    }

    #[test]
    fn file_names_lose_folders_and_control_characters() {
        for (name, expected) in [
            ("a.png", Some("a.png")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\x\\y.jpg", Some("y.jpg")),
            ("a\r\nb\0.png", Some("ab.png")),
            ("", None),
            ("..", None),
            ("dir/", None),
            (" \u{7} ", None),
        ] {
            assert_eq!(sanitize_name(name).as_deref(), expected, "{name:?}");
        }
        assert_eq!(
            sanitize_name(&"\u{fc}".repeat(300))
                .unwrap()
                .chars()
                .count(),
            255
        );
    }
}
