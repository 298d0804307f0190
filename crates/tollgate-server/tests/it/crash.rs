//! The process ends between any two steps, as in a power cut; a client that asks again under the same
//! `Idempotency-Key` gets one task, one set of whole pictures and one bill.

use std::os::unix::process::ExitStatusExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::Method;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tollgate_core::crash::POINTS;

use crate::gate::{self, Backend, Client, Gate, Setup, on_both, status};
use crate::pictures::{data_uri, png};
use crate::shop::{self, PRICE, PRICES, order, pictures, try_cancel, try_order};

on_both!(
    between_any_two_steps,
    at_every_commit,
    again_while_recovering,
    with_a_failed_attempt,
    with_fewer_pictures_than_asked,
    with_a_failed_task,
    with_a_cancellation,
    with_a_reference,
    while_a_file_is_uploaded,
);

const VARIABLE: &str = "TOLLGATE_CRASH_AT";
const KEY: &str = "the-one-order";
const SIGABRT: i32 = 6;
/// Crashes that are tried side by side: most of the time they wait.
const AT_ONCE: usize = 5;
const PAUSE: Duration = Duration::from_millis(5);
/// How long a task that has ended may take to a crash point behind its end.
const AFTERMATH: Duration = Duration::from_millis(200);

/// What is ordered, and what must come of it.
struct Story {
    body: Value,
    /// Pictures delivered and paid for.
    delivered: usize,
    /// Whether its user cancels it, at a moment that nobody knows.
    cancelled: bool,
    /// How often the gateway ends at the crash point before it is left alone.
    crashes: u32,
}

impl Story {
    fn of(body: Value) -> Self {
        Self {
            body,
            delivered: 2,
            cancelled: false,
            crashes: 1,
        }
    }
}

async fn between_any_two_steps(backend: Backend) {
    let story = || Story::of(pictures("a harbour", 2));
    each(backend, steps(), story).await;
}

async fn at_every_commit(backend: Backend) {
    let story = || Story::of(pictures("a harbour", 2));
    each(backend, commits(1..=8), story).await;
}

async fn again_while_recovering(backend: Backend) {
    let story = || Story {
        crashes: 2,
        ..Story::of(pictures("a harbour", 2))
    };
    let points = steps().into_iter().chain(commits([3, 5]));
    each(backend, points.collect(), story).await;
}

async fn with_a_failed_attempt(backend: Backend) {
    let story = || Story::of(pictures("[[sandbox:fail=1]]", 2));
    let twice = ["run.after_claim", "run.after_attempt", "run.before_finish"];
    let points = twice
        .iter()
        .flat_map(|name| [format!("{name}:1"), format!("{name}:2")]);
    let points = points.chain(["run.after_finish".to_owned()]);
    each(backend, points.chain(commits([5, 7])).collect(), story).await;
}

async fn with_fewer_pictures_than_asked(backend: Backend) {
    let story = || Story {
        delivered: 1,
        ..Story::of(pictures("[[sandbox:partial=1]]", 2))
    };
    let points = ["run.result_stored", "run.before_finish", "run.after_finish"];
    each(backend, points.map(str::to_owned).into(), story).await;
}

async fn with_a_failed_task(backend: Backend) {
    let story = || Story {
        delivered: 0,
        ..Story::of(pictures("[[sandbox:fail]]", 2))
    };
    let points = ["run.after_attempt", "run.before_finish", "run.after_finish"];
    each(backend, points.map(str::to_owned).into(), story).await;
}

async fn with_a_cancellation(backend: Backend) {
    let story = || Story {
        cancelled: true,
        ..Story::of(pictures("[[sandbox:delay=60]]", 2))
    };
    let points = [
        "run.after_claim",
        "run.after_attempt",
        "run.result_stored",
        "run.before_finish",
    ];
    let points = points.map(str::to_owned).into_iter().chain(commits(3..=6));
    each(backend, points.collect(), story).await;
}

