//! Jobs that the fakes must accept and complete, in `tests/cases/fakes.jsonl`: the fakes check each request as the real providers
//! do, so these are the combinations of models, sizes, input images and fields that the adapters send.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tollgate_core::{Secret, TaskKind};
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::Job;
use tollgate_upstream::{Found, Polled, Started};

use crate::adapter::{Adapter, KEY, channel};
use crate::jobs::{self, InputImages, describe};
use crate::outcome::Outcome;

/// A job, or one job for every size.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Case {
    provider: String,
    /// The models; a job is sent to each of them.
    models: Vec<String>,
    options: Map<String, Value>,
    model_options: Map<String, Value>,
    key: Option<String>,
    image: Option<Map<String, Value>>,
    video: Option<Map<String, Value>>,
    speech: Option<Map<String, Value>>,
    images: Vec<String>,
    mask: Option<String>,
    /// A job for every size of this image family.
    every_size_of: Option<String>,
    /// The number of polls after which the fake has finished a job.
    polls: u32,
    /// The expected outcome, `completed` if this is absent.
    outcome: Option<String>,
    failures: Vec<String>,
    /// The number of results by description; not compared if there is a job for every size.
    results: BTreeMap<String, usize>,
    /// The rule by which the fake is expected to reject the request.
    rejected_by: Option<String>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let text = std::fs::read_to_string(folder.join("fakes.jsonl")).unwrap();
    let case = |(at, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => panic!("fakes.jsonl:{}: {error}", at + 1),
    };
    text.lines().enumerate().map(case).collect()
}

/// The rules by which a fake rejected its requests.
pub(crate) fn rejected_by(fake: &Fake) -> Vec<&'static str> {
    let requests = fake.requests().into_iter();
    requests.filter_map(|request| request.rejected_by).collect()
}

impl Case {
    fn jobs(&self) -> Vec<Job> {
        let (kind, fields) = match (&self.image, &self.video, &self.speech) {
            (Some(fields), None, None) => (TaskKind::Image, fields),
            (None, Some(fields), None) => (TaskKind::Video, fields),
            (None, None, Some(fields)) => (TaskKind::Speech, fields),
            _ => panic!("one job"),
        };
        let Some(family) = &self.every_size_of else {
            return vec![jobs::job(kind, fields)];
        };
        let sizes = jobs::sizes(family).into_iter();
        let sized = |size: String| {
            let mut fields = fields.clone();
            fields.insert("size".to_owned(), size.into());
            jobs::job(kind, &fields)
        };
        sizes.map(sized).collect()
    }

    async fn open(&self, model: &str) -> (Fake, Adapter) {
        let key = self.key.clone().unwrap_or_else(|| KEY.to_owned());
        let options = Options {
            keys: vec![key.clone()],
            polls: self.polls,
            ..Options::default()
        };
        let provider: Provider = self.provider.parse().unwrap();
        let fake = tollgate_fakes::start(provider, options).await.unwrap();
        let mut channel = channel(&self.provider, fake.base_url(), model);
        channel.api_keys = vec![Secret::new(key)];
        channel.options = self.options.clone();
        channel.models[0].options = self.model_options.clone();
        (fake, Adapter::open(channel))
    }

    /// Starts a job and polls it to its end. If the provider can find jobs, asserts that it finds this one.
    async fn complete(&self, adapter: &Adapter, job: &Job) -> Outcome {
        let folder = InputImages::new();
        let files = folder.files(&self.images);
        let mask = self.mask.as_ref().map(|text| folder.file("mask_url", text));
        let started = adapter.start_with(job, &files, mask.as_ref()).await;
        let Ok(Started::Accepted(id)) = started else {
            return Outcome::started(started);
        };
        let found = adapter.find(job).await.unwrap();
        assert!(
            found == Found::Unknown || found == Found::Accepted(id.clone()),
            "{found:?}"
        );
        let (kind, requested) = match job {
            Job::Image(job) => (TaskKind::Image, job.n),
            Job::Video(_) => (TaskKind::Video, 1),
            Job::Speech(_) => (TaskKind::Speech, 1),
        };
        if self.polls > 1 {
            let first = adapter.poll(&id, kind, requested).await;
            assert!(matches!(first, Ok(Polled::Pending(_))), "{first:?}");
        }
        Outcome::polled(adapter.poll_to_end(&id, kind, requested).await)
    }

    /// The outcome of the case for a model, and its expected outcome.
    async fn run(&self, model: &str) -> (Value, Value) {
        let (fake, adapter) = self.open(model).await;
        let jobs = self.jobs();
        let mut outcomes = Vec::new();
        let mut failures = Vec::new();
        for job in &jobs {
            let outcome = self.complete(&adapter, job).await;
            outcomes.push(outcome.text);
            failures.extend(outcome.failures);
        }
        let mut results: BTreeMap<String, usize> = BTreeMap::new();
        if self.every_size_of.is_some() {
            assert_eq!(adapter.sink.results().len(), jobs.len(), "{model}");
        } else {
            for result in adapter.sink.results() {
                *results.entry(describe(&result.fetch().await)).or_default() += 1;
            }
        }
        let outcome = self.outcome.as_deref().unwrap_or("completed");
        let actual = json!([outcomes, failures, results, rejected_by(&fake)]);
        let rejected_by: Vec<&String> = self.rejected_by.iter().collect();
        let outcomes = vec![outcome; jobs.len()];
        let expected = json!([outcomes, self.failures, self.results, rejected_by]);
        (actual, expected)
    }
}

#[tokio::test]
async fn every_job_is_accepted_and_completed() {
    let mut mismatches = Vec::new();
    for (at, case) in cases().iter().enumerate() {
        for model in &case.models {
            let (actual, expected) = case.run(model).await;
            if actual != expected {
                mismatches.push(format!(
                    "fakes.jsonl:{}: {model}\n  expected {expected}\n  actual   {actual}",
                    at + 1
                ));
            }
        }
    }
    assert!(mismatches.is_empty(), "\n{}", mismatches.join("\n"));
}
