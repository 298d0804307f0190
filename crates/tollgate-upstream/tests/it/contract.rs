//! The provider contract: one suite that every adapter runs against its provider's fake. It proves that jobs complete, how
//! errors of submissions, tasks and polls are classified, and that jobs can be cancelled and found where a provider has that.

use serde_json::{Map, Value, json};
use tollgate_core::Secret;
use tollgate_core::TaskKind;
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::Job;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::error::UpstreamErrorKind::{self, *};
use tollgate_upstream::{Channel, Found, Polled, ProviderError, Started};

use crate::desk::{Desktop, KEY, image_job, rules_broken, speech_job, video_job};

/// One kind of job on one provider, and where it differs from the tables below.
struct Case {
    provider: Provider,
    /// The channel's options, as JSON.
    options: &'static str,
    key: &'static str,
    model: &'static str,
    job: fn(&str) -> Job,
    /// Errors of submissions beside [`SUBMIT_ERRORS`], and instead of them.
    submit_errors: &'static [(&'static str, UpstreamErrorKind)],
    /// `None` for a provider that works within the call.
    queue: Option<QueueCase>,
}

/// What is special about jobs in a provider's queue.
struct QueueCase {
    /// Errors of tasks beside [`TASK_ERRORS`], and instead of them.
    task_errors: &'static [(&'static str, UpstreamErrorKind)],
    /// Errors of polls beside [`POLL_ERRORS`].
    poll_errors: &'static [(&'static str, UpstreamErrorKind)],
    /// A provider job id that the provider does not know.
    unknown_job_id: &'static str,
    /// Whether a job that waits can be cancelled.
    cancels: bool,
    /// Whether a job can be found by our own id.
    finds: bool,
}

/// The fake's directive for a failing submission, and the kind of its error: the same for all providers.
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
/// Of an accepted task that fails.
const TASK_ERRORS: &[(&str, UpstreamErrorKind)] =
    &[("content-filter", Moderated), ("fail", Unavailable)];
/// Of a failing poll, after which the next poll tries again.
const POLL_ERRORS: &[(&str, UpstreamErrorKind)] = &[
    ("status=503@poll", Unavailable),
    ("rate-limited@poll", RateLimited),
    ("key-refused@poll", KeyRejected),
    ("reset-before-head@poll", Unavailable),
];

const IN_GEMINI: &[(&str, UpstreamErrorKind)] = &[
    ("blocked", Moderated),
    ("empty-body", Unavailable),
    ("truncated-json", OutcomeUnknown),
    ("reset-mid-body", OutcomeUnknown),
];
const WITHIN_THE_CALL: &[(&str, UpstreamErrorKind)] = &[
    ("blocked", Moderated),
    ("content-filter", Moderated),
    ("empty-body", Unavailable),
    ("truncated-json", OutcomeUnknown),
    ("reset-mid-body", OutcomeUnknown),
];
const BLOCKED_OR_TRUNCATED: &[(&str, UpstreamErrorKind)] =
    &[("blocked", Moderated), ("truncated-json", OutcomeUnknown)];
const TRUNCATED_POLL: &[(&str, UpstreamErrorKind)] = &[("truncated-json@poll", Unavailable)];

const VERTEX: &str = r#"{ "platform": "vertex", "project": "p", "location": "l" }"#;

const BASE: Case = Case {
    provider: Provider::Ark,
    options: "{}",
    key: KEY,
    model: "",
    job: seedream,
    submit_errors: &[],
    queue: None,
};
const QUEUE: QueueCase = QueueCase {
    task_errors: &[],
    poll_errors: &[],
    unknown_job_id: "unknown",
    cancels: false,
    finds: false,
};
const VEO_QUEUE: QueueCase = QueueCase {
    task_errors: &[("expire", Unavailable)],
    poll_errors: TRUNCATED_POLL,
    unknown_job_id: "models/veo-3.1-generate-preview/operations/nobody",
    ..QUEUE
};

