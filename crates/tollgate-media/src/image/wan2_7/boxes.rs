//! `bbox_list`: regions of the pictures to edit.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::image::family::Rule;
use crate::image::field::Special;
use crate::image::values::wrong;
use crate::image::{ImageFacts, ImageJob};

const FIELD: &str = "bbox_list";
/// Boxes per picture.
const MAX_BOXES: usize = 2;

/// `[[[x1, y1, x2, y2], …], …]`.
pub(super) static BOXES: Special = Special {
    json_type: "array",
    what: "lists of boxes `[x1, y1, x2, y2]`",
    read,
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

/// The outer list goes with `image_urls`.
pub(super) const ONE_LIST_PER_PICTURE: Rule = Rule {
    text: "`bbox_list` has one list per picture of `image_urls`; each box lies inside its picture.",
    apply: |draft| {
        let lists = draft.value(FIELD).and_then(Value::as_array).map(Vec::len);
        match lists {
            Some(lists) if lists != draft.references() => Err(ApiError::invalid(format!(
                "`{FIELD}` must hold one list per image of `image_urls` ({}), got {lists}",
                draft.references()
            ))),
            _ => Ok(()),
        }
    },
};

fn read(field: &str, value: &Value) -> Result<Value, ApiError> {
    let Some(pictures) = value.as_array() else {
        return Err(wrong(field, "a list of one list of boxes per image", value));
    };
    for (picture, boxes) in pictures.iter().enumerate() {
        let field = format!("{field}[{picture}]");
        let boxes = match boxes.as_array() {
            Some(boxes) if boxes.len() <= MAX_BOXES => boxes,
            _ => {
                let wants = format!("a list of at most {MAX_BOXES} boxes");
                return Err(wrong(&field, &wants, boxes));
            }
        };
        for (index, corners) in boxes.iter().enumerate() {
            if parse(corners).is_none() {
                let wants = "[x1, y1, x2, y2], whole pixels from 0 with x1 < x2 and y1 < y2";
                return Err(wrong(&format!("{field}[{index}]"), wants, corners));
            }
        }
    }
    Ok(value.clone())
}

/// The corners of a box, left, top, right, bottom.
fn parse(value: &Value) -> Option<[u32; 4]> {
    let corner = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let corners: Option<Vec<u32>> = value.as_array()?.iter().take(5).map(corner).collect();
    let corners: [u32; 4] = corners?.try_into().ok()?;
    let [left, top, right, bottom] = corners;
    (left < right && top < bottom).then_some(corners)
}

/// 400 for a box that leaves a picture whose size is known.
pub(super) fn inside_pictures(
    job: &ImageJob,
    pictures: &[Option<ImageFacts>],
) -> Result<(), ApiError> {
    let lists = job.extra.get(FIELD).and_then(Value::as_array);
    for (picture, (boxes, facts)) in lists.into_iter().flatten().zip(pictures).enumerate() {
        let Some(facts) = facts else { continue };
        for (index, corners) in boxes.as_array().into_iter().flatten().enumerate() {
            let inside = parse(corners).is_some_and(|[_, _, right, bottom]| {
                right <= facts.size.width && bottom <= facts.size.height
            });
            if !inside {
                let field = format!("{FIELD}[{picture}][{index}]");
                let wants = format!("inside its picture of {} pixels", facts.size);
                return Err(wrong(&field, &wants, corners));
            }
        }
    }
    Ok(())
}
