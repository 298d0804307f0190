//! Pictures: `/images/generations` in JSON, `/images/edits` with references as a form (openai-images.md).

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value};
use tollgate_media::image::{Background, ImageFormat, ImageJob, Moderation, PixelSize};
use url::Url;

use super::models::{self, Dialect, GptModel};
use super::options::Options;
use super::{BEARER, PATIENCE, Server, key_header, refusal, sizes};
use crate::provider::{
    Attempt, ImageCall, ImageProvider, Made, ProviderError, ProviderErrorKind, Started,
};
use crate::raster::{self, Upload};
use crate::wire::{Answer, Ask, Came, Changes, Form, Item, in_calls, unless_stopped};

/// What references may be (openai-images.md › Edit).
const READS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];

pub(super) struct Images(pub(super) Arc<Server>);

#[async_trait]
impl ImageProvider for Images {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let options = Options::of(&self.0.channel, attempt.model);
        let id = attempt.model.id_by(models::IDS);
        let dialect = models::dialect(id, call.job, options.images());
        let (fields, changes) = fields(id, call.job, dialect)?;
        changes.tell(attempt.delivery);
        let work = async {
            let pictures = Pictures::of(&call).await?;
            let per_call = options.per_call();
            in_calls(call.job.n, per_call, |n| {
                self.make(attempt, &fields, &pictures, n)
            })
            .await
        };
        let done = unless_stopped(&attempt.cancel, work).await?;
        Ok(Started::Done(done))
    }
}

impl Images {
    /// One call for `n` pictures.
    async fn make(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        pictures: &Pictures<'_>,
        n: u32,
    ) -> Result<Came, ProviderError> {
        let mut fields = fields.clone();
        fields.insert("n".into(), n.into());
        let ask = if pictures.references.is_empty() {
            Ask::post(self.0.url("/images/generations"), &fields.into())
        } else {
            let (content_type, parts) = form(&fields, pictures).finish();
            Ask::post_parts(self.0.url("/images/edits"), content_type, parts)
        };
        let ask = ask.authorized(BEARER, attempt.key)?.within(PATIENCE).once();
        let wire = &self.0.wire;
        let results = wire
            .ask_results(ask, &["b64_json"], n, attempt.delivery)
            .await?;
        let key = key_header(attempt.key)?;
        let read = |item: &Value| self.item(item, &key);
        let refusal = |answer: &Answer| self.0.refusal(answer);
        results.came(n, attempt.delivery, read, refusal).await
    }

    /// One picture of an answer: base64 from OpenAI, a link or a data URI from some servers like it.
    fn item(&self, item: &Value, key: &HeaderMap) -> Item {
        if let Some(at) = item["b64_json"].as_str() {
            return Item::File(at.to_owned());
        }
        let Some(url) = item["url"].as_str().filter(|url| !url.is_empty()) else {
            return Item::Refused(refusal::of_task(&self.0.wire, &item["error"]));
        };
        let encoded = url
            .strip_prefix("data:")
            .and_then(|uri| uri.split_once(','));
        if let Some((_, encoded)) = encoded {
            return match STANDARD.decode(encoded) {
                Ok(bytes) => Item::Made(Made::Bytes(bytes.into())),
                Err(_) => Item::Refused(ProviderError::new(
                    ProviderErrorKind::Retryable,
                    "a picture in the upstream's answer is no valid base64",
                )),
            };
        }
        // Some give a path of their own.
        let base = Url::parse(&self.0.base).ok();
        let whole = base.and_then(|base| base.join(url).ok());
        let url = whole.as_ref().map_or(url, Url::as_str);
        let link = self.0.wire.link(&self.0.base, url, key.clone());
        Item::Made(Made::Link(link))
    }
}

/// The pictures that go with a request.
struct Pictures<'a> {
    references: Vec<Upload<'a>>,
    mask: Option<Upload<'a>>,
}

impl<'a> Pictures<'a> {
    async fn of(call: &ImageCall<'a>) -> Result<Self, ProviderError> {
        let mut references = Vec::new();
        for file in call.references {
            references.push(raster::readable(file, READS).await?);
        }
        let mask = match call.mask {
            Some(file) => Some(raster::mask(file).await?),
            None => None,
        };
        Ok(Self { references, mask })
    }
}

/// The request's fields, `n` aside.
fn fields(
    id: &str,
    job: &ImageJob,
    dialect: Dialect,
) -> Result<(Map<String, Value>, Changes), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            ProviderErrorKind::Rejected,
            "the size of the picture is unknown",
        ));
    };
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.insert("prompt".into(), job.prompt.as_str().into());
    let changes = match dialect {
        Dialect::Generic => {
            fields.insert("size".into(), size.to_string().into());
            Changes::unless_carried(job, &[])
        }
        Dialect::Gpt(model) => gpt_fields(&mut fields, job, size, model),
    };
    Ok((fields, changes))
}

