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
use crate::postgres::{self, Postgres};
use crate::process::TempDir;
use crate::{Outcome, balancer, customers};
use clients::{LoadClient, Seen};

const NODES: usize = 3;
const CHATTING: usize = 4;
const GENERATING: usize = 4;
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
    let old = gateway::binary(Some(options.from.clone()))?;
    let new = gateway::binary(options.binary.clone())?;
    let bin = postgres::find()
        .ok_or_else(|| format!("no PostgreSQL found: {}", postgres::HOW_TO_INSTALL))?;
    let database = Postgres::start(&bin)?;
    let files = TempDir::within(&target_folder(), "files")?;
    let mut nodes = start_nodes(&old, &database, &files)?;
    let keys = create_keys(&nodes[0])?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| format!("cannot start: {e}"))?;
    let seen = Arc::new(Seen::default());
    let addresses = nodes.iter().map(Gateway::address).collect();
    let balancer = runtime.block_on(balancer::start(addresses, 0, Checks::Off))?;
    let webhook_url = runtime.block_on(clients::receive_webhooks(Arc::clone(&seen)))?;
    let client = |key: &String| LoadClient {
        balancer,
        key: key.clone(),
        webhook_url: webhook_url.clone(),
        client: Client::new(),
        seen: Arc::clone(&seen),
    };
    let mut load: Vec<_> = (0..CHATTING)
        .map(|_| runtime.spawn(client(&keys[0]).chat()))
        .collect();
    load.extend((0..GENERATING).map(|_| runtime.spawn(client(&keys[1]).generate_images())));

    let upgraded = upgrade_one_by_one(&mut nodes, &new, options.seconds, &seen);
    seen.stop();
    runtime.block_on(async {
        for client in load {
            if let Err(e) = client.await {
                seen.fail(format!("a client of the test itself panicked: {e}"));
            }
        }
        await_webhooks(&seen).await;
        for (key, cost) in keys.iter().zip(expected_costs(&seen)) {
            let url = format!("http://{balancer}/v1/balance");
            let answer = Client::new().send(key, HttpRequest::get(url)).await;
            let used = answer
                .ok()
                .and_then(|answer| customers::billionths(&answer.json()["used_balance"]));
            if used != Some(cost) {
                seen.fail(format!(
                    "a key has used {used:?} billionths, and its requests cost {cost}"
                ));
            }
        }
    });
    if let Err(e) = upgraded {
        seen.fail(e);
    }
    stop_and_audit(&mut nodes, &seen);
    report(&seen, &mut nodes)
}

fn start_nodes(old: &Path, database: &Postgres, files: &TempDir) -> Result<Vec<Gateway>, String> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let mut node = Gateway::prepare(old, SETTINGS)?;
        node.environment("TOLLGATE_DATABASE__URL", database.url());
        node.environment(
            "TOLLGATE_STORAGE__URL",
            format!("file://{}", files.path().display()),
        );
        node.environment("TOLLGATE_PUBLIC_URL", format!("http://{}", node.address()));
        node.start()?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Creates two users with a key each: one for chats, one for images.
fn create_keys(node: &Gateway) -> Result<Vec<String>, String> {
    let keys = ["chats", "images"].map(|user| {
        node.record(&["user", "create", user, "--balance", "100000"])?;
        let key = node.record(&["key", "create", "--user", user])?;
        key["key"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("`key create` printed no key: {key}"))
    });
    // A running server reads the changes of commands within a second.
    std::thread::sleep(Duration::from_secs(1));
    keys.into_iter().collect()
}

fn upgrade_one_by_one(nodes: &mut [Gateway], new: &Path, seconds: u64, seen: &Seen) -> Outcome {
    let phase = |upgraded: usize| {
        let (requests, failed) = (seen.requests.load(Ordering::Relaxed), seen.failures().len());
        std::thread::sleep(Duration::from_secs(seconds));
        println!(
            "{upgraded} of {NODES} nodes upgraded, {seconds} s: {} requests, {} failed",
            seen.requests.load(Ordering::Relaxed) - requests,
            seen.failures().len() - failed
        );
    };
    phase(0);
    for (at, node) in nodes.iter_mut().enumerate() {
        let (began, failed) = (Instant::now(), seen.failures().len());
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
            seen.failures().len() - failed
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

async fn await_webhooks(seen: &Seen) {
    let began = Instant::now();
    while seen.webhooks().len() < seen.tasks().len() && began.elapsed() < WEBHOOK_LIMIT {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The expected cost of chats and images, in billionths: a task that was lost or run twice would change it.
fn expected_costs(seen: &Seen) -> [i64; 2] {
    let images = i64::try_from(seen.tasks().len()).unwrap_or(i64::MAX);
    [seen.chat_cost.load(Ordering::Relaxed), images * IMAGE_PRICE]
}

fn stop_and_audit(nodes: &mut [Gateway], seen: &Seen) {
    for node in &mut *nodes {
        match node.stop() {
            Ok(status) if status.success() => {}
            Ok(status) => seen.fail(format!("after SIGTERM a node ended with {status}")),
            Err(e) => seen.fail(e),
        }
    }
    if let Err(e) = nodes[0].cli(&["audit"]) {
        seen.fail(format!("`audit` at the end: {e}"));
    }
}

fn report(seen: &Seen, nodes: &mut [Gateway]) -> Outcome {
    let (tasks, webhooks): (BTreeMap<_, _>, BTreeMap<_, _>) = (seen.tasks(), seen.webhooks());
    let mut failures = seen.failures();
    for (id, is_complete) in &tasks {
        if !is_complete {
            failures.push(format!("task {id} was acknowledged and not completed"));
        }
        if !webhooks.contains_key(id) {
            failures.push(format!("task {id} had no webhook"));
        }
    }
    let chats = seen.chats.load(Ordering::Relaxed);
    if chats == 0 || tasks.is_empty() {
        failures.push("nothing was done: the test has shown nothing".to_owned());
    }
    println!(
        "{} requests, {chats} chats, {} tasks, {} webhooks of which {} came again",
        seen.requests.load(Ordering::Relaxed),
        tasks.len(),
        webhooks.len(),
        webhooks.values().map(|times| times - 1).sum::<usize>()
    );
    if failures.is_empty() {
        println!("upgrade-test: nothing failed, nothing was lost or done twice, the books close");
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
