//! Several gateways on one database and one folder of files: each task runs once, whatever becomes of a node.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use serde_json::Value;

use crate::gate::{Backend, Client, Gate, Setup, on_postgres, status, task_id, until};
use crate::shop::{self, PRICE, PRICES, number, order, pictures, sql};

on_postgres!(
    each_task_runs_once,
    a_killed_node_is_replaced,
    a_stopped_node_finishes_nothing,
    a_node_that_hangs_in_a_transaction_holds_up_nobody,
    one_key_is_one_task_on_all_nodes,
    all_nodes_together_never_overdraw,
    a_revocation_is_seen_by_all_nodes,
    a_cancellation_stops_the_work_on_another_node,
);

const LEASE_S: u64 = 2;
/// How much later than it could a loaded machine may do a thing.
const SLACK: Duration = Duration::from_secs(3);
/// The longest that a submission may take (the gateway's own limits together).
const ANSWER: Duration = Duration::from_secs(20);

fn node(lease_s: u64) -> Setup {
    let setup = Setup::new(Backend::Postgres).config(PRICES);
    setup.env("TOLLGATE_LEASES__SECONDS", lease_s.to_string())
}

/// Two nodes that run, and somebody who calls both.
struct Pair {
    a: Gate,
    b: Gate,
    at_a: Client,
    at_b: Client,
}

impl Pair {
    async fn start(lease_s: u64, balance: &str) -> Self {
        let a = node(lease_s).start().await;
        let b = node(lease_s).beside(&a).start().await;
        let at_a = a.somebody_with("payer", &["--balance", balance]).await;
        let at_b = same(&b, &at_a);
        Self { a, b, at_a, at_b }
    }

    /// The client to use for the `i`-th of several calls.
    fn client(&self, i: usize) -> &Client {
        if i.is_multiple_of(2) {
            &self.at_a
        } else {
            &self.at_b
        }
    }

    async fn close(self) {
        self.a.close().await;
        self.b.close().await;
    }
}

