//! The commands beside `serve`: their output and their errors.

use image::ImageFormat::{self, Png};
use serde_json::json;

use crate::harness::images::{decode, png};
use crate::harness::*;

on_both!(users_and_keys_are_managed);
on_sqlite!(
    usage_errors_exit_with_2,
    channels_and_the_admin_key_are_shown,
    images_are_saved,
    failures_of_the_image_command_print_one_line,
    chats_are_printed_and_saved,
    videos_and_speech_are_saved,
);

async fn users_and_keys_are_managed(backend: Backend) {
    // These commands work before a server has ever run.
    let mut gateway = Setup::new(backend).prepare().await;
    let user = gateway.user("ann", &["--balance", "12.5"]).await;
    let expected = json!({ "id": "<string>", "name": "ann", "balance": 12.5, "unlimited": false });
    assert_has(&user, expected);
    assert!(user["id"].as_str().unwrap().starts_with("user_"), "{user}");
    gateway.start_server().await;
    let poor = gateway.cli_json(&["user", "create", "bob"]).await;
    assert_has(&poor, json!({ "balance": 0.0, "unlimited": false }));
    let free = gateway.user("Cäsar 3", &["--unlimited"]).await;
    assert_eq!(free["unlimited"], true);

    let create = ["key", "create", "--user"];
    let limited = ["ann", "--name", "laptop", "--quota", "2"];
    let mut key = gateway.cli_json(&[&create[..], &limited].concat()).await;
    let expected = json!({ "user": "ann", "quota": 2.0, "unlimited": false, "revoked": false });
    assert_has(&key, expected);
    let secret = key.as_object_mut().unwrap().remove("key").unwrap();
    let random = secret.as_str().unwrap().strip_prefix("sk-").unwrap();
    let is_random = random.len() >= 32 && random.chars().all(|c| c.is_ascii_alphanumeric());
    assert!(is_random, "{secret}");
    let unlimited = ["bob", "--unlimited"];
    let unlimited = gateway.cli_json(&[&create[..], &unlimited].concat()).await;
    assert_has(&unlimited, json!({ "quota": null, "unlimited": true }));

    // Lists have the same records that creation printed; records of keys do not have the key.
    let users = gateway.cli_json(&["user", "list"]).await;
    let users = users.as_array().unwrap();
    let mut names: Vec<_> = users.iter().map(|user| user["name"].to_string()).collect();
    names.sort();
    assert_eq!(names, ["\"Cäsar 3\"", "\"ann\"", "\"bob\""]);
    assert!(users.contains(&user));
    let keys = gateway.cli_json(&["key", "list"]).await;
    assert_eq!(keys.as_array().unwrap().len(), 2);
    assert!(keys.as_array().unwrap().contains(&key), "{keys}");
    assert!(!keys.to_string().contains(random));

    for (amount, note, balance) in [
        ("0.000000001", &["--note", "a \"gift\""][..], 12.500000001),
        ("-2.5", &[], 10.000000001),
    ] {
        let credit = [&["user", "credit", "ann", amount], note].concat();
        let mut expected = user.clone();
        expected["balance"] = json!(balance);
        assert_eq!(gateway.cli_json(&credit).await, expected);
    }
    for _ in 0..2 {
        let id = key["id"].as_str().unwrap();
        let revoked = gateway.cli_json(&["key", "revoke", id]).await;
        assert_eq!(revoked["revoked"], true);
    }
    gateway.cli_json(&["user", "disable", "bob"]).await;
    let audit = gateway.cli(&["audit"]).await;
    assert_eq!((audit.code, audit.stdout.lines().count()), (0, 1));
    assert_eq!(gateway.cli_json(&["audit"]).await, json!([]));

    for (arguments, expected) in [
        (&["user", "create", "ann"][..], "ann"),
        (&["user", "create", " "], "name"),
        (&["user", "create", "dan", "--balance=-1"], "negative"),
        (&["user", "credit", "nobody", "1"], "nobody"),
        (&["user", "disable", "nobody"], "nobody"),
        (&["key", "create", "--user", "nobody"], "nobody"),
        (
            &["key", "create", "--user", "ann", "--quota=-1"],
            "negative",
        ),
        (&["key", "revoke", "key_x"], "key_x"),
    ] {
        let output = gateway.cli(arguments).await;
        output.check_failure(expected);
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    // Without --json the output is text for people.
    for list in ["user", "key", "channel"] {
        let output = gateway.cli(&[list, "list"]).await;
        let is_text = output.code == 0 && !output.stdout.trim().is_empty();
        assert!(is_text, "{output:?}");
    }
    gateway.close().await;
}

async fn usage_errors_exit_with_2(_: Backend) {
    let dir = TempDir::new();
    for arguments in cases::rows::<Vec<String>>("usage_errors") {
        let mut command = tollgate(&[], dir.path());
        let output = run_command(command.args(&arguments)).await;
        let is_error = output.stdout.is_empty() && !output.stderr.is_empty();
        assert!(output.code == 2 && is_error, "{arguments:?}: {output:?}");
    }
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["image", "--help"],
    ] {
        let output = run_command(&mut tollgate(arguments, dir.path())).await;
        let is_help = output.code == 0 && output.stdout.contains("tollgate");
        assert!(is_help, "{arguments:?}: {output:?}");
    }
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 0, "nothing was created");
}

