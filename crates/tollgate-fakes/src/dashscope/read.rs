//! Pictures: what is asked for, as a task or at once.

use std::sync::Arc;

use serde_json::{Value, json};

use super::task;
use super::words::{self, invalid, of_code};
use crate::desk::{Made, Media};
use crate::given::{self, Given, Inline};
use crate::incoming::Seen;
use crate::pixels;
use crate::place::{Place, Style};
use crate::refusal::{Checked, Fault, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const ITEM: Shape = Shape {
    fields: &[("image", Kind::Str), ("text", Kind::Text(5000))],
    required: &[],
};

const MESSAGE: Shape = Shape {
    fields: &[
        ("role", Kind::OneOf(&["user"])),
        ("content", Kind::List(&Kind::Shape(&ITEM))),
    ],
    required: &["role", "content"],
};

const COLOUR: Shape = Shape {
    fields: &[("hex", Kind::Str), ("ratio", Kind::Str)],
    required: &["hex", "ratio"],
};

const PARAMETERS: Shape = Shape {
    fields: &[
        ("size", Kind::Str),
        ("n", Kind::Int(1, 12)),
        ("seed", Kind::Int(0, 2_147_483_647)),
        ("negative_prompt", Kind::Str),
        ("watermark", Kind::Bool),
        ("thinking_mode", Kind::Bool),
        ("enable_sequential", Kind::Bool),
        (
            "bbox_list",
            Kind::Few(9, &Kind::Few(2, &Kind::Few(4, &Kind::Int(0, 8000)))),
        ),
        ("color_palette", Kind::Few(10, &Kind::Shape(&COLOUR))),
    ],
    required: &[],
};

const REQUEST: Shape = Shape {
    fields: &[
        ("model", Kind::Str),
        (
            "input",
            Kind::Shape(&Shape {
                fields: &[("messages", Kind::Few(1, &Kind::Shape(&MESSAGE)))],
                required: &["messages"],
            }),
        ),
        ("parameters", Kind::Shape(&PARAMETERS)),
    ],
    required: &["model", "input"],
};

/// The pictures that a request wants.
struct Wish {
    text: String,
    pictures: Vec<Option<Inline>>,
    is_pro: bool,
    is_group: bool,
}

/// As a task.
pub(super) fn later(request: &Arc<Seen>) -> Judged<Media> {
    if request.header("x-dashscope-async") != Some("enable") {
        let message = "current user api does not support synchronous calls.";
        return Err(Box::new(of_code(403, "AccessDenied", "async", message)));
    }
    let (text, facts) = read(request)?;
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = desk.uuid();
        desk.begin(&id, facts);
        let output = json!({"task_id": id, "task_status": "PENDING"});
        Ok(Made::json(
            json!({"request_id": desk.request, "output": output}),
        ))
    }))
}

/// At once.
pub(super) fn at_once(request: &Arc<Seen>) -> Judged<Media> {
    if request.header("x-dashscope-async").is_some() {
        let message = "current user api does not support asynchronous calls.";
        return Err(Box::new(of_code(403, "AccessDenied", "async", message)));
    }
    let (text, facts) = read(request)?;
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.succeed(&request)?;
        let links: Vec<String> = task::recipes(&facts, &desk.course, desk.number)
            .into_iter()
            .map(|recipe| desk.link(recipe))
            .collect();
        let mut output = task::choices(&facts, &links);
        output["finished"] = json!(true);
        let usage = task::usage(&facts, links.len());
        let answer = json!({"request_id": desk.request, "output": output, "usage": usage});
        Ok(Made::json(answer).after(desk.course.work))
    }))
}

/// The text, and what is kept of a task.
fn read(request: &Seen) -> Judged<(String, Value)> {
    let body = &request.body;
    if !request.says_json() || !body.is_object() {
        return Err(Box::new(words::not_json(request.says_json())));
    }
    let fit = REQUEST.check(body, &Place::root(Style::Brackets));
    fit.map_err(|flaw| Box::new(words::flaw(&flaw)))?;
    let model = text_of(body, "model").unwrap_or_default();
    if !["wan2.7-image", "wan2.7-image-pro"].contains(&model) {
        return Err(Box::new(words::fault(Fault::ModelMissing, request)));
    }
    let nothing = json!({});
    let parameters = field(body, "parameters").unwrap_or(&nothing);
    let is_group = parameters.get("enable_sequential") == Some(&Value::Bool(true));
    let (text, pictures) = content(request)?;
    let wish = Wish {
        text,
        pictures,
        is_pro: model.ends_with("-pro"),
        is_group,
    };
    let size = size(parameters, &wish)?;
    boxes(parameters, &wish)?;
    palette(parameters, is_group)?;
    let most = if is_group { 12 } else { 4 };
    let count = field(parameters, "n")
        .and_then(Value::as_u64)
        .unwrap_or(most);
    if count > most {
        return Err(Box::new(invalid(
            "range",
            format!("`n` must be at most {most}"),
        )));
    }
    let facts = json!({
        "model": model, "count": count, "width": size.0, "height": size.1, "group": is_group,
    });
    Ok((wish.text, facts))
}

