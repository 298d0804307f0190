//! SIGTERM: what is in flight is finished, what takes too long is handed back, nothing new is let in.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::gate::{Backend, Gate, Raw, Setup, on_both, on_one, status, task_id, until};
use crate::shop::{self, PRICE, PRICES, pictures};

on_both!(short_work_is_finished, long_work_is_handed_back);
on_one!(connections_without_a_request_do_not_hold_up_the_exit);

/// How much longer than its limit a drain may take.
const SLACK: Duration = Duration::from_secs(5);

fn gateway(backend: Backend, drain_s: u64) -> Setup {
    // Whoever waits for a lease here waits too long: what is left must be handed back.
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", "300");
    setup.env("TOLLGATE_DRAIN_S", drain_s.to_string())
}

/// Sends SIGTERM; returns when nobody gets in any more.
async fn begin_to_drain(gate: &Gate) -> Instant {
    let address = gate.address();
    gate.signal("TERM").await;
    let begun = Instant::now();
    until("connections to be refused", async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    begun
}

async fn short_work_is_finished(backend: Backend) {
    let mut gate = gateway(backend, 30).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.submit(&pictures("[[sandbox:delay=700]]", 1)).await);
    }
    for id in &ids {
        client.started(id).await;
    }
    // A submission of which only half has come.
    let body = pictures("a kite", 1).to_string();
    let (first, second) = body.split_at(body.len() / 2);
    let mut late = gate.raw().await;
    let head = format!(
        "POST /v1/images/generations HTTP/1.1\r\nhost: gate\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{first}",
        client.secret.as_ref().unwrap(),
        body.len()
    );
    late.write(head.as_bytes()).await;
    ask(&mut gate.raw().await).await;

    begin_to_drain(&gate).await;
    gate.signal("TERM").await;
    late.write(second.as_bytes()).await;
    let (code, _, receipt) = late.answer().await.expect("a receipt");
    assert_eq!(code, 200);
    let receipt = serde_json::from_slice(&receipt).unwrap();
    let ended = gate.ended().await;
    assert_eq!(ended.code(), Some(0), "{}", gate.last_words());
    let log = gate.log();
    for id in &ids {
        let ends = |line: &str| line.contains("task ended") && line.contains(id.as_str());
        assert!(log.lines().any(ends), "{id} was not finished: {log}");
    }

    gate.start_server().await;
    ids.push(task_id(&receipt));
    for id in &ids {
        let record = client.ended(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(shop::count_pictures(&client, &record).await, 1);
    }
    assert_eq!(client.purse().await, (10.0 - 4.0 * PRICE, 4.0 * PRICE));
    gate.close().await;
}

async fn long_work_is_handed_back(backend: Backend) {
    let mut gate = gateway(backend, 1).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let long = client.submit(&pictures("[[sandbox:delay=3000]]", 2)).await;
    let endless = client.submit(&pictures("[[sandbox:hang]]", 1)).await;
    for id in [&long, &endless] {
        client.started(id).await;
    }
    let begun = begin_to_drain(&gate).await;
    let ended = gate.ended().await;
    assert_eq!(ended.code(), Some(0), "{}", gate.last_words());
    assert!(begun.elapsed() <= Duration::from_secs(1) + SLACK);

    gate.start_server().await;
    let record = client.ended(&long).await;
    assert_eq!(status(&record), "completed", "{record}");
    assert_eq!(shop::count_pictures(&client, &record).await, 2);
    assert_eq!(status(&client.task(&endless).await), "in_progress");
    client.cancel(&endless).await.expect(200);
    assert_eq!(client.purse().await, (10.0 - 2.0 * PRICE, 2.0 * PRICE));
    gate.close().await;
}

async fn connections_without_a_request_do_not_hold_up_the_exit(backend: Backend) {
    let mut gate = gateway(backend, 30).start().await;
    let silent = gate.raw().await;
    let mut idle = gate.raw().await;
    ask(&mut idle).await;
    let begun = begin_to_drain(&gate).await;
    let status = gate.ended().await;
    assert_eq!(status.code(), Some(0), "{}", gate.last_words());
    assert!(begun.elapsed() < SLACK, "it waited for connections");
    drop((silent, idle));
    gate.close().await;
}

/// One request on a connection that stays open.
async fn ask(connection: &mut Raw) {
    connection
        .write(b"GET /healthz HTTP/1.1\r\nhost: gate\r\n\r\n")
        .await;
    let (code, _, _) = connection.answer().await.expect("an answer");
    assert_eq!(code, 200);
}