/// The same caller at another gateway.
fn same(gate: &Gate, client: &Client) -> Client {
    gate.client(client.secret.clone(), client.key_id.clone())
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

async fn each_task_runs_once(_: Backend) {
    let pair = Pair::start(30, "100").await;
    let tasks = (0..24).map(|i| pair.client(i).submit(&pictures("a kite", 1)));
    let ids = join_all(tasks).await;
    for (i, id) in ids.iter().enumerate() {
        // Looked at through the node that did not take it.
        let client = pair.client(i + 1);
        let record = client.ended(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(shop::count_pictures(client, &record).await, 1);
    }
    assert_eq!(number(&pair.a, "SELECT COUNT(*) FROM attempts").await, 24);
    let done = "SELECT COUNT(DISTINCT task_id) FROM attempts WHERE outcome = 'done'";
    assert_eq!(number(&pair.a, done).await, 24);
    assert_eq!(
        shop::count_public_files(&pair.a),
        24,
        "no picture was made twice"
    );
    assert_eq!(
        pair.at_b.purse().await,
        (100.0 - 24.0 * PRICE, 24.0 * PRICE)
    );
    pair.close().await;
}

async fn a_killed_node_is_replaced(_: Backend) {
    let mut a = node(LEASE_S).start().await;
    let mut b = node(LEASE_S).beside(&a).prepare().await;
    let at_a = a.somebody_with("payer", &["--balance", "10"]).await;
    let at_b = same(&b, &at_a);
    let orders = (0..4).map(|_| at_a.submit(&pictures("[[sandbox:delay=1500]]", 1)));
    let ids = join_all(orders).await;
    for id in &ids {
        at_a.started(id).await;
    }
    until("every attempt to begin", async || {
        (number(&a, "SELECT COUNT(*) FROM attempts").await == 4).then_some(())
    })
    .await;
    b.start_server().await;
    a.kill().await;
    let killed_at = now_ms();
    for id in &ids {
        let record = at_b.ended(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(shop::count_pictures(&at_b, &record).await, 1);
    }
    let outcomes = "SELECT string_agg(outcome, ' ' ORDER BY number) FROM attempts GROUP BY task_id";
    for row in sql(&a, outcomes).await {
        assert_eq!(row[0].as_deref(), Some("interrupted done"));
    }
    let taken_over = number(&a, "SELECT MAX(started_at) FROM attempts").await - killed_at;
    let limit = Duration::from_secs(LEASE_S) + SLACK;
    assert!(
        taken_over <= limit.as_millis() as i64,
        "after {taken_over} ms"
    );
    assert_eq!(at_b.purse().await, (10.0 - 4.0 * PRICE, 4.0 * PRICE));
    b.close().await;
    a.close().await;
}

async fn a_stopped_node_finishes_nothing(_: Backend) {
    let a = node(LEASE_S).start().await;
    let mut b = node(LEASE_S).beside(&a).prepare().await;
    let at_a = a.somebody_with("payer", &["--balance", "10"]).await;
    let at_b = same(&b, &at_a);
    // One that will be late with its pictures, one that will be late with their end.
    let mut ids = Vec::new();
    for delay in [400, 2500] {
        let body = pictures(&format!("[[sandbox:delay={delay}]]"), 2);
        ids.push(at_a.submit(&body).await);
    }
    for id in &ids {
        at_a.started(id).await;
    }
    a.signal("STOP").await;
    b.start_server().await;
    for id in &ids {
        let record = at_b.ended(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(shop::count_pictures(&at_b, &record).await, 2);
    }
    let all = "SELECT id, state, fence, ended_at, result, cost FROM tasks ORDER BY id";
    let ended = sql(&a, all).await;
    a.signal("CONT").await;
    // It wakes up, goes on, and finds that the tasks are not its own any more.
    for id in &ids {
        at_a.ended(id).await;
    }
    tokio::time::sleep(SLACK).await;
    assert_eq!(sql(&a, all).await, ended);
    assert_eq!(at_a.purse().await, (10.0 - 4.0 * PRICE, 4.0 * PRICE));
    a.close().await;
    b.close().await;
}

async fn a_node_that_hangs_in_a_transaction_holds_up_nobody(_: Backend) {
    let pair = Pair::start(LEASE_S, "10").await;
    // Its transaction waits for this lock, then it is stopped, then it gets the lock.
    let url = pair.a.database_url().unwrap();
    let (locker, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; SELECT id FROM users FOR UPDATE";
    locker.batch_execute(lock).await.unwrap();
    let late = tokio::spawn({
        let client = pair.at_a.clone();
        async move { order(&client, "late", &pictures("a kite", 1)).await }
    });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the node to wait for the lock", async || {
        (number(&pair.a, waiting).await > 0).then_some(())
    })
    .await;
    pair.a.signal("STOP").await;
    locker.batch_execute("COMMIT").await.unwrap();
    let body = pictures("a kite", 1);
    let answer = order(&pair.at_b, "prompt", &body);
    let answer = tokio::time::timeout(ANSWER, answer).await;
    let id = task_id(&answer.expect("an answer in time").expect(200).json());
    pair.at_b.ended(&id).await;
    pair.a.signal("CONT").await;
    // Its own transaction was taken back meanwhile; whoever asks again gets what was ordered.
    let late = late.await.unwrap();
    if late.status != 200 {
        late.error(502, "bad_gateway");
        order(&pair.at_a, "late", &body).await.expect(200);
    }
    pair.a.idle().await;
    assert_eq!(number(&pair.a, "SELECT COUNT(*) FROM tasks").await, 2);
    assert_eq!(pair.at_b.purse().await, (10.0 - 2.0 * PRICE, 2.0 * PRICE));
    pair.close().await;
}

async fn one_key_is_one_task_on_all_nodes(_: Backend) {
    let pair = Pair::start(30, "10").await;
    let body = pictures("a kite", 1);
    let orders = (0..16).map(|i| order(pair.client(i), "the-one-order", &body));
    let receipts = join_all(orders).await;
    for receipt in &receipts {
        assert_eq!(receipt.clone().expect(200).body, receipts[0].body);
    }
    let other = pictures("a boat", 1);
    for client in [&pair.at_a, &pair.at_b] {
        order(client, "the-one-order", &other)
            .await
            .error(409, "invalid_request_error");
    }
    assert_eq!(number(&pair.a, "SELECT COUNT(*) FROM tasks").await, 1);
    let id = task_id(&receipts[0].json());
    pair.at_b.ended(&id).await;
    assert_eq!(pair.at_a.purse().await, (10.0 - PRICE, PRICE));
    pair.close().await;
}

async fn all_nodes_together_never_overdraw(_: Backend) {
    let pair = Pair::start(30, "3.25").await;
    let body = pictures("a kite", 1);
    let orders = (0..100).map(|i| {
        let client = pair.client(i);
        client.order(&body)
    });
    let replies = join_all(orders).await;
    let taken: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
    assert_eq!(taken.len(), 13, "money for 13 pictures");
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        refused.error(402, "payment_required");
    }
    for reply in taken {
        let id = task_id(&reply.json());
        assert_eq!(status(&pair.at_a.ended(&id).await), "completed");
    }
    assert_eq!(pair.at_b.purse().await, (0.0, 3.25));
    pair.close().await;
}

async fn a_revocation_is_seen_by_all_nodes(_: Backend) {
    let pair = Pair::start(30, "10").await;
    for client in [&pair.at_a, &pair.at_b] {
        client.get("/v1/balance").await.expect(200);
    }
    pair.b.record(&["key", "revoke", &pair.at_a.key_id]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for client in [&pair.at_a, &pair.at_b] {
        client
            .get("/v1/tasks")
            .await
            .error(401, "authentication_error");
        let refused = client.order(&pictures("a kite", 1)).await;
        refused.error(401, "authentication_error");
    }
    pair.close().await;
}

async fn a_cancellation_stops_the_work_on_another_node(_: Backend) {
    // One seat each, taken for good: a third task runs only when a seat comes free.
    let seat = |setup: Setup| setup.env("TOLLGATE_WORKERS__IMAGES", "1");
    let b = seat(node(LEASE_S)).start().await;
    let at_b = b.somebody_with("payer", &["--balance", "10"]).await;
    let hangs = pictures("[[sandbox:hang]]", 1);
    let on_b = at_b.submit(&hangs).await;
    at_b.started(&on_b).await;
    let a = seat(node(LEASE_S)).beside(&b).start().await;
    let at_a = same(&a, &at_b);
    let on_a = at_a.submit(&hangs).await;
    at_a.started(&on_a).await;
    let waits = at_a.submit(&pictures("a kite", 1)).await;

    let record: Value = at_a.cancel(&on_b).await.expect(200).json();
    assert_eq!(record["data"]["error"]["code"], "cancelled", "{record}");
    assert_eq!(status(&at_b.ended(&waits).await), "completed");
    assert_eq!(status(&at_b.task(&on_a).await), "in_progress");
    at_b.cancel(&on_a).await.expect(200);
    assert_eq!(at_a.purse().await, (10.0 - PRICE, PRICE));
    a.close().await;
    b.close().await;
}
