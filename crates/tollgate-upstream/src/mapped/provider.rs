//! Implements the provider traits for mapped models, on top of a small trait with the requests of one provider's queue.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::{Secret, TaskKind};

use super::config::Preset;
use super::fan_out::{QueuedJob, parse_job_ids, poll_all, submit_all};
use super::job_fields::JobFields;
use super::mapping::{Mapping, Request};
use crate::adapter::InlineFiles;
use crate::channel::ChannelModel;
use crate::error::ProviderError;
use crate::provider::{
    Attempt, ExecutionMode, ImageCall, ImageProvider, Link, PollInterval, Polled, Provider, Queue,
    QueueCall, SpeechCall, SpeechProvider, Started, VideoCall, VideoProvider,
};

/// The requests of one provider's queue.
#[async_trait]
pub(crate) trait MappedQueue: Send + Sync + 'static {
    /// The presets of well-known models.
    const PRESETS: &'static [Preset];

    /// Submits one request and returns its provider job id. `files` contains the files of the request's input.
    async fn submit(
        &self,
        request: Request,
        files: InlineFiles,
        attempt: &Attempt<'_>,
    ) -> Result<String, ProviderError>;

    /// Polls a job once.
    async fn poll_job(
        &self,
        provider_job_id: &str,
        key: Option<&Secret>,
    ) -> Result<JobState, ProviderError>;

    /// The link to result number `index` of `output`, or why that result is missing.
    fn result(&self, output: &Value, index: usize, url: &str) -> Result<Link, ProviderError>;

    /// Cancels a job. A job that has ended or is unknown counts as cancelled.
    async fn cancel(
        &self,
        provider_job_id: &str,
        key: Option<&Secret>,
    ) -> Result<(), ProviderError>;
}

/// The state of a job.
pub(crate) enum JobState {
    /// Not finished.
    Pending,
    /// Finished, with the model's output.
    Completed(Value),
    /// Ended without an output.
    Failed(ProviderError),
}

/// The provider of the models of `queue`.
pub(crate) fn open(queue: impl MappedQueue) -> Provider {
    let mapped = Arc::new(MappedProvider(queue));
    Provider {
        image: Some(mapped.clone()),
        video: Some(mapped.clone()),
        speech: Some(mapped.clone()),
        queue: Some(mapped),
        ..Provider::default()
    }
}

struct MappedProvider<Q>(Q);

impl<Q: MappedQueue> MappedProvider<Q> {
    async fn submit_job(
        &self,
        attempt: &Attempt<'_>,
        fields: &JobFields<'_>,
    ) -> Result<Started, ProviderError> {
        let mapping = Mapping::for_call(attempt.model, Q::PRESETS)?;
        let mut calls = Vec::new();
        for (index, count) in (0..).zip(mapping.calls(fields)) {
            let mut files = InlineFiles::new();
            let request = mapping.request(fields, index, count, &mut files)?;
            calls.push(self.0.submit(request, files, attempt));
        }
        mapping.adjustments(fields).report_to(attempt.sink);
        submit_all(calls).await
    }

    async fn poll_job(
        &self,
        call: &QueueCall<'_>,
        provider_job_id: String,
    ) -> Result<QueuedJob, ProviderError> {
        Ok(match self.0.poll_job(&provider_job_id, call.key).await? {
            JobState::Pending => QueuedJob::Pending,
            JobState::Failed(error) => QueuedJob::Failed(error),
            JobState::Completed(output) => {
                let paths = Mapping::for_call(call.model, Q::PRESETS)?.result_paths;
                let links = paths.links(&output).into_iter().enumerate();
                let results = links.map(|(index, url)| self.0.result(&output, index, url));
                QueuedJob::Completed(results.collect())
            }
        })
    }
}

#[async_trait]
impl<Q: MappedQueue> ImageProvider for MappedProvider<Q> {
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        self.submit_job(&call.attempt, &JobFields::from_image_call(&call))
            .await
    }
}

#[async_trait]
impl<Q: MappedQueue> VideoProvider for MappedProvider<Q> {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        self.submit_job(&call.attempt, &JobFields::from_video_call(&call))
            .await
    }
}

#[async_trait]
impl<Q: MappedQueue> SpeechProvider for MappedProvider<Q> {
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Queued
    }

    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        self.submit_job(&call.attempt, &JobFields::from_speech_call(&call))
            .await
    }
}

#[async_trait]
impl<Q: MappedQueue> Queue for MappedProvider<Q> {
    fn poll_interval(&self, kind: TaskKind) -> PollInterval {
        match kind {
            TaskKind::Video => PollInterval::every(5),
            TaskKind::Image | TaskKind::Speech => PollInterval::every(2),
        }
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        poll_all(&call, |provider_job_id| {
            self.poll_job(&call, provider_job_id)
        })
        .await
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        for provider_job_id in parse_job_ids(call.provider_job_id).into_iter().flatten() {
            self.0.cancel(&provider_job_id, call.key).await?;
        }
        Ok(())
    }
}
