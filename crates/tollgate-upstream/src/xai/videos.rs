//! Films: `/videos/generations` (xai.md › Video).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::video::{ImageUse, VideoJob};

use super::{BEARER, Server, models, refusal};
use crate::provider::{
    Polled, ProviderError, ProviderErrorKind, Queue, QueueCall, Rhythm, Started, VideoCall,
    VideoProvider,
};
use crate::wire::{Ask, Changes, Slots, hand_over, segment, unnamed, unpolled};

/// Most references of one film.
const MOST_REFERENCES: usize = 7;
/// The longest film made after references, in seconds.
const LONGEST_WITH_REFERENCES: u32 = 10;
/// How long an answer about a film may take.
const POLL_TIME: Duration = Duration::from_secs(30);

pub(super) struct Videos(pub(super) Arc<Server>);

#[async_trait]
impl VideoProvider for Videos {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let server = &self.0;
        let id = call.attempt.model.id_by(models::IDS);
        let role = role(call.job, call.images.len())?;
        let (mut fields, changes) = fields(id, call.job, role)?;
        changes.tell(call.attempt.delivery);
        let images = super::readable(call.images).await?;
        let mut slots = Slots::new();
        let image = |picture| json!({"url": slots.picture(picture)});
        let mut images: Vec<Value> = images.iter().map(image).collect();
        match role {
            Role::None => {}
            Role::First => drop(fields.insert("image".into(), images.remove(0))),
            Role::References => drop(fields.insert("reference_images".into(), images.into())),
        }
        let json = HeaderValue::from_static("application/json");
        let url = server.url("/videos/generations");
        let ask = Ask::post_parts(url, json, slots.fill(&fields.into()))
            .authorized(BEARER, call.attempt.key)?
            .once();
        let answer = server.wire.ask(ask).await?;
        let json = answer.json();
        let ticket = json["request_id"].as_str().filter(|id| !id.is_empty());
        match ticket.filter(|_| answer.status.is_success()) {
            Some(ticket) => Ok(Started::Accepted(ticket.to_owned())),
            None => Err(unnamed(&answer, server.refusal(&answer))),
        }
    }
}

#[async_trait]
impl Queue for Videos {
    fn rhythm(&self, _: TaskKind) -> Rhythm {
        Rhythm::every(5)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let server = &self.0;
        let film = segment(call.ticket);
        let ask = Ask::get(server.url(&format!("/videos/{film}")))
            .authorized(BEARER, call.key)?
            .within(POLL_TIME);
        let answer = server.wire.ask(ask).await?;
        let json = answer.json();
        if answer.status == StatusCode::ACCEPTED {
            // Its body may be empty.
            return Ok(Polled::Waiting(percent(&json)));
        }
        if !answer.status.is_success() {
            return unpolled(server.refusal(&answer));
        }
        let url = json["video"]["url"].as_str().filter(|url| !url.is_empty());
        let is_held_back = json["video"]["respect_moderation"] == false;
        match (json["status"].as_str(), url) {
            (Some("pending"), _) => Ok(Polled::Waiting(percent(&json))),
            (Some("done") | None, _) if is_held_back => {
                Ok(Polled::Failed(refusal::held_back("film")))
            }
            (Some("done") | None, Some(url)) => {
                let link = server.wire.link(&server.base, url, HeaderMap::new());
                hand_over(call.delivery, vec![Ok(link)]).await
            }
            (Some("done"), None) => Ok(Polled::Failed(ProviderError::new(
                ProviderErrorKind::Failed,
                "the upstream says that the film is done, but gives none",
            ))),
            (Some("failed"), _) => {
                let error = refusal::of_task(&server.wire, &json["error"]);
                Ok(Polled::Failed(error))
            }
            (Some("expired"), _) => Ok(Polled::Failed(ProviderError::new(
                ProviderErrorKind::Failed,
                "the upstream has given the film up",
            ))),
            _ => Err(server.refusal(&answer)),
        }
    }
}

/// What the pictures are to a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    First,
    References,
}