async fn with_a_reference(backend: Backend) {
    let story = || {
        let mut body = pictures("in other colours", 2);
        body["image_urls"] = json!([data_uri("image/png", &png(64, 64))]);
        Story::of(body)
    };
    let blobs = ["blob.before_rename", "blob.after_rename"];
    let points = blobs
        .iter()
        .flat_map(|name| (1..=3).map(move |n| format!("{name}:{n}")));
    let others = [
        "submit.before_receipt",
        "run.after_attempt",
        "run.after_finish",
    ];
    each(
        backend,
        points.chain(others.map(str::to_owned)).collect(),
        story,
    )
    .await;
}

async fn while_a_file_is_uploaded(backend: Backend) {
    let file = png(64, 64);
    let head =
        "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n";
    let form = [head.as_bytes(), &file, b"\r\n--edge--\r\n"].concat();
    for point in POINTS.iter().filter(|name| name.starts_with("blob.")) {
        let mut gate = Setup::new(backend).prepare().await;
        let client = gate.somebody().await;
        gate.set_env(VARIABLE, point);
        assert!(gate.start_doomed().await, "{}", gate.last_words());
        let upload = client
            .request(Method::POST, "/v1/uploads/images")
            .header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
        let upload = upload.body(form.clone().into()).unwrap();
        let answer = client.try_send(upload).await;
        assert!(answer.is_none(), "{point}: {answer:?}");
        assert_eq!(gate.ended().await.signal(), Some(SIGABRT), "{point}");
        gate.set_env(VARIABLE, "");
        gate.start_server().await;
        let left = shop::count_public_files(&gate);
        let link = client.uploaded(&file).await;
        assert_eq!(client.fetch(&link).await.expect(200).body, file);
        assert_eq!(shop::count_public_files(&gate), left + 1);
        gate.close().await;
    }
}

/// Crash points that no picture of the sandbox passes.
const OF_OTHERS: [&str; 3] = [
    "run.after_provider_job_id",
    "run.before_poll",
    "webhook.after_post",
];

/// Every crash point of a submission and its task; those that each of two pictures passes for both.
fn steps() -> Vec<String> {
    let elsewhere = |name: &str| name.starts_with("writer.") || OF_OTHERS.contains(&name);
    let names = POINTS.iter().filter(|name| !elsewhere(name));
    let passages = |name: &'static str| {
        let per_picture = name.starts_with("blob.") || name == "run.result_stored";
        (1..=if per_picture { 2 } else { 1 }).map(move |n| format!("{name}:{n}"))
    };
    names.flat_map(|name| passages(name)).collect()
}

/// Every crash point of the writer at these of its rounds: the first ones belong to the start and the waiting for
/// work, the next to the submission, the claim, the attempt and the end.
fn commits(rounds: impl IntoIterator<Item = u32>) -> Vec<String> {
    let names = || POINTS.iter().filter(|name| name.starts_with("writer."));
    let round = |n| names().map(move |name| format!("{name}:{n}"));
    rounds.into_iter().flat_map(round).collect()
}

/// Tells the story once for each crash point; says at the end where it went wrong.
async fn each(backend: Backend, points: Vec<String>, story: impl Fn() -> Story) {
    let told = points.into_iter().map(|point| {
        let told = AssertUnwindSafe(tell(backend, point.clone(), story()));
        told.catch_unwind()
            .map(move |outcome| outcome.err().map(|_| point))
    });
    let failed: Vec<Option<String>> = futures_util::stream::iter(told)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "it went wrong at {failed:?}");
}

async fn tell(backend: Backend, point: String, story: Story) {
    // On SQLite a restarted gateway takes its tasks back at once: whoever waits for the lease here waits too long.
    let lease = match backend {
        Backend::Sqlite => "300",
        Backend::Postgres => "1",
    };
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", lease);
    let mut gate = setup.prepare().await;
    let mut customer = Customer {
        client: gate.somebody_with("payer", &["--balance", "10"]).await,
        receipt: None,
        cancelled: false,
    };
    gate.set_env(VARIABLE, &point);
    for crash in 1..=story.crashes {
        crash_once(&mut gate, &mut customer, &story, crash).await;
    }
    gate.set_env(VARIABLE, "");
    gate.start_server().await;
    customer.check(&gate, &story).await;
    gate.close().await;
}

