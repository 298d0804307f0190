//! The functions of the expressions. `item` and `at` stand for the element of a list and its number.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::expr::{Expr, equal, number, truthy};
use super::scope::Scope;
use crate::clock;
use crate::encoding;
use crate::image_input;
use crate::media_files::{AudioFile, AudioFormat, FileRecipe, ImageFile, ImageFormat, VideoFile};
use crate::pixels;
use crate::tokens::tokens;

/// Calls a function. Unknown functions and arguments of another type give null.
pub(crate) fn call(name: &str, arguments: &[Expr], scope: &Scope<'_>) -> Value {
    match (name, arguments) {
        ("if", [condition, yes, no @ ..]) => {
            let no = no.first();
            let chosen = if condition.is_true(scope) {
                Some(yes)
            } else {
                no
            };
            chosen.map_or(Value::Null, |chosen| chosen.eval(scope))
        }
        ("map" | "filter" | "any" | "all" | "count" | "first", [list, each]) => {
            over_list(name, &elements(list.eval(scope)), each, scope)
        }
        _ => {
            let values: Vec<Value> = arguments.iter().map(|one| one.eval(scope)).collect();
            of_values(name, &values)
                .or_else(|| of_sizes(name, &values))
                .or_else(|| of_media(name, &values))
                .or_else(|| of_request(name, &values, scope))
                .or_else(|| of_context(name, &values, scope))
                .unwrap_or(Value::Null)
        }
    }
}

/// The elements of a list; of one value a list of it, of null none.
fn elements(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

fn over_list(name: &str, list: &[Value], each: &Expr, scope: &Scope<'_>) -> Value {
    let eval = |(at, item): (usize, &Value)| scope.with_item(at, item, |inner| each.eval(inner));
    let mut results = list.iter().enumerate().map(eval);
    match name {
        "map" => results.collect(),
        "any" => json!(results.any(|one| truthy(&one))),
        "all" => json!(results.all(|one| truthy(&one))),
        "count" => json!(results.filter(truthy).count()),
        "first" => {
            let at = results.position(|one| truthy(&one));
            at.map_or(Value::Null, |at| list[at].clone())
        }
        _ => {
            let kept = list.iter().zip(results).filter(|(_, keep)| truthy(keep));
            kept.map(|(one, _)| one.clone()).collect()
        }
    }
}

fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Texts, numbers and lists.
fn of_values(name: &str, values: &[Value]) -> Option<Value> {
    let text = |at: usize| values.get(at).and_then(Value::as_str).unwrap_or_default();
    let first = values.first()?;
    Some(match (name, values) {
        ("given", _) => json!(!first.is_null()),
        ("len", [Value::String(text)]) => json!(text.chars().count()),
        ("len", [Value::Array(list)]) => json!(list.len()),
        ("len", _) => json!(0),
        ("list", _) => json!(elements(first.clone())),
        ("blank", _) => json!(text(0).trim().is_empty()),
        ("lower", _) => json!(text(0).to_lowercase()),
        ("lines", _) => json!(text(0).lines().collect::<Vec<_>>()),
        ("number", [Value::String(text)]) => text.parse().map_or(Value::Null, number),
        ("integer", [Value::String(text)]) => json!(text.parse::<u64>().ok()),
        ("json_object", _) => {
            json!(serde_json::from_str::<Value>(text(0)).is_ok_and(|value| value.is_object()))
        }
        ("text", [Value::String(_)]) => first.clone(),
        ("text", _) => json!(first.to_string()),
        ("round", _) => number((first.as_f64()? * 10.0).round() / 10.0),
        ("ceil", _) => number(first.as_f64()?.ceil()),
        ("floor", _) => number(first.as_f64()?.floor()),
        ("min", [a, b]) => number(a.as_f64()?.min(b.as_f64()?)),
        ("max", [a, b]) => number(a.as_f64()?.max(b.as_f64()?)),
        ("range", _) => (0..first.as_u64()?).map(Value::from).collect(),
        ("starts", [_, with]) => json!(strings(with).iter().any(|p| text(0).starts_with(p))),
        ("ends", [_, with]) => json!(strings(with).iter().any(|p| text(0).ends_with(p))),
        ("contains", [_, parts]) => json!(strings(parts).iter().any(|p| text(0).contains(p))),
        ("after", _) => json!(
            text(0)
                .split_once(text(1))
                .map_or(text(0), |(_, rest)| rest)
        ),
        ("after_last", _) => json!(text(0).rsplit(text(1)).next()),
        ("flatten", [Value::Array(lists)]) => lists.iter().cloned().flat_map(elements).collect(),
        ("before", _) => json!(text(0).split(text(1)).next()),
        ("split", _) => json!(text(0).split(text(1)).collect::<Vec<_>>()),
        ("join", [list, _]) => json!(strings(list).join(text(1))),
        ("sum", _) => number(first.as_array()?.iter().filter_map(Value::as_f64).sum()),
        ("unique", [Value::Array(list)]) => {
            let repeated = |at: usize| list[..at].iter().any(|one| equal(one, &list[at]));
            json!(!(0..list.len()).any(repeated))
        }
        ("images_of", [_, names]) => {
            let images = |name: &str| {
                let given = elements(first.get(name).cloned().unwrap_or_default());
                given
                    .into_iter()
                    .map(|image| json!({"field": name, "image": image}))
                    .collect::<Vec<_>>()
            };
            strings(names).into_iter().flat_map(images).collect()
        }
        ("keys", [Value::Object(object)]) => object.keys().cloned().map(Value::from).collect(),
        ("is_name", _) => json!(is_name(text(0))),
        ("is_hex", [_, length]) => {
            let digits = text(0).bytes().all(|byte| byte.is_ascii_hexdigit());
            json!(digits && Some(text(0).len() as u64) == length.as_u64())
        }
        ("hundredths", _) => json!(hundredths(text(0))),
        ("web", _) => json!(encoding::is_web(text(0))),
        ("tokens", _) => json!(tokens(text(0), 0, false).input),
        ("seconds_of", _) => json!(first.as_u64()? / 1000),
        ("iso", _) => json!(clock::iso(time(first)?)),
        ("plain_time", _) => json!(clock::plain(time(first)?)),
        ("containing", [_, Value::String(key)]) => {
            // The longest name is meant where one is part of another.
            let entries = first.as_object()?.iter();
            let found = entries.filter(|(part, _)| key.contains(part.as_str()));
            let found = found.max_by_key(|(part, _)| part.len());
            found.map_or(Value::Null, |(_, entry)| entry.clone())
        }
        _ => return None,
    })
}

fn time(milliseconds: &Value) -> Option<std::time::SystemTime> {
    Some(UNIX_EPOCH + Duration::from_millis(milliseconds.as_u64()?))
}

/// Letters, digits, `_` and `-`, at least one of them.
pub(crate) fn is_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(legal)
}

