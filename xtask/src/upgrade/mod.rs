//! `cargo xtask upgrade-test`: upgrades three nodes on one PostgreSQL server one by one under load, behind a load balancer. No request may fail, no
//! acknowledged task may be lost or run twice, every webhook must arrive, and the audit must succeed.

mod clients;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::balancer::Checks;
use crate::gateway::{self, Gateway, target_folder};
use crate::http::{Client, HttpRequest};
use crate::outcome::Outcome;
use crate::postgres::{self, Postgres};
use crate::process::TempDir;
use crate::{balancer, customers};
use clients::{ClientObservations, LoadClient};

const NODES: usize = 3;
const CHAT_CLIENTS: usize = 4;
const IMAGE_CLIENTS: usize = 4;
/// The price of an image in billionths; [`SETTINGS`] configures the same for the gateway.
const IMAGE_PRICE: i64 = 40_000_000;
const SETTINGS: &str = r#"
[media]
allow_private_urls = ["127.0.0.0/8"]
[sandbox]
image_ms = 300
[price."gpt-image-1-official"]
per_image = 0.04
[price."gpt-5"]
input_per_million = 1.25
output_per_million = 10.0
"#;
/// The time limit for webhooks after the last task.
const WEBHOOK_LIMIT: Duration = Duration::from_secs(60);
const PRINTED: usize = 10;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program to upgrade from
    #[arg(long)]
    from: PathBuf,
    /// The program to upgrade to, instead of building it
    #[arg(long)]
    binary: Option<PathBuf>,
    /// How long each number of upgraded nodes is kept under load
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Starts old nodes, upgrades each, and checks what clients have observed.
pub(crate) fn run(options: &Options) -> Outcome {
    let old = gateway::build_unless_given(Some(options.from.clone()))?;
    let new = gateway::build_unless_given(options.binary.clone())?;
    let bin = postgres::find()
        .ok_or_else(|| format!("no PostgreSQL found: {}", postgres::HOW_TO_INSTALL))?;
    let database = Postgres::start(&bin)?;
    let files = TempDir::within(&target_folder(), "files")?;
    let mut nodes = start_nodes(&old, &database, &files)?;
    let keys = create_keys(&nodes[0])?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| format!("cannot start: {e}"))?;
    let observations = Arc::new(ClientObservations::default());
    let addresses = nodes.iter().map(Gateway::address).collect();
    let balancer = runtime.block_on(balancer::start(addresses, 0, Checks::Off))?;
    let webhook_url =
        runtime.block_on(clients::start_webhook_receiver(Arc::clone(&observations)))?;
    let client = |key: &String| LoadClient {
        balancer,
        key: key.clone(),
        webhook_url: webhook_url.clone(),
        client: Client::new(),
        observations: Arc::clone(&observations),
    };
    let mut load: Vec<_> = (0..CHAT_CLIENTS)
        .map(|_| runtime.spawn(client(&keys[0]).send_chats()))
        .collect();
    load.extend((0..IMAGE_CLIENTS).map(|_| runtime.spawn(client(&keys[1]).generate_images())));

    let upgraded = upgrade_one_by_one(&mut nodes, &new, options.seconds, &observations);
    observations.stop();
    runtime.block_on(async {
        for client in load {
            if let Err(e) = client.await {
                observations.record_failure(format!("a client of the test itself panicked: {e}"));
            }
        }
        await_webhooks(&observations).await;
        for (key, cost) in keys.iter().zip(expected_costs(&observations)) {
            let url = format!("http://{balancer}/v1/balance");
            let response = Client::new().send(key, HttpRequest::get(url)).await;
            let used = response
                .ok()
                .and_then(|response| customers::billionths(&response.json()["used_balance"]));
            if used != Some(cost) {
                observations.record_failure(format!(
                    "a key has used {used:?} billionths, and its requests cost {cost}"
                ));
            }
        }
    });
    if let Err(e) = upgraded {
        observations.record_failure(e);
    }
    stop_and_audit(&mut nodes, &observations);
    report(&observations, &mut nodes)
}

fn start_nodes(old: &Path, database: &Postgres, files: &TempDir) -> Result<Vec<Gateway>, String> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let mut node = Gateway::prepare(old, SETTINGS)?;
        node.set_environment("TOLLGATE_DATABASE__URL", database.url());
        node.set_environment(
            "TOLLGATE_STORAGE__URL",
            format!("file://{}", files.path().display()),
        );
        node.set_environment("TOLLGATE_PUBLIC_URL", format!("http://{}", node.address()));
        node.start()?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Creates two users with a key each: one for chats, one for images.