/// What `count` pictures are to the film of `job`.
fn role(job: &VideoJob, count: usize) -> Result<Role, ProviderError> {
    let unfit = |message: &str| ProviderError::new(ProviderErrorKind::ChannelUnfit, message);
    match (job.image_use, count) {
        (_, 0) => Ok(Role::None),
        (_, count) if count > MOST_REFERENCES => {
            Err(unfit("the upstream takes at most 7 reference images"))
        }
        (Some(ImageUse::FirstAndLast), _) => Err(unfit("the upstream takes no last frame")),
        (None | Some(ImageUse::FirstFrame), 1) => Ok(Role::First),
        _ if job.seconds > LONGEST_WITH_REFERENCES => Err(unfit(
            "the upstream makes at most 10 seconds with reference images",
        )),
        _ => Ok(Role::References),
    }
}

/// The request's fields, pictures aside.
fn fields(
    id: &str,
    job: &VideoJob,
    role: Role,
) -> Result<(Map<String, Value>, Changes), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            ProviderErrorKind::Rejected,
            "the size of the film is unknown",
        ));
    };
    let named = job.size.ratio.as_deref();
    let tier = models::tier_of_film(
        job.size.resolution.as_deref(),
        size,
        role == Role::References,
    );
    let mut changes = Changes::unless_carried(job, &[]);
    let asked = job.size.resolution.as_deref();
    if let Some(asked) = asked.filter(|asked| !asked.eq_ignore_ascii_case(tier)) {
        let why = "the provider does not make this tier here: the nearest that it makes";
        changes.instead("resolution", asked, tier, why);
    }
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.into(), value));
    put("model", id.into());
    put("prompt", job.prompt.as_str().into());
    put("duration", job.seconds.into());
    // Without a ratio the film has the start picture's.
    if named.is_some() || role != Role::First {
        let ratio = models::ratio(models::OF_FILMS, named, size);
        changes.ratio(named, Some(size), ratio);
        put("aspect_ratio", ratio.into());
    }
    put("resolution", tier.into());
    Ok((fields, changes))
}

fn percent(json: &Value) -> Option<u8> {
    let percent = json["progress"].as_f64()?;
    (0.0..=100.0).contains(&percent).then_some(percent as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(seconds: u32, size: Value) -> VideoJob {
        let job = json!({
            "model": "m", "family": "grok-imagine-video", "prompt": "a cat runs", "seconds": seconds,
            "size": size, "images": [], "seed": 7, "extra": {},
        });
        serde_json::from_value(job).unwrap()
    }

    fn size(width: u32, height: u32, ratio: Option<&str>, tier: Option<&str>) -> Value {
        json!({"pixels": {"width": width, "height": height}, "ratio": ratio, "resolution": tier})
    }

    #[test]
    fn sizes_become_ratios_and_tiers() {
        let whole = |more: Value| {
            let mut whole = json!({"model": "u", "prompt": "a cat runs", "duration": 6});
            for (name, value) in more.as_object().unwrap() {
                whole[name] = value.clone();
            }
            whole
        };
        for (size, role, expected) in [
            (
                size(720, 1280, Some("9:16"), Some("720p")),
                Role::None,
                json!({"aspect_ratio": "9:16", "resolution": "720p"}),
            ),
            (
                size(854, 480, None, None),
                Role::First,
                json!({"resolution": "480p"}),
            ),
            (
                size(1920, 1080, None, Some("1080p")),
                Role::References,
                json!({"aspect_ratio": "16:9", "resolution": "720p"}),
            ),
        ] {
            let (sent, _) = fields("u", &job(6, size), role).unwrap();
            assert_eq!(Value::from(sent), whole(expected));
        }
    }

    #[test]
    fn pictures_are_what_the_family_says() {
        let size = size(1280, 720, Some("16:9"), Some("720p"));
        let unfit = Err(ProviderErrorKind::ChannelUnfit);
        for (image_use, count, seconds, expected) in [
            (None, 0, 15, Ok(Role::None)),
            (Some(ImageUse::FirstFrame), 1, 15, Ok(Role::First)),
            (Some(ImageUse::References), 1, 10, Ok(Role::References)),
            (Some(ImageUse::References), 7, 10, Ok(Role::References)),
            (Some(ImageUse::References), 7, 11, unfit),
            (Some(ImageUse::References), 8, 10, unfit),
            (Some(ImageUse::FirstAndLast), 2, 5, unfit),
            (None, 1, 15, Ok(Role::First)),
            (None, 2, 5, Ok(Role::References)),
        ] {
            let mut job = job(seconds, size.clone());
            job.image_use = image_use;
            let role = role(&job, count).map_err(|error| error.kind);
            assert_eq!(role, expected, "{image_use:?} {count} {seconds}");
        }
    }
}
