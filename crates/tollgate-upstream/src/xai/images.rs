//! Images: `/images/generations` and, with reference images, `/images/edits`, both as JSON.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tollgate_media::image::ImageJob;

use super::client::{BEARER, Client, readable};
use super::{errors, models};
use crate::adapter::{
    Adjustments, CallOutcome, HttpRequest, HttpResponse, InlineFiles, ListedResult, run_in_batches,
    unless_cancelled,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Attempt, Completed, ImageCall, ImageProvider, ResultData, Started};
use crate::raster::Upload;

/// Maximum number of images of one call.
const MAX_PER_CALL: u32 = 10;
/// Number of images of one call to a model that generates fewer, the same as in the public clients.
const FEW_PER_CALL: u32 = 3;
/// Maximum number of references of one call, as in the public clients.
const MAX_REFERENCES: usize = 3;
/// The timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(600);

pub(super) struct Images(pub(super) Arc<Client>);

#[async_trait]
impl ImageProvider for Images {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let unsupported =
            |message: &str| ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message);
        if call.mask.is_some() {
            return Err(unsupported("the upstream accepts no masks"));
        }
        if call.references.len() > MAX_REFERENCES {
            return Err(unsupported(
                "the upstream accepts at most 3 reference images",
            ));
        }
        let attempt = &call.attempt;
        let (fields, changes) = fields(attempt.model.id_by(models::IDS), call.job)?;
        changes.report_to(attempt.sink);
        let work = async {
            let references = readable(call.references).await?;
            let requested = call.job.n;
            let completed = self
                .generate_all(attempt, &fields, &references, requested, MAX_PER_CALL)
                .await;
            match completed {
                Err(error) if requested > FEW_PER_CALL && errors::is_about_n(&error) => {
                    self.generate_all(attempt, &fields, &references, requested, FEW_PER_CALL)
                        .await
                }
                other => other,
            }
        };
        let completed = unless_cancelled(&attempt.cancel, work).await?;
        Ok(Started::Completed(completed))
    }
}

impl Images {
    async fn generate_all(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        references: &[Upload<'_>],
        requested: u32,
        per_call: u32,
    ) -> Result<Completed, ProviderError> {
        run_in_batches(requested, per_call, |n| {
            self.generate(attempt, fields, references, n)
        })
        .await
    }

    /// One call for `n` images.
    async fn generate(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        references: &[Upload<'_>],
        n: u32,
    ) -> Result<CallOutcome, ProviderError> {
        let mut fields = fields.clone();
        fields.insert("n".into(), n.into());
        let request = if references.is_empty() {
            HttpRequest::post(self.0.url("/images/generations"), &fields.into())
        } else {
            let mut inline_files = InlineFiles::new();
            let image = |image| json!({"url": inline_files.image(image), "type": "image_url"});
            let mut images: Vec<Value> = references.iter().map(image).collect();
            match images.len() {
                1 => fields.insert("image".into(), images.remove(0)),
                _ => fields.insert("images".into(), images.into()),
            };
            let json = HeaderValue::from_static("application/json");
            let url = self.0.url("/images/edits");
            HttpRequest::post_body(url, json, inline_files.into_body(&fields.into()))
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
        let read = |item: &Value| self.item(item);
        let read_error = |response: &HttpResponse| self.0.response_error(response);
        results.deliver(n, attempt.sink, read, read_error).await
    }

    /// Reads one image of a response: a link, unless the image is withheld.
    fn item(&self, item: &Value) -> ListedResult {
        if item["respect_moderation"] == false {
            return ListedResult::Failed(errors::withheld("image"));
        }
        if let Some(at) = item["b64_json"].as_str() {
            return ListedResult::Inline(at.to_owned());
        }
        match item["url"].as_str().filter(|url| !url.is_empty()) {
            Some(url) => {
                let client = &self.0.http;
                let link = client.link(&self.0.base, url, HeaderMap::new());
                ListedResult::Separate(ResultData::Link(link))
            }
            None => ListedResult::Failed(errors::task_error(&self.0.http, &item["error"])),
        }
    }
}

/// The fields of the request except `n` and references.
fn fields(id: &str, job: &ImageJob) -> Result<(Map<String, Value>, Adjustments), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            UpstreamErrorKind::Rejected,
            "the size of the image is unknown",
        ));
    };
    let ratio = models::ratio(models::IMAGE_RATIOS, job.size.ratio.as_deref(), size);
    let mut changes = Adjustments::for_unsupported_fields(job, &[]);
    changes.ratio(job.size.ratio.as_deref(), Some(size), ratio);
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.insert("prompt".into(), job.prompt.as_str().into());
    fields.insert("aspect_ratio".into(), ratio.into());
    if let Some(tier) = models::tier_of_image(size) {
        fields.insert("resolution".into(), tier.into());
    }
    Ok((fields, changes))
}
