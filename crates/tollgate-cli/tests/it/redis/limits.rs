//! Three gateways on one database and one Redis: limits apply to all of them together, and while Redis is lost, each node applies
//! `limits.on_redis_loss` without delaying any request.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::*;

on_postgres!(
    posts_of_all_nodes_are_limited,
    tokens_of_all_nodes_are_limited,
    requests_in_flight_of_a_killed_node_expire,
    without_redis_each_node_admits_its_share_of_the_limits,
    requests_do_not_wait_for_a_frozen_redis,
    an_emptied_redis_restarts_the_counts,
    on_redis_loss_closed_rejects_requests,
    on_redis_loss_open_counts_on_each_node,
);

const LEASE_S: u64 = 4;
/// A call to Redis takes 50 ms at most, and a request makes two calls; the remaining time allows for a loaded machine.
const MAX_LATENCY: Duration = Duration::from_secs(3);
const GENERATIONS: &str = "/v1/images/generations";
/// The cheapest POST.
const BATCH: &str = "/v1/tasks/batch";
/// The time that a node needs to connect again after a call that took too long on a busy machine.
const RECONNECT: Duration = Duration::from_millis(700);

fn batch() -> Value {
    json!({ "task_ids": ["task_x"] })
}

/// Three nodes, each with a client of the same key.
struct Nodes {
    gateways: Vec<TestGateway>,
    clients: Vec<Client>,
}

fn node(redis: &RedisServer, on_loss: &str) -> Setup {
    let setup = Setup::new(Backend::Postgres);
    let setup = setup.redis(redis.url());
    let setup = setup.env("TOLLGATE_LIMITS__ON_REDIS_LOSS", on_loss);
    setup.env("TOLLGATE_LEASES__SECONDS", LEASE_S.to_string())
}

impl Nodes {
    async fn start(redis: &RedisServer, on_loss: &str, limits: &[&str]) -> Self {
        let first = node(redis, on_loss).start().await;
        let mut gateways = vec![first];
        for _ in 0..2 {
            let next = node(redis, on_loss).beside(&gateways[0]).start().await;
            gateways.push(next);
        }
        gateways[0].user("busy", &[]).await;
        let client = gateways[0].key("busy", limits).await;
        let at =
            |gateway: &TestGateway| gateway.client(client.secret.clone(), client.key_id.clone());
        let clients = gateways.iter().map(at).collect();
        let nodes = Self { gateways, clients };
        for gateway in &nodes.gateways {
            until_true("each to know of all three", async || {
                gateway.metric("tollgate_nodes").await > 2.5
            })
            .await;
        }
        nodes
    }

    /// Sends `count` POSTs to the nodes in turn, 6 at a time; returns how many were admitted. The others got 429.
    async fn admitted(&self, count: usize) -> usize {
        let mut admitted = 0;
        for first in (0..count).step_by(6) {
            let batch = (first..count.min(first + 6)).map(|i| async move {
                let client = &self.clients[i % self.clients.len()];
                let mut slow_calls = 0;
                loop {
                    let started = Instant::now();
                    let reply = client.post(BATCH, &batch()).await;
                    let took = started.elapsed();
                    assert!(took < MAX_LATENCY, "{took:?}");
                    // A gateway that rejects requests without Redis also rejects one whose call to Redis was too slow.
                    if reply.status == 503 && slow_calls < 3 {
                        slow_calls += 1;
                        tokio::time::sleep(RECONNECT).await;
                        continue;
                    }
                    assert!([200, 429].contains(&reply.status), "{}", reply.status);
                    return usize::from(reply.status == 200);
                }
            });
            admitted += join_all(batch).await.into_iter().sum::<usize>();
        }
        admitted
    }

    /// Waits until every node reports that Redis is connected (`1`) or not (`0`).
    async fn wait_for_redis(&self, up: u8) {
        let line = format!("tollgate_redis_up {up}\n");
        for client in &self.clients {
            let is_so = async || client.get("/metrics").await.text().contains(&line);
            until_true(&line, is_so).await;
        }
    }

