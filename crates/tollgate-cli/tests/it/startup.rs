//! The start of `serve`: the first one, later ones, and those that fail.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use crate::harness::images::png;
use crate::harness::*;

on_both!(a_newer_database_is_rejected);
on_sqlite!(
    a_first_start_prints_a_demo_key,
    failed_starts_print_the_error,
    settings_come_from_file_environment_and_flags,
    the_data_directory_is_private_to_its_user,
);

/// Starts a server with its data in `dir` and stops it when it listens; returns what it wrote on stdout and stderr.
async fn start_and_stop(dir: &TempDir, arguments: &[&str]) -> (String, String) {
    let mut command = tollgate(&["serve", "--listen", "127.0.0.1:0"], dir.path());
    command
        .args(arguments)
        .env("TOLLGATE_SANDBOX__IMAGE_MS", "0");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let (mut line, mut stderr) = (String::new(), String::new());
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    let pid = server.id().unwrap().to_string();
    let kill = Command::new("kill").arg(&pid).status().await;
    assert!(kill.unwrap().success());
    let mut pipe = server.stderr.take().unwrap();
    pipe.read_to_string(&mut stderr).await.unwrap();
    assert_eq!(server.wait().await.unwrap().code(), Some(0), "{stderr}");
    (line, stderr)
}

/// The keys in a text.
fn keys(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let keys = words.filter(|word| word.starts_with("sk-") && word.len() > 20);
    keys.collect()
}

async fn a_first_start_prints_a_demo_key(_: Backend) {
    let list_users = async |dir: &TempDir| {
        let mut command = tollgate(&["user", "list", "--json"], dir.path());
        run_command(&mut command).await.json()
    };
    let dir = TempDir::new();
    let (line, stderr) = start_and_stop(&dir, &[]).await;
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert!(dir.join("tollgate-data").is_dir(), "the default");
    let found = keys(&stderr);
    let same = found.len() > 1 && found.iter().all(|key| *key == found[0]);
    assert!(same, "{stderr}");
    let demo = stderr.contains("\"demo\"") && stderr.contains("sandbox channel");
    assert!(demo, "{stderr}");
    let address = line.trim().strip_prefix("listening on ").unwrap();
    let is_curl = |line: &&str| line.trim_start().starts_with("curl");
    let curl = stderr.lines().skip_while(|line| !is_curl(line));
    let curl: String = curl.take_while(|line| !line.is_empty()).collect();
    let url = format!("{address}/v1/images/generations");
    let header = format!("Authorization: Bearer {}", found[0]);
    assert!(curl.contains(&url) && curl.contains(&header), "{curl}");

    // The second start prints neither user nor key, and keeps the user.
    let (_, stderr) = start_and_stop(&dir, &[]).await;
    let none = keys(&stderr).is_empty() && !stderr.contains("curl");
    assert!(none, "{stderr}");
    let users = list_users(&dir).await;
    assert_has(&users, json!([{ "name": "demo", "unlimited": true }]));

    for arguments in [&["--no-demo"][..], &[]] {
        let dir = TempDir::new();
        if arguments.is_empty() {
            std::fs::write(dir.join("tollgate.toml"), "demo = false").unwrap();
        }
        let (_, stderr) = start_and_stop(&dir, arguments).await;
        assert!(keys(&stderr).is_empty(), "{stderr}");
        assert_eq!(list_users(&dir).await, json!([]));
    }
}

async fn failed_starts_print_the_error(backend: Backend) {
    let dir = TempDir::new();
    let serve = async |arguments: &[&str], expected: &str| {
        let mut command = tollgate(&["serve"], dir.path());
        let mut command = command.args(arguments);
        if !arguments.contains(&"--listen") {
            command = command.args(["--listen", "127.0.0.1:0"]);
        }
        let output = run_command(command).await;
        output.check_failure(expected);
        assert!(!output.stderr.contains("hidden"), "{}", output.stderr);
    };
    let config = dir.join("tollgate.toml");
    let rows: Vec<(String, String)> = cases::rows("settings_rejected");
    for (text, expected) in rows {
        std::fs::write(&config, text).unwrap();
        std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).unwrap();
        serve(&[], &expected).await;
    }
    std::fs::write(&config, "").unwrap();
    for listen in ["127.0.0.1", "127.0.0.1:99999", "nowhere", "203.0.113.7:0"] {
        let expected = listen.strip_suffix(":0").unwrap_or(listen);
        serve(&["--listen", listen], expected).await;
    }
    let mut command = tollgate(&["serve", "--listen", "127.0.0.1:0"], dir.path());
    command.env("TOLLGATE_TIME_LIMITS__IMAGE_S", "-1");
    let output = run_command(&mut command).await;
    output.check_failure("TOLLGATE_TIME_LIMITS__IMAGE_S");
    serve(&["--config", "missing.toml"], "missing.toml").await;
    // A file in place of the directory, because permissions do not restrict root.
    std::fs::write(dir.join("a-file"), "").unwrap();
    serve(&["--data-dir", "a-file"], "a-file").await;
    serve(&["--data-dir", "a-file/below"], "a-file/below").await;
    std::fs::create_dir(dir.join("broken")).unwrap();
    let text = "this is no database, however long it may be";
    std::fs::write(dir.join("broken/tollgate.db"), text).unwrap();
    serve(&["--data-dir", "broken"], "database").await;

    let gateway = TestGateway::start(backend).await;
    let elsewhere = ["--data-dir", "elsewhere"];
    let address = gateway.address();
    let same_address = [&["--listen", &address][..], &elsewhere].concat();
    serve(&same_address, "in use").await;
    let data = gateway.data_dir();
    let same_data = ["--data-dir", data.to_str().unwrap()];
    serve(&same_data, "in use by another tollgate").await;
    gateway.anonymous().get("/readyz").await.expect(200);
    gateway.close().await;
}

