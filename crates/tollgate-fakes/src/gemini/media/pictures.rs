//! Generate-content by models that make pictures.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::check::{self, Stream};
use super::super::{sign, words};
use super::{Site, json, model_missing, platform_only};
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::given::{self, Inline};
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::media;
use crate::pixels;
use crate::place::{Place, Style};
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};
use crate::tokens::tokens;

/// The models that there are.
const MODELS: &[&str] = &[
    "gemini-2.5-flash-image",
    "gemini-3.1-flash-image",
    "gemini-3.1-flash-lite-image",
    "gemini-3-pro-image",
    "nano-banana-pro-preview",
    "gemini-nano-banana-2.1",
];

const WIDE: &[&str] = &["1:4", "4:1", "1:8", "8:1"];

const IMAGE_CONFIG: Shape = Shape {
    fields: &[
        (
            "aspectRatio",
            Kind::OneOf(&[
                "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4",
                "4:1", "1:8", "8:1",
            ]),
        ),
        ("imageSize", Kind::OneOf(&["512", "1K", "2K", "4K"])),
        (
            "personGeneration",
            Kind::OneOf(&["ALLOW_ALL", "ALLOW_ADULT", "ALLOW_NONE"]),
        ),
        ("outputMimeType", Kind::OneOf(&["image/png", "image/jpeg"])),
        ("outputCompressionQuality", Kind::Int(0, 100)),
        ("imageOutputOptions", Kind::Object),
        ("prominentPeople", Kind::Str),
    ],
    required: &[],
};

/// What only the Agent Platform takes.
const PLATFORM: &[&str] = &[
    "outputMimeType",
    "outputCompressionQuality",
    "imageOutputOptions",
    "prominentPeople",
];

const SEARCH: Shape = Shape {
    fields: &[
        (
            "searchTypes",
            Kind::Shape(&Shape {
                fields: &[("webSearch", Kind::Object), ("imageSearch", Kind::Object)],
                required: &[],
            }),
        ),
        ("excludeDomains", Kind::List(&Kind::Str)),
        ("timeRangeFilter", Kind::Object),
    ],
    required: &[],
};

/// Whether a model is named as those of pictures are.
pub(super) fn is_model(model: &str) -> bool {
    model.contains("-image") || model.contains("nano-banana")
}

fn is_first(model: &str) -> bool {
    model.starts_with("gemini-2.5")
}

/// The only one that searches for pictures, and that makes the smallest and the widest.
fn is_flash_3_1(model: &str) -> bool {
    model == "gemini-3.1-flash-image"
}

/// What a request wants.
struct Wish {
    text: String,
    size: (u32, u32),
    form: PictureForm,
    /// Whether text comes beside the picture.
    speaks: bool,
    searches: bool,
    inputs: usize,
}

pub(super) fn read(request: &Arc<Seen>, model: &str, site: Site) -> Judged<Media> {
    if !MODELS.contains(&model) {
        return Err(model_missing(request));
    }
    json(request)?;
    let body = &request.body;
    let read = check::read(body, model, Stream::No)?;
    let nothing = Value::Null;
    let config = field(body, "generationConfig").unwrap_or(&nothing);
    settings(config, model)?;
    let pictures = pictures(body, model)?;
    let image = field(config, "imageConfig").unwrap_or(&nothing);
    if !image.is_null() {
        let place = Place::root(Style::Snake)
            .field("generationConfig")
            .field("imageConfig");
        let fit = IMAGE_CONFIG.check(image, &place);
        fit.map_err(|flaw| words::flaw(&flaw))?;
        platform_only(image, PLATFORM, site)?;
    }
    let form = text_of(image, "outputMimeType").and_then(|name| name.strip_prefix("image/"));
    let wish = Wish {
        size: size(image, model, pictures.last())?,
        form: form
            .and_then(PictureForm::named)
            .unwrap_or(PictureForm::Png),
        speaks: modalities(config)?,
        searches: search(body, model)?,
        inputs: pictures.len(),
        text: read.ask.text,
    };
    let (request, model) = (Arc::clone(request), model.to_owned());
    Ok(Media::submit(wish.text.clone(), move |desk| {
        if desk.course.verdict == Verdict::Failed || desk.course.verdict == Verdict::Expired {
            desk.succeed(&request)?;
        }
        Ok(answer(desk, &wish, &model))
    }))
}

