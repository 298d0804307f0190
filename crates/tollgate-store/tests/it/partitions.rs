//! The partitions of the task tables on PostgreSQL.

use tollgate_core::clock::{DAY, HOUR};
use tollgate_core::{Millis, id};
use tollgate_store::{FinishOutcome, Store};

use crate::databases::{Db, on_postgres};
use crate::fixtures::{
    NOW, TestAccount, account, all, assert_clean, claim_one, claim_tasks, delivered, finish,
    submit, task, task_at, user_sums, with_webhook,
};

/// How long tasks are kept.
const RETENTION: Millis = 30 * DAY;
/// The end of the first partition: the first midnight that is two days after [`NOW`].
const FIRST_END: Millis = 1_790_208_000_000;

async fn maintain(store: &Store, at: Millis) {
    store.maintain_partitions(RETENTION, at).await.unwrap();
}

async fn purge(store: &Store, at: Millis) -> u64 {
    store.purge_expired(at - RETENTION, at).await.unwrap()
}

/// The names of the partitions of a table.
async fn partitions(db: &Db, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT substr(CAST(inhrelid AS regclass)::text, {}) FROM pg_inherits WHERE inhparent = '{table}'::regclass ORDER BY 1",
        table.len() + 2
    );
    db.raw(&sql).await.into_iter().flatten().flatten().collect()
}

/// The partitions of the table of tasks; those of the other tables must match them.
async fn all_partitions(db: &Db) -> Vec<String> {
    let of_tasks = partitions(db, "tasks").await;
    for table in ["attempts", "callbacks", "callback_tries"] {
        assert_eq!(partitions(db, table).await, of_tasks, "{table}");
    }
    of_tasks
}

/// Submits a task with a webhook and ends it.
async fn run_task(store: &Store, ann: &TestAccount, at: Millis) -> String {
    let id = submit(store, with_webhook(task_at(ann, 1, "0.5", at))).await;
    let leased = claim_one(store, at).await;
    finish(store, &leased, delivered(1), at + 1_000).await;
    id
}

/// How many rows of these tasks each table has.
async fn rows(db: &Db, ids: &[&String]) -> [i64; 2] {
    let list: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    let list = list.join(", ");
    [
        db.number(&format!("SELECT COUNT(*) FROM tasks WHERE id IN ({list})"))
            .await,
        db.number(&format!(
            "SELECT COUNT(*) FROM callbacks WHERE task_id IN ({list})"
        ))
        .await,
    ]
}

#[test]
fn tasks_are_processed_while_the_tables_are_partitioned() {
    on_postgres(async |db| {
        let [a, b] = [db.open().await, db.open().await];
        db.raw("GRANT SELECT ON tasks TO PUBLIC").await;
        let indexes = "SELECT COUNT(*) FROM pg_indexes WHERE tablename IN ('tasks', 'attempts', 'callbacks', 'callback_tries')";
        let before = db.number(indexes).await;
        let ann = account(&a, "ann", "100").await;
        for _ in 0..20 {
            submit(&a, task(&ann, 1, "0.5")).await;
        }
        let leased = claim_tasks(&a, NOW).await;
        let works = leased.into_iter().enumerate().map(|(i, leased)| {
            let store = if i % 2 == 0 { a.clone() } else { b.clone() };
            let (leader, ann) = (a.clone(), ann.clone());
            async move {
                if i == 7 {
                    // The maintenance stops early if it does not get its locks.
                    let mut tries = 1;
                    while leader.maintain_partitions(RETENTION, NOW).await.is_err() {
                        assert!(tries < 50, "the tables do not become partitioned");
                        tries += 1;
                    }
                }
                submit(&store, task(&ann, 1, "0.5")).await;
                let ended = finish(&store, &leased, delivered(1), NOW).await;
                assert!(matches!(ended, FinishOutcome::Finished { .. }));
            }
        });
        all(works).await;
        assert_eq!(all_partitions(db).await, ["default", "until_20260924"]);
        assert_eq!(db.number(indexes).await, before);
        let granted = "SELECT COUNT(*) FROM information_schema.table_privileges
                       WHERE table_name = 'tasks' AND grantee = 'PUBLIC' AND privilege_type = 'SELECT'";
        assert_eq!(db.number(granted).await, 1);
        assert_eq!(claim_tasks(&b, NOW).await.len(), 20);
        assert_eq!(user_sums(&a, &ann).await, ["90", "10", "10"]);
        let constraints =
            "SELECT COUNT(*) FROM pg_constraint WHERE conname = 'before_first_partition_ends'";
        assert_eq!(db.number(constraints).await, 0);
        // Opening the store again leaves the tables unchanged.
        assert_clean(&db.open().await).await;
    });
}

