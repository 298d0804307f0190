//! Opening a database: migrations, and databases that cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tollgate_store::{DatabaseLocation, Store, StoreError};

use crate::databases::{Db, Folder, on_both, runtime};
use crate::fixtures::{NOW, account, amount, assert_clean, submit, task, user_sums};

on_both!(
    data_survives_a_reopen,
    a_newer_schema_version_is_rejected,
    concurrent_starts_migrate_once,
    a_foreign_database_is_rejected_unchanged,
    texts_are_never_parsed_as_sql,
);

async fn data_survives_a_reopen(db: &Db) {
    let store = db.open().await;
    assert_clean(&store).await;
    let ann = account(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    drop(store);
    let store = db.open().await;
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.5", "0"]);
    assert!(store.task(&id).await.unwrap().is_some());
}

async fn a_newer_schema_version_is_rejected(db: &Db) {
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

async fn concurrent_starts_migrate_once(db: &Db) {
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

async fn a_foreign_database_is_rejected_unchanged(db: &Db) {
    db.raw("CREATE TABLE users (mine TEXT)").await;
    let Err(StoreError::Setup(sentence)) = Store::open(&db.location).await else {
        panic!("it opened");
    };
    assert!(sentence.contains("users"), "{sentence}");
    db.raw("SELECT mine FROM users").await;
    let meta = match db.location {
        DatabaseLocation::Sqlite(_) => "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'meta'",
        DatabaseLocation::Postgres(_) => "SELECT COUNT(*) FROM pg_class WHERE relname = 'meta'",
    };
    assert_eq!(db.number(meta).await, 0);
}

async fn texts_are_never_parsed_as_sql(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
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
        .credit_user("ann", amount("1"), Some(odd), NOW)
        .await
        .unwrap();
}

#[test]
fn sqlite_files_have_mode_0600() {
    let folder = Folder::new();
    let path = folder.0.join("tollgate.db");
    runtime().block_on(async {
        let store = Store::open(&DatabaseLocation::Sqlite(path.clone()))
            .await
            .unwrap();
        account(&store, "ann", "1").await;
        for suffix in ["", "-wal", "-shm"] {
            let file = folder.0.join(format!("tollgate.db{suffix}"));
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
        }
    });
}

#[test]
fn a_file_that_is_no_database_is_rejected() {
    let folder = Folder::new();
    let path = folder.0.join("tollgate.db");
    fs::write(
        &path,
        "not a database, but a letter of more than a hundred bytes. ".repeat(20),
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    let opened = runtime().block_on(Store::open(&DatabaseLocation::Sqlite(path.clone())));
    let sentence = format!(
        "cannot use {}: the file is not a SQLite database",
        path.display()
    );
    assert_eq!(opened.map(drop), Err(StoreError::Setup(sentence)));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn setup_errors_are_one_sentence_without_the_password() {
    let folder = Folder::new();
    let open = |location| runtime().block_on(Store::open(&location)).map(drop);
    let missing = open(DatabaseLocation::Sqlite(
        folder.0.join("none").join("tollgate.db"),
    ));
    let Err(StoreError::Setup(sentence)) = missing else {
        panic!("{missing:?}");
    };
    assert!(sentence.contains("No such file or directory"), "{sentence}");

    let no_url = open(DatabaseLocation::Postgres(
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
    let away = open(DatabaseLocation::Postgres(format!(
        "postgres://u:secret@127.0.0.1:{port}/d"
    )));
    let Err(StoreError::Unavailable(sentence)) = away else {
        panic!("{away:?}");
    };
    assert!(!sentence.contains("secret"), "{sentence}");
}
