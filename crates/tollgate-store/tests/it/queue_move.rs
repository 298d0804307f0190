//! The move of the state of unfinished tasks from `tasks` to `queue`: at once on SQLite, on PostgreSQL when no node of an older version is alive.

use tollgate_core::TaskState;
use tollgate_store::{CancelOutcome, FinishOutcome, Store};

use crate::databases::{Db, on_both, on_postgres};
use crate::fixtures::{
    NOW, account, all, assert_clean, begin, claim_one, claim_tasks, delivered, enqueue, finish,
    queued, retry_task, submit, task, task_at, task_finish, user_sums,
};
use crate::old_schemas::undo_migrations;

on_both!(unfinished_tasks_of_the_previous_schema_are_continued);

/// The time of the move in a test.
const LATER: i64 = NOW + 1_000;

/// The number of rows in the queue, and of unfinished ones in `tasks`.
async fn counts(db: &Db) -> (i64, i64) {
    (
        db.number("SELECT COUNT(*) FROM queue").await,
        db.number("SELECT COUNT(*) FROM tasks WHERE ended_at IS NULL")
            .await,
    )
}

/// Starts a node of the previous version, which is alive.
async fn start_old_node(db: &Db) {
    let alive = LATER + 30_000;
    db.raw(&format!(
        "INSERT INTO nodes (id, alive_until, schema_version) VALUES ('node_old', {alive}, 23)"
    ))
    .await;
}

async fn end_old_node(db: &Db) {
    db.raw(&format!(
        "UPDATE nodes SET alive_until = {NOW} WHERE id = 'node_old'"
    ))
    .await;
}

/// Opens a store on a database of schema 23 with a node that is alive.
async fn open_beside_old_node(db: &Db) -> Store {
    drop(db.open().await);
    undo_migrations(db, 23).await;
    let store = db.open().await;
    start_old_node(db).await;
    store
}

async fn unfinished_tasks_of_the_previous_schema_are_continued(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "10").await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(submit(&store, task(&ann, 1, "0.5")).await);
    }
    let leased = claim_tasks(&store, NOW).await;
    let [ended, waiting, running] = [&leased[0], &leased[1], &leased[2]];
    enqueue(&store, running, "op-1", NOW).await;
    store
        .set_progress(&running.task.id, running.fence, 40, NOW)
        .await
        .unwrap();
    finish(&store, ended, delivered(1), NOW).await;
    store
        .postpone_task(&waiting.task.id, waiting.fence, NOW + 500)
        .await
        .unwrap();
    drop(store);
    undo_migrations(db, 23).await;

    let store = db.open().await;
    assert_clean(&store).await;
    // On SQLite the state was moved when the database was opened.
    assert_eq!(store.move_queue(LATER).await, Ok(true));
    assert_eq!(counts(db).await, (3, 3));
    assert_clean(&store).await;
    let record = store.task(&running.task.id).await.unwrap().unwrap();
    assert_eq!(
        (record.state, record.progress, record.started_at),
        (TaskState::InProgress, 40, Some(NOW))
    );
    // The leases and their fences are still valid, and the queued attempt is kept.
    let renewals = leased[2..].iter().map(|l| (l.task.id.clone(), l.fence));
    let lost = store.renew_leases("w", renewals.collect(), LATER + 30_000);
    assert_eq!(lost.await, Ok(Vec::new()));
    let next = claim_one(&store, NOW + 500).await;
    assert_eq!((next.task.id, next.fence), (waiting.task.id.clone(), 2));
    assert!(claim_tasks(&store, NOW + 30_499).await.is_empty());
    let expired = claim_tasks(&store, LATER + 30_000).await;
    let again = expired.iter().find(|l| l.task.id == running.task.id);
    let again = again.expect("its lease has expired");
    let open = again
        .queued_attempt
        .as_ref()
        .and_then(|a| a.provider_job_id.as_deref());
    assert_eq!((again.fence, open), (2, Some("op-1")));
    finish(&store, again, delivered(1), LATER + 30_000).await;
    assert_eq!(user_sums(&store, &ann).await[2], "1");
}

