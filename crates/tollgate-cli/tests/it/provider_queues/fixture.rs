//! Gateways whose channels lead to fakes of providers with queues.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_fakes::{Fake, Options, Provider, ReceivedRequest, start};

use crate::harness::images::decode;
use crate::harness::*;
use crate::videos::mp4_ms;

/// What a task costs, whatever the provider.
pub(super) const PRICE: f64 = 0.5;
/// What the account has.
pub(super) const BALANCE: f64 = 4.0;
/// The keys of every channel.
const KEYS: [&str; 3] = ["up-key-one", "up-key-two", "up-key-three"];

/// A row of a table: a provider with a queue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueProvider {
    pub(super) provider: String,
    /// The model's name of the gateway and of the provider.
    model: String,
    upstream: String,
    /// Where clients submit, and what besides model and prompt.
    path: String,
    request: Map<String, Value>,
    result: ResultKind,
    /// The status in the record of a task that runs.
    #[serde(default = "in_progress")]
    pub(super) running: String,
    /// A part of the provider's path of a submission.
    submission: String,
    /// Method and a part of the path of a cancellation; `None` if nothing can be cancelled.
    cancellation: Option<(String, String)>,
    /// The scenario of a rejected request.
    pub(super) rejection: String,
    /// Whether a job can be found by our own id.
    #[serde(default)]
    pub(super) finds_by_external_id: bool,
    /// Whether the result is not part of the state.
    #[serde(default)]
    pub(super) result_is_separate: bool,
    /// Whether a job that failed for unknown reasons is not tried again: it would be paid for again.
    #[serde(default)]
    pub(super) failures_are_final: bool,
}

fn in_progress() -> String {
    "in_progress".to_owned()
}

/// What a provider generates.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultKind {
    /// A square image with sides of so many pixels.
    ImageSide(u32),
    VideoMs(u64),
}

impl QueueProvider {
    /// A request; the prompt tells the fake what to do.
    fn body(&self, prompt: &str) -> Value {
        let mut body = Value::Object(self.request.clone());
        body["model"] = self.model.as_str().into();
        body["prompt"] = prompt.into();
        body
    }

    /// How many bytes of a result are too many, if a fake can make them.
    pub(super) fn too_large(&self) -> Option<u64> {
        let is_image = matches!(self.result, ResultKind::ImageSide(_));
        is_image.then_some((128 << 20) + 1)
    }
}

/// A gateway with one account, and fakes in the order of their channels' priority.
pub(super) struct Fixture<'a> {
    pub(super) provider: &'a QueueProvider,
    pub(super) gateway: TestGateway,
    pub(super) client: Client,
    pub(super) fakes: Vec<Fake>,
}

impl<'a> Fixture<'a> {
    /// One that runs, with so many channels to fakes of their own. Tasks may take `limit_s` seconds.
    pub(super) async fn start(
        backend: Backend,
        provider: &'a QueueProvider,
        channels: usize,
        limit_s: u32,
    ) -> Self {
        let mut fixture = Self::prepare(backend, provider, channels, limit_s).await;
        fixture.gateway.start_server().await;
        fixture
    }

    /// The same before it runs.
    pub(super) async fn prepare(
        backend: Backend,
        provider: &'a QueueProvider,
        channels: usize,
        limit_s: u32,
    ) -> Self {
        let (model, upstream, kind) = (&provider.model, &provider.upstream, &provider.provider);
        let price = match provider.result {
            ResultKind::ImageSide(_) => "per_image",
            ResultKind::VideoMs(_) => "per_video",
        };
        let mut config = format!(
            "drain_s = 1\n[price.\"{model}\"]\n{price} = {PRICE}\n[time_limits]\nimage_s = {limit_s}\nvideo_s = {limit_s}\n"
        );
        let mut fakes = Vec::new();
        let fake_kind: Provider = kind.parse().unwrap();
        for at in 0..channels {
            let fake = start(fake_kind, Options::default()).await.unwrap();
            let url = fake.base_url();
            config += &format!(
                "[[channel]]\nname = \"{kind}-{at}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_keys = {KEYS:?}\n\
                 models = [{{ name = \"{model}\", upstream = \"{upstream}\" }}]\npriority = {at}\npoll_ms = 100\n"
            );
            fakes.push(fake);
        }
        // On SQLite a restarted gateway takes its tasks back at once: whoever waits for the lease here waits too long.
        let lease = match backend {
            Backend::Sqlite => "300",
            Backend::Postgres => "1",
        };
        let setup = Setup::new(backend).config(&config);
        let setup = setup.env("TOLLGATE_LEASES__SECONDS", lease);
        let gateway = setup.prepare().await;
        let client = gateway.funded_client(&BALANCE.to_string()).await;
        Self {
            provider,
            gateway,
            client,
            fakes,
        }
    }

    /// Submits, which must be accepted; returns the task's id.
    pub(super) async fn submit(&self, prompt: &str) -> String {
        let body = self.provider.body(prompt);
        let receipt = self.client.post(&self.provider.path, &body).await;
        task_id(&receipt.expect(200).json())
    }

