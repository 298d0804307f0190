//! What several gateways on one database share: a clock that differs, an older version, other settings, the leader, changed keys, and shares of
//! limits.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::*;

on_both!(a_change_of_one_key_leaves_the_others_cached,);
on_postgres!(
    a_node_whose_clock_differs_is_not_ready,
    a_node_of_an_older_version_is_not_ready,
    a_node_with_other_settings_is_not_ready,
    another_node_becomes_leader_if_the_leader_ends,
    without_redis_each_node_admits_its_share,
    tasks_that_wait_at_a_busy_node_run_on_another,
    a_node_without_its_replica_is_ready,
);

const OWNER: &str = "the-operators-own-admin-key-0123456789";
const LEASE_S: u64 = 2;
const IMAGE: &str = "gpt-image-2-official";

fn node() -> Setup {
    let setup = Setup::new(Backend::Postgres).admin_key(OWNER);
    setup.env("TOLLGATE_LEASES__SECONDS", LEASE_S.to_string())
}

fn owner_of(gateway: &TestGateway) -> Client {
    gateway.client(Some(OWNER.to_owned()), String::new())
}

/// The nodes as the admin API lists them, newest first.
async fn nodes_at(owner: &Client) -> Vec<Value> {
    let nodes = owner.get_json("/admin/v1/nodes").await;
    nodes["data"].as_array().unwrap().clone()
}

/// Waits until `/readyz` reports this part as not ready; returns the reason.
async fn until_not_ready(gateway: &TestGateway, part: &str) -> String {
    let client = gateway.anonymous();
    until("the node to be not ready", async || {
        let reply = client.get("/readyz").await;
        let body = reply.json();
        let is_so = reply.status == 503 && body["part"] == part;
        is_so.then(|| body["reason"].as_str().unwrap().to_owned())
    })
    .await
}

async fn until_ready(gateway: &TestGateway) {
    let client = gateway.anonymous();
    let is_ready = async || client.get("/readyz").await.status == 200;
    until_true("the node to be ready", is_ready).await;
}

/// A node that is not ready still accepts submissions, and leaves the tasks to other nodes.
async fn check_takes_no_tasks(gateway: &TestGateway, client: &Client) -> String {
    let id = client
        .submit(&json!({ "model": IMAGE, "prompt": "a kite" }))
        .await;
    // Waits longer than the workers ever wait between two looks for tasks, measured by the node's heartbeats.
    let alive_until = async || {
        gateway
            .query_number("SELECT MAX(alive_until) FROM nodes")
            .await
    };
    let before = alive_until().await;
    until_true("heartbeats", async || alive_until().await > before + 1_500).await;
    assert_eq!(
        gateway.query_number("SELECT COUNT(*) FROM attempts").await,
        0
    );
    id
}

