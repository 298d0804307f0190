//! The provider contract: one suite that every adapter runs against its provider's fake, for each kind of job in `tests/cases/contract.jsonl`. It
//! proves that jobs complete, how errors of submissions, tasks and polls are classified, and that jobs can be cancelled and found if the provider
//! supports that.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_core::{Secret, TaskKind};
use tollgate_fakes::{Fake, Options, Provider, ReceivedRequest};
use tollgate_media::Job;
use tollgate_upstream::error::UpstreamErrorKind::{self, *};
use tollgate_upstream::{Channel, Found, Polled, ProviderError, Started, TraceHeaders};

use crate::adapter::{Adapter, KEY, channel, error_kind};
use crate::fakes::rejected_by;
use crate::jobs;

/// A directive of the fake, and the kind of the error that it causes.
type Errors = BTreeMap<String, String>;

/// One kind of job on one provider, and its differences from the tables below.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    provider: String,
    model: String,
    #[serde(default)]
    options: Map<String, Value>,
    key: Option<String>,
    image: Option<Map<String, Value>>,
    video: Option<Map<String, Value>>,
    speech: Option<Map<String, Value>>,
    /// Errors of submissions in addition to [`SUBMIT_ERRORS`], or replacing entries of it.
    submit_errors: Errors,
    /// `None` for a provider that works within the call.
    queue: Option<QueueCase>,
}

/// The properties of jobs in a provider's queue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueCase {
    /// Errors of tasks in addition to [`TASK_ERRORS`], or replacing entries of it.
    #[serde(default)]
    task_errors: Errors,
    /// Errors of polls in addition to [`POLL_ERRORS`].
    #[serde(default)]
    poll_errors: Errors,
    /// A provider job id of no existing job.
    unknown_job_id: String,
    /// Whether a queued job can be cancelled.
    #[serde(default)]
    cancels: bool,
    /// Whether a job can be found by the gateway's id.
    #[serde(default)]
    finds: bool,
}

/// The fake's directive for a failing submission, and the kind of the error: the same for all providers.
const SUBMIT_ERRORS: &[(&str, UpstreamErrorKind)] = &[
    ("quota-exhausted", QuotaExhausted),
    ("rate-limited=7", RateLimited),
    ("key-refused", KeyRejected),
    ("model-missing", ModelNotFound),
    ("overloaded", Unavailable),
    ("status=503", Unavailable),
    ("html-200", Unavailable),
    ("reset-before-head", OutcomeUnknown),
    ("reset-after-accept", OutcomeUnknown),
];
/// The directive for an accepted task that fails, and the kind of the error.
const TASK_ERRORS: &[(&str, UpstreamErrorKind)] =
    &[("content-filter", Moderated), ("fail", Unavailable)];
/// The directive for a failing poll, after which the next poll retries, and the kind of the error.
const POLL_ERRORS: &[(&str, UpstreamErrorKind)] = &[
    ("status=503@poll", Unavailable),
    ("rate-limited@poll", RateLimited),
    ("key-refused@poll", KeyRejected),
    ("reset-before-head@poll", Unavailable),
];

/// Every kind of job of every adapter.
fn cases() -> Vec<Case> {
    let text = include_str!("../cases/contract.jsonl");
    let cases = text.lines().map(serde_json::from_str);
    cases.collect::<Result<_, _>>().unwrap()
}

impl Case {
    /// A fake whose queue finishes a job after `polls` polls, and the adapter on it.
    async fn open(&self, polls: u32) -> (Fake, Adapter) {
        let options = Options {
            keys: vec![self.key().to_owned()],
            polls,
            ..Options::default()
        };
        let provider: Provider = self.provider.parse().unwrap();
        let fake = tollgate_fakes::start(provider, options).await.unwrap();
        let adapter = Adapter::open(self.channel(fake.base_url()));
        (fake, adapter)
    }

    fn channel(&self, base: String) -> Channel {
        Channel {
            api_keys: vec![Secret::new(self.key())],
            options: self.options.clone(),
            ..channel(&self.provider, base, &self.model)
        }
    }

    fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(KEY)
    }

    /// The job with this prompt or text.
    fn job(&self, prompt: &str) -> Job {
        let (fields, name) = match self.kind() {
            TaskKind::Image => (&self.image, "prompt"),
            TaskKind::Video => (&self.video, "prompt"),
            TaskKind::Speech => (&self.speech, "text"),
        };
        let mut fields = fields.clone().unwrap_or_default();
        fields.insert(name.to_owned(), prompt.into());
        jobs::job(self.kind(), &fields)
    }

    async fn start(&self, adapter: &Adapter, prompt: &str) -> Result<Started, ProviderError> {
        adapter.start(&self.job(prompt)).await
    }

    /// The provider job id of an accepted job.
    async fn accepted(&self, adapter: &Adapter, prompt: &str) -> String {
        match self.start(adapter, prompt).await {
            Ok(Started::Accepted(provider_job_id)) => provider_job_id,
            other => panic!("{} {prompt}: it was not accepted: {other:?}", self.model),
        }
    }

    fn kind(&self) -> TaskKind {
        match (&self.image, &self.video) {
            (Some(_), _) => TaskKind::Image,
            (None, Some(_)) => TaskKind::Video,
            (None, None) => TaskKind::Speech,
        }
    }
}

/// `common` without the directives that are in `special`, followed by `special`.
fn with_special<'a>(
    common: &'a [(&'a str, UpstreamErrorKind)],
    special: &'a Errors,
) -> impl Iterator<Item = (&'a str, UpstreamErrorKind)> + 'a {
    let common = common
        .iter()
        .filter(|(name, _)| !special.contains_key(*name));
    let special = special
        .iter()
        .map(|(name, kind)| (name.as_str(), error_kind(kind)));
    common.copied().chain(special)
}

#[tokio::test]
async fn a_job_completes_and_delivers_its_result() {
    for case in cases() {
        let (fake, adapter) = case.open(2).await;
        let started = case.start(&adapter, "a red boat").await.unwrap();
        match (started, &case.queue) {
            (Started::Completed(completed), None) => assert!(completed.failures.is_empty()),
            (Started::Accepted(provider_job_id), Some(_)) => {
                let polled = adapter.poll_to_end(&provider_job_id, case.kind(), 1).await;
                let Ok(Polled::Completed(completed)) = polled else {
                    panic!("{}: {polled:?}", case.model);
                };
                assert!(completed.failures.is_empty(), "{}", case.model);
            }
            (started, _) => panic!("{}: {started:?}", case.model),
        }
        let results = adapter.sink.results().len();
        assert_eq!(results, 1, "{}", case.model);
        assert_eq!(rejected_by(&fake), [] as [&str; 0], "{}", case.model);
    }
}

#[tokio::test]
async fn only_the_request_that_starts_a_job_has_trace_headers() {
    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const TRACESTATE: &str = "vendor=a:b,other=1";
    for case in cases() {
        for tracestate in [None, Some(TRACESTATE)] {
            let (fake, mut adapter) = case.open(0).await;
            adapter.trace = TraceHeaders::new(TRACEPARENT, tracestate);
            case.start(&adapter, "a red boat").await.unwrap();
            let requests = fake.requests();
            let has_trace = |request: &&ReceivedRequest| request.header("traceparent").is_some();
            let mut has_trace = requests.iter().filter(has_trace);
            let (Some(start), None) = (has_trace.next(), has_trace.next()) else {
                panic!("{}: {requests:?}", case.model);
            };
            assert_eq!(start.method, "POST", "{}", case.model);
            assert_eq!(start.header("traceparent"), Some(TRACEPARENT));
            assert_eq!(start.header("tracestate"), tracestate);
        }
    }
}

#[tokio::test]
async fn errors_of_submissions_have_the_same_kind_for_every_provider() {
    for case in cases() {
        for (directive, expected) in with_special(SUBMIT_ERRORS, &case.submit_errors) {
            let (_fake, adapter) = case.open(0).await;
            let prompt = format!("a cat [[fake:{directive}]]");
            let error = case.start(&adapter, &prompt).await.unwrap_err();
            // If a job can be found by the gateway's id, it may have been accepted although a page was received instead of the response.
            let expected = match &case.queue {
                Some(queue) if queue.finds && directive == "html-200" => {
                    let found = adapter.find(&case.job(&prompt)).await;
                    match found {
                        Ok(Found::Accepted(_)) => OutcomeUnknown,
                        _ => expected,
                    }
                }
                _ => expected,
            };
            assert_eq!(error.kind, expected, "{} {directive}: {error}", case.model);
            assert!(!error.message.contains(case.key()), "{error}");
            let results = adapter.sink.results().len();
            assert_eq!(results, 0, "{} {directive}", case.model);
        }
    }
}

#[tokio::test]
async fn errors_of_accepted_jobs_have_the_same_kind_for_every_provider() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        for (directive, expected) in with_special(TASK_ERRORS, &queue.task_errors) {
            let (_fake, adapter) = case.open(2).await;
            let job_id = case
                .accepted(&adapter, &format!("[[fake:{directive}]]"))
                .await;
            match adapter.poll_to_end(&job_id, case.kind(), 1).await {
                Ok(Polled::Failed(error)) => {
                    assert_eq!(error.kind, expected, "{} {directive}: {error}", case.model);
                }
                other => panic!("{} {directive}: {other:?}", case.model),
            }
        }
        let (_fake, adapter) = case.open(2).await;
        match adapter.poll(&queue.unknown_job_id, case.kind(), 1).await {
            Ok(Polled::Failed(error)) => assert_eq!(error.kind, Failed, "{}", case.model),
            other => panic!("{}: an unknown job: {other:?}", case.model),
        }
    }
}

