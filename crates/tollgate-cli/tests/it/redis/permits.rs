//! The `max_concurrency` of a channel over three nodes with Redis: one node may use all of it, and all nodes together never use more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::*;

on_postgres!(
    one_node_may_use_all_permits,
    all_nodes_together_do_not_exceed_the_limit,
    a_limit_below_the_number_of_nodes_is_not_exceeded,
    permits_of_a_killed_node_are_reclaimed,
    without_redis_each_node_uses_its_share_of_the_permits,
);

const LEASE_S: u64 = 4;
const PATH: &str = "/v1/chat/completions";

fn chat() -> Value {
    let content = "one two three four five six seven eight";
    json!({ "model": "gpt-4o", "stream": true, "messages": [{ "role": "user", "content": content }] })
}

/// Three nodes with a channel to a provider whose responses take a while.
struct Nodes {
    upstream: Arc<Fake>,
    gateways: Vec<TestGateway>,
    clients: Vec<Client>,
}

impl Nodes {
    async fn start(redis: &RedisServer, limit: usize) -> Self {
        let options = Options {
            chunks: 4,
            delay: Duration::from_millis(40),
            ..Options::default()
        };
        let upstream = start(Provider::OpenAi, options).await.unwrap();
        let channel = ChannelConfig::new("only", "openai").url(&upstream.base_url());
        let limit = format!("max_concurrency = {limit}");
        let config = channel.keys(&["k"]).lines(&limit).text();
        let node = || {
            let setup = Setup::new(Backend::Postgres).config(&config);
            let setup = setup.redis(redis.url());
            setup.env("TOLLGATE_LEASES__SECONDS", LEASE_S.to_string())
        };
        let first = node().start().await;
        let mut gateways = vec![first];
        for _ in 0..2 {
            let next = node().beside(&gateways[0]).start().await;
            gateways.push(next);
        }
        let client = gateways[0].unlimited_client().await;
        let at =
            |gateway: &TestGateway| gateway.client(client.secret.clone(), client.key_id.clone());
        let clients = gateways.iter().map(at).collect();
        for gateway in &gateways {
            until_true("each to know of all three", async || {
                gateway.metric("tollgate_nodes").await > 2.5
            })
            .await;
        }
        Self {
            upstream: Arc::new(upstream),
            gateways,
            clients,
        }
    }

