//! The database of a busy gateway becomes unavailable and available again: clients get errors at once, nothing is lost, nothing is applied twice, and
//! nothing has to be restarted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::harness::priced_images::*;
use crate::harness::*;

on_postgres!(
    the_gateway_recovers_after_the_database_stops,
    the_gateway_recovers_after_the_database_hangs,
    submissions_are_not_lost_or_repeated_if_the_database_stops_repeatedly,
    the_gateway_stops_without_its_database,
);

/// Within this time `/readyz` reports that the database is unavailable (docs/operating.md).
const READYZ: Duration = Duration::from_secs(5);
/// The longest that a client may wait for a response.
const RESPONSE: Duration = Duration::from_secs(20);
/// How long a gateway that drains for one second may take to exit, whatever the database does.
const EXIT: Duration = Duration::from_secs(11);
const CLIENTS: usize = 12;
/// How long the work takes that ends while the database is unavailable.
const WORK: Duration = Duration::from_millis(2500);

async fn the_gateway_recovers_after_the_database_stops(_: Backend) {
    check_outage(PostgresServer::stop).await;
}

async fn the_gateway_recovers_after_the_database_hangs(_: Backend) {
    check_outage(PostgresServer::freeze).await;
}

/// A gateway on that server. With the PostgreSQL backend the harness would create another database, so this uses the SQLite backend.
fn on(postgres: &PostgresServer) -> Setup {
    let setup = Setup::new(Backend::Sqlite).config(PRICES);
    let setup = setup.env("TOLLGATE_DATABASE__URL", postgres.url());
    setup.env("TOLLGATE_LEASES__SECONDS", "2")
}

async fn check_outage(go_away: fn(&mut PostgresServer)) {
    let Some(mut postgres) = PostgresServer::start_new().await else {
        return;
    };
    let gateway = on(&postgres).start().await;
    let client = gateway.funded_client("10").await;
    let long = images(&format!("[[sandbox:delay={}]]", WORK.as_millis()), 1);
    let mut ids = join_all((0..3).map(|_| client.submit(&long))).await;
    for id in &ids {
        client.wait_for_start(id).await;
    }

    let started = Instant::now();
    go_away(&mut postgres);
    let anonymous = gateway.anonymous();
    let has_status = async |status| anonymous.get("/readyz").await.status == status;
    until_true("/readyz to notice", async || has_status(503).await).await;
    let noticed = started.elapsed();
    assert!(noticed <= READYZ, "after {noticed:?}");
    anonymous.get("/healthz").await.expect(200);
    let body = images("a kite", 1);
    let path = format!("/v1/tasks/{}", ids[0]);
    let replies = async {
        tokio::join!(
            submit_once(&client, "meanwhile", &body),
            client.get(&path),
            client.get("/v1/tasks"),
            client.cancel(&ids[0]),
            client.get("/v1/user/balance"),
        )
    };
    let replies = timeout(RESPONSE, replies).await;
    let (submission, poll, list, cancel, balance) = replies.expect("responses in time");
    for reply in [submission, poll, list, cancel] {
        reply.rejected(502, "");
    }
    assert_eq!(balance.expect(500).json()["success"], false);
    tokio::time::sleep(WORK.saturating_sub(started.elapsed())).await;

    postgres.resume();
    until_true("the gateway to be ready", async || has_status(200).await).await;
    let receipt = until("a submission to be accepted", async || {
        let reply = submit_once(&client, "meanwhile", &body).await;
        (reply.status == 200).then_some(reply)
    });
    ids.push(task_id(&receipt.await.json()));
    for id in &ids {
        let record = client.wait_for_end(id).await;
        assert_eq!(count_images(&client, &record).await, 1);
    }
    assert_eq!(client.tasks().await.len(), 4);
    let expected = (10.0 - 4.0 * PRICE, 4.0 * PRICE);
    assert_eq!(client.balances().await, expected);
    gateway.close().await;
}

/// Commits break off in the middle, with an unknown outcome: a client that repeats its request until it gets a response gets one task.
async fn submissions_are_not_lost_or_repeated_if_the_database_stops_repeatedly(_: Backend) {
    let Some(mut postgres) = PostgresServer::start_new().await else {
        return;
    };
    let gateway = on(&postgres).start().await;
    let client = gateway.funded_client("100000").await;
    let over = AtomicBool::new(false);
    let clients = (0..CLIENTS).map(|number| submit_until(&client, number, &over));
    let outages = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(600)).await;
            postgres.stop();
            tokio::time::sleep(Duration::from_millis(300)).await;
            postgres.start();
        }
        over.store(true, Ordering::Relaxed);
    };
    let (submissions, ()) = tokio::join!(join_all(clients), outages);
    let submissions: usize = submissions.into_iter().sum();
    gateway.idle().await;
    let tasks = "SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 3) FROM tasks";
    let counts = gateway.query(tasks).await;
    // Each submission has exactly one task, which has ended.
    assert_eq!(counts, [[submissions.to_string(), submissions.to_string()]]);
    assert_eq!(client.balances().await, (100_000.0, 0.0));
    gateway.close().await;
}

/// Submits one task after another, and each until it is accepted; returns how many.
async fn submit_until(client: &Client, number: usize, over: &AtomicBool) -> usize {
    let body = images("[[sandbox:fail]]", 1);
    let mut submissions = 0;
    while !over.load(Ordering::Relaxed) {
        submissions += 1;
        let key = format!("{number}-{submissions}");
        until_true("a submission to be accepted", async || {
            let reply = submit_once(client, &key, &body).await;
            if reply.status != 200 {
                reply.rejected(502, "");
            }
            reply.status == 200
        })
        .await;
    }
    submissions
}

async fn the_gateway_stops_without_its_database(_: Backend) {
    for go_away in [PostgresServer::stop, PostgresServer::freeze] {
        let Some(mut postgres) = PostgresServer::start_new().await else {
            return;
        };
        let setup = on(&postgres).env("TOLLGATE_DRAIN_S", "1");
        let mut gateway = setup.start().await;
        let client = gateway.funded_client("10").await;
        let id = client.submit(&images("[[sandbox:delay=1500]]", 1)).await;
        client.wait_for_start(&id).await;
        go_away(&mut postgres);
        let started = Instant::now();
        gateway.terminate().await;
        let elapsed = started.elapsed();
        assert!(elapsed <= EXIT, "after {elapsed:?}");
        postgres.resume();
        postgres.wait_until_ready().await;
        gateway.start_server().await;
        let record = client.wait_for_end(&id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(client.balances().await, (10.0 - PRICE, PRICE));
        gateway.close().await;
    }
}
