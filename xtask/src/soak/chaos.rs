//! Kills the gateways at random moments and restarts them; in between, adds credits and runs audits from the command line.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::setup::Setup;
use crate::customers::{Observations, increment};
use crate::rng::Rng;

/// The amount of a credit from the command line, in the currency and in billionths.
const CREDIT: (&str, i64) = ("0.13", 130_000_000);

/// Kills and restarts gateways until `until`. Every gateway is running when it returns.
pub(super) fn kill_and_restart_until(
    setup: &Setup,
    observations: &Observations,
    mut rng: Rng,
    until: Instant,
) {
    while Instant::now() < until {
        let pause = Duration::from_millis(100 + rng.below(1200));
        sleep(pause.min(until.saturating_duration_since(Instant::now())));
        let is_full = setup.disk().is_some_and(|disk| disk.is_full());
        if rng.one_in(4) && !is_full {
            add_credit(setup, observations, &mut rng);
        }
        if rng.one_in(5) && !is_full {
            run_audit(setup, observations, &mut rng);
        }
        let result = fill_or_free_disk(setup, observations, &mut rng);
        let result = result.and_then(|()| kill_and_restart(setup, observations, &mut rng));
        if let Err(what) = result {
            observations.record_violation(what);
            break;
        }
    }
    if let Some(mut disk) = setup.disk()
        && disk.is_full()
        && let Err(e) = disk.free()
    {
        observations.record_violation(e);
    }
}

/// Fills the disk occasionally, for one or more kills, and frees it again.
fn fill_or_free_disk(
    setup: &Setup,
    observations: &Observations,
    rng: &mut Rng,
) -> Result<(), String> {
    let Some(mut disk) = setup.disk() else {
        return Ok(());
    };
    match disk.is_full() {
        true if rng.one_in(2) => disk.free(),
        false if rng.one_in(6) => {
            increment(&observations.counts.full_disks);
            disk.fill()
        }
        _ => Ok(()),
    }
}

fn kill_and_restart(
    setup: &Setup,
    observations: &Observations,
    rng: &mut Rng,
) -> Result<(), String> {
    let at = usize::try_from(rng.below(setup.node_count() as u64)).unwrap_or(0);
    let mut node = setup.node(at);
    if node.has_ended() {
        return Err(format!(
            "the gateway ended by itself; its log:\n{}",
            node.log_tail()
        ));
    }
    node.kill()?;
    if rng.one_in(3) {
        sleep(Duration::from_millis(rng.below(400)));
    }
    observations.record_restart(node.start()?);
    Ok(())
}

/// Credits one of the limited accounts, and records the amount.
fn add_credit(setup: &Setup, observations: &Observations, rng: &mut Rng) {
    let limited: Vec<_> = setup
        .service
        .accounts
        .iter()
        .filter(|a| a.keys.len() > 1)
        .collect();
    let account = *rng.pick(&limited);
    let mut credited = account
        .credited
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let result = setup
        .node(0)
        .cli(&["user", "credit", account.user, CREDIT.0, "--note", "soak"]);
    match (result, credited.as_mut()) {
        (Ok(_), Some(credited)) => *credited += CREDIT.1,
        (Ok(_), None) => {}
        (Err(e), _) => {
            observations.record_violation(format!("`user credit` beside a running gateway: {e}"))
        }
    }
}

fn run_audit(setup: &Setup, observations: &Observations, rng: &mut Rng) {
    let at = usize::try_from(rng.below(setup.node_count() as u64)).unwrap_or(0);
    increment(&observations.counts.audits);
    if let Err(e) = setup.node(at).cli(&["audit"]) {
        observations.record_violation(format!("`audit` beside a running gateway: {e}"));
    }
}