/// Settings that models of pictures do not have.
fn settings(config: &Value, model: &str) -> Checked {
    let refuse = |rule, message: &str| Err(Box::new(words::invalid(rule, message)));
    if field(config, "candidateCount")
        .and_then(Value::as_u64)
        .unwrap_or(1)
        > 1
    {
        return refuse(
            "candidates",
            "Multiple candidates is not enabled for this model",
        );
    }
    if text_of(config, "responseMimeType").is_some_and(|name| name != "text/plain") {
        return refuse("json-mode", "JSON mode is not enabled for this model");
    }
    let Some(thinking) = field(config, "thinkingConfig") else {
        return Ok(());
    };
    if is_first(model) {
        return refuse("thinking-model", "Thinking is not enabled for this model");
    }
    let level = text_of(thinking, "thinkingLevel").unwrap_or("HIGH");
    if is_flash_3_1(model) && !["minimal", "high"].contains(&level.to_lowercase().as_str()) {
        return refuse(
            "thinking-level",
            "Thinking level is not supported for this model.",
        );
    }
    Ok(())
}

/// Whether text is wanted too; a picture always has to be.
fn modalities(config: &Value) -> Judged<bool> {
    let list = list_of(config, "responseModalities");
    if field(config, "responseModalities").is_none() {
        return Ok(true);
    }
    let has = |name: &str| list.iter().any(|one| one == name);
    if !has("IMAGE") || has("AUDIO") || has("VIDEO") {
        let message = "The requested combination of response modalities is not supported by the \
            model.";
        return Err(Box::new(words::invalid("modalities", message)));
    }
    Ok(has("TEXT"))
}

/// Whether the model searches.
fn search(body: &Value, model: &str) -> Judged<bool> {
    let mut searches = false;
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let names = tool.as_object().into_iter().flatten().map(|(name, _)| name);
        if !names
            .into_iter()
            .all(|name| name == "googleSearch" || name == "google_search")
        {
            let message = "Only the tool google_search is enabled for this model";
            return Err(Box::new(words::invalid("tool", message)));
        }
        let Some(search) = field(tool, "googleSearch") else {
            continue;
        };
        let place = Place::root(Style::Snake)
            .field("tools")
            .at(at)
            .field("googleSearch");
        SEARCH
            .check(search, &place)
            .map_err(|flaw| words::flaw(&flaw))?;
        let types = field(search, "searchTypes");
        let for_pictures = types.is_some_and(|types| field(types, "imageSearch").is_some());
        if is_first(model) || (for_pictures && !is_flash_3_1(model)) {
            let message = "Search Grounding is not supported for this model.";
            return Err(Box::new(words::invalid("search", message)));
        }
        searches = true;
    }
    Ok(searches)
}

/// The pictures of the request; they come in it, and no other way but as files of Google's own.
fn pictures(body: &Value, model: &str) -> Judged<Vec<Inline>> {
    let contents = list_of(body, "contents").iter();
    let parts = contents.flat_map(|content| list_of(content, "parts"));
    let mut pictures = Vec::new();
    for part in parts {
        if let Some(file) = field(part, "fileData") {
            let uri = text_of(file, "fileUri").unwrap_or_default();
            let own = uri.starts_with("gs://") || uri.contains("generativelanguage.googleapis.com");
            if media::is_web(uri) && !own {
                let message = format!("Invalid or unsupported file uri: {uri}");
                return Err(Box::new(words::invalid("file-uri", message)));
            }
        }
        let Some(blob) = field(part, "inlineData") else {
            continue;
        };
        let get = |name: &str| text_of(blob, name).unwrap_or_default();
        let bytes = media::decode_any(get("data")).unwrap_or_default();
        let checked = given::picture(&bytes);
        let checked = checked.and_then(|one| given::named(get("mimeType"), &one).map(|()| one));
        let wrong = |(rule, what): given::Wrong| {
            Box::new(words::invalid(
                rule,
                format!("Unable to process input image: {what}"),
            ))
        };
        pictures.push(checked.map_err(wrong)?);
    }
    if pictures.len() > 14 && !is_first(model) {
        let message = "At most 14 images are supported by this model.";
        return Err(Box::new(words::invalid("too-many", message)));
    }
    Ok(pictures)
}

