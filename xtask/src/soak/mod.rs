//! `cargo xtask soak`: the real binary under load, killed (`kill -9`) at random moments and
//! started again on the same data. At the end every acknowledged task must be there and final,
//! every file whole, and the books must close.
//!
//! 1. [`site`] starts the gateways and makes users and keys.
//! 2. [`customer`]s submit, poll, cancel, upload, download and chat until the time is up, and write
//!    down what they were promised ([`notes`]); [`chaos`] kills and restarts beside them.
//! 3. [`closing`] waits for the last task and compares everything with the notes.

mod chaos;
mod chats;
mod closing;
mod customer;
mod notes;
mod order;
mod site;
mod verdict;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::dice::Dice;
use crate::http::Client;
use crate::{Outcome, gateway};
use customer::Customer;
use notes::Notes;
use site::Site;

const CUSTOMERS: usize = 8;
/// How many violations are printed that begin with the same so many letters.
const ALIKE: usize = 4;
const BEGINNING: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long to keep up the load
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where the gateway keeps its records
    #[arg(long, value_enum, default_value_t = Database::Sqlite)]
    database: Database,
    /// How many gateways share the database (more than one needs postgres)
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// The program to test, instead of building it
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Make the same choices as the run that printed this number
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Database {
    Sqlite,
    Postgres,
}

/// Starts everything, lets it run, closes the books.
pub(crate) fn run(options: Options) -> Outcome {
    if options.nodes == 0 || (options.nodes > 1 && options.database == Database::Sqlite) {
        return Err("--nodes: one, or several with --database postgres".to_owned());
    }
    let seed = options.seed.unwrap_or_else(Dice::seed);
    let binary = gateway::binary(options.binary)?;
    let site = Site::open(&binary, options.database, options.nodes)?;
    let notes = Arc::new(Notes::default());
    let until = Instant::now() + Duration::from_secs(options.seconds);
    println!("soak: {} s of load, seed {seed}", options.seconds);

    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    let client = Client::new();
    let customers: Vec<_> = (0..CUSTOMERS)
        .map(|number| {
            let dice = Dice::new(seed.wrapping_add(number as u64));
            let customer = Customer::new(number, dice, &site, client.clone(), Arc::clone(&notes));
            runtime.spawn(customer.live(until))
        })
        .collect();
    chaos::rage(&site, &notes, Dice::new(!seed), until);
    runtime.block_on(async {
        for customer in customers {
            if let Err(e) = customer.await {
                notes.violation(format!("a customer of the soak itself broke: {e}"));
            }
        }
    });
    let settled = runtime.block_on(closing::check(&site, &client, &notes));
    closing::audit_and_stop(&site, &notes);
    report(&site, &notes, settled)
}

fn report(site: &Site, notes: &Notes, settled: Duration) -> Outcome {
    println!("{}", notes.summary(settled));
    let violations = notes.violations();
    if violations.is_empty() {
        println!("soak: every promise was kept");
        return Ok(());
    }
    let mut printed: HashMap<&str, usize> = HashMap::new();
    for violation in &violations {
        let beginning = violation.get(..BEGINNING).unwrap_or(violation);
        let alike = printed.entry(beginning).or_default();
        *alike += 1;
        if *alike <= ALIKE {
            println!("VIOLATION: {violation}");
        }
    }
    let kept = site.keep();
    let words = site.last_words();
    Err(format!(
        "soak: {} violations; data and logs are kept in {kept}; the log ends with:\n{words}",
        violations.len()
    ))
}