/// Hundredths of a percent in `25.00%`.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.strip_suffix('%')?.split_once('.')?;
    let whole: u32 = whole.parse().ok().filter(|whole| *whole <= 100)?;
    let part: u32 = part.parse().ok().filter(|_| part.len() == 2)?;
    Some(whole * 100 + part)
}

fn pair(size: &Value) -> Option<(u32, u32)> {
    let side = |name: &str| size.get(name).and_then(Value::as_u64);
    Some((side("width")? as u32, side("height")? as u32))
}

fn of_pair(size: (u32, u32)) -> Value {
    json!({"width": size.0, "height": size.1})
}

/// Sizes in pixels, as objects of `width` and `height`.
fn of_sizes(name: &str, values: &[Value]) -> Option<Value> {
    let text = |at: usize| values.get(at).and_then(Value::as_str).unwrap_or_default();
    let first = values.first()?;
    let side = || {
        values
            .get(1)
            .and_then(Value::as_u64)
            .map(|side| side as u32)
    };
    Some(match name {
        "size" => match values {
            [width, height] if width.is_u64() => json!({"width": width, "height": height}),
            _ => pixels::parse(text(0), text(1).chars().next().unwrap_or('x')).map(of_pair)?,
        },
        "ratio" => json!(pixels::ratio(text(0))?),
        "area" => json!(pixels::area(pair(first)?)),
        "stretch" => json!(pixels::stretch(pair(first)?)),
        "with_short_side" => of_pair(pixels::with_short_side(first.as_f64()?, side()?)),
        "with_area" => of_pair(pixels::with_area(first.as_f64()?, side()?)),
        _ => return None,
    })
}