/// The text and the pictures of the only message.
fn content(request: &Seen) -> Judged<(String, Vec<Option<Inline>>)> {
    let input = &request.body["input"];
    let Some(message) = list_of(input, "messages").first() else {
        let message = "exactly one message is expected";
        return Err(Box::new(of_code(
            400,
            "BadRequest.EmptyInput",
            "messages",
            message,
        )));
    };
    let mut texts = Vec::new();
    let mut pictures = Vec::new();
    for item in list_of(message, "content") {
        match (text_of(item, "text"), text_of(item, "image")) {
            (Some(text), None) => texts.push(text),
            (None, Some(image)) => pictures.push(picture(image, request)?),
            _ => {
                let message = "a content item holds either `text` or `image`";
                return Err(Box::new(invalid("item", message)));
            }
        }
    }
    if pictures.len() > 9 {
        return Err(Box::new(invalid(
            "too-many",
            "at most 9 images are supported",
        )));
    }
    match texts[..] {
        [text] if !text.trim().is_empty() => Ok((text.to_owned(), pictures)),
        _ => Err(Box::new(invalid("text", "exactly one text is expected"))),
    }
}

/// A picture, with what is known of it.
fn picture(text: &str, request: &Seen) -> Judged<Option<Inline>> {
    if text.starts_with("oss://") {
        let resolves = request.header("x-dashscope-ossresourceresolve") == Some("enable");
        let refusal = || {
            of_code(
                400,
                "InvalidURL",
                "image-url",
                "The request URL is invalid.",
            )
        };
        return resolves.then_some(None).ok_or_else(|| Box::new(refusal()));
    }
    let inline = match given::link_or_data(text) {
        Ok(Given::Link) => return Ok(None),
        Ok(Given::Inline(inline)) => inline,
        Err(("image-url", what)) => {
            return Err(Box::new(of_code(400, "InvalidURL", "image-url", what)));
        }
        Err((rule, what)) => return Err(Box::new(invalid(rule, what))),
    };
    let types = ["image/png", "image/jpeg", "image/webp", "image/bmp"];
    let sides = inline.short_side() >= 240 && inline.long_side() <= 8000;
    let (rule, what) = if !types.contains(&inline.media_type) {
        ("image-type", "the format of the image is not supported")
    } else if !sides {
        (
            "image-size",
            "each side of an image must have from 240 to 8000 pixels",
        )
    } else if inline.ratio() > 8.0 {
        (
            "image-size",
            "the ratio of an image must be from 1:8 to 8:1",
        )
    } else if inline.bytes > 20 << 20 {
        ("image-bytes", "an image must have at most 20 MB")
    } else {
        return Ok(Some(inline));
    };
    Err(Box::new(invalid(rule, what)))
}

fn size(parameters: &Value, wish: &Wish) -> Judged<(u32, u32)> {
    let text = text_of(parameters, "size").unwrap_or("2K");
    let is_large = wish.is_pro && !wish.is_group && wish.pictures.is_empty();
    // With pictures a tier takes the ratio of the last.
    let last = wish.pictures.last().copied().flatten();
    let ratio = last.map_or(1.0, |last| f64::from(last.size.0) / f64::from(last.size.1));
    match text {
        "1K" => return Ok(pixels::with_area(ratio, 1024)),
        "2K" => return Ok(pixels::with_area(ratio, 2048)),
        "4K" if is_large => return Ok((4096, 4096)),
        _ => {}
    }
    let bad = |what: String| Box::new(invalid("size", what));
    let size = pixels::parse(text, '*');
    let size = size.ok_or_else(|| bad(format!("size `{text}` is not supported")))?;
    let side: u64 = if is_large { 4096 } else { 2048 };
    if !(768 * 768..=side * side).contains(&pixels::area(size)) {
        return Err(bad(format!(
            "size must be from 768*768 to {side}*{side} pixels"
        )));
    }
    if pixels::stretch(size) > 8.0 {
        return Err(bad("the ratio of size must be from 1:8 to 8:1".to_owned()));
    }
    Ok(size)
}

/// A list of boxes for each picture.
fn boxes(parameters: &Value, wish: &Wish) -> Checked {
    if field(parameters, "bbox_list").is_none() {
        return Ok(());
    }
    let lists = list_of(parameters, "bbox_list");
    if lists.len() != wish.pictures.len() {
        let message = "the length of `bbox_list` must be the number of images";
        return Err(Box::new(invalid("boxes", message)));
    }
    let boxes = lists.iter().filter_map(Value::as_array).flatten();
    for one in boxes {
        let corner = |at: usize| one.get(at).and_then(Value::as_i64);
        let ordered = corner(0) < corner(2) && corner(1) < corner(3) && corner(3).is_some();
        if !ordered {
            return Err(Box::new(invalid("boxes", "a box is [x1, y1, x2, y2]")));
        }
    }
    Ok(())
}

/// Three to ten colours whose shares are the whole.
fn palette(parameters: &Value, is_group: bool) -> Checked {
    if field(parameters, "color_palette").is_none() {
        return Ok(());
    }
    let colours = list_of(parameters, "color_palette");
    let refuse = |what: &str| Err(Box::new(invalid("palette", what)));
    if is_group {
        return refuse("`color_palette` is not supported in sequential mode");
    }
    if colours.len() < 3 {
        return refuse("`color_palette` must have from 3 to 10 colors");
    }
    let mut sum = 0;
    for colour in colours {
        let hex = text_of(colour, "hex").unwrap_or_default();
        let digits = hex.strip_prefix('#').unwrap_or_default();
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return refuse("`hex` must be like #RRGGBB");
        }
        match hundredths(text_of(colour, "ratio").unwrap_or_default()) {
            Some(share) => sum += share,
            None => return refuse("`ratio` must be like 25.00%"),
        }
    }
    if sum != 10_000 {
        return refuse("the ratios must be 100.00% together");
    }
    Ok(())
}

/// Hundredths of a percent in `25.00%`.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.strip_suffix('%')?.split_once('.')?;
    let whole: u32 = whole.parse().ok().filter(|whole| *whole <= 100)?;
    let part: u32 = part.parse().ok().filter(|_| part.len() == 2)?;
    Some(whole * 100 + part)
}
