//! How much write-ahead log PostgreSQL writes for a task: `cargo run -p tollgate-store --example task_wal -- postgres://… [TASKS [RENEWALS [plain]]]`, on an
//! empty database that nobody else uses; with `plain` without partitions. Prints bytes per task for each step of its life, and how many renewals were heap-only (HOT).

use std::error::Error;

use futures_util::future::try_join_all;
use tokio_postgres::{Client, NoTls};
use tollgate_core::clock::DAY;
use tollgate_core::{Amount, TaskKind, id};
use tollgate_store::{
    AttemptEnd, Charge, DatabaseLocation, Delivered, KeyLimits, LeasedTask, NewAttempt, NewKey,
    NewTask, RateLimits, Store, TaskEnd, TaskFinish,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const NOW: i64 = 1_790_000_000_000;
const RETENTION: i64 = 30 * DAY;
/// A prompt of ordinary length.
const PROMPT: &str = "A lighthouse on a cliff above a stormy sea at dusk, seen from a small boat below, painted in oil with broad strokes, warm \
                      light from its lamp room against blue clouds, gulls in the wind, spray on the rocks, no text";

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let url = args
        .next()
        .ok_or("the first argument is a postgres:// URL")?;
    let tasks: usize = args.next().map_or(Ok(2_000), |n| n.parse())?;
    let renewals: usize = args.next().map_or(Ok(10), |n| n.parse())?;
    let has_partitions = args.next().is_none();
    let store = Store::open(&DatabaseLocation::Postgres(url.clone())).await?;
    if has_partitions {
        store.maintain_partitions(RETENTION, NOW).await?;
    }
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CHECKPOINT").await?;
    let mut log = Log::new(client, tasks).await?;

    let new = new_tasks(&store, tasks).await?;
    log.restart().await?;
    try_join_all(new.into_iter().map(|task| store.submit_task(task))).await?;
    log.step("submission").await?;
    let mut leased = Vec::new();
    while leased.len() < tasks {
        leased.extend(store.claim_tasks("w", 64, NOW + 30_000, NOW).await?);
    }
    log.step("claim").await?;
    for some in leased.chunks(64) {
        try_join_all(some.iter().map(|task| store.start_attempt(attempt(task)))).await?;
    }
    log.step("start of an attempt").await?;
    for n in 1..=renewals {
        for some in leased.chunks(500) {
            let leases = some.iter().map(|l| (l.task.id.clone(), l.fence)).collect();
            let until = NOW + 30_000 + 10_000 * n as i64;
            store.renew_leases("w", leases, until).await?;
        }
    }
    log.step(&format!("{renewals} renewals")).await?;
    for some in leased.chunks(64) {
        try_join_all(some.iter().map(|task| store.finish_task(finish(task)))).await?;
    }
    log.step("end").await?;
    if has_partitions {
        let later = NOW + 4 * DAY + RETENTION;
        store.maintain_partitions(RETENTION, later).await?;
    } else {
        while store.purge_expired(NOW + 5_000, NOW + 5_000).await? > 0 {}
        log.client.batch_execute("VACUUM tasks, attempts").await?;
    }
    log.step("purge").await?;
    println!("{:>20} {:>8}", "sum", log.sum);
    let violations = store.audit().await?;
    (violations.is_empty())
        .then_some(())
        .ok_or("the audit found violations")?;
    drop(store);
    log.print_updates().await
}

/// Where the write-ahead log was.
struct Log {
    client: Client,
    tasks: usize,
    at: i64,
    sum: i64,
}

impl Log {
    async fn new(client: Client, tasks: usize) -> Outcome<Self> {
        let mut log = Self {
            client,
            tasks,
            at: 0,
            sum: 0,
        };
        log.restart().await?;
        Ok(log)
    }

    async fn restart(&mut self) -> Outcome<()> {
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        self.at = self.client.query_one(position, &[]).await?.get(0);
        Ok(())
    }

    /// Prints how much was written since the last step, per task.
    async fn step(&mut self, name: &str) -> Outcome<()> {
        let before = self.at;
        self.restart().await?;
        let bytes = (self.at - before) / self.tasks as i64;
        self.sum += bytes;
        println!("{name:>20} {bytes:>8} bytes per task");
        Ok(())
    }

    /// Prints updates of the tables of tasks, once the server has counted them: it does so when the store's connections end.
    async fn print_updates(&self) -> Outcome<()> {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let updates = "SELECT relname::text, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname IN ('queue', 'tasks') ORDER BY 1";
        for row in self.client.query(updates, &[]).await? {
            let (table, all, hot): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
            println!("{table:>20} {all:>8} updates, {hot} heap-only");
        }
        Ok(())
    }
}

/// Tasks of 20 users.
async fn new_tasks(store: &Store, count: usize) -> Outcome<Vec<NewTask>> {
    let mut keys = Vec::new();
    for n in 0..20 {
        let name = format!("user{n}");
        let rates = RateLimits::default();
        store
            .create_user(&name, true, Amount::ZERO, rates, NOW)
            .await?;
        let key = NewKey {
            id: id::short_id("key_"),
            hash: id::key_hash(&id::api_key()),
            hint: "sk-".to_owned(),
            user: name,
            label: "wal".to_owned(),
            quota: None,
            limits: KeyLimits::default(),
            now: NOW,
        };
        keys.push(store.create_key(key).await?);
    }
    let tasks = (0..count).map(|n| {
        let key = &keys[n % keys.len()];
        NewTask {
            id: id::task_id(NOW),
            user_id: key.user_id.clone(),
            key_id: key.id.clone(),
            kind: TaskKind::Image,
            family: "seedream-4.5".to_owned(),
            model: "seedream-4.5".to_owned(),
            created_at: NOW,
            deadline_at: NOW + 600_000,
            job:
                serde_json::json!({"prompt": PROMPT, "size": "2048x2048", "n": 1, "format": "png"})
                    .to_string(),
            adjustments: "[]".to_owned(),
            echoed_fields: serde_json::json!({"prompt": PROMPT, "size": "2048x2048"}).to_string(),
            callback_url: None,
            request_id: id::short_id("req_"),
            trace_context: None,
            trace_state: None,
            charge: Charge {
                price: Amount::from_nanos(40_000_000),
                units_per_price: 1,
                units: 1,
            },
            idempotency: None,
        }
    });
    Ok(tasks.collect())
}

fn attempt(leased: &LeasedTask) -> NewAttempt {
    NewAttempt {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        channel: "sandbox".to_owned(),
        external_id: None,
        queued: true,
        key_fingerprint: None,
        abandon_queued_as: None,
        now: NOW,
    }
}

fn finish(leased: &LeasedTask) -> TaskFinish {
    let file = serde_json::json!({"name": "f_0123456789abcdef0123456789abcdef_1790086400.png", "type": "image/png", "width": 2048, "height": 2048});
    TaskFinish {
        task_id: leased.task.id.clone(),
        user_id: leased.task.user_id.clone(),
        key_id: leased.task.key_id.clone(),
        fence: leased.fence,
        end: TaskEnd::Completed {
            delivered: Delivered::from_files(TaskKind::Image, 1),
            result: serde_json::json!({ "files": [file] }).to_string(),
        },
        attempt: Some(AttemptEnd {
            number: 1,
            outcome: "done",
            error: None,
        }),
        now: NOW + 5_000,
    }
}