/// What is known of an image: `link`, or its type, size and bytes, or `rule` and `problem`.
fn of_inline(image: Result<image_input::InlineImage, image_input::InvalidImage>) -> Value {
    match image {
        Ok(inline) => json!({
            "type": inline.media_type, "width": inline.size.0, "height": inline.size.1,
            "bytes": inline.bytes, "short": inline.short_side(), "long": inline.long_side(),
            "stretch": inline.ratio(),
        }),
        Err((rule, problem)) => json!({"rule": rule, "problem": problem}),
    }
}

/// An image file that a form holds; `alpha` if it is a PNG whose pixels can be transparent.
pub(crate) fn of_part(bytes: &[u8], declared: &str) -> Value {
    let image = image_input::read_image(bytes);
    let image = image.and_then(|image| image_input::named(declared, &image).map(|()| image));
    let mut known = of_inline(image);
    known["alpha"] = json!(has_alpha(bytes));
    known
}

/// Whether the bytes are a PNG whose colour type, behind size and depth, has alpha.
fn has_alpha(bytes: &[u8]) -> bool {
    let is_png = encoding::sniff(bytes) == Some("image/png");
    is_png && bytes.get(25).is_some_and(|kind| kind & 4 == 4)
}

/// Images in requests; files that are made, which [`FileRecipe`] reads back.
fn of_media(name: &str, values: &[Value]) -> Option<Value> {
    let text = |at: usize| values.get(at).and_then(Value::as_str).unwrap_or_default();
    Some(match (name, values) {
        ("image", _) => match image_input::link_or_data(text(0)) {
            Ok(image_input::ImageInput::Link) => json!({"link": true}),
            Ok(image_input::ImageInput::InlineImage(inline)) => {
                let mut known = of_inline(Ok(inline));
                let bytes = encoding::data_uri(text(0)).unwrap_or_default().1;
                known["alpha"] = json!(has_alpha(&bytes));
                known
            }
            Err(wrong) => of_inline(Err(wrong)),
        },
        ("base64_image", _) => of_inline(image_input::base64(text(0)).and_then(
            |image| match text(1) {
                "" => Ok(image),
                declared => image_input::named(declared, &image).map(|()| image),
            },
        )),
        ("inline_image", _) => {
            let bytes = encoding::decode_any(text(0)).unwrap_or_default();
            of_part(&bytes, text(1))
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
            FileRecipe::Audio(sound) => json!(sound.seconds()),
            _ => return None,
        },
        ("has_speech_format", _) => json!(AudioFormat::named(text(0)).is_some()),
        _ => return None,
    })
}

/// The file that `image_file`, `video_file` or `speech_file` describes.
pub(crate) fn recipe(file: &Value, first: u64) -> Option<FileRecipe> {
    let number = first + file["nth"].as_u64().unwrap_or_default();
    let size = || pair(&file["size"]);
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
            FileRecipe::Audio(AudioFile::of(file["text"].as_str()?, form, speed))
        }
    })
}

/// Headers and query of the request.
fn of_request(name: &str, values: &[Value], scope: &Scope<'_>) -> Option<Value> {
    let key = values.first().and_then(Value::as_str)?;
    let request = scope.request?;
    Some(match name {
        "header" => json!(request.header(key)),
        "query" => json!(request.query_value(key)),
        "queries" => json!(request.query_values(key)),
        _ => return None,
    })
}

/// What only a request that is being answered can reach: new ids, files, its task's plan.
fn of_context(name: &str, values: &[Value], scope: &Scope<'_>) -> Option<Value> {
    if name == "good" {
        let asked = values.first()?.as_u64()? as usize;
        return Some(json!(scope.plan.map_or(asked, |plan| plan.good(asked))));
    }
    let context = scope.context?;
    let file = || recipe(values.first()?, scope.number);
    Some(match name {
        "hex" => json!(context.hex()),
        "uuid" => json!(context.uuid()),
        "digits" => json!(context.digits()),
        "link" => json!(context.link(file()?)),
        "base64" => {
            let bytes = file()?.make(scope.plan?.bytes).bytes();
            json!(encoding::encode(&bytes))
        }
        "file_size" => json!(file()?.make(scope.plan?.bytes).len()),
        "cut" => json!(
            values
                .first()?
                .as_str()?
                .get(..values.get(1)?.as_u64()? as usize)?
        ),
        _ => return None,
    })
}