async fn a_newer_database_is_rejected(backend: Backend) {
    let mut gateway = TestGateway::start(backend).await;
    let value = |name: &str| format!("SELECT value FROM meta WHERE name = '{name}'");
    let current = gateway.query_number(&value("schema_version")).await;
    let oldest = gateway.query_number(&value("oldest_compatible")).await;
    gateway.terminate().await;
    let set = |version: i64, oldest: i64| {
        format!(
            "UPDATE meta SET value = {version} WHERE name = 'schema_version';
             UPDATE meta SET value = {oldest} WHERE name = 'oldest_compatible'"
        )
    };
    gateway.execute(&set(99, 99)).await;
    let output = run_command(&mut gateway.serve_command()).await;
    output.check_failure("99");
    assert!(output.stderr.contains("newer"), "{}", output.stderr);
    for arguments in [&["user", "list"][..], &["audit"]] {
        gateway.cli(arguments).await.check_failure("99");
    }
    // The schema is newer, but its program declares it compatible with this one.
    gateway.execute(&set(99, current)).await;
    gateway.start_server().await;
    gateway
        .unlimited_client()
        .await
        .generate(&json!({ "model": "wan2.7-image", "prompt": "a mill", "size": "768x768" }))
        .await;
    gateway.terminate().await;
    assert_eq!(gateway.query_number(&value("schema_version")).await, 99);
    gateway.execute(&set(current, oldest)).await;
    gateway.start_server().await;
    gateway.close().await;
}

async fn settings_come_from_file_environment_and_flags(backend: Backend) {
    let config = "listen = \"127.0.0.1:1\"\npublic_url = \"https://pictures.example/base\"\ncurrency = \"CNY\"\n\
                  [sandbox]\nimage_ms = 99999\n[price.\"no-such-model\"]\nper_image = 1\n";
    let setup = Setup::new(backend).config(config);
    let gateway = setup
        .env("TOLLGATE_CURRENCY", "Tokens")
        .env("TOLLGATE_UNHEARD_OF", "1")
        .env("TOLLGATE_EXPIRY__IMAGES_S", "3600")
        .env("TOLLGATE_DRAIN_S", "")
        .start()
        .await;
    // The gateway warns of unknown names and ignores them.
    let log = gateway.log();
    let warned = log.contains("TOLLGATE_UNHEARD_OF") && log.contains("no-such-model");
    assert!(warned, "{log}");
    let client = gateway.funded_client("1").await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let record = client.generate(&body).await;
    let image = json!({ "url": ["<string>"], "expires_at": "<now+3600>" });
    assert_has(&record["result"], json!({ "images": [image] }));
    let path = |link: &str| {
        let path = link.strip_prefix("https://pictures.example/base");
        path.filter(|path| path.starts_with("/files/"))
            .expect(link)
            .to_owned()
    };
    let link = image_urls(&record).remove(0);
    client.get(&path(&link)).await.expect(200);
    // The gateway recognises a link with its public name as its own.
    let upload = client.upload_image(&png(400, 100)).await;
    path(&upload);
    let body = json!({ "model": "doubao-seedream-4.5", "prompt": "x", "image_urls": [upload] });
    client.post_image(&body).await.rejected(400, "ratio");
    gateway.close().await;
}

async fn the_data_directory_is_private_to_its_user(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    client.upload_image(&png(3, 3)).await;
    gateway.cli(&["admin-key"]).await;
    let (mut paths, mut count) = (vec![gateway.data_dir()], 0);
    while let Some(path) = paths.pop() {
        count += 1;
        let metadata = std::fs::metadata(&path).unwrap();
        let mode = metadata.permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?}: {mode:o}");
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap().flatten();
            paths.extend(entries.map(|entry| entry.path()));
        }
    }
    assert!(count > 6, "{count}");
    // No file on the disk contains the key itself.
    let secret = client.secret.clone().unwrap();
    assert!(gateway.data_dir().join("tollgate.db").exists());
    for name in ["tollgate.db", "tollgate.db-wal"] {
        let bytes = std::fs::read(gateway.data_dir().join(name)).unwrap_or_default();
        let mut windows = bytes.windows(secret.len());
        assert!(!windows.any(|w| w == secret.as_bytes()), "{name}");
    }
    gateway.close().await;
}
