//! The database goes away under a gateway at work and comes back: clients hear of it at once, nothing is lost,
//! nothing is done twice, nobody has to restart anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::gate::{Backend, Client, Setup, on_postgres, status, task_id, until};
use crate::shop::{self, PRICE, PRICES, order, pictures};

on_postgres!(
    the_database_stops,
    the_database_hangs,
    the_database_stops_again_and_again,
    the_gateway_leaves_while_the_database_is_away,
);

/// Within this time `/readyz` says that the database is away (docs/operating.md).
const NOTICED: Duration = Duration::from_secs(5);
/// The longest that a client may wait for its answer.
const ANSWER: Duration = Duration::from_secs(20);
/// How long a gateway that drains for one second may take to leave, whatever the database does.
const LEAVES: Duration = Duration::from_secs(11);
const CUSTOMERS: usize = 12;
/// Work that ends while the database is away.
const WORK: Duration = Duration::from_millis(2500);

async fn the_database_stops(_: Backend) {
    outage(Cluster::stop).await;
}

async fn the_database_hangs(_: Backend) {
    outage(Cluster::freeze).await;
}

/// A gateway on that cluster. The gate would bring a database of its own on PostgreSQL, so it is told otherwise.
fn on(cluster: &Cluster) -> Setup {
    let setup = Setup::new(Backend::Sqlite).config(PRICES);
    let setup = setup.env("TOLLGATE_DATABASE__URL", cluster.url());
    setup.env("TOLLGATE_LEASES__SECONDS", "2")
}

async fn outage(away: fn(&mut Cluster)) {
    let Some(mut cluster) = Cluster::new().await else {
        return;
    };
    let gate = on(&cluster).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let long = pictures(&format!("[[sandbox:delay={}]]", WORK.as_millis()), 1);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.submit(&long).await);
    }
    for id in &ids {
        client.started(id).await;
    }

    let begun = Instant::now();
    away(&mut cluster);
    until("/readyz to notice", async || {
        (gate.nobody().get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert!(
        begun.elapsed() <= NOTICED,
        "noticed after {:?}",
        begun.elapsed()
    );
    gate.nobody().get("/healthz").await.expect(200);
    let body = pictures("a kite", 1);
    let path = format!("/v1/tasks/{}", ids[0]);
    let asked = async {
        tokio::join!(
            order(&client, "meanwhile", &body),
            client.get(&path),
            client.get("/v1/tasks"),
            client.cancel(&ids[0]),
            client.get("/v1/user/balance"),
        )
    };
    let (submission, poll, list, cancel, balance) =
        timeout(ANSWER, asked).await.expect("answers in time");
    for refused in [submission, poll, list, cancel] {
        refused.error(502, "bad_gateway");
    }
    assert_eq!(balance.expect(500).json()["success"], false);
    tokio::time::sleep(WORK.saturating_sub(begun.elapsed())).await;

    cluster.come_back();
    until("the gateway to be ready", async || {
        (gate.nobody().get("/readyz").await.status == 200).then_some(())
    })
    .await;
    let receipt = until("submissions to be taken", async || {
        let reply = order(&client, "meanwhile", &body).await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    ids.push(task_id(&receipt.json()));
    for id in &ids {
        let record = client.ended(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(shop::count_pictures(&client, &record).await, 1);
    }
    let all = client.get("/v1/tasks").await.expect(200).json();
    assert_eq!(all["data"].as_array().unwrap().len(), 4, "{all}");
    assert_eq!(client.purse().await, (10.0 - 4.0 * PRICE, 4.0 * PRICE));
    gate.close().await;
}

/// Commits break off in the middle, their fate unknown: whoever asks until there is an answer gets one task.
async fn the_database_stops_again_and_again(_: Backend) {
    let Some(mut cluster) = Cluster::new().await else {
        return;
    };
    let gate = on(&cluster).start().await;
    let client = gate.somebody_with("payer", &["--balance", "100000"]).await;
    let over = AtomicBool::new(false);
    let customers = (0..CUSTOMERS).map(|number| persist(&client, number, &over));
    let outages = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(600)).await;
            cluster.stop();
            tokio::time::sleep(Duration::from_millis(300)).await;
            cluster.start();
        }
        over.store(true, Ordering::Relaxed);
    };
    let (orders, ()) = tokio::join!(join_all(customers), outages);
    let orders: usize = orders.into_iter().sum();
    gate.idle().await;
    let tasks = "SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 3) FROM tasks";
    let counts = shop::sql_at(&cluster.url(), tasks).await;
    let expected = Some(orders.to_string());
    assert_eq!(
        counts,
        [[expected.clone(), expected]],
        "each order is one task, and ended"
    );
    assert_eq!(client.purse().await, (100_000.0, 0.0));
    gate.close().await;
}

/// Orders one thing after the other, each until it is taken; answers how many.
async fn persist(client: &Client, number: usize, over: &AtomicBool) -> usize {
    let mut orders = 0;
    while !over.load(Ordering::Relaxed) {
        orders += 1;
        let key = format!("{number}-{orders}");
        let body = pictures("[[sandbox:fail]]", 1);
        until("an order to be taken", async || {
            let reply = order(client, &key, &body).await;
            if reply.status != 200 {
                reply.error(502, "bad_gateway");
                return None;
            }
            Some(())
        })
        .await;
    }
    orders
}

async fn the_gateway_leaves_while_the_database_is_away(_: Backend) {
    for away in [Cluster::stop, Cluster::freeze] {
        let Some(mut cluster) = Cluster::new().await else {
            return;
        };
        let mut gate = on(&cluster).env("TOLLGATE_DRAIN_S", "1").start().await;
        let client = gate.somebody_with("payer", &["--balance", "10"]).await;
        let id = client.submit(&pictures("[[sandbox:delay=1500]]", 1)).await;
        client.started(&id).await;
        away(&mut cluster);
        let begun = Instant::now();
        let ended = gate.terminate().await;
        assert_eq!(ended.code(), Some(0), "{}", gate.last_words());
        assert!(
            begun.elapsed() <= LEAVES,
            "left after {:?}",
            begun.elapsed()
        );
        cluster.come_back();
        cluster.answers().await;
        gate.start_server().await;
        let record = client.ended(&id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(client.purse().await, (10.0 - PRICE, PRICE));
        gate.close().await;
    }
}
