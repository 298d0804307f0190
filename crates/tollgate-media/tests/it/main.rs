//! Tests of the model families through the public API of the crate.

mod catalogue;
mod image_metadata;
mod inputs;
mod invalid_requests;
mod invalid_wan_requests;
mod properties;
mod reference_sizes;
mod responses;
mod schemas_and_pages;
mod sizes;
mod speech;
mod valid_requests;
mod video;
mod video_images;
mod webhooks;

use std::sync::LazyLock;

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError, ErrorKind};
use tollgate_media::image::{
    self, ImageFormat, ImageJob, ImageMetadata, ImageSource, PixelSize, Submission,
};
use tollgate_media::{AnyFamily, Catalogue, Endpoint, TaskModel};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::new(&[]).unwrap());

/// A reference image by URL.
const URL: &str = "https://example.com/a.png";

/// `count` reference images.
fn urls(count: usize) -> Value {
    vec![URL; count].into()
}

/// The image model with that id.
fn model(id: &str) -> &'static TaskModel {
    let endpoint = CATALOGUE.endpoint(id).unwrap_or(Endpoint::ImageGenerations);
    CATALOGUE.task_model(id, endpoint).unwrap()
}

/// The family of the image model with that id.
fn image_family(id: &str) -> &'static image::Family {
    match model(id).family {
        AnyFamily::Image(family) => family,
        _ => panic!("{id} is not an image model"),
    }
}

/// Parses a request for an image model.
fn parse(
    model: &TaskModel,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let AnyFamily::Image(family) = model.family else {
        panic!("{} is not an image model", model.name);
    };
    image::parse_request(&model.name, model.base_model, family, body, strict)
}

/// Parses a valid request. A missing prompt is filled in.
fn submit(id: &str, body: &Value) -> Submission {
    let submission = parse(model(id), &with_prompt(body), false);
    submission.unwrap_or_else(|error| panic!("{id} {body}: {error}"))
}

/// The error message of an invalid request. A missing prompt is filled in.
fn rejection(id: &str, body: &Value) -> String {
    match parse(model(id), &with_prompt(body), false) {
        Ok(submission) => panic!("{id} {body} was accepted: {:?}", submission.job()),
        Err(error) => {
            assert_eq!(
                error.kind,
                ErrorKind::InvalidRequest,
                "{id} {body}: {error}"
            );
            assert!(error.message.len() <= 330, "too long: {error}");
            assert!(!error.message.chars().any(char::is_control), "{error:?}");
            error.message
        }
    }
}

fn with_prompt(body: &Value) -> serde_json::Map<String, Value> {
    let mut body = body.as_object().unwrap().clone();
    body.entry("prompt").or_insert_with(|| "a fox".into());
    body
}

/// The job, with its inputs stored under the names of their fields.
fn job(submission: Submission) -> ImageJob {
    let sources = submission
        .inputs
        .iter()
        .map(|input| ImageSource::Stored(input.field.clone()));
    let sources = sources.collect();
    submission.into_job(sources)
}

/// The adjustments as `(field, asked, used)`.
fn adjustment_values(adjustments: &[Adjustment]) -> Vec<(String, Value, Value)> {
    let all = adjustments.iter();
    all.map(|a| (a.field.clone(), a.asked.clone(), a.used.clone()))
        .collect()
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
    let colour = if alpha {
        ::image::ColorType::Rgba8
    } else {
        ::image::ColorType::Rgb8
    };
    let pixels = vec![77; width as usize * height as usize * usize::from(colour.bytes_per_pixel())];
    let encoder = match format {
        ImageFormat::Png => ::image::ImageFormat::Png,
        ImageFormat::Jpeg => ::image::ImageFormat::Jpeg,
        ImageFormat::Webp => ::image::ImageFormat::WebP,
        ImageFormat::Gif => ::image::ImageFormat::Gif,
        ImageFormat::Bmp => ::image::ImageFormat::Bmp,
    };
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
