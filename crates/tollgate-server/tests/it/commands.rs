//! The commands beside `serve`: what they print, and how they fail.

use serde_json::{Value, json};

use crate::gate::{Backend, Folder, Gate, Setup, bare, on_both, on_one, said};

on_both!(users_and_keys_are_managed);
on_one!(
    wrong_usage_is_told,
    channels_and_the_admin_key_are_shown,
    pictures_are_saved
);

fn names(record: &Value) -> Vec<&str> {
    record
        .as_object()
        .unwrap_or_else(|| panic!("{record}"))
        .keys()
        .map(String::as_str)
        .collect()
}

async fn users_and_keys_are_managed(backend: Backend) {
    // Before there was ever a server.
    let mut gate = Setup::new(backend).prepare().await;
    let user = gate
        .record(&["user", "create", "ann", "--balance", "12.5"])
        .await;
    for (name, value) in [
        ("name", json!("ann")),
        ("balance", json!(12.5)),
        ("unlimited", json!(false)),
    ] {
        assert_eq!(user[name], value, "{user}");
    }
    assert!(user["id"].as_str().unwrap().starts_with("user_"), "{user}");
    gate.start_server().await;
    let poor = gate.record(&["user", "create", "bob"]).await;
    assert_eq!(
        (&poor["balance"], &poor["unlimited"]),
        (&json!(0.0), &json!(false))
    );
    let free = gate
        .record(&["user", "create", "Cäsar 3", "--unlimited"])
        .await;
    assert_eq!(free["unlimited"], true);

    let key = gate
        .record(&[
            "key", "create", "--user", "ann", "--name", "laptop", "--quota", "2",
        ])
        .await;
    let secret = key["key"].as_str().unwrap();
    let random = secret.strip_prefix("sk-").expect(secret);
    assert!(
        random.len() >= 32 && random.chars().all(|c| c.is_ascii_alphanumeric()),
        "{secret}"
    );
    let facts = ["user", "quota", "unlimited", "revoked"].map(|name| key[name].clone());
    assert_eq!(
        facts,
        [json!("ann"), json!(2.0), json!(false), json!(false)]
    );
    let unlimited = gate
        .record(&["key", "create", "--user", "bob", "--unlimited"])
        .await;
    assert_eq!(
        (&unlimited["quota"], &unlimited["unlimited"]),
        (&Value::Null, &json!(true))
    );

    // Lists have the records of creation, keys without the key.
    let users = gate.record(&["user", "list"]).await;
    let mut listed: Vec<_> = users
        .as_array()
        .unwrap()
        .iter()
        .map(|u| u["name"].clone())
        .collect();
    listed.sort_by_key(ToString::to_string);
    assert_eq!(listed, [json!("Cäsar 3"), json!("ann"), json!("bob")]);
    assert!(users.as_array().unwrap().contains(&user));
    let keys = gate.record(&["key", "list"]).await;
    assert_eq!(keys.as_array().unwrap().len(), 2);
    let mut shown = key.clone();
    shown.as_object_mut().unwrap().remove("key");
    assert!(keys.as_array().unwrap().contains(&shown), "{keys}");
    assert!(!keys.to_string().contains(random));

    let credited = gate
        .record(&[
            "user",
            "credit",
            "ann",
            "0.000000001",
            "--note",
            "a \"gift\"",
        ])
        .await;
    assert_eq!(credited["balance"], 12.500000001);
    assert_eq!(names(&credited), names(&user));
    let taken = gate.record(&["user", "credit", "ann", "-2.5"]).await;
    assert_eq!(taken["balance"], 10.000000001);
    let revoked = gate
        .record(&["key", "revoke", key["id"].as_str().unwrap()])
        .await;
    assert_eq!(revoked["revoked"], true);
    let again = gate
        .record(&["key", "revoke", key["id"].as_str().unwrap()])
        .await;
    assert_eq!(again["revoked"], true);
    gate.record(&["user", "disable", "bob"]).await;
    let audit = gate.cli(&["audit"]).await;
    assert_eq!(
        (audit.code, audit.stdout.lines().count()),
        (0, 1),
        "{}",
        audit.stdout
    );
    assert_eq!(gate.record(&["audit"]).await, json!([]));

    for (arguments, says) in [
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
        fails(&gate, arguments, says).await;
    }
    // Without --json there is something for people to read.
    for arguments in [
        &["user", "list"][..],
        &["key", "list"],
        &["channel", "list"],
    ] {
        let said = gate.cli(arguments).await;
        assert!(
            said.code == 0 && !said.stdout.trim().is_empty(),
            "{arguments:?}"
        );
    }
    gate.close().await;
}

