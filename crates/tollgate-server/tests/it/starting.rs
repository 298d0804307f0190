//! `serve` at its start: the first one, the ones after it, and the ones that cannot be.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::gate::{Backend, Folder, Gate, Said, Setup, bare, on_both, on_one, said, until};

on_both!(a_newer_database_is_refused);
on_one!(
    a_first_start_has_something_to_try,
    what_cannot_start_says_why,
    settings_come_from_file_environment_and_flags,
    nobody_else_can_read_the_data,
);

/// Starts a server on its own folder; returns what it wrote on stderr when it listened and was stopped.
async fn first_words(folder: &Folder, arguments: &[&str]) -> (String, String) {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
    let mut command = bare(&["serve", "--listen", "127.0.0.1:0"], folder.path());
    command
        .args(arguments)
        .env("TOLLGATE_SANDBOX__IMAGE_MS", "0");
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    let pid = server.id().unwrap().to_string();
    let kill = tokio::process::Command::new("kill")
        .arg(&pid)
        .status()
        .await;
    assert!(kill.unwrap().success());
    let mut stderr = String::new();
    server
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .await
        .unwrap();
    assert_eq!(server.wait().await.unwrap().code(), Some(0), "{stderr}");
    (line, stderr)
}

/// The keys in a text.
fn keys(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter(|word| word.starts_with("sk-") && word.len() > 20)
        .collect()
}

async fn a_first_start_has_something_to_try(_: Backend) {
    let folder = Folder::new();
    let (line, stderr) = first_words(&folder, &[]).await;
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert!(
        folder.join("tollgate-data").is_dir(),
        "where it is by default"
    );
    let found = keys(&stderr);
    assert!(
        found.len() > 1 && found.iter().all(|key| *key == found[0]),
        "{stderr}"
    );
    let secret = found[0].to_owned();
    assert!(
        stderr.contains("\"demo\"") && stderr.contains("sandbox channel"),
        "{stderr}"
    );
    let address = line.trim().strip_prefix("listening on ").unwrap();
    let curl = stderr
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("curl"));
    let curl: String = curl
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        curl.contains(&format!("{address}/v1/images/generations")),
        "{curl}"
    );
    assert!(
        curl.contains(&format!("Authorization: Bearer {secret}")),
        "{curl}"
    );

    // The second start says nothing of it, and the key works.
    let (_, stderr) = first_words(&folder, &[]).await;
    assert!(
        keys(&stderr).is_empty() && !stderr.contains("curl"),
        "{stderr}"
    );
    let users = said(&mut bare(&["user", "list", "--json"], folder.path())).await;
    let users: serde_json::Value = serde_json::from_str(&users.stdout).unwrap();
    assert_eq!(
        (&users[0]["name"], &users[0]["unlimited"]),
        (&json!("demo"), &json!(true))
    );

    for setting in [Some("--no-demo"), None] {
        let folder = Folder::new();
        if setting.is_none() {
            std::fs::write(folder.join("tollgate.toml"), "demo = false").unwrap();
        }
        let arguments: Vec<&str> = setting.into_iter().collect();
        let (_, stderr) = first_words(&folder, &arguments).await;
        assert!(keys(&stderr).is_empty(), "{stderr}");
        let users = said(&mut bare(&["user", "list", "--json"], folder.path())).await;
        assert_eq!(users.stdout.trim(), "[]");
    }
}

/// One sentence that holds `says`, exit status 1, and no line that something listens.
#[track_caller]
fn refuses(said: &Said, says: &str) {
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert_eq!(said.stdout, "");
    let own: Vec<&str> = said
        .stderr
        .lines()
        .filter(|line| line.starts_with("tollgate: "))
        .collect();
    assert_eq!(own.len(), 1, "{}", said.stderr);
    assert!(own[0].contains(says), "{}, not {says}", own[0]);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
}

