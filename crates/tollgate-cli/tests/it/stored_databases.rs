//! Databases that older programs left, with running tasks, are opened by the current program: CONTRIBUTING.md, "Migrations".

use serde_json::json;
use tollgate_store::{DatabaseLocation, inspect_database, schema_sql};

use crate::harness::*;

/// Creates a test for each stored database: its name, its schema version, its rows.
macro_rules! stored {
    ($($name:ident: $schema:literal, $rows:literal;)+) => {
        on_both!($($name),+);
        $(
            async fn $name(backend: Backend) {
                open(backend, $schema, include_str!(concat!("../stored/", $rows))).await;
            }
        )+
    };
}

stored! {
    schema_1: 1, "0001.sql";
    schema_23: 23, "0023.sql";
    schema_29: 29, "0029.sql";
}

const OWNER: &str = "owner-of-the-stored-database";
const CONFIG: &str = r#"
[media]
allow_private_urls = ["127.0.0.0/8"]
[expiry]
tasks_days = 3650
[[channel]]
name = "main"
kind = "sandbox"
[price."gpt-image-2-official"]
per_image = 0.4
[price."gpt-5"]
input_per_million = 100
output_per_million = 1000
"#;

/// Queries whose results must be the same before and after the migration, on columns that every schema has.
const SAME: &[&str] = &[
    "SELECT id, name, unlimited, balance, held, used, rpm, disabled_at FROM users ORDER BY id",
    "SELECT id, user_id, label, hash, quota, held, used, models, expires_at, revoked_at FROM keys ORDER BY id",
    "SELECT ref, kind, user_id, key_id, amount, note, at FROM ledger ORDER BY ref, kind",
    "SELECT id, model, price, per, units, held, units_settled, settled, released FROM charges ORDER BY id",
    "SELECT id, model, outcome, channel, settled, held, input, output, attempts FROM chats ORDER BY id",
    "SELECT id, model, state, result, error_code, cost, job, shown, callback_url, deadline_at FROM tasks ORDER BY id",
    "SELECT task_id, number, channel, queued, outcome, error, started_at, ended_at FROM attempts ORDER BY task_id, number",
    "SELECT task_id, url, state, attempts FROM callbacks ORDER BY task_id",
    "SELECT task_id, number, status, error FROM callback_tries ORDER BY task_id, number",
    "SELECT user_id, key, task_id, receipt FROM idempotency ORDER BY user_id, key",
];

/// The value of a line `-- NAME: VALUE` at the beginning.
fn metadata_line<'a>(rows: &'a str, name: &str) -> &'a str {
    let start = format!("-- {name}: ");
    let mut lines = rows.lines();
    lines
        .find_map(|line| line.strip_prefix(start.as_str()))
        .expect(name)
}

async fn read_all(gateway: &TestGateway) -> Vec<Vec<Vec<String>>> {
    let mut tables = Vec::new();
    for query in SAME {
        tables.push(gateway.query(query).await);
    }
    tables
}

async fn schema_version(gateway: &TestGateway) -> (i64, i64) {
    let location = match gateway.database_url() {
        Some(url) => DatabaseLocation::Postgres(url),
        None => DatabaseLocation::Sqlite(gateway.data_dir().join("tollgate.db")),
    };
    let state = inspect_database(&location).await.unwrap().unwrap();
    (state.schema_version.unwrap(), state.known_version)
}

/// Opens a database of an older schema: the ledger is unchanged and the audit passes, its tasks continue, and new charges work.
async fn open(backend: Backend, schema: usize, rows: &str) {
    let setup = Setup::new(backend).config(CONFIG).admin_key(OWNER);
    let setup = setup.without_tables();
    let mut gateway = setup.prepare().await;
    std::fs::create_dir(gateway.data_dir()).unwrap();
    gateway
        .execute(&schema_sql(schema, backend == Backend::Postgres))
        .await;
    gateway.execute(rows).await;
    let before = read_all(&gateway).await;
    assert!(
        before.iter().all(|table| !table.is_empty()),
        "rows in every table"
    );
    assert_eq!(
        schema_version(&gateway).await.0,
        i64::try_from(schema).unwrap()
    );

    // Any command migrates the database.
    let audit = gateway.cli(&["audit"]).await;
    assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
    let (version, known) = schema_version(&gateway).await;
    assert_eq!(version, known);
    assert_eq!(read_all(&gateway).await, before);

    let unfinished =
        "SELECT t.id, u.name FROM tasks t JOIN users u ON u.id = t.user_id WHERE t.state < 2";
    let unfinished = gateway.query(unfinished).await;
    assert!(unfinished.len() > 1, "tasks that run and tasks that wait");
    gateway.start_server().await;
    let client =
        |name: &str| gateway.client(Some(metadata_line(rows, name).to_owned()), String::new());
    let [ann, bob] = ["key of ann", "key of bob"].map(client);
    for row in &unfinished {
        let owner = if row[1] == "ann" { &ann } else { &bob };
        let record = owner.wait_for_end(&row[0]).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(image_urls(&record).len(), 1, "{record}");
    }
    let done = metadata_line(rows, "a finished task of ann");
    assert_eq!(status(&ann.task(done).await), "completed");

    let (left, used) = ann.balances().await;
    let message = json!({ "role": "user", "content": "[[sandbox:words=7]]" });
    let chat = json!({ "model": "gpt-5", "messages": [message], "max_tokens": 50 });
    ann.post("/openai/v1/chat/completions", &chat)
        .await
        .expect(200);
    let (left_then, used_then) = ann.balances().await;
    let cost = used_then - used;
    assert!(
        cost > 0.0 && (left - left_then - cost).abs() < 1e-9,
        "{left} {left_then} {cost}"
    );
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let refund = format!("/admin/v1/tasks/{done}/refund");
    let body = json!({ "amount": "0.1", "reason": "a test" });
    let once = [("idempotency-key", "a-refund-of-the-test")];
    owner.post_with(&refund, &body, &once).await.expect(201);
    ann.check_balances(left_then + 0.1, used_then - 0.1).await;
    gateway.close().await;
}
