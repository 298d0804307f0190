//! Messages between nodes through Redis: tasks that wait for a worker, and cancelled tasks. Without Redis, nodes find out the same by polling; leases
//! are long here, so that only the messages explain the results.

use std::time::Instant;

use futures_util::future::join_all;

use crate::harness::priced_images::*;
use crate::harness::*;

on_postgres!(
    a_cancellation_reaches_another_node_at_once,
    a_busy_node_notifies_another,
    a_broken_subscription_is_renewed,
    a_lost_redis_loses_no_task_and_no_charge,
);

/// A node renews its leases after a third of this, which is longer than a test waits: until then, only a message informs it of a cancellation.
const LONG_LEASE_S: u64 = 1_200;
const SENT: &str = "tollgate_redis_messages_total{direction=\"sent\"}";

fn node(redis: &RedisServer, lease_s: u64, workers: u32) -> Setup {
    let setup = Setup::new(Backend::Postgres).config(PRICES);
    let setup = setup.redis(redis.url());
    let setup = setup.env("TOLLGATE_WORKERS__CALLS", workers.to_string());
    setup.env("TOLLGATE_LEASES__SECONDS", lease_s.to_string())
}

/// Two gateways, and one client's connection to each.
struct TwoNodes {
    a: TestGateway,
    b: TestGateway,
    at_a: Client,
    at_b: Client,
}

impl TwoNodes {
    async fn start(redis: &RedisServer, lease_s: u64, workers: u32) -> Self {
        let a = node(redis, lease_s, workers).start().await;
        let b = node(redis, lease_s, workers).beside(&a).start().await;
        let at_a = a.funded_client("50").await;
        let at_b = b.client(at_a.secret.clone(), at_a.key_id.clone());
        wait_for_subscribers(redis, 2).await;
        Self { a, b, at_a, at_b }
    }

    /// Checks that this number of images was charged.
    async fn close(self, images: u32) {
        let used = PRICE * f64::from(images);
        for client in [&self.at_a, &self.at_b] {
            client.check_balances(50.0 - used, used).await;
        }
        self.a.close().await;
        self.b.close().await;
    }
}

async fn a_cancellation_reaches_another_node_at_once(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    // One worker per node, which a hanging task occupies: a third task runs only when a worker is free.
    let b = node(&redis, LONG_LEASE_S, 1).start().await;
    let at_b = b.funded_client("50").await;
    let hangs = images("[[sandbox:hang]]", 1);
    let on_b = at_b.submit(&hangs).await;
    at_b.wait_for_start(&on_b).await;
    let a = node(&redis, LONG_LEASE_S, 1).beside(&b).start().await;
    let at_a = a.client(at_b.secret.clone(), at_b.key_id.clone());
    let on_a = at_a.submit(&hangs).await;
    at_a.wait_for_start(&on_a).await;
    wait_for_subscribers(&redis, 2).await;
    let waiting = at_a.submit(&images("a kite", 1)).await;

    at_a.cancel(&on_b).await.expect(200);
    let record = at_b.wait_for_end(&waiting).await;
    assert_eq!(status(&record), "completed");
    assert_eq!(status(&at_b.task(&on_a).await), "in_progress");
    at_b.cancel(&on_a).await.expect(200);
    TwoNodes { a, b, at_a, at_b }.close(1).await;
}

async fn a_busy_node_notifies_another(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = TwoNodes::start(&redis, LONG_LEASE_S, 1).await;
    let hangs = nodes.at_a.submit(&images("[[sandbox:hang]]", 1)).await;
    nodes.at_a.wait_for_start(&hangs).await;
    // The only worker of one node is occupied. Tasks that are submitted to this node run on the other.
    let before = [nodes.a.metric(SENT).await, nodes.b.metric(SENT).await];
    let started = Instant::now();
    for _ in 0..6 {
        for client in [&nodes.at_a, &nodes.at_b] {
            let id = client.submit(&images("a kite", 1)).await;
            let record = client.wait_for_end(&id).await;
            assert_eq!(status(&record), "completed");
        }
    }
    let took = started.elapsed();
    let mut sent = 0.0;
    for (gateway, before) in [&nodes.a, &nodes.b].into_iter().zip(before) {
        let count = gateway.metric(SENT).await - before;
        let max = 20.0 * took.as_secs_f64() + 1.0;
        assert!(count <= max, "{count} messages in {took:?}");
        sent += count;
    }
    assert!(sent >= 6.0, "the busy node sent {sent} messages");
    nodes.at_b.cancel(&hangs).await.expect(200);
    nodes.close(12).await;
}

async fn a_broken_subscription_is_renewed(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = TwoNodes::start(&redis, LONG_LEASE_S, 1).await;
    let killed = redis
        .query::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"])
        .await;
    assert_eq!(killed.unwrap(), 2);
    wait_for_subscribers(&redis, 2).await;
    // A node also detects a server that does not respond any more.
    redis.freeze();
    for client in [&nodes.at_a, &nodes.at_b] {
        let is_lost = async || {
            client
                .get("/metrics")
                .await
                .text()
                .contains("tollgate_redis_up 0\n")
        };
        until_true("the loss to be noticed", is_lost).await;
    }
    redis.resume();
    wait_for_subscribers(&redis, 2).await;
    nodes.close(0).await;
}

async fn a_lost_redis_loses_no_task_and_no_charge(_: Backend) {
    let Some(mut redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = TwoNodes::start(&redis, 4, 2).await;
    let body = images("a kite", 1);
    let mut ids = Vec::new();
    // Redis is killed, frozen, emptied and restarted, with tasks in flight at each step.
    for step in 0..8 {
        for client in [&nodes.at_a, &nodes.at_b] {
            ids.extend(join_all((0..3).map(|_| client.submit(&body))).await);
        }
        match step {
            1 => redis.freeze(),
            2 => redis.resume(),
            3 => redis.query::<()>(&["FLUSHALL"]).await.unwrap_or_default(),
            4 => redis.stop(),
            6 => redis.start().await,
            _ => {}
        }
        let chosen: &String = &ids[step * 6];
        nodes.at_b.wait_for_end(chosen).await;
    }
    for id in &ids {
        let record = nodes.at_a.wait_for_end(id).await;
        assert_eq!(status(&record), "completed");
    }
    // A cancellation also takes effect while Redis is unavailable; the worker detects it when it renews its lease.
    redis.stop();
    let hangs = nodes.at_a.submit(&images("[[sandbox:hang]]", 1)).await;
    nodes.at_a.wait_for_start(&hangs).await;
    nodes.at_b.cancel(&hangs).await.expect(200);
    nodes.close(48).await;
}
