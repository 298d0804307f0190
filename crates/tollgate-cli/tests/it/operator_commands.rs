//! The commands that set up and check a gateway.

use serde_json::{Value, json};

use crate::harness::*;

on_both!(doctor_reports_each_failure);
on_sqlite!(
    doctor_changes_nothing,
    init_writes_a_valid_configuration,
    health_reports_the_state_of_the_gateway,
    completions_and_manual_pages_have_every_command,
);

async fn health_reports_the_state_of_the_gateway(backend: Backend) {
    let setup = Setup::new(backend).admin_key("admin-key");
    let mut gateway = setup.listen("0.0.0.0:0").start().await;
    let port = gateway.address().rsplit_once(':').unwrap().1.to_owned();
    // The configured address is a wildcard, which a client can only reach on loopback.
    gateway.set_env("TOLLGATE_LISTEN", &format!("0.0.0.0:{port}"));
    let url = format!("http://127.0.0.1:{port}");
    for arguments in [
        &["health"][..],
        &["health", "--ready"],
        &["health", "--url", &url],
    ] {
        let output = gateway.cli(arguments).await;
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        assert!(output.stdout.starts_with(&url), "{output:?}");
    }
    // The process responds, but cannot store anything.
    let files = gateway.data_dir().join("files");
    let moved = gateway.dir().join("moved");
    std::fs::rename(&files, &moved).unwrap();
    std::fs::write(&files, "in the way").unwrap();
    gateway
        .cli(&["health", "--ready"])
        .await
        .check_failure("503");
    assert_eq!(gateway.cli(&["health"]).await.code, 0);
    std::fs::remove_file(&files).unwrap();
    std::fs::rename(&moved, &files).unwrap();

    gateway.terminate().await;
    gateway
        .cli(&["health"])
        .await
        .check_failure("does not respond");
    gateway.start_server().await;
    gateway.close().await;
}

async fn completions_and_manual_pages_have_every_command(_: Backend) {
    let dir = TempDir::new();
    let run = async |arguments: &[&str]| {
        let output = run_command(&mut tollgate(arguments, dir.path())).await;
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        output.stdout
    };
    let help = run(&["--help"]).await;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = lines.map_while(|line| line.split_whitespace().next());
    let commands: Vec<&str> = commands.filter(|name| *name != "help").collect();
    assert!(commands.contains(&"serve"), "{help}");

    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).await;
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    run(&["manual", "."]).await;
    for command in &commands {
        let page = std::fs::read_to_string(dir.join(&format!("tollgate-{command}.1")));
        assert!(page.unwrap().contains(".SH SYNOPSIS"), "{command}");
    }
}

/// The level and the message of each check of this name.
fn findings(records: &Value, check: &str) -> Vec<(String, String)> {
    let records = records.as_array().unwrap().iter();
    let found = records.filter(|record| record["check"] == check);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found
        .map(|record| (text(&record["level"]), text(&record["message"])))
        .collect()
}

async fn doctor_reports_each_failure(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    // A gateway without faults; the test uses its address in place of a provider's.
    let channel = |url: &str| {
        let channel = ChannelConfig::new("main", "openai").url(url);
        channel.models(&["gpt-5"]).text()
    };
    let own = format!("http://{}/v1", gateway.address());
    let healthy = format!("{}[price.gpt-5]\ninput_per_million = 1\n", channel(&own));
    gateway.set_config(&healthy);
    let records = gateway.cli_json(&["doctor"]).await;
    for record in records.as_array().unwrap() {
        assert_has(record, json!({ "level": "ok", "action": null }));
    }
    let text = gateway.cli(&["doctor"]).await;
    let lines = text
        .stdout
        .lines()
        .filter(|line| line.starts_with("ok    "));
    assert_eq!(lines.count(), records.as_array().unwrap().len(), "{text:?}");

    let newer = "UPDATE meta SET value = value + 1 WHERE name = 'schema_version';
                 UPDATE meta SET value = 1000 WHERE name = 'oldest_compatible'";
    let older = "UPDATE meta SET value = value - 1 WHERE name = 'schema_version'";
    let unreachable = channel("http://127.0.0.1:1");
    let full_disk = format!("{healthy}[storage]\nreserve_mb = 1_000_000_000\n");
    let no_folder = format!("{healthy}[storage]\nurl = \"file:///no/such/folder\"\n");
    for (config, sql, check, level, expected) in [
        ("", "", "channels", "warn", "sandbox"),
        (channel(&own).as_str(), "", "prices", "warn", "gpt-5"),
        (
            &unreachable,
            "",
            "channel",
            "fail",
            "main cannot be reached",
        ),
        (&no_folder, "", "storage", "fail", "/no/such/folder"),
        (&full_disk, "", "storage", "warn", "of its disk are free"),
        (
            "price.unheard-of.per_image = 1",
            "",
            "configuration",
            "warn",
            "unheard-of",
        ),
        ("unheard_of = 1", "", "configuration", "fail", "unheard_of"),
        (&healthy, newer, "database", "fail", "knows only"),
        (&healthy, older, "database", "ok", "schema version"),
        (&healthy, older, "database", "warn", "this program uses"),
    ] {
        gateway.set_config(config);
        if !sql.is_empty() {
            gateway.execute(sql).await;
        }
        let output = run_command(gateway.command(&["doctor"]).arg("--json")).await;
        assert_eq!(
            output.code,
            i32::from(level == "fail"),
            "{config} {output:?}"
        );
        let found = findings(&output.json(), check);
        let is_expected =
            |(found, message): &(String, String)| found == level && message.contains(expected);
        assert!(found.iter().any(is_expected), "{config}: {found:?}");
    }
    gateway.execute(newer).await;
    // Channels of the database are checked like those of the file.
    gateway.set_config("");
    let body = r#"{"kind": "openai", "base_url": "http://127.0.0.1:1", "models": [{"name": "gpt-5"}], "api_keys": []}"#;
    let insert = format!(
        "INSERT INTO configuration (kind, name, body, created_at, updated_at, version) VALUES ('channel', 'stored', '{body}', 0, 0, 1)"
    );
    gateway.execute(&insert).await;
    let output = run_command(gateway.command(&["doctor"]).arg("--json")).await;
    let found = findings(&output.json(), "channel");
    assert!(
        found[0].1.starts_with("stored cannot be reached"),
        "{found:?}"
    );
    let oidc = "[oidc]\nissuer = \"http://127.0.0.1:1\"\nclient_id = \"x\"\n";
    gateway.set_config(oidc);
    let output = run_command(gateway.command(&["doctor"]).arg("--json")).await;
    let found = findings(&output.json(), "oidc");
    assert!(found[0].1.contains("not available"), "{found:?}");
    gateway.set_config(&healthy);
    gateway.execute("DELETE FROM configuration").await;
    gateway.close().await;
}