#[test]
fn the_queue_is_moved_once_no_older_node_is_alive() {
    on_postgres(async |db| {
        let [a, b] = [open_beside_old_node(db).await, db.open().await];
        let ann = account(&a, "ann", "10").await;
        for _ in 0..5 {
            submit(&a, task(&ann, 1, "0.5")).await;
        }
        let leased = claim_tasks(&a, NOW).await;
        begin(&a, queued(&leased[0], NOW)).await.unwrap();
        assert_eq!(a.move_queue(LATER).await, Ok(false));
        assert_eq!(counts(db).await, (0, 5));
        assert_clean(&b).await;

        end_old_node(db).await;
        assert_eq!(a.move_queue(LATER).await, Ok(true));
        assert_eq!(counts(db).await, (5, 5));
        // The other node detects the move at its next write, and its reads at once.
        assert_eq!(b.unfinished_tasks(&ann.user_id, 9).await, Ok(5));
        let ended = b.finish_task(task_finish(&leased[1], delivered(1), LATER));
        assert!(matches!(ended.await, Ok(FinishOutcome::Finished { .. })));
        let cancelled = b.cancel_task(&leased[2].task, LATER).await;
        assert_eq!(cancelled, Ok(CancelOutcome::Cancelled));
        assert!(retry_task(&b, &leased[0], 1, LATER, LATER).await);
        submit(&b, task_at(&ann, 1, "0.5", LATER)).await;
        assert_eq!(counts(db).await, (4, 4));
        assert_eq!(b.move_queue(LATER).await, Ok(true));
        assert_clean(&a).await;

        // Programs of the previous version cannot start any more, and the writes of one that was paused fail.
        let oldest = "SELECT value FROM meta WHERE name = 'oldest_compatible'";
        assert_eq!(db.number(oldest).await, 24);
        let columns = "SELECT COUNT(*) FROM information_schema.columns
                       WHERE table_name = 'tasks' AND column_name IN ('due_at', 'owner')";
        assert_eq!(db.number(columns).await, 0);
        drop(db.open().await);
        assert_eq!(db.number(oldest).await, 24);
    });
}

/// While one node moves the queue, no submission, claim, renewal or end of another node is lost or applied twice.
#[test]
fn tasks_are_processed_while_the_queue_is_moved() {
    on_postgres(async |db| {
        let [a, b] = [open_beside_old_node(db).await, db.open().await];
        end_old_node(db).await;
        let ann = account(&a, "ann", "100").await;
        for _ in 0..20 {
            submit(&a, task(&ann, 1, "0.5")).await;
        }
        let leased = claim_tasks(&a, NOW).await;
        let works = leased.into_iter().enumerate().map(|(i, leased)| {
            let store = if i % 2 == 0 { a.clone() } else { b.clone() };
            let (mover, ann) = (a.clone(), ann.clone());
            async move {
                if i == 7 {
                    // The move stops early if it does not get its locks.
                    let mut tries = 1;
                    while mover.move_queue(LATER).await != Ok(true) {
                        assert!(tries < 50, "the queue does not move");
                        tries += 1;
                    }
                }
                submit(&store, task(&ann, 1, "0.5")).await;
                let lease = vec![(leased.task.id.clone(), leased.fence)];
                let lost = store.renew_leases("w", lease, NOW + 60_000).await;
                assert_eq!(lost, Ok(Vec::new()));
                let ended = finish(&store, &leased, delivered(1), NOW).await;
                assert!(matches!(ended, FinishOutcome::Finished { .. }));
            }
        });
        all(works).await;
        assert_eq!(counts(db).await, (20, 20));
        assert_eq!(claim_tasks(&b, NOW).await.len(), 20);
        assert_eq!(user_sums(&a, &ann).await, ["90", "10", "10"]);
    });
}
