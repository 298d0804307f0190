//! Several gateways on one database and one directory of files: each task runs once, also if a node fails.

use std::time::Duration;

use futures_util::future::join_all;

use crate::harness::priced_images::*;
use crate::harness::*;

on_postgres!(
    each_task_runs_once,
    tasks_of_a_killed_node_are_taken_over,
    a_suspended_node_does_not_finish_lost_tasks,
    a_node_that_hangs_in_a_transaction_does_not_block_others,
    an_idempotency_key_creates_one_task_on_all_nodes,
    all_nodes_together_never_overdraw,
    a_revocation_applies_on_all_nodes,
    a_cancellation_stops_the_work_on_another_node,
);

const LEASE_S: u64 = 2;
/// The delay that a loaded machine may add; a node that starts beside unfinished tasks begins with few of them.
const SLACK: Duration = Duration::from_secs(5);
/// The longest that a submission may take (the sum of the gateway's own limits).
const MAX_LATENCY: Duration = Duration::from_secs(20);

fn node(lease_s: u64) -> Setup {
    let setup = Setup::new(Backend::Postgres).config(PRICES);
    setup.env("TOLLGATE_LEASES__SECONDS", lease_s.to_string())
}

/// Two running nodes, and one client's connection to each.
struct TwoNodes {
    a: TestGateway,
    b: TestGateway,
    at_a: Client,
    at_b: Client,
}

impl TwoNodes {
    async fn start(lease_s: u64, balance: &str) -> Self {
        let a = node(lease_s).start().await;
        let b = node(lease_s).beside(&a).start().await;
        let at_a = a.funded_client(balance).await;
        let at_b = same_client(&b, &at_a);
        Self { a, b, at_a, at_b }
    }

    /// The client to use for the `i`-th of several calls.
    fn client(&self, i: usize) -> &Client {
        [&self.at_a, &self.at_b][i % 2]
    }

    /// Checks that this number of images was charged.
    async fn close(self, balance: f64, images: u32) {
        let used = PRICE * f64::from(images);
        for client in [&self.at_a, &self.at_b] {
            assert_eq!(client.balances().await, (balance - used, used));
        }
        self.a.close().await;
        self.b.close().await;
    }
}

/// The same user's client at another gateway.
fn same_client(gateway: &TestGateway, client: &Client) -> Client {
    gateway.client(client.secret.clone(), client.key_id.clone())
}

async fn each_task_runs_once(_: Backend) {
    let nodes = TwoNodes::start(30, "100").await;
    let body = images("a kite", 1);
    let ids = join_all((0..24).map(|i| nodes.client(i).submit(&body))).await;
    for (i, id) in ids.iter().enumerate() {
        // The task is polled at the node that did not accept it.
        let client = nodes.client(i + 1);
        let record = client.wait_for_end(id).await;
        assert_eq!(count_images(client, &record).await, 1);
    }
    let all = "SELECT COUNT(*) FROM attempts";
    let done = "SELECT COUNT(DISTINCT task_id) FROM attempts WHERE outcome = 'done'";
    assert_eq!(nodes.a.query_number(all).await, 24);
    assert_eq!(nodes.a.query_number(done).await, 24);
    assert_eq!(count_public_files(&nodes.a), 24);
    nodes.close(100.0, 24).await;
}

async fn tasks_of_a_killed_node_are_taken_over(_: Backend) {
    let mut a = node(LEASE_S).start().await;
    let mut b = node(LEASE_S).beside(&a).prepare().await;
    let at_a = a.funded_client("10").await;
    let at_b = same_client(&b, &at_a);
    let body = images("[[sandbox:delay=1500]]", 1);
    let ids = join_all((0..4).map(|_| at_a.submit(&body))).await;
    let count = "SELECT COUNT(*) FROM attempts";
    let have_started = async || a.query_number(count).await == 4;
    until_true("every attempt to start", have_started).await;
    b.start_server().await;
    a.kill().await;
    let killed_at = jiff::Timestamp::now().as_millisecond();
    for id in &ids {
        let record = at_b.wait_for_end(id).await;
        assert_eq!(count_images(&at_b, &record).await, 1);
    }
    let outcomes = "SELECT string_agg(outcome, ' ' ORDER BY number) FROM attempts GROUP BY task_id";
    let rows = a.query(outcomes).await;
    assert_eq!(rows, vec![["interrupted done"]; 4]);
    let started_at = a.query_number("SELECT MAX(started_at) FROM attempts").await;
    let limit = Duration::from_secs(LEASE_S) + SLACK;
    let taken_over = started_at - killed_at;
    assert!(
        taken_over <= limit.as_millis() as i64,
        "after {taken_over} ms"
    );
    let nodes = TwoNodes {
        a,
        b,
        at_a: at_b.clone(),
        at_b,
    };
    nodes.close(10.0, 4).await;
}

async fn a_suspended_node_does_not_finish_lost_tasks(_: Backend) {
    let a = node(LEASE_S).start().await;
    let mut b = node(LEASE_S).beside(&a).prepare().await;
    let at_a = a.funded_client("10").await;
    let at_b = same_client(&b, &at_a);
    // While the node is stopped, it loses one task before its images arrive, and the other before its end is stored.
    let mut ids = Vec::new();
    for delay in [400, 2500] {
        let body = images(&format!("[[sandbox:delay={delay}]]"), 2);
        ids.push(at_a.submit(&body).await);
    }
    for id in &ids {
        at_a.wait_for_start(id).await;
    }
    a.signal("STOP").await;
    b.start_server().await;
    for id in &ids {
        let record = at_b.wait_for_end(id).await;
        assert_eq!(count_images(&at_b, &record).await, 2);
    }
    let all = "SELECT id, state, fence, ended_at, result, cost FROM tasks ORDER BY id";
    let rows = a.query(all).await;
    a.signal("CONT").await;
    // The node continues, and detects that it does not have the leases of the tasks any more.
    for id in &ids {
        at_a.wait_for_end(id).await;
    }
    tokio::time::sleep(SLACK).await;
    assert_eq!(a.query(all).await, rows);
    TwoNodes { a, b, at_a, at_b }.close(10.0, 4).await;
}