    /// Submits under an idempotency key; `None` if the gateway ends meanwhile.
    pub(super) async fn try_submit(&self, prompt: &str, key: &str) -> Option<String> {
        let (path, body) = (&self.provider.path, self.provider.body(prompt));
        let reply = self.client.try_post_once(path, key, &body).await?;
        Some(task_id(&reply.expect(200).json()))
    }

    /// Submits, and checks that the task completes.
    pub(super) async fn complete(&self, prompt: &str) {
        let id = self.submit(prompt).await;
        let record = self.client.wait_for_end(&id).await;
        self.check_completed(&record).await;
    }

    /// Submits, and checks that the task fails.
    pub(super) async fn fail(&self, prompt: &str, code: &str) {
        let id = self.submit(prompt).await;
        let record = self.client.wait_for_end(&id).await;
        self.check_failed(&record, code);
    }

    /// The submissions that a fake got.
    pub(super) fn submissions(&self, fake: usize) -> Vec<ReceivedRequest> {
        let mut seen = self.fakes[fake].requests();
        seen.retain(|r| r.method == "POST" && r.path.contains(&self.provider.submission));
        for one in &seen {
            assert_eq!(one.rejected_by, None, "{}", one.body);
        }
        seen
    }

    /// Waits until the first fake got so many cancellations, if there are any.
    pub(super) async fn wait_for_cancellations(&self, tasks: usize) {
        let Some((method, part)) = &self.provider.cancellation else {
            return;
        };
        until_true("the cancellation upstream", async || {
            let seen = self.fakes[0].requests().into_iter();
            let cancellations = seen.filter(|r| r.method == *method && r.path.contains(part));
            cancellations.count() >= tasks
        })
        .await;
    }

    /// How many polls of its first task the first fake got.
    pub(super) fn polls(&self) -> usize {
        let polls = self.fakes[0].polls();
        polls.first().map_or(0, |(_, times)| times.len())
    }

    /// A completed record: one result that is complete, one price, and nothing that is the provider's own.
    pub(super) async fn check_completed(&self, record: &Value) {
        assert_eq!(status(record), "completed", "{record}");
        assert_eq!(record["cost"], PRICE, "{record}");
        let url = match record["url"].as_str() {
            Some(url) => url.to_owned(),
            None => image_urls(record).remove(0),
        };
        assert!(url.starts_with(&self.client.url("/files/")), "{url}");
        let file = self.client.fetch(&url).await.expect(200);
        match self.provider.result {
            ResultKind::ImageSide(side) => {
                let (_, width, height) = decode(&file.body);
                assert_eq!((width, height), (side, side));
            }
            ResultKind::VideoMs(ms) => assert_eq!(mp4_ms(&file.body), ms),
        }
        self.check_private(&format!("{record} {:?}", file.headers));
    }

    /// A failed record: its code, nothing charged, and nothing that is the provider's own.
    #[track_caller]
    pub(super) fn check_failed(&self, record: &Value, code: &str) {
        let error = serde_json::json!({ "code": code });
        let failed = serde_json::json!({ "status": "failed", "cost": 0.0, "error": error });
        assert_has(record, failed);
        self.check_private(&record.to_string());
    }

    /// Neither a provider's address, nor its ids, nor our keys there are public.
    #[track_caller]
    fn check_private(&self, text: &str) {
        let addresses = self.fakes.iter().map(|fake| fake.address().to_string());
        let ids = self.fakes.iter().flat_map(Fake::polls).map(|(id, _)| id);
        let keys = KEYS.map(str::to_owned).into_iter();
        for private in addresses.chain(ids).chain(keys) {
            assert!(!text.contains(&private), "{text}");
        }
    }

    pub(super) async fn check_spent(&self, spent: f64) {
        let expected = (BALANCE - spent, spent);
        assert_eq!(self.client.balances().await, expected);
    }

    /// So much was spent, our keys are not in the log, and the books close.
    pub(super) async fn close(self, spent: f64) {
        self.check_spent(spent).await;
        let log = self.gateway.log();
        let is_logged = KEYS.iter().any(|key| log.contains(key));
        assert!(!is_logged, "a provider's key is in the log");
        self.gateway.close().await;
    }
}

/// The keys that each task of a fake was polled with, sorted.
pub(super) fn keys_of_tasks(fake: &Fake) -> Vec<Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for seen in fake.requests() {
        for (id, _) in fake.polls() {
            let is_poll = seen.method == "GET" && !seen.path.contains("_files");
            if is_poll && (seen.path.ends_with(&id) || seen.query.ends_with(&id)) {
                keys.entry(id).or_default().push(key(&seen));
            }
        }
    }
    let mut keys: Vec<Vec<String>> = keys.into_values().collect();
    for keys in &mut keys {
        keys.sort_unstable();
        keys.dedup();
    }
    keys.sort_unstable();
    keys
}

/// The key of a request.
pub(super) fn key(seen: &ReceivedRequest) -> String {
    seen.header("authorization").expect("a key").to_owned()
}