async fn channels_and_the_admin_key_are_shown(backend: Backend) {
    let config = "[[channel]]\nname = \"main\"\nkind = \"sandbox\"\npriority = 2\nmax_concurrency = 3\n\
                  models = [\"wan2.7-image\", { name = \"imagen-4.0-partner\", upstream = \"other\" }]\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let list = gateway.cli_json(&["channel", "list"]).await;
    let channel = json!({ "name": "main", "kind": "sandbox", "priority": 2, "weight": 1, "max_concurrency": 3 });
    assert_has(&list, json!([channel]));
    // No channel serves this model.
    let client = gateway.unlimited_client().await;
    let body = |model: &str| json!({ "model": model, "prompt": "x", "size": "1:1" });
    let reply = client.post_image(&body("gpt-image-2-official")).await;
    reply.rejected(502, "gpt-image-2-official");
    client.generate(&body("imagen-4.0-partner")).await;
    let models = client.get_json("/v1/models").await;
    assert_eq!(models["data"].as_array().unwrap().len(), 2);

    let key = gateway.cli_json(&["admin-key"]).await["key"].clone();
    assert!(key.as_str().unwrap().len() >= 32, "{key}");
    let again = gateway.cli(&["admin-key"]).await;
    assert_eq!(again.stdout.trim(), key, "always the same");
    gateway.close().await;

    let gateway = TestGateway::start(backend).await;
    let list = gateway.cli_json(&["channel", "list"]).await;
    assert_has(&list[0], json!({ "kind": "sandbox", "models": "all" }));
    gateway.close().await;
}

/// Runs `tollgate image`; without a key if it is `None`.
async fn run_image(gateway: &TestGateway, arguments: &[&str], key: Option<&str>) -> CommandOutput {
    run_client("image", gateway, arguments, key).await
}

/// Runs a command that is a client of the gateway.
async fn run_client(
    name: &str,
    gateway: &TestGateway,
    arguments: &[&str],
    key: Option<&str>,
) -> CommandOutput {
    let mut command = tollgate(&[name], gateway.dir().path());
    if !arguments.contains(&"--base-url") {
        let url = format!("http://{}", gateway.address());
        command.args(["--base-url", &url]);
    }
    command.args(arguments);
    if let Some(key) = key {
        command.env("TOLLGATE_API_KEY", key);
    }
    run_command(&mut command).await
}

async fn images_are_saved(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let secret = gateway.unlimited_client().await.secret.unwrap();
    let dir = gateway.dir();
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let check = |name: &str, expected: (ImageFormat, u32, u32)| {
        assert_eq!(decode(&read(name)), expected, "{name}");
    };
    let run = async |arguments: &[&str]| {
        let arguments = [&["a mill"], arguments].concat();
        let output = run_image(&gateway, &arguments, Some(&secret)).await;
        assert_eq!(output.code, 0, "{output:?}");
        output
    };
    let output = run(&["--size", "3:1"]).await;
    assert_eq!(output.stdout.trim(), "image.png");
    check("image.png", (Png, 1536, 512));

    std::fs::write(dir.join("sketch.png"), png(360, 240)).unwrap();
    let two = [
        "a mill",
        "-n",
        "2",
        "--image",
        "sketch.png",
        "-o",
        "out.png",
        "--size",
        "auto",
        "--json",
    ];
    let with_key = [&two[..], &["--key", &secret]].concat();
    let record = run_image(&gateway, &with_key, None).await.json();
    assert_has(
        &record,
        json!({ "files": ["out.png", "out-2.png"], "task_id": "<string>" }),
    );
    check("out.png", (Png, 1536, 1024));
    check("out-2.png", (Png, 1536, 1024));
    assert_ne!(read("out.png"), read("out-2.png"));
    let edit = "grok-imagine-1.0-edit-partner";
    run(&["--model", edit, "--image", "out.png", "-o", "e.jpg"]).await;
    assert_eq!(decode(&read("e.jpg")).1, 1248);
    let model = ["--model", "gpt-image-2.5-async"];
    run(&[&model[..], &["--size", "1024x1365", "-o", "async.png"]].concat()).await;
    check("async.png", (Png, 1024, 1365));
    gateway.close().await;
}

