//! Pictures: made at once, one or a group.

use std::sync::Arc;

use serde_json::{Value, json};

use super::models::{Seedance, Seedream};
use super::words::{self, invalid, of_code};
use crate::clock;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::given::{self, Given};
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::pixels;
use crate::refusal::{Checked, Fault, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const MODES: &[&str] = &["standard", "fast", "thinking"];

const REQUEST: Shape = Shape {
    fields: &[
        ("model", Kind::Str),
        ("prompt", Kind::Str),
        (
            "image",
            Kind::Either(&[Kind::Str, Kind::Few(14, &Kind::Str)]),
        ),
        ("size", Kind::Str),
        (
            "sequential_image_generation",
            Kind::OneOf(&["disabled", "auto"]),
        ),
        (
            "sequential_image_generation_options",
            Kind::Shape(&Shape {
                fields: &[("max_images", Kind::Int(1, 15))],
                required: &[],
            }),
        ),
        (
            "optimize_prompt_options",
            Kind::Shape(&Shape {
                fields: &[("mode", Kind::OneOf(MODES))],
                required: &[],
            }),
        ),
        ("watermark", Kind::Bool),
        ("response_format", Kind::OneOf(&["url", "b64_json"])),
        ("output_format", Kind::OneOf(&["jpeg", "png"])),
        (
            "tools",
            Kind::List(&Kind::Shape(&Shape {
                fields: &[("type", Kind::OneOf(&["web_search"]))],
                required: &["type"],
            })),
        ),
        ("stream", Kind::Bool),
        ("seed", Kind::Int(-1, 2_147_483_647)),
        ("guidance_scale", Kind::Num(1.0, 10.0)),
    ],
    required: &["model", "prompt"],
};

/// The pictures that a request wants.
struct Wish {
    size: (u32, u32),
    count: usize,
    inputs: usize,
    form: PictureForm,
    inline: bool,
    search: bool,
}

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    super::check(request, &REQUEST)?;
    let body = &request.body;
    let name = text_of(body, "model").unwrap_or_default();
    let Some(model) = Seedream::named(name) else {
        return Err(Box::new(match Seedance::named(name) {
            Some(_) => of_code(
                404,
                "UnsupportedModel",
                "model",
                "The model makes no pictures.",
            ),
            None => words::fault(Fault::ModelMissing, request),
        }));
    };
    options(body, model)?;
    let wish = Wish {
        size: size(body, model)?,
        inputs: images(body)?,
        count: 1,
        form: match text_of(body, "output_format") {
            Some("png") => PictureForm::Png,
            _ => PictureForm::Jpeg,
        },
        inline: text_of(body, "response_format") == Some("b64_json"),
        search: !list_of(body, "tools").is_empty(),
    };
    let wish = group(body, wish)?;
    let text = text_of(body, "prompt").unwrap_or_default().to_owned();
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        answer(desk, &request, &wish)
    }))
}

/// Fields that only some models take.
fn options(body: &Value, model: Seedream) -> Checked {
    let only = |name: &str, models: &[Seedream]| -> Checked {
        if field(body, name).is_none() || models.contains(&model) {
            return Ok(());
        }
        let code = "InvalidParameter.UnsupportedParameter";
        let message = format!("The parameter `{name}` is not supported by the current model.");
        Err(Box::new(
            of_code(400, code, "unsupported", message).param(name),
        ))
    };
    only("seed", &[Seedream::V3])?;
    only("guidance_scale", &[Seedream::V3])?;
    only("output_format", &[Seedream::V5])?;
    only("tools", &[Seedream::V5])?;
    let later = [Seedream::V4, Seedream::V45, Seedream::V5];
    only("image", &later)?;
    only("sequential_image_generation", &later)?;
    only("optimize_prompt_options", &later)?;
    let mode = field(body, "optimize_prompt_options").and_then(|o| text_of(o, "mode"));
    if mode == Some("fast") && model != Seedream::V4 {
        let message = "the mode `fast` is not supported by the current model";
        let refusal = invalid("optimize-mode", "optimize_prompt_options.mode", message);
        return Err(Box::new(refusal));
    }
    if body.get("stream") == Some(&Value::Bool(true)) {
        let refusal = of_code(
            501,
            "InternalServiceError",
            "not-made",
            "The fake has no streams.",
        );
        return Err(Box::new(refusal));
    }
    Ok(())
}

