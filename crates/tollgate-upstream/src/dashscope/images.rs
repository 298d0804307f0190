//! Generates images with wan2.7, as tasks in the provider's queue.

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tollgate_core::TaskKind;

use super::client::DashScope;
use super::response::{self, Task};
use super::{errors, request};
use crate::adapter::{HttpRequest, HttpResponse, InlineFiles, deliver_results, poll_error};
use crate::channel::ChannelModel;
use crate::error::ProviderError;
use crate::provider::{
    ExecutionMode, ImageCall, ImageProvider, PollInterval, Polled, Queue, QueueCall, Started,
};

const SUBMIT: &str = "/services/aigc/image-generation/generation";
/// The header that requests asynchronous execution; without it the submission is rejected, because the path has no synchronous form.
const ASYNC: HeaderName = HeaderName::from_static("x-dashscope-async");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIMEOUT: Duration = Duration::from_secs(30);

impl DashScope {
    /// Submits a job; with its negative prompt if `negative` is true.
    async fn submit(
        &self,
        call: &ImageCall<'_>,
        negative: bool,
    ) -> Result<HttpResponse, ProviderError> {
        let changes = request::adjustments(call.job, &call.attempt.model.upstream, negative);
        changes.report_to(call.attempt.sink);
        let mut inline_files = InlineFiles::new();
        let body = request::body(call, &mut inline_files, negative);
        let url = [&self.base, SUBMIT].concat();
        let request = HttpRequest::post_body(url, JSON, inline_files.into_body(&body))
            .header(ASYNC, HeaderValue::from_static("enable"))
            .with_trace(call.attempt.trace)
            .creating();
        self.send(request, call.attempt.key).await
    }
}

#[async_trait]
impl ImageProvider for DashScope {
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        request::check_supported(&call)?;
        let mut response = self.submit(&call, true).await?;
        // The documentation is contradictory on whether wan2.7 supports a negative prompt. A rejected request costs nothing.
        let is_rejected = errors::code(&response.json()) == "InvalidParameter";
        if is_rejected && call.job.negative_prompt.is_some() {
            response = self.submit(&call, false).await?;
        }
        response::parse_submission(&self.client, &response).map(Started::Accepted)
    }
}

#[async_trait]
impl Queue for DashScope {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        PollInterval::every(5)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let url = self.task_url(call.provider_job_id);
        let request = HttpRequest::get(url).with_timeout(POLL_TIMEOUT);
        let response = self.send(request, call.key).await?;
        match response::parse_task(&self.client, &response) {
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
        let url = [&self.task_url(call.provider_job_id), "/cancel"].concat();
        let request = HttpRequest::without_body(Method::POST, url).with_timeout(POLL_TIMEOUT);
        let response = self.send(request, call.key).await?;
        // Running tasks (400 UnsupportedOperation) and unknown tasks cannot be cancelled; neither counts as an error.
        if response.status.is_success() || matches!(response.status.as_u16(), 400 | 404) {
            return Ok(());
        }
        Err(errors::response_error(&self.client, &response))
    }
}
