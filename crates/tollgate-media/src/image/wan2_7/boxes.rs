//! `bbox_list` of wan2.7: regions of the reference images to edit.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::fields::field::CustomField;
use crate::fields::spec::Rule;
use crate::image::job::ImageJob;
use crate::image::metadata::ImageMetadata;
use crate::text::invalid_value;

const FIELD: &str = "bbox_list";
/// The maximum number of boxes per image.
const MAX_BOXES: usize = 2;

/// `[[[x1, y1, x2, y2], …], …]`.
pub(super) static BOXES: CustomField = CustomField {
    json_type: "array",
    values: "lists of boxes `[x1, y1, x2, y2]`",
    parse,
    schema: || {
        json!({
            "type": "array",
            "items": {
                "type": "array",
                "maxItems": MAX_BOXES,
                "items": {
                    "type": "array",
                    "minItems": 4,
                    "maxItems": 4,
                    "items": { "type": "integer", "minimum": 0 },
                },
            },
        })
    },
};

/// The outer list must be as long as `image_urls`.
pub(super) const ONE_LIST_PER_IMAGE: Rule = Rule {
    text: "`bbox_list` has one list per image of `image_urls`; each box lies inside its image.",
    apply: |draft| {
        let lists = draft.value(FIELD).and_then(Value::as_array).map(Vec::len);
        match lists {
            Some(lists) if lists != draft.references() => Err(ApiError::invalid(format!(
                "`{FIELD}` must have one list per image of `image_urls` ({}), got {lists}",
                draft.references()
            ))),
            _ => Ok(()),
        }
    },
};

fn parse(field: &str, value: &Value) -> Result<Value, ApiError> {
    let Some(images) = value.as_array() else {
        return Err(invalid_value(
            field,
            "a list of one list of boxes per image",
            value,
        ));
    };
    for (image, boxes) in images.iter().enumerate() {
        let field = format!("{field}[{image}]");
        let boxes = match boxes.as_array() {
            Some(boxes) if boxes.len() <= MAX_BOXES => boxes,
            _ => {
                let expected = format!("a list of at most {MAX_BOXES} boxes");
                return Err(invalid_value(&field, &expected, boxes));
            }
        };
        for (index, corners) in boxes.iter().enumerate() {
            if parse_corners(corners).is_none() {
                let expected = "[x1, y1, x2, y2], whole pixels from 0 with x1 < x2 and y1 < y2";
                return Err(invalid_value(
                    &format!("{field}[{index}]"),
                    expected,
                    corners,
                ));
            }
        }
    }
    Ok(value.clone())
}

/// The corners of a box, left, top, right, bottom.
fn parse_corners(value: &Value) -> Option<[u32; 4]> {
    let corner = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let corners: Option<Vec<u32>> = value.as_array()?.iter().take(5).map(corner).collect();
    let corners: [u32; 4] = corners?.try_into().ok()?;
    let [left, top, right, bottom] = corners;
    (left < right && top < bottom).then_some(corners)
}

/// Returns a 400 error if a box exceeds an image whose size is known.
pub(super) fn check_inside_images(
    job: &ImageJob,
    images: &[Option<ImageMetadata>],
) -> Result<(), ApiError> {
    let lists = job.extra.get(FIELD).and_then(Value::as_array);
    for (image, (boxes, metadata)) in lists.into_iter().flatten().zip(images).enumerate() {
        let Some(metadata) = metadata else { continue };
        for (index, corners) in boxes.as_array().into_iter().flatten().enumerate() {
            let inside = parse_corners(corners).is_some_and(|[_, _, right, bottom]| {
                right <= metadata.size.width && bottom <= metadata.size.height
            });
            if !inside {
                let field = format!("{FIELD}[{image}][{index}]");
                let expected = format!("inside its image of {} pixels", metadata.size);
                return Err(invalid_value(&field, &expected, corners));
            }
        }
    }
    Ok(())
}
