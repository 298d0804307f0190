//! The process ends between any two steps, as in a power cut; a client that repeats its request under the same
//! `Idempotency-Key` gets one task, one set of complete images and one charge.

use std::os::unix::process::ExitStatusExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::Method;
use serde_json::{Value, json};
use tollgate_core::crash::POINTS;

use crate::harness::images::{data_uri, png};
use crate::harness::priced_images::*;
use crate::harness::*;

on_both!(
    a_task_recovers_from_a_crash_between_any_two_steps,
    a_task_recovers_from_a_crash_at_every_commit,
    a_task_recovers_from_a_second_crash_during_recovery,
    a_task_with_a_failed_attempt_recovers_from_a_crash,
    a_task_with_fewer_images_than_requested_recovers_from_a_crash,
    a_failed_task_recovers_from_a_crash,
    a_cancelled_task_recovers_from_a_crash,
    a_task_with_a_reference_recovers_from_a_crash,
    files_can_be_uploaded_again_after_a_crash,
);

const KEY: &str = "one-key";
const SIGABRT: i32 = 6;
/// The number of crashes that are tested side by side: most of the time they wait.
const AT_ONCE: usize = 5;
const PAUSE: Duration = Duration::from_millis(15);
/// The longest time between the end of a task and a crash point after it.
const AFTERMATH: Duration = Duration::from_millis(200);

/// A request, and its expected result.
struct Plan {
    body: Value,
    /// The number of images that are delivered and charged.
    delivered: usize,
    /// Whether the user cancels the task, at a random moment.
    cancelled: bool,
    /// How often the gateway exits at the crash point.
    crashes: u32,
}

/// A plan in which two images are delivered.
fn plan(prompt: &str) -> Plan {
    Plan {
        body: images(prompt, 2),
        delivered: 2,
        cancelled: false,
        crashes: 1,
    }
}

async fn a_task_recovers_from_a_crash_between_any_two_steps(backend: Backend) {
    check_all(backend, steps(), || plan("a harbour")).await;
}

async fn a_task_recovers_from_a_crash_at_every_commit(backend: Backend) {
    check_all(backend, commits(1..=8), || plan("a harbour")).await;
}

async fn a_task_recovers_from_a_second_crash_during_recovery(backend: Backend) {
    let points = [steps(), commits([3, 5])].concat();
    let crashes = 2;
    check_all(backend, points, || Plan {
        crashes,
        ..plan("a harbour")
    })
    .await;
}

async fn a_task_with_a_failed_attempt_recovers_from_a_crash(backend: Backend) {
    let twice = ["run.after_claim", "run.after_attempt", "run.before_finish"];
    let mut points = passages(&twice, 2);
    points.push("run.after_finish".to_owned());
    points.extend(commits([5, 7]));
    check_all(backend, points, || plan("[[sandbox:fail=1]]")).await;
}

async fn a_task_with_fewer_images_than_requested_recovers_from_a_crash(backend: Backend) {
    let points = ["run.result_stored", "run.before_finish", "run.after_finish"];
    let delivered = 1;
    let plan = || Plan {
        delivered,
        ..plan("[[sandbox:partial=1]]")
    };
    check_all(backend, passages(&points, 1), plan).await;
}

async fn a_failed_task_recovers_from_a_crash(backend: Backend) {
    let points = ["run.after_attempt", "run.before_finish", "run.after_finish"];
    let delivered = 0;
    let plan = || Plan {
        delivered,
        ..plan("[[sandbox:fail]]")
    };
    check_all(backend, passages(&points, 1), plan).await;
}

async fn a_cancelled_task_recovers_from_a_crash(backend: Backend) {
    let points = [
        "run.after_claim",
        "run.after_attempt",
        "run.result_stored",
        "run.before_finish",
    ];
    let points = [passages(&points, 1), commits(3..=6)].concat();
    let cancelled = true;
    let plan = || Plan {
        cancelled,
        ..plan("[[sandbox:delay=60]]")
    };
    check_all(backend, points, plan).await;
}

