//! Films: `/videos`, the format of Sora, of servers like it (openai-videos.md).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::TaskKind;
use tollgate_media::image::ImageFormat;

use super::{BEARER, Server, key_header, models, refusal, sizes};
use crate::provider::{
    Polled, ProviderError, ProviderErrorKind, Queue, QueueCall, Rhythm, Started, VideoCall,
    VideoProvider,
};
use crate::raster;
use crate::wire::{Ask, Changes, Form, hand_over, segment, unnamed, unpolled};

/// What the reference may be.
const READS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];
/// How long an answer about a film may take.
const POLL_TIME: Duration = Duration::from_secs(30);

pub(super) struct Videos(pub(super) Arc<Server>);

#[async_trait]
impl VideoProvider for Videos {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let server = &self.0;
        let id = call.attempt.model.id_by(models::IDS);
        let Some(mut size) = call.job.size.pixels else {
            return Err(ProviderError::new(
                ProviderErrorKind::Rejected,
                "the size of the film is unknown",
            ));
        };
        let mut changes = Changes::unless_carried(call.job, &[]);
        if models::is_sora(id) {
            let legal = sizes::of_film(id, size);
            changes.instead("size", size.to_string(), legal.to_string(), sizes::WHY);
            size = legal;
        }
        changes.tell(call.attempt.delivery);
        // The default of `seconds` differs from SPEC.md's: it is always said.
        let fields = [
            ("model", id),
            ("prompt", call.job.prompt.as_str()),
            ("seconds", &call.job.seconds.to_string()),
            ("size", &size.to_string()),
        ];
        let url = server.url("/videos");
        let ask = match call.images {
            [] => {
                let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
                Ask::post(url, &Value::Object(fields.into_iter().collect()))
            }
            [first] => {
                // A reference of any other size is refused.
                let picture = raster::covering(first, size, READS).await?;
                let mut form = Form::new();
                for (name, value) in fields {
                    form.text(name, value);
                }
                form.picture("input_reference", "reference", &picture);
                let (content_type, parts) = form.finish();
                Ask::post_parts(url, content_type, parts)
            }
            _ => {
                return Err(ProviderError::new(
                    ProviderErrorKind::ChannelUnfit,
                    "the upstream takes one reference image",
                ));
            }
        };
        let ask = ask.authorized(BEARER, call.attempt.key)?.once();
        let answer = server.wire.ask(ask).await?;
        let json = answer.json();
        let ticket = ["id", "task_id"]
            .iter()
            .find_map(|name| json[name].as_str());
        match ticket.filter(|ticket| answer.status.is_success() && !ticket.is_empty()) {
            Some(ticket) => Ok(Started::Accepted(ticket.to_owned())),
            None => Err(unnamed(&answer, server.refusal(&answer))),
        }
    }
}

#[async_trait]
impl Queue for Videos {
    fn rhythm(&self, _: TaskKind) -> Rhythm {
        Rhythm::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let server = &self.0;
        let film = segment(call.ticket);
        let place = server.url(&format!("/videos/{film}"));
        let ask = Ask::get(&place)
            .authorized(BEARER, call.key)?
            .within(POLL_TIME);
        let answer = server.wire.ask(ask).await?;
        let json = answer.json();
        let status = json["status"]
            .as_str()
            .filter(|_| answer.status.is_success());
        match status {
            Some("queued" | "in_progress") => Ok(Polled::Waiting(percent(&json["progress"]))),
            Some("completed") => self.deliver(&call, &place, &json).await,
            Some("failed") => {
                let error = refusal::of_task(&server.wire, &json["error"]);
                Ok(Polled::Failed(error))
            }
            Some("cancelled" | "expired") => Ok(Polled::Failed(ProviderError::new(
                ProviderErrorKind::Failed,
                "the upstream has given the film up",
            ))),
            _ => unpolled(server.refusal(&answer)),
        }
    }
}

impl Videos {
    /// Delivers a finished film: OpenAI's lies beside its record, for those who have the key.
    async fn deliver(
        &self,
        call: &QueueCall<'_>,
        place: &str,
        json: &Value,
    ) -> Result<Polled, ProviderError> {
        let wire = &self.0.wire;
        let base = &self.0.base;
        let content = format!("{place}/content");
        let headers = key_header(call.key)?;
        let link = |url: &str| vec![Ok(wire.link(base, url, headers.clone()))];
        let delivered = hand_over(call.delivery, link(&content)).await;
        if matches!(delivered, Ok(Polled::Done(_))) {
            return delivered;
        }
        // Some servers have a link in the record instead.
        let urls = [&json["metadata"]["url"], &json["url"], &json["video_url"]];
        let url = urls.iter().find_map(|url| url.as_str());
        match url.filter(|url| !url.is_empty()) {
            Some(url) => hand_over(call.delivery, link(url)).await,
            None => delivered,
        }
    }
}

/// Percent as a number, or as a text with its sign.
fn percent(progress: &Value) -> Option<u8> {
    let number = match progress {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().trim_end_matches('%').trim().parse().ok()?,
        _ => return None,
    };
    (0.0..=100.0).contains(&number).then_some(number as u8)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_is_read_as_number_and_as_text() {
        for (progress, expected) in [
            (json!(40), Some(40)),
            (json!(99.6), Some(99)),
            (json!("40%"), Some(40)),
            (json!(" 7 % "), Some(7)),
            (json!(101), None),
            (json!(-1), None),
            (json!("soon"), None),
            (json!(null), None),
        ] {
            assert_eq!(percent(&progress), expected, "{progress}");
        }
    }
}
