//! Input images of a submission ([`Input`]) and of a job ([`InputImage`]).

use serde::{Deserialize, Serialize};

use crate::image::metadata::ImageMetadata;

/// A reference image or mask of a submission, not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The request field that contained it, such as `image_urls[2]`.
    pub field: String,
    /// The use of the image.
    pub role: InputRole,
    /// The location of the image's bytes.
    pub source: InputSource,
}

/// The use of an input image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRole {
    /// The reference image with that index, from 0.
    Reference(usize),
    /// The inpainting mask.
    Mask,
}

/// The location of a submission's input image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// At an http or https URL of at most 8192 bytes.
    Url(String),
    /// In the request itself, as a data URI or base64.
    Data {
        /// The contents of its header; not checked against the family's limits yet
        /// ([`AnyFamily::check_input_image`](crate::AnyFamily::check_input_image)).
        metadata: ImageMetadata,
        /// The file.
        bytes: Vec<u8>,
    },
}

/// The location of a job's input image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// At an http or https URL from the client, fetched through the egress guard when the task runs.
    Url(String),
    /// In the gateway's storage under that file name: an upload, or the bytes of a data URI.
    Stored(String),
}

/// A reference image or mask of a job. Stored as JSON with the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputImage {
    /// The request field that contained it, such as `image_urls[2]`, for error messages.
    pub field: String,
    /// The location of the image's bytes.
    pub source: ImageSource,
}
