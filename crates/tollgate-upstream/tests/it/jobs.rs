//! Builds jobs, input images and sizes from short descriptions.

use std::io::Cursor;
use std::path::PathBuf;

use image::{DynamicImage, Rgba, RgbaImage};
use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::Job;
use tollgate_media::image::size::Sizes;
use tollgate_media::image::{ImageFormat, PixelSize, families};
use tollgate_upstream::InputFile;

/// A job with the defaults replaced by `fields`. A size may be written `1280x720 16:9 720p`: pixels, ratio and tier, `-` for one that is not known.
pub(crate) fn job(kind: TaskKind, fields: &Map<String, Value>) -> Job {
    let mut job = match kind {
        TaskKind::Image => json!({
            "model": "m", "family": "f", "prompt": "a red boat", "n": 1, "output_format": "png",
            "size": "1024x1024 1:1 -",
        }),
        TaskKind::Video => json!({
            "model": "m", "family": "f", "prompt": "a red boat", "seconds": 5, "size": "1280x720 16:9 720p",
        }),
        TaskKind::Speech => {
            json!({ "model": "native-v3", "family": "native-v3", "text": "Hello." })
        }
    };
    let members = job.as_object_mut().expect("an object");
    members.extend(fields.clone());
    if let Some(text) = members.get("size").and_then(Value::as_str) {
        let size = size(kind, text);
        members.insert("size".to_owned(), size);
    }
    match kind {
        TaskKind::Image => Job::Image(serde_json::from_value(job).unwrap()),
        TaskKind::Video => Job::Video(serde_json::from_value(job).unwrap()),
        TaskKind::Speech => Job::Speech(serde_json::from_value(job).unwrap()),
    }
}

fn size(kind: TaskKind, text: &str) -> Value {
    let parts: Vec<Option<&str>> = text.split(' ').map(|p| (p != "-").then_some(p)).collect();
    let pixels = parts[0].and_then(|pixels| pixels.split_once('x'));
    let side = |text: &str| text.parse::<u32>().expect("a number of pixels");
    let pixels = pixels.map(|(w, h)| json!({ "width": side(w), "height": side(h) }));
    let tier = match kind {
        TaskKind::Video => "resolution",
        _ => "tier",
    };
    json!({ "pixels": pixels, "ratio": parts[1], tier: parts[2] })
}

/// Every size of an image family that lists them, as [`job`] reads it.
pub(crate) fn sizes(family: &str) -> Vec<String> {
    match &families::by_name(family).expect(family).sizes {
        Sizes::Ratios(sizes) => {
            let tiers = |row: usize| sizes.rows[row].pixels.iter().zip(sizes.tiers);
            let of_row = |row: usize| {
                let ratio = sizes.rows[row].ratio;
                let named = tiers(row).map(move |((w, h), tier)| format!("{w}x{h} {ratio} {tier}"));
                let only = sizes.rows[row].pixels.first();
                let only = only.filter(|_| sizes.tiers.is_empty());
                named.chain(only.map(|(w, h)| format!("{w}x{h} {ratio} -")))
            };
            let rows = (0..sizes.rows.len()).flat_map(of_row);
            let extra = sizes.extra_sizes.iter();
            rows.chain(extra.map(|(size, _)| format!("{size} - -")))
                .collect()
        }
        Sizes::Listed(sizes) => {
            let cells = sizes.groups.iter().flat_map(|(_, cells)| cells.iter());
            cells.map(|(w, h)| format!("{w}x{h} - -")).collect()
        }
        Sizes::PixelRange(_) => panic!("{family} lists no sizes"),
    }
}

/// Input images in a folder that is removed with this.
pub(crate) struct InputImages(PathBuf);

impl InputImages {
    pub(crate) fn new() -> Self {
        let name = tollgate_core::id::short_id("tollgate-upstream-");
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// The images of a request, in the order of `descriptions`.
    pub(crate) fn files(&self, descriptions: &[String]) -> Vec<InputFile> {
        let numbered = descriptions.iter().enumerate();
        let file = |(at, text): (usize, &String)| self.file(&format!("images[{at}]"), text);
        numbered.map(file).collect()
    }

    /// The file of a description: `one.png` is a file that contains `one` and is declared as PNG; `<gif 24x8>` is an image of one colour,
    /// `<clear-png 8x8>` a transparent one.
    pub(crate) fn file(&self, field: &str, description: &str) -> InputFile {
        let (bytes, format, size) = match described(description) {
            Some(image) => image,
            None => {
                let (text, format) = description.rsplit_once('.').expect("a name and a format");
                (text.into(), format_named(format), PixelSize::new(320, 240))
            }
        };
        let path = self.0.join(tollgate_core::id::short_id("f-"));
        std::fs::write(&path, &bytes).unwrap();
        InputFile {
            field: field.to_owned(),
            path,
            format,
            size,
            bytes: bytes.len() as u64,
        }
    }
}

impl Drop for InputImages {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn format_named(name: &str) -> ImageFormat {
    let known = [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Webp,
        ImageFormat::Gif,
    ];
    let format = known.into_iter().find(|format| format.extension() == name);
    format.expect(name)
}

/// The image that a description in angle brackets specifies.
fn described(text: &str) -> Option<(Vec<u8>, ImageFormat, PixelSize)> {
    let (name, size) = text.strip_prefix('<')?.strip_suffix('>')?.split_once(' ')?;
    let (width, height) = size.split_once('x')?;
    let (width, height) = (width.parse().ok()?, height.parse().ok()?);
    let (name, opacity) = match name.strip_prefix("clear-") {
        Some(name) => (name, 0),
        None => (name, 255),
    };
    let image = RgbaImage::from_pixel(width, height, Rgba([20, 90, 160, opacity]));
    let image = match name {
        "jpg" => DynamicImage::from(DynamicImage::from(image).into_rgb8()),
        _ => DynamicImage::from(image),
    };
    let mut bytes = Cursor::new(Vec::new());
    let encoding = image::ImageFormat::from_extension(name)?;
    image.write_to(&mut bytes, encoding).unwrap();
    let size = PixelSize::new(width, height);
    Some((bytes.into_inner(), format_named(name), size))
}

/// The description of an image, such as `<jpg 16x9>`; `None` if the bytes are not an image.
pub(crate) fn describe_image(bytes: &[u8]) -> Option<String> {
    let format = image::guess_format(bytes).ok()?.extensions_str()[0];
    let image = image::load_from_memory(bytes).ok()?;
    Some(format!("<{format} {}x{}>", image.width(), image.height()))
}

/// A description of a file: an image's, `<mp4>`, `<mp3>`, `<wav>`, the text if it is short, or `<bytes>`.
pub(crate) fn describe(bytes: &[u8]) -> String {
    if bytes.get(4..8) == Some(b"ftyp") {
        return "<mp4>".to_owned();
    }
    if bytes.get(8..12) == Some(b"WAVE") {
        return "<wav>".to_owned();
    }
    if bytes.starts_with(b"ID3\x04") || bytes.first() == Some(&0xff) && bytes.get(1) != Some(&0xd8)
    {
        return "<mp3>".to_owned();
    }
    let text = str::from_utf8(bytes).ok();
    let text = text.filter(|text| text.len() <= 100).map(str::to_owned);
    let described = describe_image(bytes).or(text);
    described.unwrap_or_else(|| "<bytes>".to_owned())
}
