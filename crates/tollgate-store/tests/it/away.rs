//! PostgreSQL going away and coming back: writes wait, then say so; nothing is doubled; all is well again.

use std::time::Duration;

use tollgate_store::{Location, Store, StoreError, Submitted};

use crate::db::runtime;
use crate::server::Server;
use crate::world::{assert_clean, payer, submit, sums, task};

/// Runs a test with a server of its own, if there can be one.
fn with_server(test: impl AsyncFnOnce(&mut Server)) {
    match Server::new() {
        Some(mut server) => runtime().block_on(test(&mut server)),
        None => eprintln!("SKIPPED: no PostgreSQL server can be started here"),
    }
}

/// A server takes connections a moment before it takes statements.
async fn open(server: &Server) -> Store {
    loop {
        match Store::open(&Location::Postgres(server.url())).await {
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened.expect("the store opens"),
        }
    }
}

#[test]
fn a_write_waits_for_a_server_that_comes_back() {
    with_server(async |server| {
        let store = open(server).await;
        let ann = payer(&store, "ann", "1").await;
        let kept = submit(&store, task(&ann, 1, "0.1")).await;
        server.stop();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let (store, new) = (store.clone(), task(&ann, 1, "0.1"));
            waiting.spawn(async move { store.submit(new).await });
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.start();
        for submitted in waiting.join_all().await {
            assert_eq!(submitted, Ok(Submitted::Accepted));
        }
        assert!(store.task(&kept).await.unwrap().is_some());
        assert_eq!(sums(&store, &ann).await, ["1", "0.6", "0"]);
        assert_clean(&store).await;
    });
}

#[test]
fn a_server_that_stays_away_is_said_to_be_unavailable() {
    with_server(async |server| {
        let store = open(server).await;
        let ann = payer(&store, "ann", "1").await;
        server.stop();
        let (write, read) =
            tokio::join!(store.submit(task(&ann, 1, "0.1")), store.user(&ann.user_id),);
        assert!(
            matches!(write, Err(StoreError::Unavailable(_))),
            "{write:?}"
        );
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        assert!(matches!(
            store.totals().await,
            Err(StoreError::Unavailable(_))
        ));
        server.start();
        submit(&store, task(&ann, 1, "0.1")).await;
        assert_eq!(sums(&store, &ann).await, ["1", "0.1", "0"]);
        assert_clean(&store).await;
    });
}
