//! The commands that set up a gateway and look after it.

use crate::harness::*;

on_sqlite!(
    health_follows_the_gateway,
    completions_and_manual_pages_have_every_command,
);

async fn health_follows_the_gateway(backend: Backend) {
    let setup = Setup::new(backend).admin_key("admin-key");
    let mut gateway = setup.listen("0.0.0.0:0").start().await;
    let port = gateway.address().rsplit_once(':').unwrap().1.to_owned();
    // The configured address, of which a client can only use loopback.
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
    // The process answers, but cannot store anything.
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
        .check_failure("does not answer");
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
