//! Alibaba DashScope (Model Studio): wan2.7 images, as tasks in its queue.

mod request;
mod response;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tollgate_core::{Secret, TaskKind};

use crate::adapter::{
    HttpRequest, HttpResponse, InlineFiles, ProviderClient, deliver_results, percent_encode,
    poll_error,
};
use crate::channel::{Channel, ChannelModel, known_options};
use crate::egress;
use crate::error::ProviderError;
use crate::provider::FieldSupport;
use crate::provider::{
    ExecutionMode, ImageCall, ImageProvider, PollInterval, Polled, Provider, Queue, QueueCall,
    Settings, Started,
};
use response::Task;

/// The Beijing site. Keys of one site are unknown to the others.
const BASE_URL: &str = "https://dashscope.aliyuncs.com/api/v1";
const SUBMIT: &str = "/services/aigc/image-generation/generation";
/// Without it the submission is rejected: the path has no synchronous form.
const ASYNC: HeaderName = HeaderName::from_static("x-dashscope-async");
const WORKSPACE: HeaderName = HeaderName::from_static("x-dashscope-workspace");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);

/// What becomes of the fields of its family.
pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[FieldSupport {
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
            "`parameters.size`: `W*H`, or the tier where the image follows the last reference",
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
        client: ProviderClient::new(channel, egress),
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
    client: ProviderClient,
    base: String,
    workspace: Option<HeaderValue>,
}

impl DashScope {
    fn signed(&self, ask: HttpRequest, key: Option<&Secret>) -> Result<HttpRequest, ProviderError> {
        let ask = ask.with_authorization("Bearer ", key)?;
        Ok(match &self.workspace {
            Some(id) => ask.header(WORKSPACE, id.clone()),
            None => ask,
        })
    }

    fn task(&self, provider_job_id: &str) -> String {
        format!("{}/tasks/{}", self.base, percent_encode(provider_job_id))
    }

    async fn submit(
        &self,
        call: &ImageCall<'_>,
        negative: bool,
    ) -> Result<HttpResponse, ProviderError> {
        let changes = request::changes(call.job, &call.attempt.model.upstream, negative);
        changes.report_to(call.attempt.sink);
        let mut slots = InlineFiles::new();
        let body = request::body(call, &mut slots, negative);
        let url = [&self.base, SUBMIT].concat();
        let ask = HttpRequest::post_body(url, JSON, slots.into_body(&body))
            .header(ASYNC, HeaderValue::from_static("enable"))
            .creating();
        self.client.send(self.signed(ask, call.attempt.key)?).await
    }
}

#[async_trait]
impl ImageProvider for DashScope {
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        request::refuse(&call)?;
        let mut answer = self.submit(&call, true).await?;
        // Whether wan2.7 takes a negative prompt is documented both ways. A refusal costs nothing.
        let rejected = response::code(&answer.json()) == "InvalidParameter";
        if rejected && call.job.negative_prompt.is_some() {
            answer = self.submit(&call, false).await?;
        }
        response::accepted(&self.client, &answer).map(Started::Accepted)
    }
}

#[async_trait]
impl Queue for DashScope {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        PollInterval::every(5)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let ask = HttpRequest::get(self.task(call.provider_job_id)).with_timeout(POLL_TIME);
        let answer = self.client.send(self.signed(ask, call.key)?).await?;
        match response::task(&self.client, &answer) {
            Ok(Task::Open) => Ok(Polled::Pending(None)),
            Ok(Task::Failed(error)) => Ok(Polled::Failed(error)),
            Ok(Task::Completed(links)) => {
                let link = |url: String| Ok(self.client.link(&self.base, &url, HeaderMap::new()));
                deliver_results(call.sink, links.into_iter().map(link).collect()).await
            }
            Err(error) => poll_error(error),
        }
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let url = [&self.task(call.provider_job_id), "/cancel"].concat();
        let ask = HttpRequest::without_body(Method::POST, url).with_timeout(POLL_TIME);
        let answer = self.client.send(self.signed(ask, call.key)?).await?;
        // What runs already cannot be called back (400 UnsupportedOperation), nor what is gone.
        if answer.status.is_success() || matches!(answer.status.as_u16(), 400 | 404) {
            return Ok(());
        }
        Err(response::response_error(&self.client, &answer))
    }
}