async fn a_task_with_a_reference_recovers_from_a_crash(backend: Backend) {
    let plan = || {
        let mut plan = plan("in other colours");
        plan.body["image_urls"] = json!([data_uri("image/png", &png(64, 64))]);
        plan
    };
    let files = passages(&["blob.before_rename", "blob.after_rename"], 3);
    let others = [
        "submit.before_receipt",
        "run.after_attempt",
        "run.after_finish",
    ];
    check_all(backend, [files, passages(&others, 1)].concat(), plan).await;
}

async fn files_can_be_uploaded_again_after_a_crash(backend: Backend) {
    let file = png(64, 64);
    let head =
        "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n";
    let form = [head.as_bytes(), &file, b"\r\n--edge--\r\n"].concat();
    for point in POINTS.iter().filter(|name| name.starts_with("blob.")) {
        eprintln!("{point}");
        let mut gateway = Setup::new(backend).prepare().await;
        let client = gateway.unlimited_client().await;
        gateway.crash_at(point);
        assert!(gateway.start_to_crash().await, "{}", gateway.log_tail());
        let upload = client.request(Method::POST, "/v1/uploads/images");
        let upload = upload.header("content-type", "multipart/form-data; boundary=edge");
        let upload = upload.body(form.clone().into()).unwrap();
        assert!(client.try_send(upload).await.is_none());
        assert_eq!(gateway.wait_for_exit().await.signal(), Some(SIGABRT));
        gateway.crash_at("");
        gateway.start_server().await;
        let left = count_public_files(&gateway);
        let link = client.upload_image(&file).await;
        assert_eq!(client.fetch(&link).await.expect(200).body, file);
        assert_eq!(count_public_files(&gateway), left + 1);
        gateway.close().await;
    }
}

/// Crash points that images of the sandbox do not pass.
const OF_OTHERS: [&str; 3] = [
    "run.after_provider_job_id",
    "run.before_poll",
    "webhook.after_post",
];

/// The first `times` passages of each crash point.
fn passages(points: &[&str], times: u32) -> Vec<String> {
    let point =
        |name: &&str| -> Vec<String> { (1..=times).map(|n| format!("{name}:{n}")).collect() };
    points.iter().flat_map(point).collect()
}

/// Every crash point of a submission and its task; twice for those that each of two images passes.
fn steps() -> Vec<String> {
    let elsewhere = |name: &str| name.starts_with("writer.") || OF_OTHERS.contains(&name);
    let names = POINTS.iter().filter(|name| !elsewhere(name));
    let points = names.flat_map(|name| {
        let per_image = name.starts_with("blob.") || *name == "run.result_stored";
        passages(&[*name], if per_image { 2 } else { 1 })
    });
    points.collect()
}

/// Every crash point of the writer at these of its rounds: the first ones belong to the start and the waiting for
/// work, the next to the submission, the claim, the attempt and the end.
fn commits(rounds: impl IntoIterator<Item = u32>) -> Vec<String> {
    let names = || POINTS.iter().filter(|name| name.starts_with("writer."));
    let round = |n| names().map(move |name| format!("{name}:{n}"));
    rounds.into_iter().flat_map(round).collect()
}

/// Runs the plan once for each crash point; lists the failed ones at the end.
async fn check_all(backend: Backend, points: Vec<String>, plan: impl Fn() -> Plan) {
    let checks = points.into_iter().map(|point| {
        let check = AssertUnwindSafe(check(backend, point.clone(), plan()));
        let check = check.catch_unwind();
        check.map(move |outcome| outcome.err().map(|_| point))
    });
    let checks = futures_util::stream::iter(checks).buffer_unordered(AT_ONCE);
    let failed: Vec<String> = checks.filter_map(async |point| point).collect().await;
    assert!(failed.is_empty(), "the check failed at {failed:?}");
}

async fn check(backend: Backend, point: String, plan: Plan) {
    // On SQLite a restarted gateway reclaims its tasks at once: with this long lease, a gateway that waits for the lease's end fails the test.
    let lease = match backend {
        Backend::Sqlite => "300",
        Backend::Postgres => "1",
    };
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", lease);
    let mut gateway = setup.prepare().await;
    let mut run = Run {
        client: gateway.funded_client("10").await,
        plan,
        receipt: None,
        cancelled: false,
    };
    gateway.crash_at(&point);
    for crash in 1..=run.plan.crashes {
        crash_once(&mut gateway, &mut run, crash).await;
    }
    gateway.crash_at("");
    gateway.start_server().await;
    run.check(&gateway).await;
    gateway.close().await;
}