fn seedream(prompt: &str) -> Job {
    let size = json!({ "pixels": { "width": 2048, "height": 2048 }, "ratio": null, "tier": null });
    Job::Image(image_job(
        json!({ "family": "seedream-5-lite", "prompt": prompt, "size": size }),
    ))
}

fn image(prompt: &str) -> Job {
    Job::Image(image_job(json!({ "prompt": prompt })))
}

/// A square image of that family, without a resolution tier.
fn image_of(family: &str, prompt: &str) -> Job {
    let size = json!({ "pixels": { "width": 1024, "height": 1024 }, "ratio": "1:1", "tier": null });
    Job::Image(image_job(
        json!({ "family": family, "prompt": prompt, "size": size }),
    ))
}

fn gemini_image(prompt: &str) -> Job {
    image_of("gemini-3-pro-image", prompt)
}

fn imagen(prompt: &str) -> Job {
    image_of("imagen-4", prompt)
}

fn gpt_image(prompt: &str) -> Job {
    image_of("gpt-image-2", prompt)
}

fn grok_image(prompt: &str) -> Job {
    image_of("grok-imagine", prompt)
}

fn seedance(prompt: &str) -> Job {
    Job::Video(video_job(
        json!({ "family": "seedance-2.0", "prompt": prompt }),
    ))
}

fn veo(prompt: &str) -> Job {
    Job::Video(video_job(
        json!({ "family": "veo-3.1", "prompt": prompt, "seconds": 8 }),
    ))
}

fn sora(prompt: &str) -> Job {
    Job::Video(video_job(
        json!({ "family": "sora-2", "prompt": prompt, "seconds": 8 }),
    ))
}

fn grok_video(prompt: &str) -> Job {
    Job::Video(video_job(
        json!({ "family": "grok-imagine-video", "prompt": prompt, "seconds": 8 }),
    ))
}

fn video(prompt: &str) -> Job {
    Job::Video(video_job(json!({ "prompt": prompt })))
}

fn speech(text: &str) -> Job {
    Job::Speech(speech_job(json!({ "text": text })))
}