async fn what_cannot_start_says_why(backend: Backend) {
    let folder = Folder::new();
    let serve = async |config: &str, arguments: &[&str], environment: &[(&str, &str)]| {
        std::fs::write(folder.join("tollgate.toml"), config).unwrap();
        let mut command = bare(&["serve", "--listen", "127.0.0.1:0"], folder.path());
        command.args(arguments).envs(environment.iter().copied());
        said(&mut command).await
    };
    for (config, says) in [
        ("listn = \"x\"", "listn"),
        ("[limits]\nmax_conections = 3", "max_conections"),
        (
            "[[channel]]\nname = \"a\"\nkind = \"sandbox\"\ncolour = \"red\"",
            "colour",
        ),
        (
            "[[channel]]\nname = \"a\"\nkind = \"unheard-of\"",
            "unheard-of",
        ),
        ("[[channel]]\nkind = \"sandbox\"", "name"),
        ("currency = \"EUR\"", "EUR"),
        ("currency = USD", "tollgate.toml"),
        ("[price.x]\nper_image = -1", "per_image"),
        ("[price.x]\nper_image = \"cheap\"", "per_image"),
        ("[expiry]\nimages_s = 0", "expiry.images_s"),
        ("[time_limits]\nimage_s = \"long\"", "time_limits.image_s"),
        (
            "[[model]]\nname = \"a\"\nlike = \"unheard-of\"",
            "unheard-of",
        ),
        (
            "[[model]]\nname = \"wan2.7-image\"\nlike = \"wan2.7-image-pro\"",
            "wan2.7-image",
        ),
        (
            "[admin]\nkey = \"env:NOT_SET_ANYWHERE\"",
            "NOT_SET_ANYWHERE",
        ),
        (
            "[media]\nallow_private_urls = [\"10.0.0.0/40\"]",
            "10.0.0.0/40",
        ),
        ("[database]\nurl = \"mysql://localhost/x\"", "database.url"),
        ("[storage]\nurl = \"ftp://x/y\"", "storage.url"),
        (
            "[database]\nurl = \"postgres://tollgate:hidden@127.0.0.1:1/x\"",
            "database",
        ),
    ] {
        let said = serve(config, &[], &[]).await;
        refuses(&said, says);
        assert!(!said.stderr.contains("hidden"), "{}", said.stderr);
    }
    for (listen, says) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:99999", "127.0.0.1:99999"),
        ("nowhere", "nowhere"),
        ("203.0.113.7:0", "203.0.113.7"),
    ] {
        let mut command = bare(&["serve", "--listen", listen], folder.path());
        std::fs::write(folder.join("tollgate.toml"), "").unwrap();
        refuses(&said(&mut command).await, says);
    }
    refuses(
        &serve("", &[], &[("TOLLGATE_TIME_LIMITS__IMAGE_S", "-1")]).await,
        "TOLLGATE_TIME_LIMITS__IMAGE_S",
    );
    refuses(
        &serve("", &["--config", "missing.toml"], &[]).await,
        "missing.toml",
    );
    // A file in place of the folder: permissions mean nothing to root.
    std::fs::write(folder.join("a-file"), "").unwrap();
    refuses(&serve("", &["--data-dir", "a-file"], &[]).await, "a-file");
    refuses(
        &serve("", &["--data-dir", "a-file/below"], &[]).await,
        "a-file/below",
    );
    std::fs::create_dir(folder.join("broken")).unwrap();
    std::fs::write(
        folder.join("broken/tollgate.db"),
        "this is no database, however long it may be",
    )
    .unwrap();
    refuses(&serve("", &["--data-dir", "broken"], &[]).await, "database");

    let gate = Gate::start(backend).await;
    let mut command = bare(
        &[
            "serve",
            "--listen",
            &gate.address(),
            "--data-dir",
            "elsewhere",
        ],
        folder.path(),
    );
    refuses(&said(&mut command).await, "in use");
    let mut command = bare(
        &["serve", "--listen", "127.0.0.1:0", "--data-dir"],
        folder.path(),
    );
    refuses(
        &said(command.arg(gate.data_dir())).await,
        "in use by another tollgate",
    );
    gate.nobody().get("/readyz").await.expect(200);
    gate.close().await;
}