fn size(image: &Value, model: &str, last: Option<&Inline>) -> Judged<(u32, u32)> {
    let refuse = |rule, message: String| Err(Box::new(words::invalid(rule, message)));
    let name = text_of(image, "aspectRatio");
    if let Some(name) = name
        && WIDE.contains(&name)
        && !is_flash_3_1(model)
    {
        return refuse(
            "aspect-ratio",
            format!("Aspect ratio {name} is not supported."),
        );
    }
    let size = text_of(image, "imageSize");
    let (first, small) = (is_first(model), size == Some("512") && !is_flash_3_1(model));
    if size.is_some() && (first || small) {
        return refuse(
            "image-size",
            "Image size is not supported for this model.".to_owned(),
        );
    }
    let side = match size {
        Some("512") => 512,
        Some("2K") => 2048,
        Some("4K") => 4096,
        _ => 1024,
    };
    let of_last = last.map(|last| f64::from(last.size.0) / f64::from(last.size.1));
    let ratio = name.and_then(pixels::ratio).or(of_last).unwrap_or(1.0);
    Ok(pixels::with_area(ratio, side))
}

fn answer(desk: &Desk<'_>, wish: &Wish, model: &str) -> Made {
    let picture = |size, number| {
        let form = wish.form;
        let recipe = Recipe::Picture(Picture { form, size, number });
        json!({"mimeType": form.media_type(), "data": desk.base64(recipe)})
    };
    let mut candidate = json!({"index": 0, "finishReason": "STOP"});
    let mut parts = Vec::new();
    if !is_first(model) {
        // A draft, which is not the answer.
        parts.push(json!({"inlineData": picture((64, 64), desk.number + 1), "thought": true}));
    }
    if wish.speaks {
        parts.push(json!({"text": "Here is your picture."}));
    }
    let is_good = desk.course.verdict == Verdict::Good && desk.course.good(1) == 1;
    if is_good {
        let mut part = json!({"inlineData": picture(wish.size, desk.number)});
        if !is_first(model) {
            part["thoughtSignature"] = json!(sign(&desk.hex()));
        }
        parts.push(part);
        candidate["content"] = json!({"role": "model", "parts": parts});
    } else if desk.course.verdict == Verdict::Good {
        candidate["finishReason"] = json!("NO_IMAGE");
    } else {
        candidate["finishReason"] = json!("IMAGE_SAFETY");
        candidate["finishMessage"] = json!("Unable to show the generated image.");
    }
    if wish.searches && is_good {
        candidate["groundingMetadata"] = json!({
            "webSearchQueries": ["a tree"], "groundingChunks": [],
            "searchEntryPoint": {"renderedContent": "<div></div>"},
        });
    }
    let asked = tokens(&wish.text, 0, false).input;
    let images = 258 * wish.inputs as u64;
    let output = if is_good { 1290 } else { 0 };
    let modality = |name: &str, count: u64| json!({"modality": name, "tokenCount": count});
    let usage = json!({
        "promptTokenCount": asked + images, "candidatesTokenCount": output,
        "totalTokenCount": asked + images + output,
        "promptTokensDetails": [modality("TEXT", asked), modality("IMAGE", images)],
        "candidatesTokensDetails": [modality("IMAGE", output)],
    });
    let mut answer = json!({
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": model,
        "responseId": desk.hex(),
    });
    if desk.course.verdict == Verdict::Blocked {
        let feedback = json!({"blockReason": "PROHIBITED_CONTENT"});
        answer = json!({
            "promptFeedback": feedback, "usageMetadata": answer["usageMetadata"],
            "modelVersion": model, "responseId": answer["responseId"],
        });
    }
    Made::json(answer).after(desk.course.work)
}