/// What the picture models of OpenAI's take besides.
const GPT_FIELDS: &[&str] = &[
    "quality",
    "background",
    "moderation",
    "output_format",
    "output_compression",
];

fn gpt_fields(
    fields: &mut Map<String, Value>,
    job: &ImageJob,
    size: PixelSize,
    model: GptModel,
) -> Changes {
    let mut changes = Changes::unless_carried(job, GPT_FIELDS);
    let mut put = |name: &str, value: Value| drop(fields.insert(name.into(), value));
    let legal = sizes::of_picture(model, size).to_string();
    changes.instead("size", size.to_string(), legal.as_str(), sizes::WHY);
    put("size", legal.into());
    let quality = quality(job, model);
    let why = "the provider has no such quality";
    changes.instead("quality", job.quality.as_deref(), quality, why);
    if let Some(quality) = quality {
        put("quality", quality.into());
    }
    match job.background {
        Some(Background::Auto) => put("background", "auto".into()),
        Some(Background::Opaque) => put("background", "opaque".into()),
        Some(Background::Transparent) => put("background", "transparent".into()),
        None => {}
    }
    match job.moderation {
        Some(Moderation::Auto) => put("moderation", "auto".into()),
        Some(Moderation::Low) => put("moderation", "low".into()),
        None => {}
    }
    put("output_format", job.output_format.name().into());
    let is_lossy = matches!(job.output_format, ImageFormat::Jpeg | ImageFormat::Webp);
    if let Some(percent) = job.output_compression.filter(|_| is_lossy) {
        put("output_compression", percent.into());
    }
    changes
}

/// The quality, where it is one of OpenAI's; the finest that the model has for a finer one.
fn quality(job: &ImageJob, model: GptModel) -> Option<&str> {
    let asked = job.quality.as_deref()?;
    match asked {
        "auto" | "low" | "medium" | "high" => Some(asked),
        "xhigh" | "max" if model.fine_quality => Some(asked),
        "xhigh" | "max" => Some("high"),
        _ => None,
    }
}

fn form(fields: &Map<String, Value>, pictures: &Pictures<'_>) -> Form {
    let mut form = Form::new();
    for (name, value) in fields {
        match value {
            Value::String(text) => form.text(name, text),
            other => form.text(name, &other.to_string()),
        }
    }
    let name = match pictures.references.len() {
        1 => "image",
        _ => "image[]",
    };
    for (index, picture) in pictures.references.iter().enumerate() {
        form.picture(name, &format!("image-{}", index + 1), picture);
    }
    if let Some(mask) = &pictures.mask {
        form.picture("mask", "mask", mask);
    }
    form
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(more: Value) -> ImageJob {
        let mut job = json!({
            "model": "m", "family": "gpt-image-2", "prompt": "a cat", "n": 2, "output_format": "png",
            "size": {"pixels": {"width": 1881, "height": 836}, "ratio": null, "tier": "1k"},
        });
        for (name, value) in more.as_object().unwrap() {
            job[name] = value.clone();
        }
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn only_what_is_set_is_sent() {
        const SIZE: &str = r#"size: "1881x836" → "1536x512""#;
        let gpt = Dialect::Gpt(GptModel {
            any_size: true,
            fine_quality: false,
        });
        for (more, dialect, expected, changed) in [
            (
                json!({}),
                gpt,
                json!({"model": "u", "prompt": "a cat", "size": "1536x512", "output_format": "png"}),
                &[SIZE][..],
            ),
            (
                json!({"quality": "max", "background": "auto", "moderation": "low", "output_format": "webp", "output_compression": 40}),
                gpt,
                json!({"model": "u", "prompt": "a cat", "size": "1536x512", "quality": "high", "background": "auto",
                    "moderation": "low", "output_format": "webp", "output_compression": 40}),
                &[SIZE, r#"quality: "max" → "high""#],
            ),
            (
                json!({"quality": "standard", "background": "transparent", "output_compression": 40}),
                gpt,
                json!({"model": "u", "prompt": "a cat", "size": "1536x512", "background": "transparent", "output_format": "png"}),
                &[SIZE, r#"quality: "standard" → null"#],
            ),
            (
                json!({"quality": "high", "background": "auto", "seed": 3, "negative_prompt": "dogs"}),
                Dialect::Generic,
                json!({"model": "u", "prompt": "a cat", "size": "1881x836"}),
                &[r#"quality: "high" → null"#],
            ),
        ] {
            let (sent, changes) = fields("u", &job(more), dialect).unwrap();
            assert_eq!(Value::from(sent), expected);
            assert_eq!(changes.shown(), changed);
        }
    }
}
