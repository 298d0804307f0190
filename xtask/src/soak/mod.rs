//! `cargo xtask soak`: runs the real binary under load, kills it (`kill -9`) at random moments and restarts it on the same data. At the end every
//! acknowledged task must exist and be final, every file must be complete, and the audit must succeed.
//!
//! 1. [`setup`] starts the gateways and creates users and keys.
//! 2. [`Customer`]s submit, poll, cancel, upload, download and chat until the time is up, and record what they observe ([`Observations`]); [`chaos`]
//!    kills and restarts the gateways in the meantime.
//! 3. [`final_check`] waits for the last task and compares everything with the observations.

mod chaos;
mod failing_provider;
mod full_disk;
mod options;
mod setup;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_fakes::Fake;

use crate::customers::{Customer, Observations, audit_and_stop, final_check};
use crate::http::Client;
use crate::outcome::Outcome;
use crate::rng::Rng;
use crate::{abuse, gateway};
use options::Database;
pub(crate) use options::Options;
use setup::Setup;

const CUSTOMERS: usize = 8;

/// Starts everything, runs the load, checks the outcome.
pub(crate) fn run(options: Options) -> Outcome {
    if options.nodes == 0 || (options.nodes > 1 && options.database == Database::Sqlite) {
        return Err("--nodes: one, or several with --database postgres".to_owned());
    }
    let seed = options.seed.unwrap_or_else(Rng::fresh_seed);
    let binary = gateway::build_unless_given(options.binary.clone())?;
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    let provider = match options.failing_provider {
        true => Some(runtime.block_on(failing_provider::start())?),
        false => None,
    };
    let url = provider.as_ref().map(Fake::base_url);
    let setup = Setup::open(&binary, &options, url.as_deref())?;
    let observations = Arc::new(Observations::default());
    let until = Instant::now() + Duration::from_secs(options.seconds);
    println!("soak: {} s of load, seed {seed}", options.seconds);

    if let Some(provider) = provider {
        let rng = Rng::new(seed.wrapping_add(CUSTOMERS as u64));
        runtime.spawn(failing_provider::change_scenarios(provider, rng, until));
    }
    let client = Client::new();
    let customers: Vec<_> = (0..CUSTOMERS)
        .map(|number| {
            let rng = Rng::new(seed.wrapping_add(number as u64));
            let customer = Customer::new(
                number,
                rng,
                &setup.service,
                client.clone(),
                Arc::clone(&observations),
            );
            runtime.spawn(customer.run())
        })
        .collect();
    if options.hostile {
        let key = abuse::create_key(&setup.node(0), "mallory")?;
        runtime.spawn(abuse::attack_in_turns(
            setup.service.addresses.clone(),
            key,
            until,
        ));
    }
    chaos::kill_and_restart_until(&setup, &observations, Rng::new(!seed), until);
    observations.stop();
    runtime.block_on(async {
        for customer in customers {
            if let Err(e) = customer.await {
                observations
                    .record_violation(format!("a customer of the soak itself panicked: {e}"));
            }
        }
    });
    let settled = runtime.block_on(final_check(&setup.service, &client, &observations));
    audit_and_stop(&setup.nodes, &observations);
    report(&setup, &observations, settled)
}

fn report(setup: &Setup, observations: &Observations, settled: Duration) -> Outcome {
    println!("{}", observations.summary(settled));
    let violations = observations.print_violations();
    if violations == 0 {
        println!("soak: everything that the gateways acknowledged is true");
        return Ok(());
    }
    let kept = setup.keep_folders();
    let log_tail = setup.log_tail();
    Err(format!(
        "soak: {violations} violations; data and logs are kept in {kept}; the log ends with:\n{log_tail}"
    ))
}