/// The command exits with 1 and one sentence on stderr.
async fn fails(gate: &Gate, arguments: &[&str], says: &str) {
    let said = gate.cli(arguments).await;
    assert_eq!(said.code, 1, "{arguments:?}: {}", said.stdout);
    assert_eq!(said.stdout, "", "{arguments:?}");
    assert!(
        said.stderr.starts_with("tollgate: ") && said.stderr.contains(says),
        "{}",
        said.stderr
    );
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}

async fn wrong_usage_is_told(_: Backend) {
    let folder = Folder::new();
    for arguments in [
        &[][..],
        &["unheard-of"],
        &["serve", "--unheard-of"],
        &["user"],
        &["user", "create"],
        &["user", "create", "x", "--balance", "much"],
        &["user", "create", "x", "--balance", "1e99"],
        &["user", "create", "x", "--balance", "0.0000000001"],
        &["user", "create", "x", "--balance", "1", "--unlimited"],
        &["user", "credit", "x"],
        &["key", "create"],
        &["key", "create", "--user", "x", "--rpm", "0"],
        &["key", "create", "--user", "x", "--rpm", "-1"],
        &["key", "create", "--user", "x", "--tpm", "0"],
        &["user", "create", "x", "--max-concurrency", "0"],
        &["key", "create", "--user", "x", "--expires", "tomorrow"],
        &["key", "create", "--user", "x", "--envelope", "paper"],
        &["image"],
        &["image", "x", "-n", "many"],
    ] {
        let said = said(&mut bare(arguments, folder.path())).await;
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.stderr);
        assert!(
            said.stdout.is_empty() && !said.stderr.is_empty(),
            "{arguments:?}"
        );
    }
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["image", "--help"],
    ] {
        let said = said(&mut bare(arguments, folder.path())).await;
        assert!(
            said.code == 0 && said.stdout.contains("tollgate"),
            "{arguments:?}"
        );
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was made"
    );
}

