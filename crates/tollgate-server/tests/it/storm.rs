//! Two hundred clients of one user at once, who fail, cancel, repeat themselves and run out of money; the auditor
//! looks in all the while. In the end every billionth is where it belongs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;

use crate::gate::{Backend, Client, Gate, Setup, on_both, task_id};
use crate::shop::{self, PRICES, order, pictures};

on_both!(every_billionth_is_accounted_for);

const CLIENTS: u64 = 200;
const STORM: Duration = Duration::from_secs(5);
/// What the user begins with, and what is credited during the storm. It is not enough for everything.
const BALANCE: &str = "60";
const CREDIT: &str = "5";
const CREDITED: f64 = 65.0;
/// What one of its keys may spend.
const QUOTA: f64 = 4.0;

async fn every_billionth_is_accounted_for(backend: Backend) {
    let setup = Setup::new(backend).config(PRICES);
    let gate = setup.env("TOLLGATE_WORKERS__IMAGES", "64").start().await;
    gate.user("payer", &["--balance", BALANCE]).await;
    let keys = [
        gate.key("payer", &[]).await,
        gate.key("payer", &[]).await,
        gate.key("payer", &["--quota", &QUOTA.to_string()]).await,
    ];
    let until = Instant::now() + STORM;
    let over = AtomicBool::new(false);
    let customers = (0..CLIENTS).map(|number| {
        let client = keys[(number % 3) as usize].clone();
        Customer::new(number, client).live(until)
    });
    let storm = async {
        let orders: u64 = join_all(customers).await.into_iter().sum();
        over.store(true, Ordering::Relaxed);
        orders
    };
    let (orders, audits) = tokio::join!(storm, look_at_the_books(&gate, &over));
    assert!(orders > 0 && audits > 0, "{orders} orders, {audits} audits");
    gate.idle().await;

    let (mut sum, mut count) = (0.0, 0);
    for task in all_tasks(&keys[0]).await {
        sum += task["cost"].as_f64().unwrap();
        count += 1;
    }
    assert_eq!(count, orders, "every order that was taken is one task");
    let (left, used) = keys[0].purse().await;
    assert_eq!(sum, used, "what tasks cost is what was spent");
    assert_eq!(left + used, CREDITED, "what was credited is left or spent");
    assert!(left >= 0.0);
    let limited = keys[2].balance().await;
    let part = |name: &str| limited[name].as_f64().unwrap();
    assert_eq!(part("remain_balance") + part("used_balance"), QUOTA);
    shop::count_public_files(&gate);
    gate.close().await;
}

/// Audits beside the running gateway, which never says that anything is wrong; pays in once. Answers how many
/// audits there were.
async fn look_at_the_books(gate: &Gate, over: &AtomicBool) -> u32 {
    let mut audits = 0;
    while !over.load(Ordering::Relaxed) {
        let audit = gate.cli(&["audit"]).await;
        assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
        audits += 1;
        if audits == 1 {
            gate.record(&["user", "credit", "payer", CREDIT]).await;
        }
    }
    audits
}

async fn all_tasks(client: &Client) -> Vec<Value> {
    let mut tasks = Vec::new();
    let mut path = "/v1/tasks?limit=100".to_owned();
    loop {
        let page = client.get(&path).await.expect(200).json();
        tasks.extend_from_slice(page["data"].as_array().unwrap());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/tasks?limit=100&cursor={cursor}"),
            None => return tasks,
        }
    }
}

/// One of the crowd, with dice of its own.
struct Customer {
    number: u64,
    client: Client,
    dice: u64,
    tasks: u64,
}

impl Customer {
    fn new(number: u64, client: Client) -> Self {
        Self {
            number,
            client,
            dice: number,
            tasks: 0,
        }
    }

    fn throw(&mut self, sides: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    /// Orders until the time is up; answers how many tasks came of it.
    async fn live(mut self, until: Instant) -> u64 {
        let mut orders = 0;
        while Instant::now() < until {
            orders += 1;
            let key = format!("{}-{orders}", self.number);
            match self.throw(16) {
                0 => self.order(&key, "a kite", 1).await,
                1 => self.order(&key, "[[sandbox:partial=1]]", 3).await,
                2 => self.order(&key, "[[sandbox:partial=0]]", 2).await,
                3 => {
                    self.order(&key, "[[sandbox:fail=1]][[sandbox:partial=0]]", 1)
                        .await
                }
                4..=6 => self.order_twice(&key).await,
                7..=10 => self.change_its_mind(&key).await,
                _ => self.order(&key, "[[sandbox:fail]]", 4).await,
            };
            let pause = Duration::from_millis(self.throw(60));
            tokio::time::sleep(pause).await;
        }
        self.tasks
    }

    /// Orders; answers the task's id where there is money for it.
    async fn order(&mut self, key: &str, prompt: &str, n: u32) -> Option<String> {
        let reply = order(&self.client, key, &pictures(prompt, n)).await;
        if reply.status == 402 {
            return None;
        }
        self.tasks += 1;
        Some(task_id(&reply.expect(200).json()))
    }

    /// The same order twice at once: both get one receipt, or a refusal (which uses no key up).
    async fn order_twice(&mut self, key: &str) -> Option<String> {
        let body = pictures("[[sandbox:fail]]", 1);
        let (one, two) = tokio::join!(
            order(&self.client, key, &body),
            order(&self.client, key, &body)
        );
        let taken: Vec<_> = [one, two].into_iter().filter(|r| r.status != 402).collect();
        let first = taken.first()?.clone().expect(200);
        assert!(taken.iter().all(|reply| reply.body == first.body));
        self.tasks += 1;
        Some(task_id(&first.json()))
    }

    /// Orders what would take for ever, and cancels it.
    async fn change_its_mind(&mut self, key: &str) -> Option<String> {
        let id = self.order(key, "[[sandbox:hang]]", 2).await?;
        let pause = Duration::from_millis(self.throw(100));
        tokio::time::sleep(pause).await;
        let (one, two) = tokio::join!(self.client.cancel(&id), self.client.cancel(&id));
        let mut codes = [one.status, two.status];
        codes.sort_unstable();
        assert_eq!(codes, [200, 409], "a task is cancelled once");
        Some(id)
    }
}
