//! `cargo xtask abuse`: runs each hostile client beside honest ones, and prints what the honest ones observe: their latency, their successes, and the
//! resources that the gateway uses.

mod honest;
mod hostile;
mod victim;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use crate::bench;
use crate::gateway::{self, Gateway};
use crate::outcome::Outcome;
use honest::HonestObservations;
use hostile::HOSTILE_CLIENTS;
use victim::Victim;

const SETTINGS: &str = r#"
[media]
allow_private_urls = ["127.0.0.0/8"]
[sandbox]
image_ms = 200
[price."gpt-image-1-official"]
per_image = 0.04
[price."gpt-5"]
input_per_million = 1.25
output_per_million = 10.0
"#;

/// For attacks in turn: how long each client attacks, and the number of tasks of the client that fills the queue.
const TURN: Duration = Duration::from_secs(10);
const TASKS_IN_TURN: usize = 300;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long the honest clients work beside each hostile one
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Only hostile clients whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Number of waiting tasks of the client that fills the queue
    #[arg(long, default_value_t = 20_000)]
    tasks: usize,
    /// The program to attack, instead of building it
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Runs every hostile client; fails if an honest request failed.
pub(crate) fn run(options: &Options) -> Outcome {
    if cfg!(debug_assertions) {
        return bench::rerun_in_release();
    }
    let binary = gateway::build_unless_given(options.binary.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.enable_all().build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    println!("{}", HonestObservations::HEADER);
    let mut failed = 0;
    for client in HOSTILE_CLIENTS {
        if !wanted(client.name) && client.name != "nobody" {
            continue;
        }
        let mut gateway = Gateway::prepare(&binary, SETTINGS)?;
        gateway.start()?;
        let observed = runtime.block_on(attack_and_observe(&gateway, client, options))?;
        println!("{}", observed.table_row(client.name));
        failed += observed.failures();
        gateway.kill()?;
        gateway.cli(&["audit"])?;
    }
    match failed {
        0 => Ok(()),
        n => Err(format!("abuse: {n} requests of honest clients failed")),
    }
}

/// What honest clients observe while `client` attacks.
async fn attack_and_observe(
    gateway: &Gateway,
    client: &hostile::HostileClient,
    options: &Options,
) -> Result<HonestObservations, String> {
    let (stop, stopped) = watch::channel(false);
    let victim = Arc::new(Victim {
        address: gateway.address(),
        key: create_key(gateway, "mallory")?,
        tasks: options.tasks,
        stop: stopped,
    });
    let honest = create_key(gateway, "ada")?;
    let pid = gateway.pid().ok_or("the gateway does not run")?;
    let attack = (client.attack)(Arc::clone(&victim)).await;
    let duration = Duration::from_secs(options.seconds);
    let observed = honest::run_clients(&victim.address, &honest, pid, duration).await;
    let _ = stop.send(true);
    for task in attack {
        task.abort();
    }
    observed
}

/// Lets every hostile client attack the gateways at `addresses` in turn, until `until`.
pub(crate) async fn attack_in_turns(addresses: Vec<String>, key: String, until: Instant) {
    let attacks = HOSTILE_CLIENTS.iter().skip(1).cycle();
    for (client, address) in attacks.zip(addresses.iter().cycle()) {
        if Instant::now() >= until {
            return;
        }
        let (stop, stopped) = watch::channel(false);
        let victim = Arc::new(Victim {
            address: address.clone(),
            key: key.clone(),
            tasks: TASKS_IN_TURN,
            stop: stopped,
        });
        let end = (Instant::now() + TURN).min(until).into();
        let attack = tokio::time::timeout_at(end, (client.attack)(victim)).await;
        tokio::time::sleep_until(end).await;
        let _ = stop.send(true);
        for task in attack.unwrap_or_default() {
            task.abort();
        }
    }
}

/// Creates a user with a balance, and a key of it.
pub(crate) fn create_key(gateway: &Gateway, user: &str) -> Result<String, String> {
    gateway.cli_json(&["user", "create", user, "--balance", "1000000"])?;
    let key = gateway.cli_json(&["key", "create", "--user", user])?;
    let key = key.get("key").and_then(Value::as_str);
    Ok(key.ok_or("the new key is not in the record")?.to_owned())
}