/// Runs the gateway until it ends at its crash point.
async fn crash_once(gate: &mut Gate, customer: &mut Customer, story: &Story, crash: u32) {
    if !gate.start_doomed().await {
        return;
    }
    // A story that ends early, or was further than this point when the gateway came back, may not pass it.
    let may_survive = story.cancelled || crash > 1;
    while !gate.has_ended() {
        if customer.call(story).await && may_survive {
            tokio::time::sleep(AFTERMATH).await;
            if !gate.has_ended() {
                gate.kill().await;
                return;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    let status = gate.ended().await;
    assert_eq!(
        status.signal(),
        Some(SIGABRT),
        "{status}: {}",
        gate.last_words()
    );
}

/// Who orders, and what was promised so far.
struct Customer {
    client: Client,
    receipt: Option<Bytes>,
    /// Whether the gateway said that it cancelled the task.
    cancelled: bool,
}

impl Customer {
    /// Does the next thing at a gateway that may be gone at any moment; answers whether the task has ended.
    async fn call(&mut self, story: &Story) -> bool {
        let Some(receipt) = &self.receipt else {
            if let Some(reply) = try_order(&self.client, KEY, &story.body).await {
                self.promised(reply.expect(200).body);
            }
            return false;
        };
        let id = task_id(receipt);
        if story.cancelled && !self.cancelled {
            return self.cancel(&id).await;
        }
        let path = format!("/v1/tasks/{id}");
        let look = self.client.request(Method::GET, &path);
        match self
            .client
            .try_send(look.body(Default::default()).unwrap())
            .await
        {
            Some(reply) => {
                let record = reply.expect(200).json();
                matches!(status(&record["data"]), "completed" | "failed")
            }
            None => false,
        }
    }

    /// Cancels the task; answers whether it has ended, so or otherwise.
    async fn cancel(&mut self, id: &str) -> bool {
        let Some(reply) = try_cancel(&self.client, id).await else {
            return false;
        };
        match reply.status {
            200 => self.cancelled = true,
            _ => drop(reply.error(409, "invalid_request_error")),
        }
        true
    }

    /// Every receipt for the one order is the same, byte for byte.
    fn promised(&mut self, receipt: Bytes) {
        match &self.receipt {
            Some(first) => assert_eq!(*first, receipt),
            None => self.receipt = Some(receipt),
        }
    }

    /// Asks again, waits for the end, and looks at everything there is.
    async fn check(&mut self, gate: &Gate, story: &Story) {
        let again = order(&self.client, KEY, &story.body).await.expect(200);
        let id = task_id(&again.body);
        self.promised(again.body);
        if story.cancelled && !self.cancelled {
            self.cancel(&id).await;
        }
        let record = self.client.ended(&id).await;
        let was_cancelled = record["error"]["code"] == "cancelled";
        assert!(was_cancelled || !self.cancelled, "{record}");
        assert!(story.cancelled || !was_cancelled, "{record}");
        let delivered = if was_cancelled { 0 } else { story.delivered };
        let cost = PRICE * delivered as f64;
        if delivered == 0 {
            assert_eq!(status(&record), "failed", "{record}");
        } else {
            assert_eq!(status(&record), "completed", "{record}");
            assert_eq!(shop::count_pictures(&self.client, &record).await, delivered);
        }
        assert_eq!(record["cost"], cost, "{record}");
        assert_eq!(self.client.purse().await, (10.0 - cost, cost));
        assert!(shop::count_public_files(gate) >= delivered);

        let again = order(&self.client, KEY, &story.body).await.expect(200);
        self.promised(again.body);
        let all = self.client.get("/v1/tasks").await.expect(200).json();
        let ids: Vec<&Value> = all["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| &t["id"])
            .collect();
        assert_eq!(ids, [id.as_str()], "one order is one task");
        assert_eq!(
            self.client.task(&id).await,
            record,
            "what has ended does not change"
        );
    }
}

fn task_id(receipt: &[u8]) -> String {
    gate::task_id(&serde_json::from_slice(receipt).unwrap())
}
