//! Alibaba's DashScope (Model Studio): wan2.7 pictures, made in a queue of its own.

mod answer;
mod request;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tollgate_core::{Secret, TaskKind};

use crate::channel::{Channel, ChannelModel, known_options};
use crate::provider::{
    ImageCall, ImageProvider, Polled, Provider, ProviderError, Queue, QueueCall, Rhythm, Settings,
    Started, Style,
};
use crate::wire::{Answer, Ask, Slots, Wire, hand_over, segment, unpolled};
use crate::{Carries, egress};
use answer::Task;

/// The Beijing site. Keys of one site are unknown to the others.
const BASE_URL: &str = "https://dashscope.aliyuncs.com/api/v1";
const SUBMIT: &str = "/services/aigc/image-generation/generation";
/// Without it the submission is refused: the path has no synchronous form.
const ASYNC: HeaderName = HeaderName::from_static("x-dashscope-async");
const WORKSPACE: HeaderName = HeaderName::from_static("x-dashscope-workspace");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);

/// What becomes of the fields of its family.
pub(crate) static CARRIES: &[Carries] = &[Carries {
    family: "wan2.7",
    fields: &[
        ("prompt", "`input.messages[0].content[].text`"),
        (
            "image_urls",
            "`input.messages[0].content[].image`, as data URIs",
        ),
        ("n", "`parameters.n`, always"),
        (
            "size",
            "`parameters.size`: `W*H`, or the tier where the picture follows the last reference",
        ),
        ("thinking_mode", "`parameters.thinking_mode`"),
        ("enable_sequential", "`parameters.enable_sequential`"),
        ("seed", "`parameters.seed`"),
        (
            "negative_prompt",
            "`parameters.negative_prompt`; left out where the model refuses it",
        ),
        ("watermark", "`parameters.watermark`"),
        ("bbox_list", "`parameters.bbox_list`"),
        ("color_palette", "`parameters.color_palette`"),
    ],
}];

/// Checks the options of a channel.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &["workspace"], &[])?;
    workspace(channel).map(drop)
}

/// The workspace that requests are made in, where the channel names one.
fn workspace(channel: &Channel) -> Result<Option<HeaderValue>, String> {
    let Some(value) = channel.options.get("workspace") else {
        return Ok(None);
    };
    let id = value.as_str().filter(|id| !id.is_empty());
    let id = id.and_then(|id| HeaderValue::from_str(id).ok());
    let wrong = || format!("`workspace` must be the id of a workspace as a string, got {value}");
    id.map(Some).ok_or_else(wrong)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let provider = Arc::new(DashScope {
        wire: Wire::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
        workspace: workspace(channel).unwrap_or_default(),
    });
    Provider {
        image: Some(provider.clone()),
        queue: Some(provider),
        ..Provider::default()
    }
}

struct DashScope {
    wire: Wire,
    base: String,
    workspace: Option<HeaderValue>,
}

impl DashScope {
    fn signed(&self, ask: Ask, key: Option<&Secret>) -> Result<Ask, ProviderError> {
        let ask = ask.authorized("Bearer ", key)?;
        Ok(match &self.workspace {
            Some(id) => ask.header(WORKSPACE, id.clone()),
            None => ask,
        })
    }

    fn task(&self, ticket: &str) -> String {
        format!("{}/tasks/{}", self.base, segment(ticket))
    }

    async fn submit(&self, call: &ImageCall<'_>, negative: bool) -> Result<Answer, ProviderError> {
        let changes = request::changes(call.job, &call.attempt.model.upstream, negative);
        changes.tell(call.attempt.delivery);
        let mut slots = Slots::new();
        let body = request::body(call, &mut slots, negative);
        let url = [&self.base, SUBMIT].concat();
        let ask = Ask::post_parts(url, JSON, slots.fill(&body))
            .header(ASYNC, HeaderValue::from_static("enable"))
            .once();
        self.wire.ask(self.signed(ask, call.attempt.key)?).await
    }
}

#[async_trait]
impl ImageProvider for DashScope {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        request::refuse(&call)?;
        let mut answer = self.submit(&call, true).await?;
        // Whether wan2.7 takes a negative prompt is documented both ways. A refusal costs nothing.
        let refused = answer::code(&answer.json()) == "InvalidParameter";
        if refused && call.job.negative_prompt.is_some() {
            answer = self.submit(&call, false).await?;
        }
        answer::accepted(&self.wire, &answer).map(Started::Accepted)
    }
}

#[async_trait]
impl Queue for DashScope {
    fn rhythm(&self, _: TaskKind) -> Rhythm {
        Rhythm::every(5)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let ask = Ask::get(self.task(call.ticket)).within(POLL_TIME);
        let answer = self.wire.ask(self.signed(ask, call.key)?).await?;
        match answer::task(&self.wire, &answer) {
            Ok(Task::Open) => Ok(Polled::Waiting(None)),
            Ok(Task::Failed(error)) => Ok(Polled::Failed(error)),
            Ok(Task::Done(links)) => {
                let link = |url: String| Ok(self.wire.link(&self.base, &url, HeaderMap::new()));
                hand_over(call.delivery, links.into_iter().map(link).collect()).await
            }
            Err(error) => unpolled(error),
        }
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let url = [&self.task(call.ticket), "/cancel"].concat();
        let ask = Ask::bare(Method::POST, url).within(POLL_TIME);
        let answer = self.wire.ask(self.signed(ask, call.key)?).await?;
        // What runs already cannot be called back (400 UnsupportedOperation), nor what is gone.
        if answer.status.is_success() || matches!(answer.status.as_u16(), 400 | 404) {
            return Ok(());
        }
        Err(answer::refusal(&self.wire, &answer))
    }
}
