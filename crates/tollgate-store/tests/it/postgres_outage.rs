//! PostgreSQL stops and restarts: writes are retried, then fail as unavailable; nothing is applied twice.

use std::time::Duration;

use tollgate_store::{DatabaseLocation, Store, StoreError, SubmitOutcome};

use crate::databases::runtime;
use crate::fixtures::{account, all, assert_clean, submit, task, user_sums};
use crate::postgres_server::Server;

/// Runs a test with a separate server, if PostgreSQL is installed.
fn with_server(test: impl AsyncFnOnce(&mut Server)) {
    if let Some(mut server) = Server::new() {
        runtime().block_on(test(&mut server));
    }
}

/// A server accepts connections a moment before it accepts statements.
async fn open(server: &Server) -> Store {
    loop {
        match Store::open(&DatabaseLocation::Postgres(server.url())).await {
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened.expect("the store opens"),
        }
    }
}

#[test]
fn writes_are_retried_until_postgres_is_back() {
    with_server(async |server| {
        let store = open(server).await;
        let ann = account(&store, "ann", "1").await;
        let kept = submit(&store, task(&ann, 1, "0.1")).await;
        server.stop();
        let new = (0..5).map(|_| (store.clone(), task(&ann, 1, "0.1")));
        let submissions = new.map(|(store, new)| async move { store.submit_task(new).await });
        let waiting = tokio::spawn(all(submissions.collect::<Vec<_>>()));
        server.wait_for_connection_attempt().await;
        server.start();
        let submitted = waiting.await.unwrap();
        assert_eq!(submitted, [const { Ok(SubmitOutcome::Accepted) }; 5]);
        assert!(store.task(&kept).await.unwrap().is_some());
        assert_eq!(user_sums(&store, &ann).await, ["1", "0.6", "0"]);
        assert_clean(&store).await;
    });
}

#[test]
fn reads_and_writes_are_unavailable_while_postgres_is_down() {
    with_server(async |server| {
        let store = open(server).await;
        let ann = account(&store, "ann", "1").await;
        server.stop();
        let (write, read) = tokio::join!(
            store.submit_task(task(&ann, 1, "0.1")),
            store.user(&ann.user_id),
        );
        let totals = store.totals().await;
        for error in [write.unwrap_err(), read.unwrap_err(), totals.unwrap_err()] {
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        }
        server.start();
        submit(&store, task(&ann, 1, "0.1")).await;
        assert_eq!(user_sums(&store, &ann).await, ["1", "0.1", "0"]);
        assert_clean(&store).await;
    });
}
