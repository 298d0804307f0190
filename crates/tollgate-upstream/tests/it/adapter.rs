//! Test helpers: an adapter opened as the server opens it, the calls that the server sends to it, and a sink that records what it delivers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Secret, TaskKind};
use tollgate_media::Job;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions, FetchLimits};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{
    Attempt, Channel, FindCall, Found, ImageCall, InputFile, Link, PROVIDERS, Polled,
    ProviderEntry, ProviderError, QueueCall, ResultData, ResultSink, SpeechCall, Started,
    TraceHeaders, UpstreamErrorKind, VideoCall,
};

pub(crate) const KEY: &str = "sk-test-0123456789abcdef";
/// The gateway's id of every attempt.
pub(crate) const EXTERNAL_ID: &str = "ext-1";

/// The registry's entry of a channel kind.
pub(crate) fn entry(kind: &str) -> &'static ProviderEntry {
    let entry = PROVIDERS.iter().find(|entry| entry.kind == kind);
    entry.expect("the kind is registered")
}

/// A channel at `base` with the key [`KEY`] and one model.
pub(crate) fn channel(kind: &str, base: String, model: &str) -> Channel {
    Channel {
        base_url: Some(base),
        api_keys: vec![Secret::new(KEY)],
        models: vec![ChannelModel::new(model, model)],
        ..Channel::new("main", kind)
    }
}

/// The error kind of that name.
pub(crate) fn error_kind(name: &str) -> UpstreamErrorKind {
    use UpstreamErrorKind::*;
    let kinds = [
        Unavailable,
        RateLimited,
        KeyRejected,
        QuotaExhausted,
        ModelNotFound,
        UnsupportedByChannel,
        Rejected,
        Failed,
        Moderated,
        OutcomeUnknown,
        Interrupted,
    ];
    let kind = kinds.into_iter().find(|kind| format!("{kind:?}") == name);
    kind.expect(name)
}

/// The members of a JSON object.
pub(crate) fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

/// An adapter of its channel's first model, with its first key.
pub(crate) struct Adapter {
    pub(crate) provider: Provider,
    pub(crate) model: ChannelModel,
    pub(crate) key: Secret,
    /// The number of earlier attempts at the same task that failed.
    pub(crate) failed_attempts: u32,
    /// The trace context that the provider's server receives.
    pub(crate) trace: Option<TraceHeaders>,
    pub(crate) cancel: CancellationToken,
    pub(crate) sink: RecordingSink,
}

impl Adapter {
    pub(crate) fn open(channel: Channel) -> Self {
        Self::open_with(&Client::new(ClientOptions::default()), channel)
    }

    /// Opens an adapter with another HTTP client.
    pub(crate) fn open_with(egress: &Client, channel: Channel) -> Self {
        let entry = entry(&channel.kind);
        (entry.check)(&channel).expect("the channel is well configured");
        Self {
            model: channel.models[0].clone(),
            key: channel.api_keys[0].clone(),
            provider: (entry.open)(&Arc::new(channel), &Settings::default(), egress),
            failed_attempts: 0,
            trace: None,
            cancel: CancellationToken::new(),
            sink: RecordingSink::default(),
        }
    }

    /// Starts a job without input images.
    pub(crate) async fn start(&self, job: &Job) -> Result<Started, ProviderError> {
        self.start_with(job, &[], None).await
    }

    pub(crate) async fn start_with(
        &self,
        job: &Job,
        images: &[InputFile],
        mask: Option<&InputFile>,
    ) -> Result<Started, ProviderError> {
        let attempt = Attempt {
            task_id: "task_1",
            external_id: EXTERNAL_ID,
            model: &self.model,
            key: Some(&self.key),
            failed_attempts: self.failed_attempts,
            trace: self.trace.as_ref(),
            sink: &self.sink,
            cancel: self.cancel.clone(),
        };
        match job {
            Job::Image(job) => {
                let provider = self.provider.image.as_ref().expect("it generates images");
                let references = images;
                let call = ImageCall {
                    attempt,
                    job,
                    references,
                    mask,
                };
                provider.start(call).await
            }
            Job::Video(job) => {
                let provider = self.provider.video.as_ref().expect("it generates videos");
                let call = VideoCall {
                    attempt,
                    job,
                    images,
                };
                provider.start(call).await
            }
            Job::Speech(job) => {
                let provider = self.provider.speech.as_ref().expect("it generates speech");
                provider.start(SpeechCall { attempt, job }).await
            }
        }
    }

