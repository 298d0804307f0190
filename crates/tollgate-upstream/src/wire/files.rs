//! Requests that carry reference images: JSON with base64 in it, and multipart forms. Neither holds a file in memory.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde_json::Value;
use tollgate_core::id;

use crate::egress::Parts;
use crate::provider::InputFile;
use crate::raster::Upload;

/// Places in a JSON text that files are put into while it is sent.
pub(crate) struct Slots {
    /// In every mark: no text of a client's can hold it.
    nonce: String,
    files: Vec<(PathBuf, u64)>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self {
            nonce: id::short_id("@slot-"),
            files: Vec::new(),
        }
    }

    /// What stands for the file's base64 in a string.
    pub(crate) fn base64(&mut self, file: &InputFile) -> String {
        self.files.push((file.path.clone(), file.bytes));
        format!("{}-{}@", self.nonce, self.files.len() - 1)
    }

    /// What stands for the file as a `data:` URI.
    pub(crate) fn data_uri(&mut self, file: &InputFile) -> String {
        let media_type = file.format.media_type();
        format!("data:{media_type};base64,{}", self.base64(file))
    }

    /// What stands for the picture as a `data:` URI.
    pub(crate) fn picture(&mut self, picture: &Upload<'_>) -> String {
        match picture {
            Upload::File(file) => self.data_uri(file),
            Upload::Bytes(bytes, format) => {
                let media_type = format.media_type();
                format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
            }
        }
    }

    /// `json` with the files in their places. A place that stands nowhere in it is left out.
    pub(crate) fn fill(self, json: &Value) -> Parts {
        let text = json.to_string();
        let mut parts = Parts::new();
        let mark = format!("{}-", self.nonce);
        let mut pieces = text.split(&mark);
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
pub(crate) struct Form {
    boundary: String,
    parts: Parts,
}

impl Form {
    pub(crate) fn new() -> Self {
        Self {
            boundary: id::short_id("tollgate-"),
            parts: Parts::new(),
        }
    }

    /// Adds a text field. `name` is ours.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        let head = format!(
            "--{}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n",
            self.boundary
        );
        self.parts.text(head);
    }

    /// Adds a file field. `name` and `file_name` are ours.
    pub(crate) fn file(&mut self, name: &str, file_name: &str, media_type: &str, file: &InputFile) {
        self.file_head(name, file_name, media_type);
        self.parts.file(&file.path, file.bytes);
        self.parts.text("\r\n");
    }

    /// Adds a picture as a file field, named after its format. `name` and `stem` are ours.
    pub(crate) fn picture(&mut self, name: &str, stem: &str, picture: &Upload<'_>) {
        let format = picture.format();
        let file_name = format!("{stem}.{}", format.extension());
        match picture {
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

    /// The body, and its content type.
    pub(crate) fn finish(mut self) -> (HeaderValue, Parts) {
        self.parts.text(format!("--{}--\r\n", self.boundary));
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        let content_type = HeaderValue::try_from(content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"));
        (content_type, self.parts)
    }
}