async fn channels_and_the_admin_key_are_shown(backend: Backend) {
    let gate = Setup::new(backend)
        .config(
            "[[channel]]\nname = \"studio\"\nkind = \"sandbox\"\npriority = 2\nmax_concurrency = 3\n\
             models = [\"wan2.7-image\", { name = \"imagen-4.0-partner\", upstream = \"other\" }]\n",
        )
        .start()
        .await;
    let list = gate.record(&["channel", "list"]).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    let channel = &list[0];
    for (name, value) in [
        ("name", json!("studio")),
        ("kind", json!("sandbox")),
        ("priority", json!(2)),
        ("weight", json!(1)),
        ("max_concurrency", json!(3)),
    ] {
        assert_eq!(channel[name], value, "{name}");
    }
    // What no channel serves is not served, and said so.
    let client = gate.somebody().await;
    let order = |model: &str| json!({ "model": model, "prompt": "x", "size": "1:1" });
    let message = client
        .order(&order("gpt-image-2-official"))
        .await
        .error(502, "bad_gateway");
    assert!(message.contains("gpt-image-2-official"), "{message}");
    client.make(&order("imagen-4.0-partner")).await;
    let models = client.get("/v1/models").await.json();
    assert_eq!(models["data"].as_array().unwrap().len(), 2);

    let key = gate.record(&["admin-key"]).await["key"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(key.len() >= 32, "{key}");
    assert_eq!(
        gate.cli(&["admin-key"]).await.stdout.trim(),
        key,
        "always the same"
    );
    gate.close().await;

    let gate = Gate::start(backend).await;
    let list = gate.record(&["channel", "list"]).await;
    assert_eq!(
        (&list[0]["kind"], &list[0]["models"]),
        (&json!("sandbox"), &json!("all"))
    );
    gate.close().await;
}

async fn pictures_are_saved(backend: Backend) {
    use image::ImageFormat::{Png, WebP};
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let url = format!("http://{}", gate.address());
    let secret = client.secret.clone().unwrap();
    let run = async |arguments: &[&str], key: Option<&str>| {
        let mut command = bare(&["image", "--base-url", &url], gate.folder().path());
        command.args(arguments);
        if let Some(key) = key {
            command.env("TOLLGATE_API_KEY", key);
        }
        said(&mut command).await
    };
    let at = |name: &str| gate.folder().join(name);
    let size_of = |name: &str| crate::pictures::decoded(&std::fs::read(at(name)).unwrap());

    let done = run(&["a mill", "--size", "3:1"], Some(&secret)).await;
    assert_eq!(
        (done.code, done.stdout.trim()),
        (0, "image.png"),
        "{}",
        done.stderr
    );
    assert_eq!(size_of("image.png"), (Png, 1536, 512));

    std::fs::write(at("sketch.png"), crate::pictures::png(360, 240)).unwrap();
    let arguments = [
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
    let done = run(&[&arguments[..], &["--key", &secret]].concat(), None).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(record["files"], json!(["out.png", "out-2.png"]));
    assert!(record["task_id"].as_str().unwrap().starts_with("task_"));
    for name in ["out.png", "out-2.png"] {
        assert_eq!(size_of(name), (Png, 1536, 1024));
    }
    assert_ne!(
        std::fs::read(at("out.png")).unwrap(),
        std::fs::read(at("out-2.png")).unwrap()
    );
    let arguments = [
        "a mill",
        "--model",
        "grok-imagine-1.0-edit-partner",
        "--image",
        "out.png",
        "-o",
        "e.jpg",
    ];
    assert_eq!(run(&arguments, Some(&secret)).await.code, 0);
    assert_eq!(size_of("e.jpg").1, 1248);
    let arguments = [
        "a mill",
        "--model",
        "gpt-image-2.5-async",
        "--size",
        "1024x1365",
        "-o",
        "async.png",
    ];
    assert_eq!(run(&arguments, Some(&secret)).await.code, 0);
    assert_eq!(size_of("async.png"), (Png, 1024, 1365));
    assert_ne!(size_of("async.png").0, WebP);

    let key = Some(secret.as_str());
    for (arguments, key, says) in [
        (&["a mill"][..], None, "TOLLGATE_API_KEY"),
        (&["a mill"], Some(""), "TOLLGATE_API_KEY"),
        (&["a mill"], Some("sk-unknown"), "401"),
        (&["a mill", "--model", "unheard-of"], key, "404"),
        (&["a mill", "--size", "7:7"], key, "size"),
        (
            &["[[sandbox:fail]]", "--model", "imagen-4.0-partner"],
            key,
            "told to fail",
        ),
        (&["a mill", "--image", "missing.png"], key, "missing.png"),
        (&["a mill", "--image", "tollgate.toml"], key, "image"),
        (
            &["a mill", "-o", "no/such/folder.png"],
            key,
            "no/such/folder.png",
        ),
        (
            &["a mill", "--base-url", "http://127.0.0.1:1"],
            key,
            "127.0.0.1:1",
        ),
    ] {
        let failed = if arguments.contains(&"--base-url") {
            let mut command = bare(&["image"], gate.folder().path());
            said(command.args(arguments).env("TOLLGATE_API_KEY", &secret)).await
        } else {
            run(arguments, key).await
        };
        assert_eq!(failed.code, 1, "{arguments:?}: {}", failed.stdout);
        assert!(
            failed.stderr.contains(says),
            "{arguments:?}: {}",
            failed.stderr
        );
        assert_eq!(failed.stderr.lines().count(), 1, "{}", failed.stderr);
        assert!(!failed.stderr.contains(&secret));
    }
    gate.close().await;
}