/// Every adapter with tasks.
fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case {
            model: "doubao-seedream-5-0-lite",
            submit_errors: WITHIN_THE_CALL,
            ..BASE
        },
        Case {
            model: "seedance-2.0",
            job: seedance,
            submit_errors: IN_GEMINI,
            queue: Some(QueueCase {
                task_errors: &[("expire", Failed)],
                poll_errors: TRUNCATED_POLL,
                unknown_job_id: "cgt-20261121-nobody",
                cancels: true,
                ..QUEUE
            }),
            ..BASE
        },
        Case {
            provider: Provider::DashScope,
            model: "wan2.7-image-pro",
            job: image,
            submit_errors: BLOCKED_OR_TRUNCATED,
            queue: Some(QueueCase {
                task_errors: &[("expire", Unavailable)],
                cancels: true,
                ..QUEUE
            }),
            ..BASE
        },
        Case {
            provider: Provider::OpenAi,
            model: "gpt-image-2-official",
            job: gpt_image,
            submit_errors: WITHIN_THE_CALL,
            ..BASE
        },
        Case {
            provider: Provider::OpenAi,
            model: "sora-2",
            job: sora,
            submit_errors: BLOCKED_OR_TRUNCATED,
            queue: Some(QueueCase {
                task_errors: &[("fail", Failed)],
                poll_errors: TRUNCATED_POLL,
                unknown_job_id: "video_unknown",
                ..QUEUE
            }),
            ..BASE
        },
        Case {
            provider: Provider::Xai,
            model: "grok-imagine-1.0-partner",
            job: grok_image,
            submit_errors: &[
                ("blocked", Moderated),
                ("content-filter", Moderated),
                ("empty-body", Unavailable),
                ("truncated-json", OutcomeUnknown),
            ],
            ..BASE
        },
        Case {
            provider: Provider::Xai,
            model: "grok-imagine-video-1.5",
            job: grok_video,
            submit_errors: BLOCKED_OR_TRUNCATED,
            queue: Some(QueueCase {
                task_errors: &[("expire", Failed)],
                ..QUEUE
            }),
            ..BASE
        },
        Case {
            provider: Provider::Kling,
            model: "native-v3",
            job: speech,
            submit_errors: &[("blocked", Moderated), ("overloaded", RateLimited)],
            ..BASE
        },
    ];
    for (provider, unknown_job_id) in [
        (Provider::Fal, r#"["/fal-ai/bytedance/requests/unknown"]"#),
        (Provider::Replicate, r#"["unknown"]"#),
    ] {
        cases.push(Case {
            provider,
            model: "doubao-seedream-4.5",
            job: image,
            submit_errors: &[("truncated-json", OutcomeUnknown)],
            queue: Some(QueueCase {
                task_errors: &[("expire", Unavailable)],
                unknown_job_id,
                cancels: true,
                ..QUEUE
            }),
            ..BASE
        });
    }
    for options in ["{}", VERTEX] {
        let gemini = |model, job: fn(&str) -> Job, queue| Case {
            provider: Provider::Gemini,
            options,
            model,
            job,
            submit_errors: IN_GEMINI,
            queue,
            ..BASE
        };
        cases.push(gemini("gemini-3-pro-image-preview", gemini_image, None));
        cases.push(gemini("imagen-4.0-partner", imagen, None));
        cases.push(gemini("veo-3.1-pro", veo, Some(VEO_QUEUE)));
    }
    // A key that signs tokens leads to the older API.
    for (key, unknown_job_id) in [(KEY, "17"), ("access-key-1:secret-key-1", "text2video/17")] {
        cases.push(Case {
            provider: Provider::Kling,
            key,
            model: "kling-3.0",
            job: video,
            submit_errors: &[("blocked", Moderated), ("overloaded", RateLimited)],
            queue: Some(QueueCase {
                unknown_job_id,
                finds: true,
                ..QUEUE
            }),
            ..BASE
        });
    }
    cases
}

impl Case {
    /// A fake whose queue finishes a job after `polls` polls, and the adapter on it.
    async fn open(&self, polls: u32) -> (Fake, Desktop) {
        let options = Options {
            keys: vec![self.key.to_owned()],
            polls,
            ..Options::default()
        };
        let fake = tollgate_fakes::start(self.provider, options).await.unwrap();
        let options: Map<String, Value> = serde_json::from_str(self.options).unwrap();
        let channel = Channel {
            base_url: Some(fake.base_url()),
            api_keys: vec![Secret::new(self.key)],
            models: vec![ChannelModel::new(self.model, self.model)],
            options,
            ..Channel::new("main", self.provider.name())
        };
        let adapter = Desktop::open(channel);
        (fake, adapter)
    }

    async fn start(&self, adapter: &Desktop, prompt: &str) -> Result<Started, ProviderError> {
        match (self.job)(prompt) {
            Job::Image(job) => adapter.image(&job, &[], None).await,
            Job::Video(job) => adapter.video(&job, &[]).await,
            Job::Speech(job) => adapter.speech(&job).await,
        }
    }

    /// The provider job id of an accepted job.
    async fn accepted(&self, adapter: &Desktop, prompt: &str) -> String {
        match self.start(adapter, prompt).await {
            Ok(Started::Accepted(provider_job_id)) => provider_job_id,
            other => panic!("{} {prompt}: it was not accepted: {other:?}", self.model),
        }
    }

    fn kind(&self) -> TaskKind {
        match (self.job)("") {
            Job::Image(_) => TaskKind::Image,
            Job::Video(_) => TaskKind::Video,
            Job::Speech(_) => TaskKind::Speech,
        }
    }
}

/// `common` without the directives that are in `special`, and those.
fn with_special<'a>(
    common: &'a [(&'static str, UpstreamErrorKind)],
    special: &'a [(&'static str, UpstreamErrorKind)],
) -> impl Iterator<Item = (&'static str, UpstreamErrorKind)> + 'a {
    let is_special = move |name: &str| special.iter().any(|(special, _)| *special == name);
    let common = common.iter().filter(move |(name, _)| !is_special(name));
    common.chain(special).copied()
}

#[tokio::test]
async fn a_job_completes_and_delivers_its_result() {
    for case in cases() {
        let (fake, adapter) = case.open(2).await;
        let started = case.start(&adapter, "a red boat").await.unwrap();
        match (started, &case.queue) {
            (Started::Completed(completed), None) => assert!(completed.failures.is_empty()),
            (Started::Accepted(provider_job_id), Some(_)) => {
                let polled = adapter.end(&provider_job_id, case.kind(), 1).await;
                let Ok(Polled::Completed(completed)) = polled else {
                    panic!("{}: {polled:?}", case.model);
                };
                assert!(completed.failures.is_empty(), "{}", case.model);
            }
            (started, _) => panic!("{}: {started:?}", case.model),
        }
        let results = adapter.shelf.links().len() + adapter.shelf.files().len();
        assert_eq!(results, 1, "{}", case.model);
        assert_eq!(rules_broken(&fake), [] as [&str; 0], "{}", case.model);
    }
}

#[tokio::test]
async fn errors_of_submissions_are_classified_alike() {
    for case in cases() {
        for (directive, expected) in with_special(SUBMIT_ERRORS, case.submit_errors) {
            let (_fake, adapter) = case.open(0).await;
            let prompt = format!("a cat [[fake:{directive}]]");
            let error = case.start(&adapter, &prompt).await.unwrap_err();
            // A job that can be found by our own id may have been accepted before a page came in place of its response.
            let expected = match &case.queue {
                Some(queue) if queue.finds && directive == "html-200" => {
                    let found = adapter.find(&(case.job)(&prompt)).await;
                    match found {
                        Ok(Found::Accepted(_)) => OutcomeUnknown,
                        _ => expected,
                    }
                }
                _ => expected,
            };
            assert_eq!(error.kind, expected, "{} {directive}: {error}", case.model);
            assert!(!error.message.contains(case.key), "{error}");
            let results = adapter.shelf.links().len() + adapter.shelf.files().len();
            assert_eq!(results, 0, "{} {directive}", case.model);
        }
    }
}

#[tokio::test]
async fn errors_of_accepted_jobs_are_classified_alike() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        for (directive, expected) in with_special(TASK_ERRORS, queue.task_errors) {
            let (_fake, adapter) = case.open(2).await;
            let job_id = case
                .accepted(&adapter, &format!("[[fake:{directive}]]"))
                .await;
            match adapter.end(&job_id, case.kind(), 1).await {
                Ok(Polled::Failed(error)) => {
                    assert_eq!(error.kind, expected, "{} {directive}: {error}", case.model);
                }
                other => panic!("{} {directive}: {other:?}", case.model),
            }
        }
        let (_fake, adapter) = case.open(2).await;
        match adapter.poll(queue.unknown_job_id, case.kind(), 1).await {
            Ok(Polled::Failed(error)) => assert_eq!(error.kind, Failed, "{}", case.model),
            other => panic!("{}: an unknown job: {other:?}", case.model),
        }
    }
}

#[tokio::test]
async fn a_failed_poll_leaves_the_job_to_the_next_poll() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        for (directive, expected) in with_special(POLL_ERRORS, queue.poll_errors) {
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
        let polled = adapter.end(&job_id, case.kind(), 1).await;
        assert!(
            matches!(&polled, Ok(Polled::Failed(error)) if error.kind == Failed),
            "{}: {polled:?}",
            case.model
        );
    }
}

#[tokio::test]
async fn a_job_whose_acceptance_was_lost_is_found_or_nothing_is_claimed() {
    for case in cases() {
        let Some(queue) = &case.queue else { continue };
        let (_fake, adapter) = case.open(2).await;
        let job = (case.job)("a cat [[fake:reset-after-accept]]");
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
            false => assert_eq!(after, Found::CannotTell, "{}", case.model),
        }
    }
}