async fn failures_of_the_image_command_print_one_line(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let secret = gateway.unlimited_client().await.secret.unwrap();
    let key = Some(secret.as_str());
    let failing = ["[[sandbox:fail]]", "--model", "imagen-4.0-partner"];
    for (arguments, key, expected) in [
        (&["a mill"][..], None, "TOLLGATE_API_KEY"),
        (&["a mill"], Some(""), "TOLLGATE_API_KEY"),
        (&["a mill"], Some("sk-unknown"), "401"),
        (&["a mill", "--model", "unheard-of"], key, "404"),
        (&["a mill", "--size", "7:7"], key, "size"),
        (&failing, key, "directive says that it fails"),
        (&["a mill", "--image", "missing.png"], key, "missing.png"),
        (&["a mill", "--image", "tollgate.toml"], key, "image"),
        (&["a mill", "-o", "no/such/dir.png"], key, "no/such/dir.png"),
        (
            &["a mill", "--base-url", "http://127.0.0.1:1"],
            key,
            "127.0.0.1:1",
        ),
    ] {
        let output = run_image(&gateway, arguments, key).await;
        let is_sentence = output.stderr.contains(expected) && output.stderr.lines().count() == 1;
        assert!(output.code == 1 && is_sentence, "{arguments:?}: {output:?}");
        assert!(!output.stderr.contains(&secret));
    }
    gateway.close().await;
}

async fn chats_are_printed_and_saved(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let secret = gateway.unlimited_client().await.secret.unwrap();
    let run = async |arguments: &[&str]| {
        let arguments = [&["Say it [[sandbox:words=12]]"], arguments].concat();
        run_client("chat", &gateway, &arguments, Some(&secret)).await
    };
    let output = run(&["-o", "reply.txt", "--system", "Be brief."]).await;
    assert_eq!(output.code, 0, "{output:?}");
    let saved = std::fs::read_to_string(gateway.dir().join("reply.txt")).unwrap();
    assert_eq!(output.stdout, format!("{saved}\n"));
    assert_eq!(saved.split_whitespace().count(), 12, "{saved}");

    let record = run(&["--json", "--model", "gpt-5-nano", "--max-tokens", "5"]).await;
    let usage = json!({ "completion_tokens": 5 });
    assert_has(
        &record.json(),
        json!({ "text": "<string>", "finish_reason": "length", "usage": usage }),
    );

    for (text, arguments, expected) in [
        ("[[sandbox:fail]]", &[][..], "directive says that it fails"),
        ("Hello", &["--model", "unheard-of"], "unheard-of"),
        (
            "Hello",
            &["-o", "no/such/file"],
            "cannot write no/such/file",
        ),
    ] {
        let arguments = [&[text], arguments].concat();
        let output = run_client("chat", &gateway, &arguments, Some(&secret)).await;
        output.check_failure(expected);
    }
    // The text that arrived before the stream broke off is printed.
    let cut = run_client("chat", &gateway, &["[[sandbox:cut=2]]"], Some(&secret)).await;
    let is_cut = !cut.stdout.is_empty() && cut.stderr.contains("broke off");
    assert!(cut.code == 1 && is_cut, "{cut:?}");
    gateway.close().await;
}

async fn videos_and_speech_are_saved(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let secret = gateway.unlimited_client().await.secret.unwrap();
    let run = async |name: &str, arguments: &[&str]| {
        let output = run_client(name, &gateway, arguments, Some(&secret)).await;
        assert_eq!(output.code, 0, "{output:?}");
        let file = output.stdout.trim();
        (
            file.to_owned(),
            std::fs::read(gateway.dir().join(file)).unwrap(),
        )
    };
    let options = [
        "--seconds",
        "2",
        "--resolution",
        "480p",
        "--aspect-ratio",
        "1:1",
    ];
    let (name, video) = run("video", &[&["a mill"], &options[..]].concat()).await;
    assert_eq!((name.as_str(), &video[4..8]), ("video.mp4", &b"ftyp"[..]));
    let options = ["--speed", "1.5", "--language", "en", "-o", "voice.mp3"];
    let (name, speech) = run("speech", &[&["Good morning"], &options[..]].concat()).await;
    assert_eq!(name, "voice.mp3");
    assert!(speech.len() > 1_000, "{}", speech.len());
    gateway.close().await;
}