#[tokio::test]
async fn a_failed_poll_returns_a_classified_error_and_does_not_end_the_job() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        for (directive, expected) in with_special(POLL_ERRORS, &queue.poll_errors) {
            let (_fake, adapter) = case.open(2).await;
            let job_id = case
                .accepted(&adapter, &format!("[[fake:{directive}]]"))
                .await;
            let error = adapter.poll(&job_id, case.kind(), 1).await.unwrap_err();
            assert_eq!(error.kind, expected, "{} {directive}: {error}", case.model);
        }
    }
}

#[tokio::test]
async fn a_waiting_job_can_be_cancelled() {
    for case in cases() {
        if !case.queue.as_ref().is_some_and(|queue| queue.cancels) {
            continue;
        }
        let (_fake, adapter) = case.open(9).await;
        let job_id = case.accepted(&adapter, "a cat").await;
        adapter.cancel(&job_id, case.kind()).await.unwrap();
        let polled = adapter.poll_to_end(&job_id, case.kind(), 1).await;
        assert!(
            matches!(&polled, Ok(Polled::Failed(error)) if error.kind == Failed),
            "{}: {polled:?}",
            case.model
        );
        // Cancelling a job that has ended succeeds.
        let job_id = case.accepted(&adapter, "[[fake:polls=1]]").await;
        adapter.poll_to_end(&job_id, case.kind(), 1).await.unwrap();
        adapter.cancel(&job_id, case.kind()).await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_attempt_ends_at_once() {
    for case in cases() {
        let (_fake, adapter) = case.open(0).await;
        let cancel = adapter.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
        let error = case.start(&adapter, "a cat [[fake:hang]]");
        let error = tokio::time::timeout(Duration::from_secs(2), error).await;
        let ended = error.map(|started| started.unwrap_err().kind).ok();
        // For a job that may be in a provider's queue, the worker drops the call instead.
        let is_queued = case.queue.is_some();
        assert!(
            ended == Some(Interrupted) || is_queued,
            "{}: {ended:?}",
            case.model
        );
    }
}

#[tokio::test]
async fn a_failed_connection_is_an_unavailable_upstream() {
    for case in cases() {
        let adapter = Adapter::open(case.channel("http://127.0.0.1:1".to_owned()));
        let error = case.start(&adapter, "a cat").await.unwrap_err();
        assert_eq!(error.kind, Unavailable, "{}: {error}", case.model);
    }
}

#[tokio::test]
async fn a_job_whose_acceptance_was_lost_is_found_if_the_provider_supports_it() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        let (_fake, adapter) = case.open(2).await;
        let job = case.job("a cat [[fake:reset-after-accept]]");
        let before = adapter.find(&job).await.unwrap();
        let error = case
            .start(&adapter, "a cat [[fake:reset-after-accept]]")
            .await
            .unwrap_err();
        assert_eq!(error.kind, OutcomeUnknown, "{}", case.model);
        let after = adapter.find(&job).await.unwrap();
        match queue.finds {
            true => {
                assert_eq!(before, Found::Nothing, "{}", case.model);
                assert!(
                    matches!(after, Found::Accepted(_)),
                    "{}: {after:?}",
                    case.model
                );
            }
            false => assert_eq!(after, Found::Unknown, "{}", case.model),
        }
    }
}
