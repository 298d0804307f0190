//! Request bodies with reference images: JSON with inline base64, and multipart forms. Neither keeps a file in memory.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde_json::Value;
use tollgate_core::id;

use crate::egress::BodyParts;
use crate::provider::InputFile;
use crate::raster::Upload;

/// Placeholders in a JSON text that are replaced by the base64 of files while it is sent.
pub(crate) struct InlineFiles {
    /// A part of every placeholder: random, so that no text from a client contains it.
    nonce: String,
    files: Vec<(PathBuf, u64)>,
}

impl InlineFiles {
    pub(crate) fn new() -> Self {
        Self {
            nonce: id::short_id("@file-"),
            files: Vec::new(),
        }
    }

    /// A placeholder for the base64 of `file`.
    pub(crate) fn base64(&mut self, file: &InputFile) -> String {
        self.files.push((file.path.clone(), file.bytes));
        format!("{}-{}@", self.nonce, self.files.len() - 1)
    }

    /// A `data:` URI of `file`, with a placeholder for its base64.
    pub(crate) fn data_uri(&mut self, file: &InputFile) -> String {
        let media_type = file.format.media_type();
        format!("data:{media_type};base64,{}", self.base64(file))
    }

    /// A `data:` URI of `image`.
    pub(crate) fn image(&mut self, image: &Upload<'_>) -> String {
        match image {
            Upload::File(file) => self.data_uri(file),
            Upload::Bytes(bytes, format) => {
                let media_type = format.media_type();
                format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
            }
        }
    }

    /// The body: `json` with its placeholders replaced. Files whose placeholder is not in `json` are not sent.
    pub(crate) fn into_body(self, json: &Value) -> BodyParts {
        let text = json.to_string();
        let mut parts = BodyParts::new();
        let placeholder = format!("{}-", self.nonce);
        let mut pieces = text.split(&placeholder);
        if let Some(first) = pieces.next() {
            parts.text(first.to_owned());
        }
        for piece in pieces {
            let (index, rest) = piece.split_once('@').unwrap_or(("", piece));
            let file = index.parse().ok().and_then(|n: usize| self.files.get(n));
            if let Some((path, bytes)) = file {
                parts.base64(path, *bytes);
            }
            parts.text(rest.to_owned());
        }
        parts
    }
}

/// A `multipart/form-data` body.
pub(crate) struct MultipartForm {
    boundary: String,
    parts: BodyParts,
}

impl MultipartForm {
    pub(crate) fn new() -> Self {
        Self {
            boundary: id::short_id("tollgate-"),
            parts: BodyParts::new(),
        }
    }

    /// Adds a text field. `name` needs no escaping.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        let head = format!(
            "--{}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n",
            self.boundary
        );
        self.parts.text(head);
    }

    /// Adds a file field. `name` and `file_name` need no escaping.
    pub(crate) fn file(&mut self, name: &str, file_name: &str, media_type: &str, file: &InputFile) {
        self.file_head(name, file_name, media_type);
        self.parts.file(&file.path, file.bytes);
        self.parts.text("\r\n");
    }

    /// Adds an image as a file field named `stem` with the extension of its format. `name` and `stem` need no escaping.
    pub(crate) fn image(&mut self, name: &str, stem: &str, image: &Upload<'_>) {
        let format = image.format();
        let file_name = format!("{stem}.{}", format.extension());
        match image {
            Upload::File(file) => self.file(name, &file_name, format.media_type(), file),
            Upload::Bytes(bytes, _) => {
                self.file_head(name, &file_name, format.media_type());
                self.parts.text(bytes.clone());
                self.parts.text("\r\n");
            }
        }
    }

    fn file_head(&mut self, name: &str, file_name: &str, media_type: &str) {
        let head = format!(
            "--{}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\ncontent-type: {media_type}\r\n\r\n",
            self.boundary
        );
        self.parts.text(head);
    }

    /// The content type and the body.
    pub(crate) fn finish(mut self) -> (HeaderValue, BodyParts) {
        self.parts.text(format!("--{}--\r\n", self.boundary));
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        let content_type = HeaderValue::try_from(content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"));
        (content_type, self.parts)
    }
}
