//! What others than the operator could read: metrics through a proxy, secrets in a readable file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use http::Method;

use serde_json::Value;

use crate::harness::{Backend, Setup, TempDir, on_sqlite, run_command, tollgate, until_true};

on_sqlite!(
    metrics_through_a_proxy_need_the_admin_key,
    metrics_have_a_separate_listener,
    a_readable_file_with_secrets_is_a_warning,
);

const ADMIN_KEY: &str = "admin-key-of-the-test";

async fn metrics_through_a_proxy_need_the_admin_key(backend: Backend) {
    let gateway = Setup::new(backend).admin_key(ADMIN_KEY).start().await;
    let nobody = gateway.anonymous();
    let metrics = async |headers: &[(&str, &str)]| {
        nobody
            .fetch_with(Method::GET, &nobody.url("/metrics"), headers)
            .await
    };
    metrics(&[]).await.expect(200);
    for header in [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
    ] {
        metrics(&[(header, "203.0.113.7")]).await.expect(401);
        let key = format!("Bearer {ADMIN_KEY}");
        metrics(&[(header, "203.0.113.7"), ("authorization", &key)])
            .await
            .expect(200);
    }
    gateway.close().await;
}

async fn metrics_have_a_separate_listener(backend: Backend) {
    let setup = Setup::new(backend).admin_key(ADMIN_KEY);
    let setup = setup.config("metrics.listen = \"127.0.0.1:0\"\n");
    let gateway = setup.start().await;
    let find_address = || {
        let log = gateway.log();
        let line = log
            .lines()
            .find(|line| line.contains("metrics are served on a separate listener"))?;
        let line: Value = serde_json::from_str(line).unwrap();
        Some(line["address"].as_str().unwrap().to_owned())
    };
    until_true("the listener's address in the log", async || {
        find_address().is_some()
    })
    .await;
    let address = find_address().unwrap();
    let nobody = gateway.anonymous();
    for (path, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/v1/models", 404),
    ] {
        let url = format!("http://{address}{path}");
        nobody
            .fetch_with(Method::GET, &url, &[])
            .await
            .expect(status);
    }
    nobody.get("/metrics").await.expect(401);
    gateway.close().await;
}

async fn a_readable_file_with_secrets_is_a_warning(_: Backend) {
    let channel = "[[channel]]\nname = \"a\"\nkind = \"openai\"\napi_keys = [\"KEY\"]\nmodels = [\"gpt-5\"]\n";
    for (text, mode, is_warned) in [
        (channel.replace("KEY", "sk-written-out"), 0o644, true),
        (channel.replace("KEY", "sk-written-out"), 0o600, false),
        (channel.replace("KEY", "env:THE_KEY"), 0o644, false),
        ("admin.key = \"let-me-in-please\"".to_owned(), 0o640, true),
        (
            "database.url = \"postgres://u:password@127.0.0.1/d\"".to_owned(),
            0o604,
            true,
        ),
        ("drain_s = 1".to_owned(), 0o644, false),
    ] {
        let folder = TempDir::new();
        let file = folder.join("tollgate.toml");
        fs::write(&file, &text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let mut command = tollgate(&["admin-key"], folder.path());
        let output = run_command(command.env("THE_KEY", "sk-from-the-environment")).await;
        let warning = output.stderr.contains("others can read it");
        assert_eq!(warning, is_warned, "{mode:o} {text}\n{}", output.stderr);
    }
}