    async fn close(self) {
        for gateway in self.gateways {
            gateway.close().await;
        }
    }
}

async fn posts_of_all_nodes_are_limited(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "share", &["--rpm", "200"]).await;
    let admitted = nodes.admitted(450).await;
    let metrics = nodes.clients[0].get("/metrics").await.text();
    for line in metrics.lines().filter(|line| line.contains("redis")) {
        println!("{line}");
    }
    println!("admitted {admitted} of a limit of 200");
    assert_within(admitted, 200);
    let reply = nodes.clients[1].post(BATCH, &batch()).await;
    reply.rejected(429, "200");
    assert_eq!(reply.header("x-ratelimit-remaining"), "0");
    let wait: u32 = reply.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    nodes.close().await;
}

/// A chat whose response has this number of words.
fn chat(words: u32) -> Value {
    let content = format!("[[sandbox:words={words}]]");
    json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": content }] })
}

async fn tokens_of_all_nodes_are_limited(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "share", &["--tpm", "100"]).await;
    let set = format!(
        "{{tollgate:limits:1}}:key:{}:reservations",
        nodes.clients[0].key_id
    );
    let reservations = async || redis.query::<u64>(&["ZCARD", &set]).await.unwrap();
    // The tokens of a chat also count at the other nodes, until the limit of the minute is reached.
    let mut admitted = 0;
    let rejected = loop {
        let client = &nodes.clients[admitted % 3];
        let reply = client.post("/v1/chat/completions", &chat(10)).await;
        if reply.status != 200 {
            break reply;
        }
        admitted += 1;
        assert!(admitted < 60, "the limit is never reached");
        // The node sends the settlement, which replaces the reservation, in the background.
        until_true("the settlement", async || reservations().await == 0).await;
    };
    let over = "this API key may use 100 tokens a minute";
    assert_eq!(rejected.message(429), over);
    assert!(admitted > 0);
    for client in &nodes.clients {
        let reply = client.post("/v1/chat/completions", &chat(10)).await;
        assert_eq!(reply.message(429), over);
    }
    nodes.close().await;
}

/// Checks that a number is within 2 % of the limit: on a loaded machine single calls to Redis take too long.
#[track_caller]
fn assert_within(admitted: usize, limit: usize) {
    let slack = limit.div_ceil(50);
    assert!(admitted.abs_diff(limit) <= slack, "{admitted} of {limit}");
}

/// Starts a POST whose body is incomplete, so that the gateway waits for the remaining bytes.
async fn start_post(gateway: &TestGateway, client: &Client) -> RawConnection {
    let mut raw = gateway.raw().await;
    let head = client.raw_json_head(GENERATIONS, 100);
    raw.write(format!("{head}{{").as_bytes()).await;
    raw
}

async fn requests_in_flight_of_a_killed_node_expire(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let mut nodes = Nodes::start(&redis, "share", &["--max-concurrency", "2"]).await;
    let _first = start_post(&nodes.gateways[0], &nodes.clients[0]).await;
    let _second = start_post(&nodes.gateways[0], &nodes.clients[0]).await;
    // The test reads the count from Redis: a request to the gateway would be one too many in flight.
    let set = format!(
        "{{tollgate:limits:1}}:key:{}:in_flight",
        nodes.clients[0].key_id
    );
    let count = async || redis.query::<u64>(&["ZCARD", &set]).await.unwrap();
    until_true("both to be in flight", async || count().await == 2).await;
    let status = async || nodes.clients[2].get("/v1/tasks").await.status;
    // The permits are renewed for as long as the requests last: the score is when a permit expires, in milliseconds.
    let expires = async || {
        let query = ["ZRANGE", &set, "0", "0", "WITHSCORES"];
        let first = redis.query::<Vec<String>>(&query).await.unwrap();
        first[1].parse::<f64>().unwrap()
    };
    let (first, lease_ms) = (expires().await, 1_000.0 * LEASE_S as f64);
    let is_renewed = async || expires().await > first + 2.0 * lease_ms;
    until_true("both to be renewed", is_renewed).await;
    assert_eq!(status().await, 429);
    // If Redis loses the permits, the nodes add them again.
    redis.query::<String>(&["FLUSHALL"]).await.unwrap();
    until_true("both to be known again", async || count().await == 2).await;
    assert_eq!(status().await, 429);
    nodes.gateways[0].kill().await;
    let killed = Instant::now();
    let status = async || nodes.clients[2].get("/v1/tasks").await.status;
    until_true("the killed node's to expire", async || {
        status().await == 200
    })
    .await;
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(LEASE_S + 3), "{took:?}");
    nodes.close().await;
}

