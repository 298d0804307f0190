//! Pictures: `/images/generations` and, with references, `/images/edits`, both in JSON (xai.md › Images).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tollgate_media::image::ImageJob;

use super::{BEARER, Server, models, refusal};
use crate::provider::{
    Attempt, Done, ImageCall, ImageProvider, Made, ProviderError, ProviderErrorKind, Started,
};
use crate::raster::Upload;
use crate::wire::{Answer, Ask, Came, Changes, Item, Slots, in_calls, unless_stopped};

/// Most pictures of one call.
const MOST_PER_CALL: u32 = 10;
/// What the public clients ask for in one call, where the model does not make more.
const FEW_PER_CALL: u32 = 3;
/// Most references of one call, as in the public clients.
const MOST_REFERENCES: usize = 3;
/// How long the pictures may take.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) struct Images(pub(super) Arc<Server>);

#[async_trait]
impl ImageProvider for Images {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let unfit = |message: &str| ProviderError::new(ProviderErrorKind::ChannelUnfit, message);
        if call.mask.is_some() {
            return Err(unfit("the upstream takes no masks"));
        }
        if call.references.len() > MOST_REFERENCES {
            return Err(unfit("the upstream takes at most 3 reference images"));
        }
        let attempt = &call.attempt;
        let (fields, changes) = fields(attempt.model.id_by(models::IDS), call.job)?;
        changes.tell(attempt.delivery);
        let work = async {
            let references = super::readable(call.references).await?;
            let asked = call.job.n;
            let done = self
                .make_all(attempt, &fields, &references, asked, MOST_PER_CALL)
                .await;
            match done {
                Err(error) if asked > FEW_PER_CALL && refusal::is_of_n(&error) => {
                    self.make_all(attempt, &fields, &references, asked, FEW_PER_CALL)
                        .await
                }
                other => other,
            }
        };
        let done = unless_stopped(&attempt.cancel, work).await?;
        Ok(Started::Done(done))
    }
}

impl Images {
    async fn make_all(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        references: &[Upload<'_>],
        asked: u32,
        per_call: u32,
    ) -> Result<Done, ProviderError> {
        in_calls(asked, per_call, |n| {
            self.make(attempt, fields, references, n)
        })
        .await
    }

    /// One call for `n` pictures.
    async fn make(
        &self,
        attempt: &Attempt<'_>,
        fields: &Map<String, Value>,
        references: &[Upload<'_>],
        n: u32,
    ) -> Result<Came, ProviderError> {
        let mut fields = fields.clone();
        fields.insert("n".into(), n.into());
        let ask = if references.is_empty() {
            Ask::post(self.0.url("/images/generations"), &fields.into())
        } else {
            let mut slots = Slots::new();
            let image = |picture| json!({"url": slots.picture(picture), "type": "image_url"});
            let mut images: Vec<Value> = references.iter().map(image).collect();
            match images.len() {
                1 => fields.insert("image".into(), images.remove(0)),
                _ => fields.insert("images".into(), images.into()),
            };
            let json = HeaderValue::from_static("application/json");
            let url = self.0.url("/images/edits");
            Ask::post_parts(url, json, slots.fill(&fields.into()))
        };
        let ask = ask.authorized(BEARER, attempt.key)?.within(PATIENCE).once();
        let wire = &self.0.wire;
        let results = wire
            .ask_results(ask, &["b64_json"], n, attempt.delivery)
            .await?;
        let read = |item: &Value| self.item(item);
        let refusal = |answer: &Answer| self.0.refusal(answer);
        results.came(n, attempt.delivery, read, refusal).await
    }

    /// One picture of an answer: a link, as long as it is not held back.
    fn item(&self, item: &Value) -> Item {
        if item["respect_moderation"] == false {
            return Item::Refused(refusal::held_back("picture"));
        }
        if let Some(at) = item["b64_json"].as_str() {
            return Item::File(at.to_owned());
        }
        match item["url"].as_str().filter(|url| !url.is_empty()) {
            Some(url) => {
                let wire = &self.0.wire;
                let link = wire.link(&self.0.base, url, HeaderMap::new());
                Item::Made(Made::Link(link))
            }
            None => Item::Refused(refusal::of_task(&self.0.wire, &item["error"])),
        }
    }
}

/// The request's fields, `n` and references aside.
fn fields(id: &str, job: &ImageJob) -> Result<(Map<String, Value>, Changes), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            ProviderErrorKind::Rejected,
            "the size of the picture is unknown",
        ));
    };
    let ratio = models::ratio(models::OF_PICTURES, job.size.ratio.as_deref(), size);
    let mut changes = Changes::unless_carried(job, &[]);
    changes.ratio(job.size.ratio.as_deref(), Some(size), ratio);
    let mut fields = Map::new();
    fields.insert("model".into(), id.into());
    fields.insert("prompt".into(), job.prompt.as_str().into());
    fields.insert("aspect_ratio".into(), ratio.into());
    if let Some(tier) = models::tier_of_picture(size) {
        fields.insert("resolution".into(), tier.into());
    }
    Ok((fields, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_ratios_and_tiers() {
        for ((width, height), ratio, expected) in [
            ((1280, 720), Some("16:9"), json!({"aspect_ratio": "16:9"})),
            ((1152, 864), None, json!({"aspect_ratio": "4:3"})),
            (
                (2048, 2048),
                Some("1:1"),
                json!({"aspect_ratio": "1:1", "resolution": "2k"}),
            ),
        ] {
            let job = json!({
                "model": "m", "family": "grok-imagine", "prompt": "a cat", "n": 2, "output_format": "jpeg",
                "quality": "high", "seed": 3,
                "size": {"pixels": {"width": width, "height": height}, "ratio": ratio, "tier": null},
            });
            let (sent, changes) = fields("u", &serde_json::from_value(job).unwrap()).unwrap();
            assert_eq!(changes.shown(), [""; 0]);
            let mut whole = json!({"model": "u", "prompt": "a cat"});
            for (name, value) in expected.as_object().unwrap() {
                whole[name] = value.clone();
            }
            assert_eq!(Value::from(sent), whole);
        }
    }
}