    /// Starts `count` clients of each of these nodes, which chat one after the other until the load ends.
    fn load(&self, nodes: &[usize], count: usize) -> Load {
        let load = Load {
            ends: Arc::default(),
            served: nodes.iter().map(|_| Arc::default()).collect(),
            max_open: Arc::default(),
            running: JoinSet::new(),
        };
        nodes.iter().enumerate().fold(load, |mut load, (at, node)| {
            for _ in 0..count {
                let client = self.clients[*node].clone();
                let (ends, served) = (Arc::clone(&load.ends), Arc::clone(&load.served[at]));
                load.running.spawn(async move {
                    while !ends.load(Ordering::SeqCst) {
                        let reply = client.post(PATH, &chat()).await;
                        assert!([200, 503].contains(&reply.status), "{}", reply.status);
                        if reply.status == 200 {
                            served.fetch_add(1, Ordering::SeqCst);
                        } else {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    }
                });
            }
            load
        })
    }

    /// The number of calls to Redis that got no response in time.
    async fn failed_calls(&self) -> f64 {
        let mut count = 0.0;
        for gateway in &self.gateways {
            for outcome in ["failed", "skipped"] {
                let name = format!("tollgate_redis_calls_total{{outcome=\"{outcome}\"}}");
                count += gateway.metric(&name).await;
            }
        }
        count
    }

    /// Runs `part` until every call to Redis during it got a response in time, which may need repetitions on a loaded machine. Returns the maximum
    /// number of calls at the same time.
    async fn max_open(&self, part: impl AsyncFn() -> usize) -> usize {
        for _ in 0..40 {
            for gateway in &self.gateways {
                let ok_calls = "tollgate_redis_calls_total{outcome=\"ok\"}";
                let before = gateway.metric(ok_calls).await;
                // A node that reconnects first reports what it has in flight.
                let is_back = async || {
                    let is_up = gateway.metric("tollgate_redis_up").await > 0.5;
                    is_up && gateway.metric(ok_calls).await > before + 2.0
                };
                until_true("Redis to be connected", is_back).await;
            }
            self.wait_for_open(0).await;
            let before = self.failed_calls().await;
            let max_open = part().await;
            if self.failed_calls().await <= before {
                return max_open;
            }
        }
        panic!("the machine is too slow for calls to Redis");
    }

    /// Waits until so many calls are in flight.
    async fn wait_for_open(&self, count: usize) {
        let what = format!("{count} calls in flight");
        until_true(&what, async || self.upstream.open_streams() == count).await;
    }

    async fn close(self) {
        for gateway in self.gateways {
            gateway.close().await;
        }
    }
}

/// Clients that chat.
struct Load {
    ends: Arc<AtomicBool>,
    /// The counts of each node.
    served: Vec<Arc<AtomicUsize>>,
    max_open: Arc<AtomicUsize>,
    running: JoinSet<()>,
}

impl Load {
    /// From then on, records continuously how many calls the provider has open.
    fn watch(mut self, upstream: &Arc<Fake>) -> Self {
        let (ends, max_open) = (Arc::clone(&self.ends), Arc::clone(&self.max_open));
        let upstream = Arc::clone(upstream);
        self.running.spawn(async move {
            while !ends.load(Ordering::SeqCst) {
                max_open.fetch_max(upstream.open_streams(), Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
        });
        self
    }

    /// Waits until each node has served this number of further chats.
    async fn wait_for_chats(&self, count: usize) {
        for served in &self.served {
            let first = served.load(Ordering::SeqCst);
            let has_served = async || served.load(Ordering::SeqCst) >= first + count;
            until_true("each node to serve chats", has_served).await;
        }
    }

    /// Ends the load; returns the maximum number of calls at the same time.
    async fn end(mut self) -> usize {
        self.ends.store(true, Ordering::SeqCst);
        while let Some(ended) = self.running.join_next().await {
            ended.unwrap();
        }
        self.max_open.load(Ordering::SeqCst)
    }
}

async fn one_node_may_use_all_permits(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, 6).await;
    // A third of the limit is 2, but one node may use all 6.
    for node in [0, 2] {
        let part = async || {
            let load = nodes.load(&[node], 12).watch(&nodes.upstream);
            nodes.wait_for_open(6).await;
            load.wait_for_chats(12).await;
            load.end().await
        };
        let max_open = nodes.max_open(part).await;
        assert!(max_open <= 6, "{max_open}");
    }
    nodes.close().await;
}

async fn all_nodes_together_do_not_exceed_the_limit(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, 6).await;
    // One node uses all permits, and releases the others' shares when they need them.
    let part = async || {
        let first = nodes.load(&[0], 12).watch(&nodes.upstream);
        nodes.wait_for_open(6).await;
        let others = nodes.load(&[1, 2], 4);
        others.wait_for_chats(6).await;
        first.wait_for_chats(6).await;
        others.end().await;
        first.end().await
    };
    let max_open = nodes.max_open(part).await;
    assert!(max_open <= 6, "{max_open}");
    nodes.close().await;
}

async fn a_limit_below_the_number_of_nodes_is_not_exceeded(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, 1).await;
    let part = async || {
        let load = nodes.load(&[0, 1, 2], 2).watch(&nodes.upstream);
        // With one permit, the nodes take turns.
        load.wait_for_chats(2).await;
        load.end().await
    };
    let max_open = nodes.max_open(part).await;
    assert_eq!(max_open, 1);
    nodes.close().await;
}

async fn permits_of_a_killed_node_are_reclaimed(_: Backend) {
    let Some(redis) = RedisServer::start_new().await else {
        return;
    };
    let mut nodes = Nodes::start(&redis, 6).await;
    let load = nodes.load(&[1], 12);
    nodes.wait_for_open(6).await;
    load.end().await;
    nodes.gateways[1].kill().await;
    let load = nodes.load(&[0], 12);
    nodes.wait_for_open(6).await;
    load.end().await;
    nodes.close().await;
}

async fn without_redis_each_node_uses_its_share_of_the_permits(_: Backend) {
    let Some(mut redis) = RedisServer::start_new().await else {
        return;
    };
    let nodes = Nodes::start(&redis, 6).await;
    let load = nodes.load(&[0], 12);
    nodes.wait_for_open(6).await;
    redis.stop();
    // A borrowed permit is released when its call ends.
    nodes.wait_for_open(2).await;
    load.end().await;
    let load = nodes.load(&[0, 1, 2], 6).watch(&nodes.upstream);
    load.wait_for_chats(10).await;
    assert!(load.end().await <= 6);
    redis.start().await;
    let load = nodes.load(&[0], 12);
    nodes.wait_for_open(6).await;
    load.end().await;
    join_all(
        nodes
            .clients
            .iter()
            .map(async |client| client.get("/readyz").await.expect(200)),
    )
    .await;
    nodes.close().await;
}