async fn a_node_whose_clock_differs_is_not_ready(_: Backend) {
    let mut gateway = node().prepare().await;
    // The test changes the database's clock instead of the machine's: the node cannot distinguish the two.
    for sql in [
        "CREATE TABLE clock_error (seconds BIGINT)",
        "INSERT INTO clock_error VALUES (-90)",
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
         'SELECT pg_catalog.clock_timestamp() + (SELECT seconds FROM public.clock_error) * interval ''1 second'''",
        "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET search_path = public, pg_catalog'; END $$",
    ] {
        gateway.execute(sql).await;
    }
    gateway.start_server().await;
    let owner = owner_of(&gateway);
    let reason = until_not_ready(&gateway, "clock").await;
    let expected = "this node's clock is 90.0 s ahead of the database's, and 0.5 s are allowed";
    assert!(reason.starts_with(expected), "{reason}");
    let client = gateway.unlimited_client().await;
    let id = check_takes_no_tasks(&gateway, &client).await;
    let shown = nodes_at(&owner).await;
    assert_eq!(shown[0]["ready"], false);
    assert_eq!(shown[0]["leader"], false);
    assert!(
        shown[0]["not_ready"]
            .as_str()
            .unwrap()
            .starts_with(expected)
    );
    let offset = shown[0]["clock_offset_ms"].as_i64().unwrap();
    assert!((89_000..91_000).contains(&offset), "{offset}");
    let metric = "tollgate_node_not_ready{cause=\"clock\"}";
    assert!(gateway.metric(metric).await > 0.5);
    assert!(gateway.metric("tollgate_clock_offset_seconds").await > 89.0);
    // The machine's clock is corrected. The running process follows the database's clock only after a minute, so the test restarts it.
    gateway.terminate().await;
    gateway.execute("UPDATE clock_error SET seconds = 0").await;
    gateway.start_server().await;
    until_ready(&gateway).await;
    client.wait_for_end(&id).await;
    assert!(gateway.metric(metric).await < 0.5);
    until_true("the node to lead", async || {
        let shown = nodes_at(&owner).await;
        shown[0]["ready"] == true && shown[0]["leader"] == true
    })
    .await;
    gateway.execute("UPDATE clock_error SET seconds = 7").await;
    let reason = until_not_ready(&gateway, "clock").await;
    assert!(reason.contains(" behind the database's"), "{reason}");
    gateway.execute("UPDATE clock_error SET seconds = 0").await;
    until_ready(&gateway).await;
    assert!(gateway.log().contains("this node is not ready"));
    gateway.close().await;
}

async fn a_node_of_an_older_version_is_not_ready(_: Backend) {
    let mut gateway = node().start().await;
    let client = gateway.unlimited_client().await;
    until_ready(&gateway).await;
    let known = "SELECT value FROM meta WHERE name = 'schema_version'";
    let known = gateway.query_number(known).await;
    let oldest = "UPDATE meta SET value = {} WHERE name = 'oldest_compatible'";
    let set_oldest = async |to: i64| {
        gateway
            .execute(&oldest.replace("{}", &to.to_string()))
            .await
    };
    set_oldest(known + 1).await;
    let reason = until_not_ready(&gateway, "version").await;
    assert!(reason.contains("run a newer tollgate"), "{reason}");
    let id = check_takes_no_tasks(&gateway, &client).await;
    set_oldest(known).await;
    until_ready(&gateway).await;
    client.wait_for_end(&id).await;
    gateway.terminate().await;
    gateway.close().await;
}

async fn a_node_with_other_settings_is_not_ready(_: Backend) {
    let mut a = node().start().await;
    let b = node()
        .config("currency = \"CNY\"\nlimits.rpm = 7")
        .beside(&a);
    let mut b = b.start().await;
    let owner = owner_of(&a);
    let reason = until_not_ready(&b, "settings").await;
    let expected = "currency must be the same on all nodes, and differs from that of node node_";
    assert!(reason.starts_with(expected), "{reason}");
    until_ready(&a).await;
    let shown = nodes_at(&owner).await;
    assert_eq!(
        (&shown[0]["ready"], &shown[1]["ready"]),
        (&json!(false), &json!(true))
    );
    // The fingerprints show that the configurations differ, also where they may.
    let fingerprint = |at: usize| shown[at]["config_fingerprint"].as_str().unwrap().to_owned();
    assert_ne!(fingerprint(0), fingerprint(1));
    // Once the nodes `a` and `c`, which have the same settings, have ended, the settings of `b` apply.
    let mut c = node().beside(&a).start().await;
    until_true(
        "the same configuration to have the same fingerprint",
        async || {
            let shown = nodes_at(&owner).await;
            shown.len() == 3 && shown[0]["config_fingerprint"] == fingerprint(1)
        },
    )
    .await;
    a.terminate().await;
    c.terminate().await;
    until_ready(&b).await;
    b.terminate().await;
    for gateway in [c, b, a] {
        gateway.close().await;
    }
}

