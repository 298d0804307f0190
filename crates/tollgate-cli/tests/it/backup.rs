//! `tollgate backup` and `restore`: a backup that is taken while money moves is complete, and a restore destroys nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::*;

on_sqlite!(
    backups_under_load_restore_a_ledger_that_passes_the_audit,
    restore_does_not_overwrite_and_rejects_a_newer_schema,
);
on_postgres!(backup_and_restore_refer_to_the_tools_of_postgres);

const PRICES: &str = "[price.gpt-5]\ninput_per_million = 3\noutput_per_million = 7\n\
                      [price.\"wan2.7-image\"]\nper_image = 0.01\n";

async fn backups_under_load_restore_a_ledger_that_passes_the_audit(backend: Backend) {
    let mut gateway = Setup::new(backend).config(PRICES).start().await;
    let client = gateway.funded_client("1000").await;
    let (stop, chats) = (AtomicBool::new(false), std::sync::atomic::AtomicU32::new(0));
    let chat =
        json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "Tell a story." }] });
    let image = json!({ "model": "wan2.7-image", "prompt": "a mill", "size": "768x768" });
    let spend = async || {
        while !stop.load(Ordering::Relaxed) {
            client.post("/v1/chat/completions", &chat).await.expect(200);
            chats.fetch_add(1, Ordering::Relaxed);
            // Images are generated one after the other: with a long queue, the test would have to wait for its end.
            client.generate(&image).await;
        }
    };
    let file = |n: usize| gateway.dir().join(&format!("backup-{n}.db"));
    let back_up = async {
        for n in 0..4 {
            let before = chats.load(Ordering::Relaxed);
            until_true("more chats", async || {
                chats.load(Ordering::Relaxed) > before + 8
            })
            .await;
            let output = gateway.cli(&["backup", file(n).to_str().unwrap()]).await;
            assert_eq!(output.code, 0, "{output:?}");
        }
        stop.store(true, Ordering::Relaxed);
    };
    let spenders = join_all((0..6).map(|_| spend()));
    tokio::join!(spenders, back_up);

    // Each backup is a separate database whose audit passes, with a smaller spent amount than the next one.
    let mut used = Vec::new();
    for n in 0..4 {
        let data = gateway.dir().join(&format!("restored-{n}"));
        let run = async |arguments: &[&str]| {
            let mut command = tollgate(arguments, gateway.dir().path());
            let output = run_command(command.arg("--data-dir").arg(&data)).await;
            assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
            output
        };
        run(&["restore", file(n).to_str().unwrap()]).await;
        run(&["audit"]).await;
        let users = run(&["user", "list", "--json"]).await.json();
        used.push(users[0]["balance"].as_f64().unwrap());
    }
    assert!(used.is_sorted_by(|a, b| a > b), "{used:?}");

    // A gateway continues from the last backup, also with tasks that were unfinished when it was taken.
    gateway.terminate().await;
    std::fs::rename(
        gateway.data_dir().join("tollgate.db"),
        gateway.dir().join("old.db"),
    )
    .unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(gateway.data_dir().join(format!("tollgate.db{suffix}")));
    }
    let last = gateway.dir().join("backup-3.db");
    let output = gateway.cli(&["restore", last.to_str().unwrap()]).await;
    assert_eq!(output.code, 0, "{output:?}");
    gateway.start_server().await;
    client.post("/v1/chat/completions", &chat).await.expect(200);
    client.generate(&image).await;
    gateway.close().await;
}

async fn restore_does_not_overwrite_and_rejects_a_newer_schema(backend: Backend) {
    let mut gateway = TestGateway::start(backend).await;
    gateway.user("ann", &["--balance", "5"]).await;
    let dir = gateway.dir().path().to_owned();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let backup = path("backup.db");
    assert_eq!(gateway.cli(&["backup", &backup]).await.code, 0);
    // Neither a file that exists nor a path in a missing folder becomes a backup.
    gateway
        .cli(&["backup", &backup])
        .await
        .check_failure("exists");
    gateway
        .cli(&["backup", &path("no/such/folder.db")])
        .await
        .check_failure("no/such");
    // A restore overwrites neither a running gateway's data nor a stopped one's.
    gateway
        .cli(&["restore", &backup])
        .await
        .check_failure("in use by another tollgate");
    gateway.terminate().await;
    gateway
        .cli(&["restore", &backup])
        .await
        .check_failure("not overwritten");

    std::fs::write(
        path("text"),
        "not a database, but long enough to be read as one".repeat(100),
    )
    .unwrap();
    let newer = path("newer.db");
    std::fs::copy(&backup, &newer).unwrap();
    rusqlite::Connection::open(&newer)
        .and_then(|db| {
            db.execute_batch("UPDATE meta SET value = 1000 WHERE name IN ('schema_version', 'oldest_compatible')")
        })
        .unwrap();
    let foreign = path("foreign.db");
    rusqlite::Connection::open(&foreign)
        .and_then(|db| db.execute_batch("CREATE TABLE t (x)"))
        .unwrap();
    let data = path("restored");
    for (file, expected) in [
        (path("missing.db"), "no database"),
        (path("text"), "not a SQLite database"),
        (foreign, "not a backup"),
        (newer, "newer tollgate"),
    ] {
        let mut restore = tollgate(
            &["restore", &file, "--data-dir", &data],
            gateway.dir().path(),
        );
        run_command(&mut restore).await.check_failure(expected);
        assert!(!dir.join("restored/tollgate.db").exists(), "{file}");
    }
    gateway.close().await;
}

async fn backup_and_restore_refer_to_the_tools_of_postgres(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.cli(&["backup", "x"]).await.check_failure("pg_dump");
    gateway
        .cli(&["restore", "x"])
        .await
        .check_failure("pg_restore");
    gateway.close().await;
}
