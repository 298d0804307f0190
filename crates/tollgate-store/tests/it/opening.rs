//! Opening: migrations, and databases that are none of ours.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tollgate_store::{Location, Store, StoreError};

use crate::db::{Db, Folder, on_both, runtime};
use crate::world::{NOW, amount, assert_clean, payer, submit, sums, task};

on_both!(
    what_was_written_is_there_again,
    a_newer_version_is_left_alone,
    nodes_that_start_at_once_wait_for_each_other,
    somebody_elses_tables_are_left_alone,
    a_text_is_only_ever_a_text,
);

async fn what_was_written_is_there_again(db: &Db) {
    let store = db.open().await;
    assert_clean(&store).await;
    let ann = payer(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    drop(store);
    let store = db.open().await;
    assert_eq!(sums(&store, &ann).await, ["1", "0.5", "0"]);
    assert!(store.task(&id).await.unwrap().is_some());
    assert_clean(&store).await;
}

async fn a_newer_version_is_left_alone(db: &Db) {
    drop(db.open().await);
    let version = "FROM meta WHERE name = 'schema_version'";
    assert_eq!(db.number(&format!("SELECT value {version}")).await, 1);
    db.raw("UPDATE meta SET value = 7 WHERE name = 'schema_version'")
        .await;
    let Err(StoreError::Setup(sentence)) = Store::open(&db.location).await else {
        panic!("it opened");
    };
    assert!(
        sentence.contains(
            "the database has schema version 7 and this program knows only 1: run a newer tollgate"
        ),
        "{sentence}"
    );
    assert_eq!(db.number(&format!("SELECT value {version}")).await, 7);
}

async fn nodes_that_start_at_once_wait_for_each_other(db: &Db) {
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let location = db.location.clone();
        starting.spawn(async move { Store::open(&location).await.map(drop) });
    }
    for opened in starting.join_all().await {
        assert_eq!(opened, Ok(()));
    }
    assert_eq!(db.open().await.access_version().await, Ok(1));
}

async fn somebody_elses_tables_are_left_alone(db: &Db) {
    db.raw("CREATE TABLE users (mine TEXT)").await;
    let Err(StoreError::Setup(sentence)) = Store::open(&db.location).await else {
        panic!("it opened");
    };
    assert!(sentence.contains("users"), "{sentence}");
    db.raw("SELECT mine FROM users").await;
    let meta = match db.location {
        Location::Sqlite(_) => "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'meta'",
        Location::Postgres(_) => "SELECT COUNT(*) FROM pg_class WHERE relname = 'meta'",
    };
    assert_eq!(db.number(meta).await, 0);
}

async fn a_text_is_only_ever_a_text(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let mut new = task(&ann, 1, "0");
    let odd = "'); DELETE FROM tasks; --\u{0}\n\"$1 {rows} BIGINT";
    odd.clone_into(&mut new.model);
    odd.clone_into(&mut new.job);
    let id = submit(&store, new).await;
    let seen = store.task(&id).await.unwrap().unwrap();
    assert_eq!(
        seen.model.replace(['\0', '\u{fffd}'], "_"),
        odd.replace('\0', "_")
    );
    store
        .credit("ann", amount("1"), Some(odd), NOW)
        .await
        .unwrap();
    assert_clean(&store).await;
}

#[test]
fn a_sqlite_file_is_for_its_owner_alone_and_synced() {
    let folder = Folder::new();
    let path = folder.0.join("tollgate.db");
    runtime().block_on(async {
        let store = Store::open(&Location::Sqlite(path.clone())).await.unwrap();
        payer(&store, "ann", "1").await;
        for suffix in ["", "-wal", "-shm"] {
            let file = folder.0.join(format!("tollgate.db{suffix}"));
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
        }
    });
}

#[test]
fn a_file_that_is_no_database_is_said_to_be_none() {
    let folder = Folder::new();
    let path = folder.0.join("tollgate.db");
    fs::write(
        &path,
        "not a database, but a letter of more than a hundred bytes. ".repeat(20),
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    let opened = runtime().block_on(Store::open(&Location::Sqlite(path.clone())));
    let sentence = format!(
        "cannot use {}: the file is not a SQLite database",
        path.display()
    );
    assert_eq!(opened.map(drop), Err(StoreError::Setup(sentence)));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_cannot_be_reached_is_said_in_one_sentence() {
    let folder = Folder::new();
    let open = |location| runtime().block_on(Store::open(&location)).map(drop);
    let missing = open(Location::Sqlite(folder.0.join("none").join("tollgate.db")));
    let Err(StoreError::Setup(sentence)) = missing else {
        panic!("{missing:?}");
    };
    assert!(sentence.contains("No such file or directory"), "{sentence}");

    let no_url = open(Location::Postgres(
        "postgres://u:secret@h:port/d".to_owned(),
    ));
    let Err(StoreError::Setup(sentence)) = no_url else {
        panic!("{no_url:?}");
    };
    assert!(
        sentence.starts_with("cannot use database.url"),
        "{sentence}"
    );
    assert!(!sentence.contains("secret"), "{sentence}");

    // A port that was free a moment ago: nobody answers there.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let away = open(Location::Postgres(format!(
        "postgres://u:secret@127.0.0.1:{port}/d"
    )));
    let Err(StoreError::Unavailable(sentence)) = away else {
        panic!("{away:?}");
    };
    assert!(!sentence.contains("secret"), "{sentence}");
}