async fn another_node_becomes_leader_if_the_leader_ends(_: Backend) {
    let mut a = node().start().await;
    let b = node().beside(&a).start().await;
    let (at_a, at_b) = (owner_of(&a), owner_of(&b));
    until_true("the first node to lead alone", async || {
        let leads = |node: &Value| node["leader"] == true;
        let shown = nodes_at(&at_a).await;
        shown.len() == 2 && !leads(&shown[0]) && leads(&shown[1])
    })
    .await;
    let leader = async |gateway: &TestGateway| gateway.metric("tollgate_leader").await > 0.5;
    until_true("its metric", async || leader(&a).await && !leader(&b).await).await;
    assert!((b.metric("tollgate_nodes").await - 2.0).abs() < 0.1);
    // The other node takes over the leader's work.
    let client = b.funded_client("10").await;
    a.kill().await;
    until_true("the other node to lead", async || leader(&b).await).await;
    client
        .generate(&json!({ "model": IMAGE, "prompt": "a kite" }))
        .await;
    until_true("usage to be rolled up", async || {
        b.query_number("SELECT COUNT(*) FROM usage_pending").await == 0
    })
    .await;
    until_true("the killed node to be removed", async || {
        nodes_at(&at_b).await.len() == 1
    })
    .await;
    // A node that is stopped gives up the lead at once.
    let mut c = node().beside(&b).start().await;
    assert!(!leader(&c).await);
    b.close().await;
    let shown = nodes_at(&owner_of(&c)).await;
    assert_eq!(shown.len(), 1, "{shown:?}");
    until_true("the last node to lead", async || leader(&c).await).await;
    c.terminate().await;
    c.close().await;
    a.close().await;
}

async fn without_redis_each_node_admits_its_share(_: Backend) {
    let a = node().start().await;
    let b = node().beside(&a).start().await;
    until_true("each to know of the other", async || {
        a.metric("tollgate_nodes").await > 1.5 && b.metric("tollgate_nodes").await > 1.5
    })
    .await;
    a.user("busy", &[]).await;
    let at_a = a.key("busy", &["--rpm", "21"]).await;
    let at_b = b.client(at_a.secret.clone(), at_a.key_id.clone());
    let mut admitted = 0;
    for i in 0..60 {
        let client = [&at_a, &at_b][i % 2];
        let batch = json!({ "task_ids": ["task_x"] });
        let reply = client.post("/v1/tasks/batch", &batch).await;
        match reply.status {
            200 => admitted += 1,
            _ => assert!(reply.rejected(429, "").contains("21")),
        }
    }
    assert_eq!(admitted, 20);
    // Once the other node has ended, its share of the limit is available.
    b.close().await;
    until_true("the node to be alone", async || {
        a.metric("tollgate_nodes").await < 1.5
    })
    .await;
    for left in (0..11).rev() {
        let batch = json!({ "task_ids": ["task_x"] });
        let reply = at_a.post("/v1/tasks/batch", &batch).await.expect(200);
        assert_eq!(reply.header("x-ratelimit-remaining"), left.to_string());
    }
    a.close().await;
}

