//! One of three nodes is cut off from Redis, the others are not: no request waits, no money and no task is lost, and limits are exceeded by the
//! node's share at most.

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::priced_images::*;
use crate::harness::*;

on_postgres!(
    a_node_that_is_cut_off_admits_its_share,
    no_task_or_charge_is_lost_while_a_connection_stalls,
);

const BATCH: &str = "/v1/tasks/batch";
const LIMIT: usize = 60;

/// Three nodes. The first one's connection to Redis can be blocked.
struct Nodes {
    proxy: StallingProxy,
    gateways: Vec<TestGateway>,
    clients: Vec<Client>,
}

impl Nodes {
    async fn start(redis: &RedisServer) -> Self {
        let proxy = StallingProxy::start(redis.address()).await;
        let node = |url: String| {
            let setup = Setup::new(Backend::Postgres).config(PRICES);
            let setup = setup.redis(url);
            // With this timeout, calls over a stalled connection end soon.
            let setup = setup.env("TOLLGATE_LIMITS__REDIS_TIMEOUT_MS", "250");
            setup.env("TOLLGATE_LEASES__SECONDS", "4")
        };
        let behind_proxy = format!("redis://{}/1", proxy.address());
        let mut gateways = vec![node(behind_proxy).start().await];
        for _ in 0..2 {
            let next = node(redis.url()).beside(&gateways[0]).start().await;
            gateways.push(next);
        }
        for gateway in &gateways {
            until_true("each to know of all three", async || {
                gateway.metric("tollgate_nodes").await > 2.5
            })
            .await;
        }
        gateways[0].user("busy", &["--balance", "50"]).await;
        let client = gateways[0].key("busy", &["--rpm", "60"]).await;
        let at =
            |gateway: &TestGateway| gateway.client(client.secret.clone(), client.key_id.clone());
        let clients = gateways.iter().map(at).collect();
        Self {
            proxy,
            gateways,
            clients,
        }
    }

    /// Sends `count` POSTs one after the other to a node; returns how many were admitted.
    async fn admitted(&self, node: usize, count: usize) -> usize {
        let mut admitted = 0;
        for _ in 0..count {
            let body = json!({ "task_ids": ["task_x"] });
            let reply = self.clients[node].post(BATCH, &body).await;
            assert!([200, 429].contains(&reply.status), "{}", reply.status);
            admitted += usize::from(reply.status == 200);
        }
        admitted
    }

    async fn wait_for_redis(&self, up: u8) {
        let line = format!("tollgate_redis_up {up}\n");
        let is_so = async || self.clients[0].get("/metrics").await.text().contains(&line);
        until_true(&line, is_so).await;
    }

    async fn close(self) {
        for gateway in self.gateways {
            gateway.close().await;
        }
    }
}

async fn a_node_that_is_cut_off_admits_its_share(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis).await;
    nodes.proxy.stall(true);
    nodes.wait_for_redis(0).await;
    assert_eq!(nodes.admitted(0, 2 * LIMIT).await, LIMIT / 3);
    // The other nodes do not have the first node's counts: together they admit the limit.
    let others = nodes.admitted(1, LIMIT).await + nodes.admitted(2, LIMIT).await;
    assert!(others.abs_diff(LIMIT) <= 2, "{others}");
    nodes.proxy.stall(false);
    nodes.wait_for_redis(1).await;
    assert_eq!(nodes.admitted(0, LIMIT).await, 0);
    nodes.close().await;
}

async fn no_task_or_charge_is_lost_while_a_connection_stalls(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis).await;
    let unlimited = nodes.gateways[0].key("busy", &[]).await;
    let at =
        |gateway: &TestGateway| gateway.client(unlimited.secret.clone(), unlimited.key_id.clone());
    let clients: Vec<Client> = nodes.gateways.iter().map(at).collect();
    let mut ids = Vec::new();
    for is_stalled in [false, true, false, true, false] {
        nodes.proxy.stall(is_stalled);
        for client in &clients {
            let body = images("a kite", 1);
            ids.extend(join_all((0..4).map(|_| client.submit(&body))).await);
        }
    }
    for id in &ids {
        let record = clients[1].wait_for_end(id).await;
        assert_eq!(status(&record), "completed");
    }
    let used = PRICE * ids.len() as f64;
    clients[0].check_balances(50.0 - used, used).await;
    nodes.close().await;
}
