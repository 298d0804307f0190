//! Opening a database: migrations, and databases that cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tollgate_store::{DatabaseLocation, Store, StoreError};

use crate::databases::{Db, Folder, on_both, runtime};
use crate::fixtures::{NOW, account, all, amount, assert_clean, submit, task, user_sums};

on_both!(
    empty: data_is_kept_after_reopening,
    a_newer_schema_version_is_rejected,
    a_newer_schema_that_allows_this_version_is_used,
    concurrent_starts_migrate_once,
    a_foreign_database_is_rejected_unchanged,
    texts_are_never_parsed_as_sql,
);

/// The reason why a database cannot be used.
async fn rejection(location: &DatabaseLocation) -> String {
    match Store::open(location).await.map(drop) {
        Err(StoreError::Setup(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

async fn data_is_kept_after_reopening(db: &Db) {
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
    let known = db.number(&format!("SELECT value {version}")).await;
    let newer = known + 1;
    db.raw(&format!(
        "UPDATE meta SET value = {newer} WHERE name IN ('schema_version', 'oldest_compatible')"
    ))
    .await;
    let sentence = rejection(&db.location).await;
    let expected = format!(
        "the database has schema version {newer} and this program knows only {known}: run a newer tollgate"
    );
    assert!(sentence.contains(&expected), "{sentence}");
    assert_eq!(db.number(&format!("SELECT value {version}")).await, newer);
}

/// This happens while nodes are upgraded one by one, or after a downgrade to the previous program.
async fn a_newer_schema_that_allows_this_version_is_used(db: &Db) {
    let ann = account(&db.open().await, "ann", "1").await;
    let known = "SELECT value FROM meta WHERE name = 'schema_version'";
    let known = db.number(known).await;
    db.raw(&format!(
        "UPDATE meta SET value = {known} WHERE name = 'oldest_compatible'"
    ))
    .await;
    db.raw("UPDATE meta SET value = value + 1 WHERE name = 'schema_version'")
        .await;
    let store = db.open().await;
    submit(&store, task(&ann, 1, "0.5")).await;
    assert_clean(&store).await;
    let meta = "SELECT SUM(value) FROM meta WHERE name IN ('schema_version', 'oldest_compatible')";
    assert_eq!(db.number(meta).await, 2 * known + 1);
}

async fn concurrent_starts_migrate_once(db: &Db) {
    let locations = (0..4).map(|_| db.location.clone());
    let opened =
        all(locations.map(|location| async move { Store::open(&location).await.map(drop) }));
    assert_eq!(opened.await, [const { Ok(()) }; 4]);
    assert_eq!(db.open().await.access_version().await, Ok(1));
}

async fn a_foreign_database_is_rejected_unchanged(db: &Db) {
    db.raw("CREATE TABLE users (mine TEXT)").await;
    let sentence = rejection(&db.location).await;
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
    let shown = seen.model.replace(['\0', '\u{fffd}'], "_");
    assert_eq!(shown, odd.replace('\0', "_"));
    let credited = store.credit_user("ann", amount("1"), Some(odd), NOW);
    credited.await.unwrap();
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
    let letter = "not a database, but a letter of more than a hundred bytes. ".repeat(20);
    fs::write(&path, &letter).unwrap();
    let sentence = runtime().block_on(rejection(&DatabaseLocation::Sqlite(path.clone())));
    let file = path.display();
    assert_eq!(
        sentence,
        format!("cannot use {file}: the file is not a SQLite database")
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), letter);
}

#[test]
fn setup_errors_are_one_sentence_without_the_password() {
    let folder = Folder::new();
    let missing = DatabaseLocation::Sqlite(folder.0.join("none/tollgate.db"));
    let sentence = runtime().block_on(rejection(&missing));
    assert!(sentence.contains("No such file or directory"), "{sentence}");

    let no_url = DatabaseLocation::Postgres("postgres://u:secret@h:port/d".to_owned());
    let sentence = runtime().block_on(rejection(&no_url));
    assert!(
        sentence.starts_with("cannot use database.url"),
        "{sentence}"
    );
    assert!(!sentence.contains("secret"), "{sentence}");

    // A port that was free a moment ago: nothing listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let away = DatabaseLocation::Postgres(format!("postgres://u:secret@{address}/d"));
    let Err(StoreError::Unavailable(sentence)) = runtime().block_on(Store::open(&away)).map(drop)
    else {
        panic!("it opened");
    };
    assert!(!sentence.contains("secret"), "{sentence}");
}