fn size(body: &Value, model: Seedream) -> Judged<(u32, u32)> {
    let text = text_of(body, "size").unwrap_or("2048x2048");
    let tier = model.tiers().iter().find(|(name, _)| *name == text);
    if let Some((_, side)) = tier {
        return Ok((*side, *side));
    }
    let bad = |what: String| Box::new(invalid("size", "size", what));
    let Some(size) = pixels::parse(text, 'x') else {
        let tiers: Vec<&str> = model.tiers().iter().map(|(name, _)| *name).collect();
        let tiers = tiers.join(", ");
        return Err(bad(format!(
            "expected WIDTHxHEIGHT or one of {tiers}, got `{text}`"
        )));
    };
    let (least, most) = (*model.pixels().start(), *model.pixels().end());
    if !model.pixels().contains(&pixels::area(size)) {
        return Err(bad(format!(
            "image size must be from {least} to {most} pixels"
        )));
    }
    if pixels::stretch(size) > 16.0 {
        return Err(bad("aspect ratio must be from 1/16 to 16".to_owned()));
    }
    Ok(size)
}

/// How many pictures came, all of them in order.
fn images(body: &Value) -> Judged<usize> {
    let given: Vec<&str> = match field(body, "image") {
        Some(Value::String(one)) => vec![one],
        _ => list_of(body, "image")
            .iter()
            .filter_map(Value::as_str)
            .collect(),
    };
    for text in &given {
        picture(text, "image")?;
    }
    Ok(given.len())
}

/// A picture that Ark takes.
pub(super) fn picture(text: &str, param: &str) -> Checked {
    let wrong = |rule, what: String| {
        let code = match rule {
            "image-url" if text.is_empty() => "InvalidImageURL.EmptyURL",
            _ => "InvalidImageURL.InvalidFormat",
        };
        Err(Box::new(
            of_code(400, code, rule, format!("Invalid image: {what}.")).param(param),
        ))
    };
    let inline = match given::link_or_data(text) {
        Ok(Given::Link) => return Ok(()),
        Ok(Given::Inline(inline)) => inline,
        Err((rule, what)) => return wrong(rule, what),
    };
    if inline.bytes > 10 << 20 {
        return wrong("image-bytes", "more than 10 MB".to_owned());
    }
    let fits = inline.short_side() > 14
        && inline.ratio() <= 16.0
        && pixels::area(inline.size) <= 36_000_000;
    if !fits {
        return wrong("image-size", format!("{:?} pixels", inline.size));
    }
    Ok(())
}

fn group(body: &Value, wish: Wish) -> Judged<Wish> {
    let is_auto = text_of(body, "sequential_image_generation") == Some("auto");
    let options = field(body, "sequential_image_generation_options");
    let most = options.and_then(|options| field(options, "max_images"));
    let most = most.and_then(Value::as_u64);
    let name = "sequential_image_generation_options";
    if options.is_some() && !is_auto {
        let what = "it is for `sequential_image_generation: auto` only";
        return Err(Box::new(invalid("group-options", name, what)));
    }
    if !is_auto {
        return Ok(wish);
    }
    let room = 15 - wish.inputs.min(14);
    let count = most.map_or(room, |most| most as usize);
    if count > room {
        let what = "reference images and generated images together must not be more than 15";
        return Err(Box::new(invalid("group-total", name, what)));
    }
    Ok(Wish { count, ..wish })
}

fn answer(desk: &Desk<'_>, request: &Seen, wish: &Wish) -> Judged<Made> {
    desk.moderate(request)?;
    if wish.count == 1 || desk.course.verdict == Verdict::Failed {
        desk.succeed(request)?;
    }
    let good = match desk.course.verdict {
        Verdict::Good => desk.course.good(wish.count),
        _ => 0,
    };
    let filtered = words::fault(Fault::Filtered, request);
    let item = |nth: usize| -> Value {
        if nth >= good {
            return json!({"error": {"code": filtered.code, "message": filtered.message}});
        }
        let (form, size) = (wish.form, wish.size);
        let number = desk.number + nth as u64;
        let recipe = Recipe::Picture(Picture { form, size, number });
        let size = format!("{}x{}", size.0, size.1);
        if wish.inline {
            json!({"b64_json": desk.base64(recipe), "size": size})
        } else {
            json!({"url": desk.link(recipe), "size": size})
        }
    };
    let data: Vec<Value> = (0..wish.count).map(item).collect();
    let tokens = good as u64 * pixels::area(wish.size) / 256;
    let mut usage = json!({
        "generated_images": good, "output_tokens": tokens, "total_tokens": tokens,
    });
    if wish.search {
        usage["tool_usage"] = json!({"web_search": 1});
    }
    let answer = json!({
        "model": request.body["model"], "created": clock::seconds(desk.time()),
        "data": data, "usage": usage,
    });
    Ok(Made::json(answer).after(desk.course.work))
}
