//! A separate streaming replica: the store reads ended tasks and the older part of lists from it. It reads everything else from the primary, and
//! everything while the replica is lost or behind.

use std::time::Duration;

use tollgate_core::TaskState;
use tollgate_store::{DatabaseLocation, Store, TaskFilter};

use crate::databases::{Db, runtime};
use crate::fixtures::{
    NOW, account, assert_clean, claim_one, delivered, finish, submit, task, task_at,
};
use crate::postgres_server::Server;

const LIMIT: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// A primary, its replica, and a store that uses both.
struct Pair {
    primary: Db,
    replica: Db,
    store: Store,
}

fn database_of(server: &Server) -> Db {
    Db::new(DatabaseLocation::Postgres(server.url()))
}

impl Pair {
    async fn open(primary: &Server, replica: &Server) -> Self {
        let primary = database_of(primary);
        let store = primary.open().await;
        Self {
            store: store.with_replica(&replica.url()).unwrap(),
            primary,
            replica: database_of(replica),
        }
    }

    /// Waits until the replica has everything that was written before, then stops its replay: what is written to the primary after that is not on it.
    async fn hold_replica(&self) {
        self.replica.raw("SELECT pg_wal_replay_resume()").await;
        for _ in 0..LIMIT {
            if let Some(Ok(..=20)) = self.store.check_replica().await {
                self.replica.raw("SELECT pg_wal_replay_pause()").await;
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{:?}", self.store.check_replica().await);
    }

    /// Whether `read`, which returns a task's model, reads the replica: the test changes the model only on the primary. Repeats this if it was so
    /// slow that the replica counts as behind.
    async fn is_read_by(&self, read: impl AsyncFn() -> String) -> bool {
        for n in 0..10 {
            self.hold_replica().await;
            let newest = format!("model-{n}");
            let change = format!("UPDATE tasks SET model = '{newest}'");
            self.primary.raw(&change).await;
            if read().await != newest {
                return true;
            }
        }
        false
    }

    /// The models of the tasks in these states, newest first.
    async fn listed(&self, states: &[TaskState]) -> Vec<String> {
        let filter = TaskFilter {
            from: 0,
            to: NOW * 2,
            states: Some(states.to_vec()),
            ..TaskFilter::default()
        };
        let items = self.store.admin_list_tasks(&filter, None, 10).await;
        let models = items.unwrap().into_iter().map(|item| {
            let task = item.into_json();
            task["model"].as_str().unwrap().to_owned()
        });
        models.collect()
    }
}

#[test]
fn ended_tasks_are_read_from_the_replica() {
    let Some(primary) = Server::new() else { return };
    runtime().block_on(async {
        drop(database_of(&primary).open().await);
        let replica = primary.start_replica();
        let pair = Pair::open(&primary, &replica).await;
        let store = &pair.store;
        let ann = account(store, "ann", "10").await;
        let ended = submit(store, task(&ann, 1, "0.5")).await;
        finish(store, &claim_one(store, NOW).await, delivered(1), NOW).await;
        let unfinished = submit(store, task_at(&ann, 1, "0.5", NOW + 1)).await;

        let polled = async |id: &str| store.polled_task(id).await.unwrap().unwrap();
        assert!(pair.is_read_by(async || polled(&ended).await.model).await);
        assert!(
            !pair
                .is_read_by(async || polled(&unfinished).await.model)
                .await
        );
        // Reads that decide on money or work never use the replica.
        let current = async || store.task(&ended).await.unwrap().unwrap().model;
        assert!(!pair.is_read_by(current).await);
        // A list uses the replica, unless one of its tasks is unfinished.
        let first = async |states: &[TaskState]| pair.listed(states).await[0].clone();
        let completed = [TaskState::Completed];
        assert!(pair.is_read_by(async || first(&completed).await).await);
        let both = [TaskState::Completed, TaskState::Submitted];
        assert!(!pair.is_read_by(async || first(&both).await).await);

        // A task that was just submitted and ended is not on the replica, and the list still has it.
        pair.hold_replica().await;
        let now = store.database_now().await.unwrap();
        let new = submit(store, task_at(&ann, 1, "0.5", now)).await;
        let leased = store.claim_tasks("w", 9, now + 9_000, now).await.unwrap();
        let own = leased.iter().find(|leased| leased.task.id == new).unwrap();
        finish(store, own, delivered(1), now).await;
        assert_eq!(polled(&new).await.state, TaskState::Completed);
        assert_eq!(pair.listed(&completed).await.len(), 2);
        assert_clean(store).await;
    });
}

#[test]
fn the_primary_is_read_while_the_replica_is_lost_or_behind() {
    let Some(primary) = Server::new() else { return };
    runtime().block_on(async {
        drop(database_of(&primary).open().await);
        let mut replica = primary.start_replica();
        let pair = Pair::open(&primary, &replica).await;
        let store = &pair.store;
        let ann = account(store, "ann", "10").await;
        let ended = submit(store, task(&ann, 1, "0.5")).await;
        finish(store, &claim_one(store, NOW).await, delivered(1), NOW).await;

        // The replica's replay is stopped: after two seconds it is too far behind.
        pair.hold_replica().await;
        pair.primary.raw("UPDATE tasks SET model = 'newest'").await;
        let mut is_behind = false;
        for _ in 0..LIMIT {
            is_behind = matches!(store.check_replica().await, Some(Err(_)));
            if is_behind {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        assert!(is_behind);
        let model = async || store.polled_task(&ended).await.unwrap().unwrap().model;
        assert_eq!(model().await, "newest");

        pair.hold_replica().await;
        pair.primary
            .raw("UPDATE tasks SET model = 'newer still'")
            .await;
        replica.stop();
        assert_eq!(model().await, "newer still");
        assert_eq!(pair.listed(&[TaskState::Completed]).await, ["newer still"]);
        assert!(matches!(store.check_replica().await, Some(Err(_))));
        replica.start();
        replica.wait_until_ready();
        pair.hold_replica().await;
        assert_eq!(model().await, "newer still");
    });
}

#[test]
fn a_server_that_is_no_replica_of_the_primary_is_rejected() {
    let Some(primary) = Server::new() else { return };
    let other = Server::new().unwrap();
    runtime().block_on(async {
        let pair = Pair::open(&primary, &other).await;
        let found = pair.store.check_replica().await.unwrap().unwrap_err();
        assert_eq!(found, "it is a replica of another database");
        let pair = Pair::open(&primary, &primary).await;
        let found = pair.store.check_replica().await.unwrap().unwrap_err();
        assert_eq!(found, "it is no replica: it is not in recovery");
        let store = database_of(&primary).open().await;
        assert_eq!(store.check_replica().await, None);
    });
}