/// The test changes rows without an entry in the feed; the next request shows whether the gateway read the row again.
async fn a_change_of_one_key_leaves_the_others_cached(backend: Backend) {
    let gateway = Setup::new(backend).admin_key(OWNER).start().await;
    gateway.user("ann", &[]).await;
    let (first, second) = (gateway.key("ann", &[]).await, gateway.key("ann", &[]).await);
    let other = gateway.funded_client("1").await;
    let all = [&first, &second, &other];
    let statuses = async || {
        let mut statuses = Vec::new();
        for client in all {
            statuses.push(client.get("/v1/tasks").await.status);
        }
        statuses
    };
    // The feed also has keys that were created.
    until_true("the cache to be warm", async || {
        tokio::time::sleep(Duration::from_millis(700)).await;
        statuses().await == [200; 3]
    })
    .await;
    gateway.execute("UPDATE keys SET revoked_at = 1").await;
    assert_eq!(statuses().await, [200; 3]);
    let owner = owner_of(&gateway);
    let change = async |path: &str, change: Value| {
        let json = serde_json::to_vec(&change).unwrap();
        let tag = owner.get(path).await.header("etag").to_owned();
        let request = owner.request(http::Method::PATCH, path);
        let request = request.header("content-type", "application/json");
        let request = request
            .header("if-match", tag)
            .body(bytes::Bytes::from(json).into());
        owner.send(request.unwrap()).await.expect(200);
    };
    let path = format!("/admin/v1/keys/{}", first.key_id);
    change(&path, json!({ "rpm": 100 })).await;
    until_true("the changed key to be read again", async || {
        statuses().await[0] == 401
    })
    .await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(statuses().await, [401, 200, 200]);
    // A change of a user affects all keys of the user.
    let user = gateway
        .query("SELECT id FROM users WHERE name = 'ann'")
        .await[0][0]
        .clone();
    change(&format!("/admin/v1/users/{user}"), json!({ "rpm": 100 })).await;
    until_true("the user's key to be read again", async || {
        statuses().await[1] == 401
    })
    .await;
    assert_eq!(statuses().await, [401, 401, 200]);
    gateway.close().await;
}

/// A node starts the tasks that it has accepted; another node takes a task that has waited for two seconds.
async fn tasks_that_wait_at_a_busy_node_run_on_another(_: Backend) {
    let mut a = node().config("workers.calls = 1").start().await;
    let mut b = node().beside(&a).start().await;
    let client = a.unlimited_client().await;
    until_true("both nodes to know each other", async || {
        let [a, b] = [
            a.metric("tollgate_nodes").await,
            b.metric("tollgate_nodes").await,
        ];
        a > 1.5 && b > 1.5
    })
    .await;
    let image = |prompt: &str| json!({ "model": IMAGE, "prompt": prompt });
    let slow = client.submit(&image("a kite [[sandbox:hang]]")).await;
    let started = format!("SELECT COUNT(started_at) FROM queue WHERE task_id = '{slow}'");
    until_true("the first task to be claimed", async || {
        a.query_number(&started).await == 1
    })
    .await;
    let left = client.submit(&image("a hill")).await;
    client.wait_for_end(&left).await;
    let waited = format!("SELECT started_at - created_at FROM tasks WHERE id = '{left}'");
    assert!(a.query_number(&waited).await >= 2_000);
    assert_eq!(a.query_number(&started).await, 1);
    client.cancel(&slow).await.expect(200);
    b.terminate().await;
    b.close().await;
    a.terminate().await;
    a.close().await;
}

async fn a_node_without_its_replica_is_ready(_: Backend) {
    let lost = "postgres://u:a-secret-password@127.0.0.1:1/d";
    let setup = node().env("TOLLGATE_DATABASE__REPLICA_URL", lost);
    let mut gateway = setup.start().await;
    until_ready(&gateway).await;
    let client = gateway.unlimited_client().await;
    let id = client
        .submit(&json!({ "model": IMAGE, "prompt": "a pier" }))
        .await;
    client.wait_for_end(&id).await;
    let listed = owner_of(&gateway).get_json("/admin/v1/tasks").await;
    assert_eq!(listed["data"][0]["id"], id.as_str());
    assert!(gateway.metric("tollgate_replica_up").await < 0.5);
    let records = gateway.cli_json(&["doctor"]).await;
    let found = records.as_array().unwrap().iter();
    let found = found.filter(|record| record["check"] == "replica");
    let levels: Vec<&Value> = found.map(|record| &record["level"]).collect();
    assert_eq!(levels, ["warn"], "{records}");
    gateway.terminate().await;
    assert!(!gateway.log().contains("a-secret-password"));
    gateway.close().await;
}
