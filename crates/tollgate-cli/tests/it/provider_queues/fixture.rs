//! Gateways whose channels lead to fakes of providers with queues.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_fakes::{Fake, Options, Provider, ReceivedRequest, start};

use crate::harness::images::decode;
use crate::harness::*;
use crate::videos::mp4_ms;

/// The price of a task, for every provider.
pub(super) const PRICE: f64 = 0.5;
/// The initial balance of the account.
pub(super) const BALANCE: f64 = 4.0;
/// The keys of every channel.
const KEYS: [&str; 3] = ["up-key-one", "up-key-two", "up-key-three"];

/// A row of a table: a provider with a queue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueProvider {
    pub(super) provider: String,
    /// The gateway's name of the model, and the provider's.
    model: String,
    upstream: String,
    /// The path to which clients submit, and the members of the request besides model and prompt.
    path: String,
    request: Map<String, Value>,
    result: ResultKind,
    /// The status in the record of a task that is running.
    #[serde(default = "in_progress")]
    pub(super) running: String,
    /// A part of the provider's path for submissions.
    submission: String,
    /// Method and a part of the path of a cancellation; `None` if the provider cannot cancel jobs.
    cancellation: Option<(String, String)>,
    /// The fake's scenario for a rejected request.
    pub(super) rejection: String,
    /// Whether the gateway can find a job by the id that it sent itself.
    #[serde(default)]
    pub(super) finds_by_external_id: bool,
    /// Whether the result needs another request than the state.
    #[serde(default)]
    pub(super) result_is_separate: bool,
    /// Whether a job that failed for an unknown reason is not retried, because a retry would be charged again.
    #[serde(default)]
    pub(super) failures_are_final: bool,
}

fn in_progress() -> String {
    "in_progress".to_owned()
}

/// The kind of result that a provider generates.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultKind {
    /// A square image with sides of this number of pixels.
    ImageSide(u32),
    VideoMs(u64),
}

impl QueueProvider {
    /// A request whose prompt has directives for the fake.
    fn body(&self, prompt: &str) -> Value {
        let mut body = Value::Object(self.request.clone());
        body["model"] = self.model.as_str().into();
        body["prompt"] = prompt.into();
        body
    }

    /// The size in bytes of a result that is too large; `None` if the fake cannot generate one.
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
    /// Starts a gateway with this number of channels, each to a separate fake. Tasks may take `limit_s` seconds.
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

    /// The same without starting the gateway.
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
            let channel = ChannelConfig::new(&format!("{kind}-{at}"), kind).url(&fake.base_url());
            let channel = channel.keys(&KEYS).model_as(model, upstream);
            let rest = format!("priority = {at}\npoll_ms = 100");
            config += &channel.lines(&rest).text();
            fakes.push(fake);
        }
        // On SQLite a restarted gateway reclaims its tasks at once: with this long lease, a gateway that waits for the lease's end fails the test.
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

    /// Submits a request, which must be accepted; returns the task's id.
    pub(super) async fn submit(&self, prompt: &str) -> String {
        let body = self.provider.body(prompt);
        let receipt = self.client.post(&self.provider.path, &body).await;
        task_id(&receipt.expect(200).json())
    }

    /// Submits under an idempotency key; `None` if the gateway exits meanwhile.
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

    /// The submissions that a fake received.
    pub(super) fn submissions(&self, fake: usize) -> Vec<ReceivedRequest> {
        let mut seen = self.fakes[fake].requests();
        seen.retain(|r| r.method == "POST" && r.path.contains(&self.provider.submission));
        for one in &seen {
            assert_eq!(one.rejected_by, None, "{}", one.body);
        }
        seen
    }

    /// Waits until the first fake received this number of cancellations, if the provider supports them.
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

    /// Waits for the log line of a task's end; returns it.
    pub(super) async fn end_line(&self, id: &str) -> Value {
        until("the line of a task's end", async || {
            let log = self.gateway.log();
            let lines = log.lines().map(serde_json::from_str::<Value>);
            let mut lines = lines.filter_map(Result::ok);
            lines.find(|line| line["message"] == "task ended" && line["task"] == id)
        })
        .await
    }

    /// How often the first fake was polled for its first task.
    pub(super) fn polls(&self) -> usize {
        let polls = self.fakes[0].polls();
        polls.first().map_or(0, |(_, times)| times.len())
    }

    /// Checks a completed record: one complete result, one price, and no data of the provider.
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

    /// Checks a failed record: its code, no charge, and no data of the provider.
    #[track_caller]
    pub(super) fn check_failed(&self, record: &Value, code: &str) {
        let error = serde_json::json!({ "code": code });
        let failed = serde_json::json!({ "status": "failed", "cost": 0.0, "error": error });
        assert_has(record, failed);
        self.check_private(&record.to_string());
    }

    /// Checks that a text shows no address of a provider, none of its ids, and none of our keys there.
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

    /// Checks that this amount was spent, that our keys are not in the log, and that the audit passes.
    pub(super) async fn close(self, spent: f64) {
        self.check_spent(spent).await;
        let log = self.gateway.log();
        let is_logged = KEYS.iter().any(|key| log.contains(key));
        assert!(!is_logged, "a provider's key is in the log");
        self.gateway.close().await;
    }
}

/// For each task of a fake, the keys with which it was polled, sorted.
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
