//! Kills the gateways at random moments and starts them again; moves money and audits from the
//! command line beside them.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::notes::{Notes, count};
use super::site::Site;
use crate::dice::Dice;

/// What a credit from the command line adds, in the currency and in billionths.
const CREDIT: (&str, i64) = ("0.13", 130_000_000);

/// Goes on until `until`. Every gateway runs when it returns.
pub(super) fn rage(site: &Site, notes: &Notes, mut dice: Dice, until: Instant) {
    while Instant::now() < until {
        let pause = Duration::from_millis(300 + dice.below(2500));
        sleep(pause.min(until.saturating_duration_since(Instant::now())));
        if dice.once_in(4) {
            credit(site, notes, &mut dice);
        }
        if dice.once_in(5) {
            audit(site, notes, &mut dice);
        }
        if let Err(what) = kill_and_restart(site, notes, &mut dice) {
            notes.violation(what);
            return;
        }
    }
}

fn kill_and_restart(site: &Site, notes: &Notes, dice: &mut Dice) -> Result<(), String> {
    let at = usize::try_from(dice.below(site.count() as u64)).unwrap_or(0);
    let mut node = site.node(at);
    if node.has_ended() {
        return Err(format!(
            "the gateway ended by itself; it says:\n{}",
            node.last_words()
        ));
    }
    node.kill()?;
    if dice.once_in(3) {
        sleep(Duration::from_millis(dice.below(400)));
    }
    notes.restarted(node.start()?);
    Ok(())
}

fn credit(site: &Site, notes: &Notes, dice: &mut Dice) {
    let limited: Vec<_> = site.accounts.iter().filter(|a| a.keys.len() > 1).collect();
    let account = *dice.pick(&limited);
    let mut credited = account
        .credited
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let done = site
        .node(0)
        .cli(&["user", "credit", account.user, CREDIT.0, "--note", "soak"]);
    match (done, credited.as_mut()) {
        (Ok(_), Some(credited)) => *credited += CREDIT.1,
        (Ok(_), None) => {}
        (Err(e), _) => notes.violation(format!("`user credit` beside a running gateway: {e}")),
    }
}

fn audit(site: &Site, notes: &Notes, dice: &mut Dice) {
    let at = usize::try_from(dice.below(site.count() as u64)).unwrap_or(0);
    count(&notes.counts.audits);
    if let Err(e) = site.node(at).cli(&["audit"]) {
        notes.violation(format!("`audit` beside a running gateway: {e}"));
    }
}