#[test]
fn partitions_of_old_tasks_are_dropped() {
    on_postgres(async |db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "100").await;
        let first = run_task(&store, &ann, NOW).await;
        for at in [NOW, NOW + DAY, NOW + 2 * DAY, NOW + 2 * DAY] {
            maintain(&store, at).await;
        }
        let second_end = FIRST_END + 5 * DAY;
        let names = ["default", "until_20260924", "until_20260929"];
        assert_eq!(all_partitions(db).await, names);
        let second = run_task(&store, &ann, FIRST_END).await;
        let third = run_task(&store, &ann, second_end - 1).await;
        maintain(&store, second_end).await;
        assert_eq!(all_partitions(db).await.len(), 4);
        let fourth = run_task(&store, &ann, second_end + 5).await;
        let everything = [&first, &second, &third, &fourth];
        assert_eq!(rows(db, &everything).await, [4, 4]);

        // From the first partition, which has all older tasks, rows are still deleted one by one.
        assert_eq!(purge(&store, NOW + RETENTION).await, 0);
        assert_eq!(purge(&store, NOW + RETENTION + 1_000).await, 1);
        assert_eq!(rows(db, &everything).await, [3, 3]);
        // The partition is dropped some time after its end.
        maintain(&store, FIRST_END + RETENTION + HOUR - 1).await;
        assert_eq!(all_partitions(db).await[1], "until_20260924");
        maintain(&store, FIRST_END + RETENTION + HOUR).await;
        assert_eq!(all_partitions(db).await[1], "until_20260929");

        // The next partition is dropped with its rows, once all of its tasks are old enough.
        assert_eq!(purge(&store, second_end - 1 + RETENTION).await, 0);
        maintain(&store, second_end + RETENTION + HOUR - 1).await;
        assert_eq!(rows(db, &everything).await, [3, 3]);
        maintain(&store, second_end + RETENTION + HOUR).await;
        assert_eq!(rows(db, &everything).await, [1, 1]);
        assert!(store.task(&third).await.unwrap().is_none());
        assert!(store.task(&fourth).await.unwrap().is_some());
        assert_eq!(user_sums(&store, &ann).await[2], "2");
        assert_clean(&store).await;
    });
}

#[test]
fn a_partition_with_a_recent_task_is_kept() {
    on_postgres(async |db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "100").await;
        maintain(&store, NOW).await;
        maintain(&store, NOW + 2 * DAY).await;
        let short = run_task(&store, &ann, FIRST_END).await;
        let long = submit(&store, task_at(&ann, 1, "0.5", FIRST_END)).await;
        let end = FIRST_END + 5 * DAY;
        maintain(&store, end + RETENTION + HOUR).await;
        assert_eq!(rows(db, &[&short, &long]).await, [2, 1]);
        let leased = claim_one(&store, FIRST_END + 2_000).await;
        finish(&store, &leased, delivered(1), end + HOUR + 1).await;
        maintain(&store, end + RETENTION + HOUR).await;
        assert_eq!(purge(&store, end + RETENTION + HOUR).await, 0);
        assert_eq!(rows(db, &[&short, &long]).await, [2, 1]);
        // The remaining rows are deleted after a while, and the partition once it is empty.
        let overdue = FIRST_END + RETENTION + 10 * DAY;
        assert_eq!(purge(&store, overdue).await, 2);
        assert_eq!(rows(db, &[&short, &long]).await, [0, 0]);
        maintain(&store, overdue).await;
        assert!(
            !all_partitions(db)
                .await
                .contains(&"until_20260929".to_owned())
        );
    });
}

#[test]
fn tasks_in_the_default_partition_are_moved_to_a_new_partition() {
    on_postgres(async |db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "100").await;
        maintain(&store, NOW).await;
        let late = FIRST_END + 20 * DAY;
        let ids = [
            run_task(&store, &ann, FIRST_END).await,
            run_task(&store, &ann, late).await,
        ];
        let strays = "SELECT COUNT(*) FROM tasks_default";
        assert_eq!(db.number(strays).await, 2);
        assert_clean(&store).await;
        maintain(&store, late).await;
        assert_eq!(db.number(strays).await, 0);
        assert_eq!(rows(db, &[&ids[0], &ids[1]]).await, [2, 2]);
        assert_eq!(
            all_partitions(db).await,
            ["default", "until_20260924", "until_20261019"]
        );
    });
}

#[test]
fn a_conversion_past_its_first_partition_is_restarted() {
    on_postgres(async |db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "100").await;
        let bound = id::min_task_id_at(NOW + DAY - 1);
        for (table, column) in [
            ("tasks", "id"),
            ("attempts", "task_id"),
            ("callbacks", "task_id"),
            ("callback_tries", "task_id"),
        ] {
            db.raw(&format!("ALTER TABLE {table} ADD CONSTRAINT before_first_partition_ends CHECK ({column} < '{bound}') NOT VALID")).await;
        }
        maintain(&store, NOW).await;
        assert!(partitions(db, "tasks").await.is_empty());
        run_task(&store, &ann, NOW + DAY).await;
        maintain(&store, NOW).await;
        assert_eq!(all_partitions(db).await, ["default", "until_20260924"]);
    });
}

/// The maintenance of partitions fails instead of waiting for a long read, such as a backup.
#[test]
fn maintenance_fails_instead_of_waiting_for_a_long_read() {
    on_postgres(async |db| {
        let store = db.open().await;
        let tollgate_store::DatabaseLocation::Postgres(url) = &db.location else {
            unreachable!("this test is for PostgreSQL")
        };
        let (reader, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        reader
            .batch_execute("BEGIN; SELECT COUNT(*) FROM attempts")
            .await
            .unwrap();
        let rejected = store.maintain_partitions(RETENTION, NOW).await;
        assert!(rejected.is_err(), "{rejected:?}");
        let ann = account(&store, "ann", "100").await;
        run_task(&store, &ann, NOW).await;
        reader.batch_execute("COMMIT").await.unwrap();
        maintain(&store, NOW).await;
        assert_eq!(all_partitions(db).await, ["default", "until_20260924"]);
    });
}
