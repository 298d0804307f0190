//! Two hundred clients of one user at once, which fail, cancel, repeat requests and run out of money, while audits run. In the end every billionth is
//! accounted for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::harness::priced_images::*;
use crate::harness::*;

on_both!(all_amounts_add_up_under_stress);

const CLIENTS: u64 = 200;
const DURATION: Duration = Duration::from_secs(5);
/// The user's initial balance, and the amount that is credited later. Together they are not enough for all requests.
const BALANCE: &str = "60";
const CREDIT: &str = "5";
const CREDITED: f64 = 65.0;
/// The quota of one of the keys.
const QUOTA: f64 = 4.0;

async fn all_amounts_add_up_under_stress(backend: Backend) {
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_WORKERS__IMAGES", "64");
    let gateway = setup.start().await;
    let keys = [
        gateway.funded_client(BALANCE).await,
        gateway.key("account", &[]).await,
        gateway
            .key("account", &["--quota", &QUOTA.to_string()])
            .await,
    ];
    let end = Instant::now() + DURATION;
    let over = AtomicBool::new(false);
    let clients = (0..CLIENTS).map(|number| {
        let client = keys[(number % 3) as usize].clone();
        let (rng, tasks) = (StdRng::seed_from_u64(number), 0);
        let client = StressClient {
            number,
            client,
            rng,
            tasks,
        };
        client.run(end)
    });
    let stress = async {
        let tasks: u64 = join_all(clients).await.into_iter().sum();
        over.store(true, Ordering::Relaxed);
        tasks
    };
    let (tasks, audits) = tokio::join!(stress, audit_until(&gateway, &over));
    assert!(tasks > 0 && audits > 0, "{tasks} tasks, {audits} audits");
    gateway.idle().await;

    let all = all_tasks(&keys[0]).await;
    assert_eq!(all.len() as u64, tasks, "every submission is one task");
    let costs = all.iter().map(|task| task["cost"].as_f64().unwrap());
    let (left, used) = keys[0].balances().await;
    assert_eq!(costs.sum::<f64>(), used);
    assert_eq!(left + used, CREDITED);
    assert!(left >= 0.0);
    let (left, used) = keys[2].key_balances().await;
    assert_eq!(left + used, QUOTA);
    count_public_files(&gateway);
    gateway.close().await;
}

/// Runs audits beside the running gateway, which must find no violation; adds one credit. Returns the number of audits.
async fn audit_until(gateway: &TestGateway, over: &AtomicBool) -> u32 {
    let mut audits = 0;
    while !over.load(Ordering::Relaxed) {
        let audit = gateway.cli(&["audit"]).await;
        assert_eq!(audit.code, 0, "{audit:?}");
        audits += 1;
        if audits == 1 {
            let credit = ["user", "credit", "account", CREDIT];
            gateway.cli_json(&credit).await;
        }
    }
    audits
}

async fn all_tasks(client: &Client) -> Vec<Value> {
    let mut tasks = Vec::new();
    let mut path = "/v1/tasks?limit=100".to_owned();
    loop {
        let page = client.get_json(&path).await;
        tasks.extend_from_slice(page["data"].as_array().unwrap());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/tasks?limit=100&cursor={cursor}"),
            None => return tasks,
        }
    }
}

struct StressClient {
    number: u64,
    client: Client,
    rng: StdRng,
    tasks: u64,
}

impl StressClient {
    async fn pause(&mut self, max_ms: u64) {
        let pause = Duration::from_millis(self.rng.random_range(0..max_ms));
        tokio::time::sleep(pause).await;
    }

    /// Submits until the time is up; returns the number of tasks that were accepted.
    async fn run(mut self, end: Instant) -> u64 {
        let mut submissions = 0;
        while Instant::now() < end {
            submissions += 1;
            let key = format!("{}-{submissions}", self.number);
            let simple = match self.rng.random_range(0..16) {
                0 => Some(("a kite", 1)),
                1 => Some(("[[sandbox:partial=1]]", 3)),
                2 => Some(("[[sandbox:partial=0]]", 2)),
                3 => Some(("[[sandbox:fail=1]][[sandbox:partial=0]]", 1)),
                4..=6 => {
                    self.submit_twice(&key).await;
                    None
                }
                7..=10 => {
                    self.submit_and_cancel(&key).await;
                    None
                }
                _ => Some(("[[sandbox:fail]]", 4)),
            };
            if let Some((prompt, n)) = simple {
                self.submit(&key, prompt, n).await;
            }
            self.pause(60).await;
        }
        self.tasks
    }

    /// Submits; returns the task's id if the balance covers it.
    async fn submit(&mut self, key: &str, prompt: &str, n: u32) -> Option<String> {
        let reply = submit_once(&self.client, key, &images(prompt, n)).await;
        if reply.status == 402 {
            return None;
        }
        self.tasks += 1;
        Some(task_id(&reply.expect(200).json()))
    }

    /// Sends the same submission twice at once: both get one receipt, or a rejection (which does not use up the key).
    async fn submit_twice(&mut self, key: &str) {
        let body = images("[[sandbox:fail]]", 1);
        let submit = || submit_once(&self.client, key, &body);
        let (one, two) = tokio::join!(submit(), submit());
        let accepted = [one, two].into_iter().filter(|reply| reply.status != 402);
        let receipts: Vec<_> = accepted.map(|reply| reply.expect(200).body).collect();
        assert!(receipts.iter().all(|receipt| *receipt == receipts[0]));
        self.tasks += u64::from(!receipts.is_empty());
    }

    /// Submits a task that would never end, and cancels it.
    async fn submit_and_cancel(&mut self, key: &str) {
        let Some(id) = self.submit(key, "[[sandbox:hang]]", 2).await else {
            return;
        };
        self.pause(100).await;
        let cancel = || self.client.cancel(&id);
        let (one, two) = tokio::join!(cancel(), cancel());
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "a task is cancelled once");
    }
}