async fn a_node_that_hangs_in_a_transaction_does_not_block_others(_: Backend) {
    let nodes = TwoNodes::start(LEASE_S, "10").await;
    // The node's transaction waits for this lock; then the node is stopped; then the transaction gets the lock.
    let url = nodes.a.database_url().unwrap();
    let connect = tokio_postgres::connect(&url, tokio_postgres::NoTls);
    let (locker, connection) = connect.await.unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; SELECT id FROM users FOR UPDATE";
    locker.batch_execute(lock).await.unwrap();
    let body = images("a kite", 1);
    let late = tokio::spawn({
        let (client, body) = (nodes.at_a.clone(), body.clone());
        async move { submit_once(&client, "late", &body).await }
    });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let is_waiting = async || nodes.a.query_number(waiting).await > 0;
    until_true("the node to wait for the lock", is_waiting).await;
    nodes.a.signal("STOP").await;
    locker.batch_execute("COMMIT").await.unwrap();
    let prompt = submit_once(&nodes.at_b, "prompt", &body);
    let reply = tokio::time::timeout(MAX_LATENCY, prompt).await;
    let id = task_id(&reply.expect("in time").expect(200).json());
    nodes.at_b.wait_for_end(&id).await;
    nodes.a.signal("CONT").await;
    // The node's transaction was rolled back meanwhile; a repeated request gets its task.
    let late = late.await.unwrap();
    if late.status != 200 {
        late.rejected(502, "");
        submit_once(&nodes.at_a, "late", &body).await.expect(200);
    }
    nodes.a.idle().await;
    let tasks = "SELECT COUNT(*) FROM tasks";
    assert_eq!(nodes.a.query_number(tasks).await, 2);
    nodes.close(10.0, 2).await;
}

async fn an_idempotency_key_creates_one_task_on_all_nodes(_: Backend) {
    let nodes = TwoNodes::start(30, "10").await;
    let body = images("a kite", 1);
    let submissions = (0..16).map(|i| submit_once(nodes.client(i), "one-key", &body));
    let receipts = join_all(submissions).await;
    for receipt in &receipts {
        assert_eq!(receipt.clone().expect(200).body, receipts[0].body);
    }
    let other = images("a boat", 1);
    for client in [&nodes.at_a, &nodes.at_b] {
        let reply = submit_once(client, "one-key", &other).await;
        reply.rejected(409, "");
    }
    let tasks = "SELECT COUNT(*) FROM tasks";
    assert_eq!(nodes.a.query_number(tasks).await, 1);
    let id = task_id(&receipts[0].json());
    nodes.at_b.wait_for_end(&id).await;
    nodes.close(10.0, 1).await;
}

async fn all_nodes_together_never_overdraw(_: Backend) {
    let nodes = TwoNodes::start(30, "3.25").await;
    let body = images("a kite", 1);
    let submissions = (0..100).map(|i| nodes.client(i).post_image(&body));
    let replies = join_all(submissions).await;
    let (accepted, rejected): (Vec<_>, Vec<_>) = replies.iter().partition(|r| r.status == 200);
    assert_eq!(accepted.len(), 13, "money for 13 images");
    for reply in rejected {
        reply.rejected(402, "");
    }
    for reply in accepted {
        let id = task_id(&reply.json());
        let record = nodes.at_a.wait_for_end(&id).await;
        assert_eq!(status(&record), "completed");
    }
    nodes.close(3.25, 13).await;
}

async fn a_revocation_applies_on_all_nodes(_: Backend) {
    let nodes = TwoNodes::start(30, "10").await;
    let both = [&nodes.at_a, &nodes.at_b];
    for client in both {
        client.get("/v1/balance").await.expect(200);
    }
    let revoke = ["key", "revoke", &nodes.at_a.key_id];
    nodes.b.cli_json(&revoke).await;
    for client in both {
        until("the key to be rejected", async || {
            (client.get("/v1/tasks").await.status == 401).then_some(())
        })
        .await;
        let reply = client.post_image(&images("a kite", 1)).await;
        reply.rejected(401, "");
    }
    nodes.a.close().await;
    nodes.b.close().await;
}

async fn a_cancellation_stops_the_work_on_another_node(_: Backend) {
    // One worker per node, which a hanging task occupies: a third task runs only when a worker is free.
    let node = || node(LEASE_S).env("TOLLGATE_WORKERS__IMAGES", "1");
    let b = node().start().await;
    let at_b = b.funded_client("10").await;
    let hangs = images("[[sandbox:hang]]", 1);
    let on_b = at_b.submit(&hangs).await;
    at_b.wait_for_start(&on_b).await;
    let a = node().beside(&b).start().await;
    let at_a = same_client(&a, &at_b);
    let on_a = at_a.submit(&hangs).await;
    at_a.wait_for_start(&on_a).await;
    let waiting = at_a.submit(&images("a kite", 1)).await;

    let record = at_a.cancel(&on_b).await.expect(200).json();
    assert_eq!(record["data"]["error"]["code"], "cancelled", "{record}");
    let record = at_b.wait_for_end(&waiting).await;
    assert_eq!(status(&record), "completed");
    assert_eq!(status(&at_b.task(&on_a).await), "in_progress");
    at_b.cancel(&on_a).await.expect(200);
    TwoNodes { a, b, at_a, at_b }.close(10.0, 1).await;
}