async fn a_newer_database_is_refused(backend: Backend) {
    let mut gate = Gate::start(backend).await;
    assert_eq!(gate.terminate().await.code(), Some(0));
    let set =
        |version: u32| format!("UPDATE meta SET value = {version} WHERE name = 'schema_version'");
    gate.execute(&set(99)).await;
    let mut command = gate.serve();
    let serve = said(&mut command).await;
    refuses(&serve, "99");
    assert!(serve.stderr.contains("newer"), "{}", serve.stderr);
    for arguments in [&["user", "list"][..], &["audit"]] {
        refuses(&gate.cli(arguments).await, "99");
    }
    gate.execute(&set(1)).await;
    gate.start_server().await;
    gate.close().await;
}

async fn settings_come_from_file_environment_and_flags(backend: Backend) {
    let gate = Setup::new(backend)
        .config(
            "listen = \"127.0.0.1:1\"\npublic_url = \"https://pictures.example/base\"\ncurrency = \"CNY\"\n\
             [sandbox]\nimage_ms = 99999\n[price.\"no-such-model\"]\nper_image = 1\n",
        )
        .env("TOLLGATE_CURRENCY", "Tokens")
        .env("TOLLGATE_UNHEARD_OF", "1")
        .env("TOLLGATE_EXPIRY__IMAGES_S", "3600")
        .env("TOLLGATE_DRAIN_S", "")
        .start()
        .await;
    // Warned of, and not acted on.
    let log = gate.log();
    assert!(
        log.contains("TOLLGATE_UNHEARD_OF") && log.contains("no-such-model"),
        "{log}"
    );
    let client = gate.somebody_with("payer", &["--balance", "1"]).await;
    let record = client
        .make(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    let image = &record["result"]["images"][0];
    let link = image["url"][0].as_str().unwrap();
    assert!(
        link.starts_with("https://pictures.example/base/files/"),
        "{link}"
    );
    let life = image["expires_at"].as_i64().unwrap() - jiff::Timestamp::now().as_second();
    assert!((3000..=3600).contains(&life), "{life}");
    let path = link.strip_prefix("https://pictures.example/base").unwrap();
    client.get(path).await.expect(200);
    // A link of this gateway is its own under its public name.
    let upload = client.uploaded(&crate::pictures::png(400, 100)).await;
    assert!(
        upload.starts_with("https://pictures.example/base/files/"),
        "{upload}"
    );
    let order = json!({ "model": "doubao-seedream-4.5", "prompt": "x", "image_urls": [upload] });
    let message = client
        .order(&order)
        .await
        .error(400, "invalid_request_error");
    assert!(message.contains("ratio"), "{message}");
    gate.close().await;
}

async fn nobody_else_can_read_the_data(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    client.uploaded(&crate::pictures::png(3, 3)).await;
    gate.cli(&["admin-key"]).await;
    let mut folders = vec![gate.data_dir()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            seen += 1;
            let metadata = entry.metadata().unwrap();
            let mode = metadata.permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?}: {mode:o}", entry.path());
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert!(seen > 5, "{seen}");
    let mode = std::fs::metadata(gate.data_dir())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    // The key itself is nowhere on the disk.
    let secret = client.secret.clone().unwrap();
    until("the database to be there", async || {
        gate.data_dir().join("tollgate.db").exists().then_some(())
    })
    .await;
    for name in ["tollgate.db", "tollgate.db-wal"] {
        let bytes = std::fs::read(gate.data_dir().join(name)).unwrap_or_default();
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "the key is in {name}");
    }
    gate.close().await;
}
