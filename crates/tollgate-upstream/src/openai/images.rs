//! Images: `/images/generations` as JSON, `/images/edits` with reference images as a multipart form.
//! <https://platform.openai.com/docs/api-reference/images>

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value};
use tollgate_media::image::{Background, ImageFormat, ImageJob, Moderation, PixelSize};
use url::Url;

use super::client::{BEARER, Client, key_header};
use super::models::{self, Dialect, GptModel};
use super::options::Options;
use super::{errors, sizes};
use crate::adapter::{
    Adjustments, CallOutcome, HttpRequest, HttpResponse, ListedResult, MultipartForm,
    run_in_batches, unless_cancelled,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Attempt, ImageCall, ImageProvider, ResultData, Started};
use crate::raster::{self, Upload};

/// The timeout of an image of the highest quality, the same as in OpenAI's own client.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The formats of reference images that the server accepts.
const ACCEPTED_FORMATS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];

pub(super) struct Images(pub(super) Arc<Client>);

#[async_trait]
impl ImageProvider for Images {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let options = Options::for_model(&self.0.channel, attempt.model);
        let id = attempt.model.id_by(models::IDS);
        let dialect = models::dialect(id, call.job, options.images());
        let (fields, changes) = fields(id, call.job, dialect)?;
        changes.report_to(attempt.sink);
        let work = async {
            let images = UploadImages::load(&call).await?;
            let per_call = options.per_call();
            run_in_batches(call.job.n, per_call, |n| {
                self.generate(attempt, &fields, &images, n)
            })
            .await
        };
        let completed = unless_cancelled(&attempt.cancel, work).await?;
        Ok(Started::Completed(completed))
    }
}

impl Images {
    /// One call for `n` images.
    async fn generate(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        images: &UploadImages<'_>,
        n: u32,
    ) -> Result<CallOutcome, ProviderError> {
        let mut fields = fields.clone();
        fields.insert("n".into(), n.into());
        let request = if images.references.is_empty() {
            HttpRequest::post(self.0.url("/images/generations"), &fields.into())
        } else {
            let (content_type, parts) = form(&fields, images).finish();
            HttpRequest::post_body(self.0.url("/images/edits"), content_type, parts)
        };
        let request = request
            .with_authorization(BEARER, attempt.key)?
            .with_timeout(TIMEOUT)
            .with_trace(attempt.trace)
            .creating();
        let client = &self.0.http;
        let results = client
            .send_for_listed_results(request, &["b64_json"], n, attempt.sink)
            .await?;
        let key = key_header(attempt.key)?;
        let read = |item: &Value| self.item(item, &key);
        let read_error = |response: &HttpResponse| self.0.response_error(response);
        results.deliver(n, attempt.sink, read, read_error).await
    }

    /// Reads one image of a response: base64 from OpenAI, a link or a data URI from some compatible servers.
    fn item(&self, item: &Value, key: &HeaderMap) -> ListedResult {
        if let Some(at) = item["b64_json"].as_str() {
            return ListedResult::Inline(at.to_owned());
        }
        let Some(url) = item["url"].as_str().filter(|url| !url.is_empty()) else {
            return ListedResult::Failed(errors::task_error(&self.0.http, &item["error"]));
        };
        let encoded = url
            .strip_prefix("data:")
            .and_then(|uri| uri.split_once(','));
        if let Some((_, encoded)) = encoded {
            return match STANDARD.decode(encoded) {
                Ok(bytes) => ListedResult::Separate(ResultData::Bytes(bytes.into())),
                Err(_) => ListedResult::Failed(ProviderError::new(
                    UpstreamErrorKind::Unavailable,
                    "an image in the upstream's response is not valid base64",
                )),
            };
        }
        // Some servers return a path without an origin.
        let base = Url::parse(&self.0.base).ok();
        let absolute = base.and_then(|base| base.join(url).ok());
        let url = absolute.as_ref().map_or(url, Url::as_str);
        let link = self.0.http.link(&self.0.base, url, key.clone());
        ListedResult::Separate(ResultData::Link(link))
    }
}

/// The images that are sent with a request.
struct UploadImages<'a> {
    references: Vec<Upload<'a>>,
    mask: Option<Upload<'a>>,
}

impl<'a> UploadImages<'a> {
    async fn load(call: &ImageCall<'a>) -> Result<Self, ProviderError> {
        let mut references = Vec::new();
        for file in call.references {
            references.push(raster::readable(file, ACCEPTED_FORMATS).await?);
        }
        let mask = match call.mask {
            Some(file) => Some(raster::mask(file).await?),
            None => None,
        };
        Ok(Self { references, mask })
    }
}

/// The fields of the request except `n`.
fn fields(
    id: &str,
    job: &ImageJob,
    dialect: Dialect,
) -> Result<(Map<String, Value>, Adjustments), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            UpstreamErrorKind::Rejected,
            "the size of the image is unknown",
        ));
    };
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.insert("prompt".into(), job.prompt.as_str().into());
    let changes = match dialect {
        Dialect::Generic => {
            fields.insert("size".into(), size.to_string().into());
            Adjustments::for_unsupported_fields(job, &[])
        }
        Dialect::Gpt(model) => gpt_fields(&mut fields, job, size, model),
    };
    Ok((fields, changes))
}

/// The fields that only OpenAI's image models support.
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
) -> Adjustments {
    let mut changes = Adjustments::for_unsupported_fields(job, GPT_FIELDS);
    let mut put = |name: &str, value: Value| drop(fields.insert(name.into(), value));
    let legal = sizes::image_size(model, size).to_string();
    changes.replace_value("size", size.to_string(), legal.as_str(), sizes::WHY);
    put("size", legal.into());
    let quality = quality(job, model);
    let why = "the provider has no such quality";
    changes.replace_value("quality", job.quality.as_deref(), quality, why);
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

/// The quality, if it is one of OpenAI's; a finer one is replaced by the finest that the model supports.
fn quality(job: &ImageJob, model: GptModel) -> Option<&str> {
    let requested = job.quality.as_deref()?;
    match requested {
        "auto" | "low" | "medium" | "high" => Some(requested),
        "xhigh" | "max" if model.fine_quality => Some(requested),
        "xhigh" | "max" => Some("high"),
        _ => None,
    }
}

fn form(fields: &Map<String, Value>, images: &UploadImages<'_>) -> MultipartForm {
    let mut form = MultipartForm::new();
    for (name, value) in fields {
        match value {
            Value::String(text) => form.text(name, text),
            other => form.text(name, &other.to_string()),
        }
    }
    let name = match images.references.len() {
        1 => "image",
        _ => "image[]",
    };
    for (index, image) in images.references.iter().enumerate() {
        form.image(name, &format!("image-{}", index + 1), image);
    }
    if let Some(mask) = &images.mask {
        form.image("mask", "mask", mask);
    }
    form
}