async fn doctor_changes_nothing(_: Backend) {
    let dir = TempDir::new();
    let output = run_command(&mut tollgate(&["doctor", "--offline"], dir.path())).await;
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("creates it"), "{output:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Runs `tollgate init` in `dir` with only these environment variables.
async fn init(dir: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = tollgate(&["init"], dir.path());
    command.args(arguments).env_clear();
    // This variable is set while coverage is measured: it names the file for the process's profile.
    let profile = std::env::var_os("LLVM_PROFILE_FILE");
    command.envs(profile.map(|path| ("LLVM_PROFILE_FILE", path)));
    run_command(command.envs(variables.iter().copied())).await
}

async fn init_writes_a_valid_configuration(backend: Backend) {
    // A gateway takes the place of OpenAI's server.
    let (gateway, client) = TestGateway::with_client(backend).await;
    let url = format!("http://{}/openai/v1", gateway.address());
    let key = client.secret.clone().unwrap();
    let openai = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", &key)];
    let dir = TempDir::new();
    let output = init(&dir, &["--yes"], &openai).await;
    let is_tried = output.stderr.contains("ok    openai: gpt-5-nano responded");
    assert!(output.code == 0 && is_tried, "{output:?}");
    let text = std::fs::read_to_string(dir.join("tollgate.toml")).unwrap();
    assert!(
        text.contains("env:OPENAI_API_KEY") && !text.contains(&key),
        "{text}"
    );
    // The file is not written again, and does not change.
    let again = init(&dir, &["--yes"], &openai).await;
    again.check_failure("exists");
    assert_eq!(
        std::fs::read_to_string(dir.join("tollgate.toml")).unwrap(),
        text
    );

    // A key that the provider rejects is reported.
    let invalid = [openai[0], ("OPENAI_API_KEY", "sk-invalid")];
    let output = init(&dir, &["--yes", "--out", "invalid.toml"], &invalid).await;
    let is_reported = output.stderr.contains("fail  openai");
    assert!(output.code == 0 && is_reported, "{output:?}");

    // Every provider at once; the written file is a configuration with a channel for each.
    let keys = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "ARK_API_KEY",
        "DASHSCOPE_API_KEY",
        "KLING_API_KEY",
        "XAI_API_KEY",
        "REPLICATE_API_TOKEN",
        "FAL_KEY",
    ];
    let all = keys.map(|name| (name, "secret"));
    let output = init(&dir, &["--no-test", "--out", "all.toml"], &all).await;
    assert_eq!(output.code, 0, "{output:?}");
    let mut list = tollgate(
        &["channel", "list", "--json", "--config", "all.toml"],
        dir.path(),
    );
    let list = run_command(list.envs(all)).await;
    assert!(list.stderr.is_empty(), "no warnings: {list:?}");
    assert_eq!(list.json().as_array().unwrap().len(), keys.len());
    // No provider at all.
    let output = init(&dir, &["--out", "none.toml"], &[]).await;
    assert!(
        output.code == 0 && output.stderr.contains("OPENAI_API_KEY"),
        "{output:?}"
    );
    gateway.close().await;
}
