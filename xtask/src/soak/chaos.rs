//! Kills the gateways at random moments and starts them again; moves money and audits from the
//! command line beside them.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::observations::{Observations, count};
use super::setup::Setup;
use crate::rng::Rng;

/// What a credit from the command line adds, in the currency and in billionths.
const CREDIT: (&str, i64) = ("0.13", 130_000_000);

/// Goes on until `until`. Every gateway runs when it returns.
pub(super) fn kill_and_restart_until(
    setup: &Setup,
    observations: &Observations,
    mut rng: Rng,
    until: Instant,
) {
    while Instant::now() < until {
        let pause = Duration::from_millis(300 + rng.below(2500));
        sleep(pause.min(until.saturating_duration_since(Instant::now())));
        if rng.one_in(4) {
            credit(setup, observations, &mut rng);
        }
        if rng.one_in(5) {
            audit(setup, observations, &mut rng);
        }
        if let Err(what) = kill_and_restart(setup, observations, &mut rng) {
            observations.violation(what);
            return;
        }
    }
}

fn kill_and_restart(
    setup: &Setup,
    observations: &Observations,
    rng: &mut Rng,
) -> Result<(), String> {
    let at = usize::try_from(rng.below(setup.count() as u64)).unwrap_or(0);
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
    observations.restarted(node.start()?);
    Ok(())
}

fn credit(setup: &Setup, observations: &Observations, rng: &mut Rng) {
    let limited: Vec<_> = setup.accounts.iter().filter(|a| a.keys.len() > 1).collect();
    let account = *rng.pick(&limited);
    let mut credited = account
        .credited
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let done = setup
        .node(0)
        .cli(&["user", "credit", account.user, CREDIT.0, "--note", "soak"]);
    match (done, credited.as_mut()) {
        (Ok(_), Some(credited)) => *credited += CREDIT.1,
        (Ok(_), None) => {}
        (Err(e), _) => {
            observations.violation(format!("`user credit` beside a running gateway: {e}"))
        }
    }
}

fn audit(setup: &Setup, observations: &Observations, rng: &mut Rng) {
    let at = usize::try_from(rng.below(setup.count() as u64)).unwrap_or(0);
    count(&observations.counts.audits);
    if let Err(e) = setup.node(at).cli(&["audit"]) {
        observations.violation(format!("`audit` beside a running gateway: {e}"));
    }
}