    fn queue_call<'a>(&'a self, id: &'a str, kind: TaskKind, requested: u32) -> QueueCall<'a> {
        QueueCall {
            task_id: "task_1",
            kind,
            provider_job_id: id,
            requested,
            model: &self.model,
            key: Some(&self.key),
            sink: &self.sink,
        }
    }

    pub(crate) async fn poll(
        &self,
        id: &str,
        kind: TaskKind,
        requested: u32,
    ) -> Result<Polled, ProviderError> {
        let queue = self.provider.queue.as_ref().expect("it has a queue");
        queue.poll(self.queue_call(id, kind, requested)).await
    }

    /// Polls until the job is no longer pending.
    pub(crate) async fn poll_to_end(
        &self,
        id: &str,
        kind: TaskKind,
        requested: u32,
    ) -> Result<Polled, ProviderError> {
        loop {
            match self.poll(id, kind, requested).await {
                Ok(Polled::Pending(_)) => {}
                ended => return ended,
            }
        }
    }

    pub(crate) async fn cancel(&self, id: &str, kind: TaskKind) -> Result<(), ProviderError> {
        let queue = self.provider.queue.as_ref().expect("it has a queue");
        queue.cancel(self.queue_call(id, kind, 1)).await
    }

    pub(crate) async fn find(&self, job: &Job) -> Result<Found, ProviderError> {
        let queue = self.provider.queue.as_ref().expect("it has a queue");
        let call = FindCall {
            job,
            external_id: EXTERNAL_ID,
            model: &self.model,
            key: Some(&self.key),
            sink: &self.sink,
        };
        queue.find(call).await
    }
}

/// A delivered result.
#[derive(Clone)]
pub(crate) enum Delivered {
    File(Bytes),
    Link(Link),
}

impl Delivered {
    /// The file, fetched as the server fetches a link to the channel's own origin.
    pub(crate) async fn fetch(&self) -> Vec<u8> {
        match self {
            Self::File(bytes) => bytes.to_vec(),
            Self::Link(link) => {
                let mut file = Vec::new();
                let limits = FetchLimits::with_max_bytes(1 << 20);
                let client = Client::new(ClientOptions {
                    allow_private: vec!["127.0.0.0/8".parse().unwrap()],
                    ..ClientOptions::default()
                });
                let fetched = match link.is_own {
                    true => {
                        client
                            .fetch_own(&link.url, &link.headers, &limits, &mut file)
                            .await
                    }
                    false => client.fetch_guarded(&link.url, &limits, &mut file).await,
                };
                fetched.expect("the result can be fetched");
                file
            }
        }
    }
}

/// Records the delivered results, unless `errors` lists an error for the delivery.
#[derive(Default)]
pub(crate) struct RecordingSink {
    results: Mutex<Vec<Delivered>>,
    progress: Mutex<Vec<u8>>,
    adjustments: Mutex<Vec<String>>,
    /// The errors of the next deliveries; `None` for one that succeeds.
    pub(crate) errors: Mutex<VecDeque<Option<UpstreamErrorKind>>>,
}

impl RecordingSink {
    pub(crate) fn results(&self) -> Vec<Delivered> {
        self.results.lock().unwrap().clone()
    }

    pub(crate) fn progress_reports(&self) -> Vec<u8> {
        self.progress.lock().unwrap().clone()
    }

    /// The adjustments, each as `field: requested → used`.
    pub(crate) fn adjustments(&self) -> Vec<String> {
        self.adjustments.lock().unwrap().clone()
    }
}

#[async_trait]
impl ResultSink for RecordingSink {
    async fn deliver(&self, result: ResultData) -> Result<(), ProviderError> {
        let delivered = match result {
            ResultData::Link(link) => Delivered::Link(link),
            ResultData::Bytes(bytes) => Delivered::File(bytes),
            ResultData::Stream(mut chunks) => {
                let mut file = Vec::new();
                while let Some(chunk) = chunks.next().await {
                    file.extend_from_slice(&chunk?);
                }
                Delivered::File(file.into())
            }
        };
        if let Some(kind) = self.errors.lock().unwrap().pop_front().flatten() {
            return Err(ProviderError::new(kind, "the result cannot be stored"));
        }
        self.results.lock().unwrap().push(delivered);
        Ok(())
    }

    fn progress(&self, percent: u8) {
        self.progress.lock().unwrap().push(percent);
    }

    fn record_adjustment(&self, a: Adjustment) {
        let text = format!("{}: {} → {}", a.field, a.requested, a.used);
        self.adjustments.lock().unwrap().push(text);
    }
}
