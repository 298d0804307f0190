//! `cargo xtask cluster`: three gateways on PostgreSQL, Redis and an S3 server behind a load balancer, on loopback, to try out. With `--chaos`, parts
//! are stopped, paused and cut off while customers send requests, and at the end everything that the gateways acknowledged must be true.
//!
//! 1. [`setup`] starts the parts and connects them through [`link`]s, with `--chaos` over a [`network`] of each gateway.
//! 2. [`chaos`] injects the [`faults`], while [`probes`] show when the cluster responds.

mod chaos;
mod faults;
mod link;
mod network;
mod probes;
pub(crate) mod server;
mod setup;

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::customers::PRICES;
use crate::gateway;
use crate::outcome::Outcome;
use setup::{Cluster, Isolation};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many gateways
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// The port of the load balancer, instead of one that is free
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// End after so many seconds instead of at Ctrl-C; with --chaos: the pause after each fault [default: 4]
    #[arg(long)]
    seconds: Option<u64>,
    /// Break one part after the other under load, then check everything that was acknowledged
    #[arg(long)]
    chaos: bool,
    /// With --chaos: only faults whose name contains this
    #[arg(long, requires = "chaos")]
    only: Option<String>,
    /// The program to run, instead of building it
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Starts everything; prints how to use it, or injects faults.
pub(crate) fn run(options: &Options) -> Outcome {
    let faults = chaos::select_faults(options.only.as_deref())?;
    let binary = gateway::build_unless_given(options.binary.clone())?;
    let runtime = Runtime::new().map_err(|e| format!("cannot start: {e}"))?;
    let settings = match options.chaos {
        false => PRICES.to_owned(),
        true => format!(
            "[leases]\nseconds = {}\n[sandbox]\nimage_ms = 50\n{PRICES}",
            faults::LEASE_S
        ),
    };
    let isolation = match options.chaos {
        false => Isolation::Loopback,
        true => Isolation::Namespaces,
    };
    let shape = (usize::from(options.nodes), options.port, isolation);
    let cluster = Cluster::start(runtime.handle(), &binary, shape, &settings)?;
    if options.chaos {
        let pause = Duration::from_secs(options.seconds.unwrap_or(4));
        return chaos::run(&runtime, cluster, &faults, pause);
    }
    print_usage(&cluster)?;
    runtime.block_on(await_stop(options.seconds))?;
    for at in 0..cluster.gateways.len() {
        cluster.gateway(at).stop()?;
    }
    Ok(())
}

/// Prints how to use the cluster. Its data are deleted when it ends.
fn print_usage(cluster: &Cluster) -> Outcome {
    let url = format!("http://{}", cluster.balancer);
    let gateway = cluster.gateway(0);
    gateway.cli_json(&["user", "create", "demo", "--balance", "100"])?;
    let key = gateway.cli_json(&["key", "create", "--user", "demo"])?;
    let key = key["key"].as_str().unwrap_or_default().to_owned();
    let link = gateway.cli(&["admin", "create", "demo", "--role", "owner"])?;
    drop(gateway);
    println!(
        "gateway     {url} (load balancer of {} nodes)",
        cluster.gateways.len()
    );
    for (at, address) in cluster.addresses().into_iter().enumerate() {
        println!("node {}      http://{address}", at + 1);
    }
    println!("PostgreSQL  {}", cluster.database.url());
    if let Some(redis) = &cluster.redis {
        println!("Redis       redis://{}", redis.address());
    }
    if let Some(s3) = &cluster.s3 {
        println!("S3          http://{}/{}", s3.address(), server::BUCKET);
    }
    println!("key         {key}");
    println!("{}", link.trim());
    println!(
        "\ncurl {url}/v1/chat/completions -H 'authorization: Bearer {key}' \\\n  -H 'content-type: application/json' \\\n  -d '{{\"model\":\"gpt-5\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'"
    );
    println!("\nCtrl-C ends everything and deletes its data.");
    Ok(())
}

/// Waits for SIGINT or SIGTERM, at most `seconds`.
async fn await_stop(seconds: Option<u64>) -> Outcome {
    let listen = |kind| signal(kind).map_err(|e| format!("cannot wait for signals: {e}"));
    let (mut interrupt, mut terminate) = (
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
    );
    let timer = async {
        match seconds {
            Some(seconds) => sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = timer => {}
    }
    Ok(())
}