fn create_keys(node: &Gateway) -> Result<Vec<String>, String> {
    let keys = ["chats", "images"].map(|user| {
        node.cli_json(&["user", "create", user, "--balance", "100000"])?;
        let key = node.cli_json(&["key", "create", "--user", user])?;
        key["key"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("`key create` printed no key: {key}"))
    });
    // A running server reads the changes of commands within a second.
    std::thread::sleep(Duration::from_secs(1));
    keys.into_iter().collect()
}

fn upgrade_one_by_one(
    nodes: &mut [Gateway],
    new: &Path,
    seconds: u64,
    observations: &ClientObservations,
) -> Outcome {
    let phase = |upgraded: usize| {
        let (requests, failed) = (
            observations.requests.load(Ordering::Relaxed),
            observations.failures().len(),
        );
        std::thread::sleep(Duration::from_secs(seconds));
        println!(
            "{upgraded} of {NODES} nodes upgraded, {seconds} s: {} requests, {} failed",
            observations.requests.load(Ordering::Relaxed) - requests,
            observations.failures().len() - failed
        );
    };
    phase(0);
    for (at, node) in nodes.iter_mut().enumerate() {
        let (began, failed) = (Instant::now(), observations.failures().len());
        let status = node.stop()?;
        if !status.success() {
            return Err(format!("after SIGTERM the node ended with {status}"));
        }
        let drained = began.elapsed();
        node.use_binary(new);
        let started = node.start()?;
        println!(
            "node {}: drained in {:.1} s, started in {:.2} s, {} requests failed meanwhile",
            at + 1,
            drained.as_secs_f64(),
            started.as_secs_f64(),
            observations.failures().len() - failed
        );
        phase(at + 1);
    }
    for node in nodes {
        if node.has_ended() {
            return Err(format!("a node has ended by itself:\n{}", node.log_tail()));
        }
    }
    Ok(())
}

async fn await_webhooks(observations: &ClientObservations) {
    let began = Instant::now();
    while observations.webhooks().len() < observations.tasks().len()
        && began.elapsed() < WEBHOOK_LIMIT
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The expected cost of chats and images, in billionths: a task that was lost or run twice would change it.
fn expected_costs(observations: &ClientObservations) -> [i64; 2] {
    let images = i64::try_from(observations.tasks().len()).unwrap_or(i64::MAX);
    [
        observations.chat_cost.load(Ordering::Relaxed),
        images * IMAGE_PRICE,
    ]
}

fn stop_and_audit(nodes: &mut [Gateway], observations: &ClientObservations) {
    for node in &mut *nodes {
        match node.stop() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                observations.record_failure(format!("after SIGTERM a node ended with {status}"))
            }
            Err(e) => observations.record_failure(e),
        }
    }
    if let Err(e) = nodes[0].cli(&["audit"]) {
        observations.record_failure(format!("`audit` at the end: {e}"));
    }
}

fn report(observations: &ClientObservations, nodes: &mut [Gateway]) -> Outcome {
    let (tasks, webhooks): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (observations.tasks(), observations.webhooks());
    let mut failures = observations.failures();
    for (id, is_complete) in &tasks {
        if !is_complete {
            failures.push(format!("task {id} was acknowledged and not completed"));
        }
        if !webhooks.contains_key(id) {
            failures.push(format!("task {id} had no webhook"));
        }
    }
    let chats = observations.chats.load(Ordering::Relaxed);
    if chats == 0 || tasks.is_empty() {
        let what = "no chat succeeded or no task was acknowledged: the test has shown nothing";
        failures.push(what.to_owned());
    }
    println!(
        "{} requests, {chats} chats, {} tasks, {} webhooks, of which {} were repeated",
        observations.requests.load(Ordering::Relaxed),
        tasks.len(),
        webhooks.len(),
        webhooks.values().map(|times| times - 1).sum::<usize>()
    );
    if failures.is_empty() {
        println!("upgrade-test: nothing failed, nothing was lost or run twice, the audit succeeds");
        return Ok(());
    }
    for failure in failures.iter().take(PRINTED) {
        println!("FAILED: {failure}");
    }
    let kept: Vec<String> = nodes
        .iter_mut()
        .map(|node| node.keep().display().to_string())
        .collect();
    Err(format!(
        "upgrade-test: {} failures; logs are kept in {}",
        failures.len(),
        kept.join(" ")
    ))
}
