//! `--chaos`: customers send requests while faults are injected one after the other. At the end, everything that the gateways acknowledged must be
//! true.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::faults::{FAULTS, Fault};
use super::probes::Probes;
use super::setup::Cluster;
use crate::balancer;
use crate::customers::{
    Customer, Observations, Service, audit_and_stop, create_accounts, final_check,
};
use crate::http::Client;
use crate::outcome::Outcome;
use crate::rng::Rng;

const CUSTOMERS: usize = 12;
/// The time limit for all nodes to become ready after the repair of a fault.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// The observations during a fault.
struct FaultResult {
    name: &'static str,
    /// The time from the injection until every node was ready after the repair, plus the pause.
    took: Duration,
    acknowledged: u64,
    sent: u64,
    failed: u64,
    /// The longest times without a response to a chat, and without an accepted task.
    gaps: [Duration; 2],
    /// The time from the repair until every node was ready.
    ready_after: Duration,
}

/// The customers, the probes, and their observations.
struct Load {
    observations: Arc<Observations>,
    probes: [Arc<Probes>; 2],
}

impl Load {
    fn acknowledged_count(&self) -> u64 {
        self.observations.acknowledged_count()
    }

    fn counts(&self) -> [u64; 2] {
        let [chats, tasks] = self.probes.each_ref().map(|probes| probes.counts());
        [chats[0] + tasks[0], chats[1] + tasks[1]]
    }
}

/// The faults whose name contains `only`; all faults without it.
pub(super) fn select_faults(only: Option<&str>) -> Result<Vec<&'static Fault>, String> {
    let is_chosen = |fault: &&Fault| only.is_none_or(|only| fault.name.contains(only));
    let chosen: Vec<&Fault> = FAULTS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        return Err(format!("--only: one of {}", names.join(", ")));
    }
    Ok(chosen)
}

/// Injects the faults, `pause` apart, and checks everything that the gateways acknowledged.
pub(super) fn run(
    runtime: &Runtime,
    mut cluster: Cluster,
    faults: &[&'static Fault],
    pause: Duration,
) -> Outcome {
    let probe_key = create_probe_key(&cluster)?;
    let service = Service {
        addresses: vec![cluster.balancer.to_string()],
        accounts: create_accounts(&cluster.gateway(0))?,
        failing_provider: false,
    };
    let seed = Rng::fresh_seed();
    let observations = Arc::new(Observations::default());
    let customers: Vec<_> = (0..CUSTOMERS)
        .map(|number| {
            let rng = Rng::new(seed.wrapping_add(number as u64));
            let seen = Arc::clone(&observations);
            let customer = Customer::new(number, rng, &service, Client::new(), seen);
            runtime.spawn(customer.run())
        })
        .collect();
    let address = cluster.balancer.to_string();
    let load = Load {
        observations: Arc::clone(&observations),
        probes: [
            Probes::start_chats(runtime.handle(), &address, &probe_key),
            Probes::start_submissions(runtime.handle(), &address, &probe_key),
        ],
    };
    println!("chaos: {} faults, seed {seed}", faults.len());
    println!("{TABLE_HEADER}");
    let none = Fault {
        name: "none",
        prepare: |_| Ok(()),
        lasts: pause,
        inject: |_| Ok(true),
        repair: |_| Ok(()),
    };
    for fault in std::iter::once(&none).chain(faults.iter().copied()) {
        match inject_and_observe(runtime, &mut cluster, fault, pause, &load) {
            Ok(Some(result)) => println!("{result}"),
            Ok(None) => println!("{:<42} skipped: a part is missing", fault.name),
            Err(e) => observations.record_violation(format!("{}: {e}", fault.name)),
        }
    }
    observations.stop();
    let client = Client::new();
    let settled = runtime.block_on(async {
        for customer in customers {
            if let Err(e) = customer.await {
                observations
                    .record_violation(format!("a customer of the test itself panicked: {e}"));
            }
        }
        final_check(&service, &client, &observations).await
    });
    audit_and_stop(&cluster.gateways, &observations);
    println!("{}", observations.summary(settled));
    let violations = observations.print_violations();
    if violations == 0 {
        println!(
            "chaos: {} tasks and chats acknowledged, 0 lost, 0 run twice; the audit succeeds",
            observations.acknowledged_count()
        );
        return Ok(());
    }
    let kept: Vec<String> = (0..cluster.gateways.len())
        .map(|at| cluster.gateway(at).keep().display().to_string())
        .collect();
    Err(format!(
        "chaos: {violations} violations; logs are kept in {}",
        kept.join(" ")
    ))
}

const TABLE_HEADER: &str = "fault                                      took   acknowledged  probes failed  no chat for  no task for  ready after";

impl std::fmt::Display for FaultResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [chat, task] = self.gaps.map(|gap| gap.as_secs_f64());
        write!(
            f,
            "{:<40} {:>4.0} s {:>14} {:>6} of {:>4} {:>10.1} s {:>10.1} s {:>10.1} s",
            self.name,
            self.took.as_secs_f64(),
            self.acknowledged,
            self.failed,
            self.sent,
            chat,
            task,
            self.ready_after.as_secs_f64()
        )
    }
}

/// Injects one fault. `None` if a part that it needs is missing.
fn inject_and_observe(
    runtime: &Runtime,
    cluster: &mut Cluster,
    fault: &Fault,
    pause: Duration,
    load: &Load,
) -> Result<Option<FaultResult>, String> {
    (fault.prepare)(cluster)?;
    let began = Instant::now();
    let (acknowledged, counts) = (load.acknowledged_count(), load.counts());
    if !(fault.inject)(cluster)? {
        return Ok(None);
    }
    sleep(fault.lasts);
    (fault.repair)(cluster)?;
    let ready_after = await_ready(runtime, cluster)?;
    sleep(pause);
    let [sent, failed] = load.counts();
    Ok(Some(FaultResult {
        name: fault.name,
        took: began.elapsed(),
        acknowledged: load.acknowledged_count() - acknowledged,
        sent: sent - counts[0],
        failed: failed - counts[1],
        gaps: load
            .probes
            .each_ref()
            .map(|probes| probes.longest_gap(began)),
        ready_after,
    }))
}

/// Waits until every node reports readiness. Returns how long that took.
fn await_ready(runtime: &Runtime, cluster: &Cluster) -> Result<Duration, String> {
    let began = Instant::now();
    for address in cluster.addresses() {
        while !runtime.block_on(balancer::is_ready(&address)) {
            if began.elapsed() > READY_LIMIT {
                return Err(format!("{address} is not ready after {READY_LIMIT:?}"));
            }
            sleep(Duration::from_millis(20));
        }
    }
    Ok(began.elapsed())
}

/// A key of a user without limit, whose requests only show whether there are responses.
fn create_probe_key(cluster: &Cluster) -> Result<String, String> {
    let gateway = cluster.gateway(0);
    gateway.cli_json(&["user", "create", "probe", "--unlimited"])?;
    // The key has a limit, so that the gateway sends requests to Redis.
    let key = gateway.cli_json(&["key", "create", "--user", "probe", "--rpm", "100000"])?;
    let key = key["key"].as_str().map(str::to_owned);
    key.ok_or_else(|| "`key create` printed no key".to_owned())
}