async fn without_redis_each_node_admits_its_share_of_the_limits(_: Backend) {
    let Some(mut redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "share", &["--rpm", "60"]).await;
    redis.stop();
    // The limit of 60 is 20 on each node; a node that detects the loss of Redis decides on its own at once.
    let admitted = nodes.admitted(150).await;
    assert_eq!(admitted, 60);
    nodes.wait_for_redis(0).await;
    for client in &nodes.clients {
        client.get("/readyz").await.expect(200);
        assert_eq!(client.get("/v1/balance").await.status, 200);
    }
    // Redis restarts empty, and each node's first call reports what the node admitted meanwhile.
    redis.start().await;
    nodes.wait_for_redis(1).await;
    let more = nodes.admitted(150).await;
    assert!(more <= 6, "{more}");
    nodes.close().await;
}

async fn requests_do_not_wait_for_a_frozen_redis(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "share", &["--rpm", "60"]).await;
    assert_within(nodes.admitted(30).await, 30);
    redis.freeze();
    // Each node has used 10 of its share of 20.
    let admitted = nodes.admitted(150).await;
    assert_within(admitted, 30);
    nodes.wait_for_redis(0).await;
    redis.resume();
    nodes.wait_for_redis(1).await;
    // Redis still has the count of the 30 from before, and perhaps requests that were sent while it was frozen.
    let more = nodes.admitted(150).await;
    assert!(more <= 32, "{more}");
    nodes.close().await;
}

async fn an_emptied_redis_restarts_the_counts(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "share", &["--rpm", "90"]).await;
    assert_within(nodes.admitted(60).await, 60);
    // These commands delete both the counts and the scripts.
    redis.query::<String>(&["FLUSHALL"]).await.unwrap();
    redis.query::<String>(&["SCRIPT", "FLUSH"]).await.unwrap();
    let more = nodes.admitted(300).await;
    // What Redis has counted since the flush.
    assert_within(more, 90);
    nodes.close().await;
}

async fn on_redis_loss_closed_rejects_requests(_: Backend) {
    let Some(mut redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "closed", &["--rpm", "60", "--tpm", "1000"]).await;
    redis.stop();
    nodes.wait_for_redis(0).await;
    let client = &nodes.clients[0];
    for (path, body) in [(BATCH, batch()), ("/v1/chat/completions", chat(10))] {
        let reply = client.post(path, &body).await;
        assert_eq!(reply.header("retry-after"), "1");
        let message = reply.message(503);
        assert!(
            message.starts_with("rate limits cannot be counted"),
            "{message}"
        );
    }
    // Keys without limits are served.
    let open = nodes.gateways[0].key("busy", &[]).await;
    open.get("/v1/tasks").await.expect(200);
    redis.start().await;
    nodes.wait_for_redis(1).await;
    assert_within(nodes.admitted(90).await, 60);
    nodes.close().await;
}

async fn on_redis_loss_open_counts_on_each_node(_: Backend) {
    let Some(mut redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, "open", &["--rpm", "20"]).await;
    redis.stop();
    assert_eq!(nodes.admitted(120).await, 60);
    nodes.close().await;
}