/// Runs the gateway until it ends at its crash point.
async fn crash_once(gateway: &mut TestGateway, run: &mut Run, crash: u32) {
    if !gateway.start_to_crash().await {
        return;
    }
    // A task that ends early, or had passed this point before the gateway restarted, may not reach it.
    let may_survive = run.plan.cancelled || crash > 1;
    while !gateway.has_exited() {
        if run.advance().await && may_survive {
            tokio::time::sleep(AFTERMATH).await;
            if !gateway.has_exited() {
                gateway.kill().await;
                return;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    let status = gateway.wait_for_exit().await;
    let is_crash = status.signal() == Some(SIGABRT);
    assert!(is_crash, "{status}: {}", gateway.log_tail());
}

/// A client that follows a plan, and the responses that it got so far.
struct Run {
    client: Client,
    plan: Plan,
    receipt: Option<Bytes>,
    /// Whether the gateway confirmed the cancellation.
    cancelled: bool,
}

impl Run {
    /// Sends the next request to a gateway that may exit at any moment; returns whether the task has ended.
    async fn advance(&mut self) -> bool {
        let Some(receipt) = &self.receipt else {
            if let Some(reply) = try_submit_once(&self.client, KEY, &self.plan.body).await {
                self.check_receipt(reply);
            }
            return false;
        };
        let id = task_id(&serde_json::from_slice(receipt).unwrap());
        if self.plan.cancelled && !self.cancelled {
            return self.try_cancel(&id).await;
        }
        let poll = self.client.request(Method::GET, &format!("/v1/tasks/{id}"));
        let poll = poll.body(Default::default()).unwrap();
        let Some(reply) = self.client.try_send(poll).await else {
            return false;
        };
        let record = reply.expect(200).json();
        matches!(status(&record["data"]), "completed" | "failed")
    }

    /// Cancels the task; returns whether it has ended, by this or otherwise.
    async fn try_cancel(&mut self, id: &str) -> bool {
        let path = format!("/v1/tasks/{id}/cancel");
        let request = self.client.request(Method::POST, &path);
        let request = request.body(Default::default()).unwrap();
        let Some(reply) = self.client.try_send(request).await else {
            return false;
        };
        match reply.status {
            200 => self.cancelled = true,
            _ => drop(reply.rejected(409, "")),
        }
        true
    }

    /// Checks that every receipt for the one request is the same, byte for byte. Returns the task's id.
    fn check_receipt(&mut self, reply: Reply) -> String {
        let receipt = reply.expect(200);
        let id = task_id(&receipt.json());
        assert_eq!(
            *self.receipt.get_or_insert(receipt.body.clone()),
            receipt.body
        );
        id
    }

    /// Repeats the request, waits for the end, and checks everything.
    async fn check(&mut self, gateway: &TestGateway) {
        let again = submit_once(&self.client, KEY, &self.plan.body).await;
        let id = self.check_receipt(again);
        if self.plan.cancelled && !self.cancelled {
            self.try_cancel(&id).await;
        }
        let record = self.client.wait_for_end(&id).await;
        let was_cancelled = record["error"]["code"] == "cancelled";
        assert!(was_cancelled || !self.cancelled, "{record}");
        assert!(self.plan.cancelled || !was_cancelled, "{record}");
        let delivered = if was_cancelled {
            0
        } else {
            self.plan.delivered
        };
        if delivered == 0 {
            assert_eq!(status(&record), "failed", "{record}");
        } else {
            assert_eq!(count_images(&self.client, &record).await, delivered);
        }
        let cost = PRICE * delivered as f64;
        assert_eq!(record["cost"], cost, "{record}");
        assert_eq!(self.client.balances().await, (10.0 - cost, cost));
        assert!(count_public_files(gateway) >= delivered);

        let again = submit_once(&self.client, KEY, &self.plan.body).await;
        self.check_receipt(again);
        let tasks = self.client.tasks().await;
        let is_one = tasks.len() == 1 && tasks[0]["id"] == id;
        assert!(is_one, "one key is one task: {tasks:?}");
        // The record of a task that has ended does not change.
        assert_eq!(self.client.task(&id).await, record);
    }
}
