//! Tests of the model families through the public API of the crate.

mod cases;
mod catalogue;
mod image_limits;
mod image_metadata;
mod inline_images;
mod properties;
mod requests;
mod responses;
mod schemas_and_pages;
mod sizes;
mod webhooks;

use std::sync::LazyLock;

use serde_json::{Value, json};
use tollgate_core::{Adjustment, ApiError};
use tollgate_media::image::{ImageFormat, ImageMetadata, PixelSize};
use tollgate_media::{Catalogue, RequestLayout, Submission, TaskModel};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::new(&[]).unwrap());

/// The image, video or speech model with that id.
fn model(id: &str) -> &'static TaskModel {
    let endpoint = CATALOGUE.endpoint(id).expect(id);
    CATALOGUE.task_model(id, endpoint).unwrap()
}

/// Parses a request in the standard layout.
fn parse(model: &TaskModel, body: &Value, strict: bool) -> Result<Submission, ApiError> {
    let body = body.as_object().unwrap();
    tollgate_media::parse_request(model, RequestLayout::Standard, body, strict)
}

/// Parses a valid image or video request. A missing prompt is filled in.
fn submit(id: &str, body: &Value) -> Submission {
    let submission = parse(model(id), &with_prompt(body), false);
    submission.unwrap_or_else(|error| panic!("{id} {body}: {error}"))
}

/// The error message of an invalid image or video request. A missing prompt is filled in.
fn rejection(id: &str, body: &Value) -> String {
    let error = parse(model(id), &with_prompt(body), false).unwrap_err();
    assert!(error.message.len() <= 330, "too long: {error}");
    error.message
}

fn with_prompt(body: &Value) -> Value {
    let mut body = body.as_object().unwrap().clone();
    body.entry("prompt").or_insert_with(|| "a fox".into());
    body.into()
}

/// The adjustments as `[field, requested, used]`.
fn adjustment_values(adjustments: &[Adjustment]) -> Value {
    let all = adjustments.iter();
    all.map(|a| json!([a.field, a.requested, a.used])).collect()
}

/// The metadata of a PNG with alpha of that size.
fn metadata(width: u32, height: u32) -> ImageMetadata {
    ImageMetadata {
        format: ImageFormat::Png,
        size: PixelSize::new(width, height),
        has_alpha: true,
        bytes: 1000,
    }
}

/// An image file of that size.
fn image_file(format: ImageFormat, width: u32, height: u32, alpha: bool) -> Vec<u8> {
    let (colour, channels) = match alpha {
        true => (::image::ColorType::Rgba8, 4),
        false => (::image::ColorType::Rgb8, 3),
    };
    let pixels = vec![77; (width * height * channels) as usize];
    let encoder = ::image::ImageFormat::from_mime_type(format.media_type()).unwrap();
    let mut file = std::io::Cursor::new(Vec::new());
    ::image::write_buffer_with_format(&mut file, &pixels, width, height, colour, encoder).unwrap();
    file.into_inner()
}

/// A file as a data URI.
fn data_uri(media_type: &str, file: &[u8]) -> String {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(file);
    format!("data:{media_type};base64,{data}")
}
