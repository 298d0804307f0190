//! What a request of the queue is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words;
use crate::desk::{Made, Media};
use crate::hosted::{self, Family};
use crate::incoming::Seen;
use crate::media;
use crate::place::{Place, Style};
use crate::refusal::{Checked, Fault, Judged};
use crate::shape::{Kind, Shape, text_of};

const PRESETS: &[&str] = &[
    "square_hd",
    "square",
    "portrait_4_3",
    "portrait_16_9",
    "landscape_4_3",
    "landscape_16_9",
];

const PICTURE: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        ("negative_prompt", Kind::Str),
        ("num_images", Kind::Int(1, 15)),
        ("max_images", Kind::Int(1, 15)),
        (
            "image_size",
            Kind::Either(&[
                Kind::OneOf(PRESETS),
                Kind::Shape(&Shape {
                    fields: &[
                        ("width", Kind::Int(64, 8192)),
                        ("height", Kind::Int(64, 8192)),
                    ],
                    required: &["width", "height"],
                }),
            ]),
        ),
        ("aspect_ratio", Kind::Str),
        ("resolution", Kind::Str),
        ("image_url", Kind::Str),
        ("image_urls", Kind::Few(14, &Kind::Str)),
        ("output_format", Kind::OneOf(&["png", "jpeg", "webp"])),
        ("seed", Kind::Int(0, 4_294_967_295)),
        ("enable_safety_checker", Kind::Bool),
        ("sync_mode", Kind::Bool),
    ],
    required: &["prompt"],
};

const FILM: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        ("negative_prompt", Kind::Str),
        ("image_url", Kind::Str),
        ("image_urls", Kind::Few(9, &Kind::Str)),
        ("end_image_url", Kind::Str),
        ("duration", Kind::Either(&[Kind::Str, Kind::Int(1, 15)])),
        ("aspect_ratio", Kind::Str),
        ("resolution", Kind::OneOf(&["480p", "720p", "1080p", "4k"])),
        ("generate_audio", Kind::Bool),
        ("camera_fixed", Kind::Bool),
        ("seed", Kind::Int(-1, 4_294_967_295)),
        ("enable_safety_checker", Kind::Bool),
    ],
    required: &["prompt"],
};

const SOUND: Shape = Shape {
    fields: &[
        ("text", Kind::Text(10_000)),
        ("voice", Kind::Str),
        ("speed", Kind::Num(0.5, 2.0)),
        ("language", Kind::Str),
        // MiniMax's.
        ("voice_setting", Kind::Shape(&VOICE)),
        ("language_boost", Kind::Str),
        ("output_format", Kind::OneOf(&["url", "hex"])),
    ],
    required: &["text"],
};

const VOICE: Shape = Shape {
    fields: &[
        ("voice_id", Kind::Str),
        ("speed", Kind::Num(0.5, 2.0)),
        ("vol", Kind::Num(0.01, 10.0)),
        ("pitch", Kind::Int(-12, 12)),
        ("emotion", Kind::Str),
        ("english_normalization", Kind::Bool),
    ],
    required: &[],
};

pub(super) fn read(request: &Arc<Seen>, owner: &str, app: &str, rest: &[&str]) -> Judged<Media> {
    let name = [&[app], rest].concat().join("/");
    let Some(family) = Family::named(owner, &name) else {
        return Err(Box::new(words::fault(Fault::ModelMissing, request)));
    };
    if !request.says_json() || !request.body.is_object() {
        let rule = if request.says_json() {
            "json"
        } else {
            "content-type"
        };
        return Err(Box::new(words::at(
            "json_invalid",
            rule,
            "",
            "JSON decode error",
        )));
    }
    let input = &request.body;
    let shape = match family {
        Family::Picture => &PICTURE,
        Family::Film => &FILM,
        Family::Sound => &SOUND,
    };
    let fit = shape.check(input, &Place::root(Style::Dots));
    fit.map_err(|flaw| Box::new(words::flaw(&flaw)))?;
    if let Some((name, (rule, what))) = hosted::bad_picture(input) {
        return Err(Box::new(words::at("image_load_error", rule, name, &what)));
    }
    headers(request)?;
    let mut facts = hosted::facts(family, input);
    facts["app"] = json!(format!("{owner}/{app}"));
    facts["input"] = input.clone();
    let text = text_of(input, "prompt").or(text_of(input, "text"));
    let text = text.unwrap_or_default().to_owned();
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = desk.uuid();
        // What follows drops the path behind the app.
        let base = format!(
            "{}/{}/requests/{id}",
            desk.origin(),
            text_of(&facts, "app").unwrap_or_default()
        );
        desk.begin(&id, facts);
        Ok(Made::json(json!({
            "status": "IN_QUEUE", "request_id": id, "gateway_request_id": id, "queue_position": 0,
            "response_url": base, "status_url": format!("{base}/status"),
            "cancel_url": format!("{base}/cancel"),
        })))
    }))
}

/// Headers and the query that ask for more.
fn headers(request: &Seen) -> Checked {
    let refuse = |rule, detail: &str| Err(Box::new(words::plain(400, rule, detail)));
    let timeout = request.header("x-fal-request-timeout");
    if timeout.is_some_and(|text| text.parse::<f64>().is_err()) {
        return refuse("timeout", "X-Fal-Request-Timeout must be a number");
    }
    let priority = request.header("x-fal-queue-priority");
    if priority.is_some_and(|text| !["normal", "low"].contains(&text)) {
        return refuse("priority", "X-Fal-Queue-Priority must be normal or low");
    }
    let life = request.header("x-fal-object-lifecycle-preference");
    let is_object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|v| v.is_object());
    if life.is_some_and(|text| !is_object(text)) {
        return refuse(
            "lifecycle",
            "X-Fal-Object-Lifecycle-Preference must be JSON",
        );
    }
    let webhook = request.query_value("fal_webhook");
    if webhook.is_some_and(|url| !media::is_web(&url)) {
        return refuse("webhook", "fal_webhook must be a URL");
    }
    Ok(())
}
