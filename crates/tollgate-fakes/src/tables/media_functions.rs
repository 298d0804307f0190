//! Functions of the expressions for sizes, images in requests and generated files.

use serde_json::{Value, json};

use super::values::text_at;
use crate::encoding;
use crate::image_input;
use crate::media_files::{AudioFile, AudioFormat, FileRecipe, ImageFile, ImageFormat, VideoFile};
use crate::pixels;

/// Width and height of a size. `None` if one of them is missing.
fn parse_size(size: &Value) -> Option<(u32, u32)> {
    let side = |name: &str| size.get(name).and_then(Value::as_u64);
    Some((side("width")? as u32, side("height")? as u32))
}

fn size_to_json(size: (u32, u32)) -> Value {
    json!({"width": size.0, "height": size.1})
}

/// Functions of sizes in pixels, as objects of `width` and `height`.
pub(super) fn call_size_function(name: &str, values: &[&Value]) -> Option<Value> {
    let text = |at: usize| text_at(values, at);
    let first = *values.first()?;
    let side = || values.get(1)?.as_u64().map(|side| side as u32);
    Some(match name {
        "size" => match values {
            [width, height] if width.is_u64() => json!({"width": width, "height": height}),
            _ => pixels::parse(text(0), text(1).chars().next().unwrap_or('x')).map(size_to_json)?,
        },
        "ratio" => json!(pixels::ratio(text(0))?),
        "area" => json!(pixels::area(parse_size(first)?)),
        "stretch" => json!(pixels::stretch(parse_size(first)?)),
        "with_short_side" => size_to_json(pixels::with_short_side(first.as_f64()?, side()?)),
        "with_area" => size_to_json(pixels::with_area(first.as_f64()?, side()?)),
        _ => return None,
    })
}

fn image_to_json(image: image_input::Image) -> Value {
    image.unwrap_or_else(|(rule, problem)| json!({"rule": rule, "problem": problem}))
}

/// Describes an image file in a form; `declared` is its media type there.
pub(crate) fn describe_image_part(bytes: &[u8], declared: &str) -> Value {
    let image = image_input::decode_image(bytes);
    image_to_json(image.and_then(|image| image_input::declared_as(declared, image)))
}

/// Functions of images in requests, and of generated files, whose descriptions [`FileRecipe`] reads back.
pub(super) fn call_media_function(name: &str, values: &[&Value]) -> Option<Value> {
    let text = |at: usize| text_at(values, at);
    Some(match (name, values) {
        ("image", _) => image_to_json(image_input::link_or_data(text(0))),
        ("base64_image", _) => {
            let image = image_input::base64(text(0));
            image_to_json(match text(1) {
                "" => image,
                declared => image.and_then(|image| image_input::declared_as(declared, image)),
            })
        }
        ("inline_image", _) => {
            let bytes = encoding::decode_any(text(0)).unwrap_or_default();
            describe_image_part(&bytes, text(1))
        }
        // The content of base64, of the standard alphabet or of either; null if it is not base64.
        ("blob", _) => blob(encoding::decode(text(0))?),
        ("any_blob", _) => blob(encoding::decode_any(text(0))?),
        ("data_uri", _) => {
            let (declared, bytes) = encoding::data_uri(text(0))?;
            let mut known = blob(bytes);
            known["declared"] = json!(declared);
            known
        }
        ("image_file", [format, size, nth]) => {
            json!({"file": "image", "format": format, "size": size, "nth": nth})
        }
        ("video_file", [size, seconds, nth]) => {
            json!({"file": "video", "size": size, "seconds": seconds, "nth": nth})
        }
        ("speech_file", [text, format, speed]) => {
            json!({"file": "speech", "text": text, "format": format, "speed": speed})
        }
        ("media_type", [file]) => json!(recipe(file, 0)?.media_type()),
        ("file_seconds", [file]) => match recipe(file, 0)? {
            FileRecipe::Audio(audio) => json!(audio.seconds()),
            _ => return None,
        },
        ("has_speech_format", _) => json!(AudioFormat::named(text(0)).is_some()),
        _ => return None,
    })
}

/// The type of bytes, their number, and their beginning if it is text.
fn blob(bytes: Vec<u8>) -> Value {
    let begin = std::str::from_utf8(&bytes[..bytes.len().min(16)]).ok();
    json!({"type": encoding::sniff(&bytes), "bytes": bytes.len(), "begin": begin})
}

/// The file that `image_file`, `video_file` or `speech_file` describes; `first` is the number of the first file of the request. `None` if the
/// description is incomplete.
pub(super) fn recipe(file: &Value, first: u64) -> Option<FileRecipe> {
    let number = first + file["nth"].as_u64().unwrap_or_default();
    let size = || parse_size(&file["size"]);
    let format = file["format"].as_str().unwrap_or_default();
    Some(match file["file"].as_str()? {
        "image" => FileRecipe::Image(ImageFile {
            form: ImageFormat::named(format).unwrap_or(ImageFormat::Jpeg),
            size: size()?,
            number,
        }),
        "video" => FileRecipe::Video(VideoFile {
            size: size()?,
            seconds: file["seconds"].as_u64()? as u32,
            number,
        }),
        _ => {
            let form = AudioFormat::named(format).unwrap_or(AudioFormat::Mp3);
            let speed = file["speed"].as_f64().unwrap_or(1.0);
            FileRecipe::Audio(AudioFile::for_text(file["text"].as_str()?, form, speed))
        }
    })
}
