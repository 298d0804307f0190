//! The database goes away under a gateway at work and comes back: clients hear of it at once, nothing is lost,
//! nothing is done twice, nobody has to restart anything.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::gate::{Backend, Setup, on_postgres, status, task_id, until};
use crate::shop::{self, PRICE, PRICES, order, pictures};

on_postgres!(the_database_stops, the_database_hangs);

/// Within this time `/readyz` says that the database is away (CONTRACT.md › Sharper points).
const NOTICED: Duration = Duration::from_secs(5);
/// The longest that a client may wait for its answer.
const ANSWER: Duration = Duration::from_secs(20);
/// Work that ends while the database is away.
const WORK: Duration = Duration::from_millis(2500);

async fn the_database_stops(_: Backend) {
    outage(Cluster::stop, Cluster::start).await;
}

async fn the_database_hangs(_: Backend) {
    outage(Cluster::freeze, Cluster::thaw).await;
}

async fn outage(away: fn(&mut Cluster), back: fn(&mut Cluster)) {
    let Some(mut cluster) = Cluster::new() else {
        return;
    };
    // The gate brings no database: it gets this one.
    let setup = Setup::new(Backend::Sqlite).config(PRICES);
    let setup = setup.env("TOLLGATE_DATABASE__URL", cluster.url());
    let gate = setup.env("TOLLGATE_LEASES__SECONDS", "2").start().await;
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

    back(&mut cluster);
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
