//! Tests of the families of every kind through the crate's public face: SPEC.md's tables, row by row.

mod bad;
mod bad_wan;
mod callbacks;
mod catalogue;
mod documents;
mod facts;
mod good;
mod inputs;
mod properties;
mod settle;
mod shapes;
mod sizes;
mod speech;
mod video;
mod video_images;

use std::sync::LazyLock;

use serde_json::Value;
use tollgate_core::{Adjustment, ErrorKind};
use tollgate_media::catalogue::ImageModel;
use tollgate_media::image::{
    self, ImageFacts, ImageFormat, ImageJob, PixelSize, Source, Submission,
};
use tollgate_media::{Catalogue, Endpoint};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::new(&[]).unwrap());

/// A reference that no data URI is.
const URL: &str = "https://example.com/a.png";

/// That many references.
fn urls(count: usize) -> Value {
    vec![URL; count].into()
}

/// The model of that id, at whichever image endpoint.
fn model(id: &str) -> &'static ImageModel {
    let endpoint = CATALOGUE.endpoint(id).unwrap_or(Endpoint::ImageGenerations);
    CATALOGUE.image(id, endpoint).unwrap()
}

/// Reads a request that is good. A missing prompt is filled in.
fn submit(id: &str, body: &Value) -> Submission {
    let read = image::read(model(id), &with_prompt(body), false);
    read.unwrap_or_else(|error| panic!("{id} {body}: {error}"))
}

/// Reads a request that is bad: the message.
fn refuse(id: &str, body: &Value) -> String {
    match image::read(model(id), &with_prompt(body), false) {
        Ok(submission) => panic!("{id} {body} was taken: {:?}", submission.job()),
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

/// The job with every input under a made-up name.
fn job(submission: Submission) -> ImageJob {
    let sources = submission
        .inputs
        .iter()
        .map(|input| Source::Stored(input.field.clone()));
    let sources = sources.collect();
    submission.into_job(sources)
}

/// The adjustments as `(field, asked, used)`.
fn changes(adjustments: &[Adjustment]) -> Vec<(String, Value, Value)> {
    let all = adjustments.iter();
    all.map(|a| (a.field.clone(), a.asked.clone(), a.used.clone()))
        .collect()
}

/// Facts of a good PNG of that size.
fn facts(width: u32, height: u32) -> ImageFacts {
    ImageFacts {
        format: ImageFormat::Png,
        size: PixelSize::new(width, height),
        has_alpha: true,
        bytes: 1000,
    }
}

/// A real picture of that size as a file.
fn picture(format: ImageFormat, width: u32, height: u32, alpha: bool) -> Vec<u8> {
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
