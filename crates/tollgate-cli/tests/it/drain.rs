//! SIGTERM: the gateway finishes what is in flight, releases what takes too long, and accepts nothing new.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::harness::priced_images::*;
use crate::harness::*;

on_both!(
    short_tasks_finish_during_the_drain,
    long_tasks_are_released_at_the_end_of_the_drain
);
on_sqlite!(connections_without_a_request_do_not_delay_the_exit);

/// How much longer than its limit a drain may take.
const SLACK: Duration = Duration::from_secs(5);

async fn start(backend: Backend, drain_s: u64) -> TestGateway {
    // The lease is longer than the test: a task that the drain leaves must be released, because waiting for the lease's end takes too long.
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", "300");
    let setup = setup.env("TOLLGATE_DRAIN_S", drain_s.to_string());
    setup.start().await
}

/// Sends SIGTERM; returns when no connection is accepted any more.
async fn start_drain(gateway: &TestGateway) -> Instant {
    let address = gateway.address();
    gateway.signal("TERM").await;
    let started = Instant::now();
    let is_closed = async || TcpStream::connect(&address).await.is_err();
    until_true("connections to be rejected", is_closed).await;
    started
}

async fn wait_for_success(gateway: &mut TestGateway) {
    let status = gateway.wait_for_exit().await;
    assert_eq!(status.code(), Some(0), "{}", gateway.log_tail());
}

async fn short_tasks_finish_during_the_drain(backend: Backend) {
    let mut gateway = start(backend, 30).await;
    let client = gateway.funded_client("10").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let body = images("[[sandbox:delay=700]]", 1);
        ids.push(client.submit(&body).await);
    }
    for id in &ids {
        client.wait_for_start(id).await;
    }
    // A submission of which only the first half has arrived.
    let body = images("a kite", 1).to_string();
    let head = client.raw_json_head("/v1/images/generations", body.len());
    let (first, second) = body.split_at(body.len() / 2);
    let mut late = gateway.raw().await;
    late.write(format!("{head}{first}").as_bytes()).await;
    get_health(&mut gateway.raw().await).await;

    start_drain(&gateway).await;
    gateway.signal("TERM").await;
    late.write(second.as_bytes()).await;
    let (code, _, receipt) = late.response().await.expect("a receipt");
    assert_eq!(code, 200);
    wait_for_success(&mut gateway).await;
    let log = gateway.log();
    for id in &ids {
        let ends = |line: &str| line.contains("task ended") && line.contains(id.as_str());
        assert!(log.lines().any(ends), "{id} was not finished: {log}");
    }

    gateway.start_server().await;
    ids.push(task_id(&serde_json::from_slice(&receipt).unwrap()));
    for id in &ids {
        let record = client.wait_for_end(id).await;
        assert_eq!(count_images(&client, &record).await, 1);
    }
    let expected = (10.0 - 4.0 * PRICE, 4.0 * PRICE);
    assert_eq!(client.balances().await, expected);
    gateway.close().await;
}

async fn long_tasks_are_released_at_the_end_of_the_drain(backend: Backend) {
    let mut gateway = start(backend, 1).await;
    let client = gateway.funded_client("10").await;
    let long = client.submit(&images("[[sandbox:delay=3000]]", 2)).await;
    let endless = client.submit(&images("[[sandbox:hang]]", 1)).await;
    for id in [&long, &endless] {
        client.wait_for_start(id).await;
    }
    let started = start_drain(&gateway).await;
    wait_for_success(&mut gateway).await;
    assert!(started.elapsed() <= Duration::from_secs(1) + SLACK);

    gateway.start_server().await;
    let record = client.wait_for_end(&long).await;
    assert_eq!(count_images(&client, &record).await, 2);
    assert_eq!(status(&client.task(&endless).await), "in_progress");
    client.cancel(&endless).await.expect(200);
    let expected = (10.0 - 2.0 * PRICE, 2.0 * PRICE);
    assert_eq!(client.balances().await, expected);
    gateway.close().await;
}

async fn connections_without_a_request_do_not_delay_the_exit(backend: Backend) {
    let mut gateway = start(backend, 30).await;
    let silent = gateway.raw().await;
    let mut idle = gateway.raw().await;
    get_health(&mut idle).await;
    let started = start_drain(&gateway).await;
    wait_for_success(&mut gateway).await;
    assert!(started.elapsed() < SLACK, "it waited for connections");
    drop((silent, idle));
    gateway.close().await;
}

/// One request on a connection that stays open.
async fn get_health(connection: &mut RawConnection) {
    let request = b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n";
    connection.write(request).await;
    assert_eq!(connection.status().await, Some(200));
}
