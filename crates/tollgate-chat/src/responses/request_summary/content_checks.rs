//! Checks the content parts of messages, and the images in them, without parsing the rest of the input (docs/chat/responses.md).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json_checks::{expect_start, invalid_value, parse_or_default, required_string};
use crate::error::InvalidRequest;
use crate::media;
use crate::responses::constants::IMAGE_TYPES;
use crate::responses::json::is_web_url;

/// The types of content parts of messages.
const PART_TYPES: [&str; 10] = [
    "input_text",
    "input_image",
    "input_file",
    "input_audio",
    "output_text",
    "output_audio",
    "refusal",
    "text",
    "summary_text",
    "reasoning_text",
];
/// Those of [`PART_TYPES`] that error messages name.
const KNOWN_PARTS: &str =
    "one of input_text, input_image, input_file, input_audio, output_text, refusal";
/// The number of characters that is enough for the head of a data URI and every magic number.
const HEAD: usize = 256;

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    image_url: Option<&'a RawValue>,
}

/// Checks the messages among the items of `input`, which must be a list.
pub(crate) fn check_items(input: &RawValue) -> Result<(), InvalidRequest> {
    let items: Vec<&RawValue> = parse_or_default(input);
    for (at, item) in items.into_iter().enumerate() {
        let path = format!("input[{at}]");
        let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else {
            return Err(invalid_value(&path, "an object", item));
        };
        // Items without a role are not messages but calls, results and so on.
        let content = item.content.filter(|_| item.role.is_some());
        let is_list = |content: &&RawValue| content.get().starts_with('[');
        if let Some(content) = content.filter(is_list) {
            check_parts(content, &format!("{path}.content"))?;
        }
    }
    Ok(())
}

fn check_parts(content: &RawValue, path: &str) -> Result<(), InvalidRequest> {
    let parts: Vec<&RawValue> = parse_or_default(content);
    for (at, part) in parts.into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        let Ok(wire) = serde_json::from_str::<Part<'_>>(part.get()) else {
            return Err(invalid_value(&path, "an object", part));
        };
        let kind = required_string(wire.kind, &format!("{path}.type"))?;
        if !PART_TYPES.contains(&kind.as_ref()) {
            let why = format!("must be {KNOWN_PARTS}, not {kind:?}");
            return Err(InvalidRequest::new(format!("{path}.type"), why));
        }
        if kind == "input_image" {
            check_image(wire.image_url, &format!("{path}.image_url"))?;
        }
    }
    Ok(())
}

/// Checks an image's URL or data URI. An image may also be a file that is stored at the vendor.
fn check_image(url: Option<&RawValue>, field: &str) -> Result<(), InvalidRequest> {
    let Some(url) = expect_start(url, field, b'"', "a string")? else {
        return Ok(());
    };
    let text = url.get().trim_matches('"');
    let head = text[..text.floor_char_boundary(HEAD)].replace("\\/", "/");
    if !media::is_data_uri(&head) {
        return match is_web_url(&head) {
            true => Ok(()),
            false => Err(InvalidRequest::new(
                field,
                "must be a public http or https URL, or a data URI",
            )),
        };
    }
    let known = IMAGE_TYPES.join(", ");
    let Some(uri) = media::parse_data_uri(&head) else {
        let why = "must be a data URI of the form data:image/png;base64,…";
        return Err(InvalidRequest::new(field, why));
    };
    let data = uri.data.replace("\\n", "").replace("\\r", "");
    let seen = media::sniff_base64_media_type(&data);
    match seen {
        Some(seen) if IMAGE_TYPES.contains(&seen) => Ok(()),
        _ => {
            let why = format!("must be an image of one of the types {known}");
            Err(InvalidRequest::new(field, why))
        }
    }
}
