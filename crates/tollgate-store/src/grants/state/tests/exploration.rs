//! Explores the protocol of grants exhaustively: within some limits, every order in which a node's chats begin and end, its writes are applied,
//! get a reply, fail or stay without a reply, time passes, other nodes release the grants of nodes that they consider dead, request grants and spend,
//! and the node ends.
//!
//! The node is [`GrantsState`] itself; the database is the model of the random schedules. One node is enough, because nodes interact only through the
//! available amount, which the others raise and lower here at will. The order of the writer's queue is kept: a write is sent when the outcome of the
//! one before is known or has been given up.

use std::collections::HashSet;
use std::rc::Rc;

use super::Guards;
use super::model::{Action, LEASE, Limits, Model, Violation};

/// Time passes and others release grants of nodes that they consider dead; every write gets a reply.
const TIME: Limits = Limits {
    ticks: 5,
    chats: 3,
    faults: 0,
    others: 0,
    lease_in_database: LEASE,
    guards: Guards::ALL,
};

/// Writes fail, are repeated and stay without a reply, while others spend and request grants.
const FAULTS: Limits = Limits {
    ticks: 0,
    chats: 3,
    faults: 2,
    others: 1,
    ..TIME
};

/// The actions that led to a state of the model, the last one first.
struct Path(Action, Option<Rc<Path>>);

/// Tries all orders; returns the number of different states, or the violated rule and the actions that led to it.
fn explore(limits: &Limits) -> Result<usize, String> {
    let start = Model::new(limits);
    let mut known = HashSet::from([start.fingerprint()]);
    // Many states of a node leave the same database behind.
    let mut left_behind = HashSet::new();
    let mut open: Vec<(Model, Option<Rc<Path>>)> = vec![(start, None)];
    while let Some((model, path)) = open.pop() {
        for action in model.actions(limits) {
            let mut next = model.clone();
            let path = Rc::new(Path(action, path.clone()));
            let stepped = next.step(action, limits);
            if stepped.is_ok() && !known.insert(next.fingerprint()) {
                continue;
            }
            let mut check_crash = |is_next_applied| {
                let crashed = next.crash(is_next_applied);
                match left_behind.insert(crashed.fingerprint()) {
                    true => crashed.finish(limits),
                    false => Ok(()),
                }
            };
            // If writes are in progress, the first step towards the end is that of the next one, which is an action and leads to a state of its own.
            let checked = stepped
                .and_then(|()| match next.has_writes() {
                    true => Ok(()),
                    false => next.clone().finish(limits),
                })
                .and_then(|()| check_crash(false))
                .and_then(|()| check_crash(true));
            if let Err(Violation(rule)) = checked {
                let mut actions = Vec::new();
                let mut step = Some(&path);
                while let Some(at) = step {
                    actions.push(format!("{:?}", at.0));
                    step = at.1.as_ref();
                }
                actions.reverse();
                return Err(format!("{rule}: {}", actions.join(", ")));
            }
            open.push((next, Some(path)));
        }
    }
    Ok(known.len())
}

#[test]
fn every_order_of_events_keeps_the_rules_of_the_protocol() {
    for limits in [TIME, FAULTS] {
        let states = explore(&limits).unwrap();
        // With fewer states, some events would never happen.
        assert!(states > 50_000, "{states}");
    }
}

#[test]
fn without_any_one_guard_a_rule_is_violated() {
    let all = Guards::ALL;
    let lower = Guards {
        lower: false,
        ..all
    };
    let dead_node = Guards {
        dead_node: false,
        ..all
    };
    for mistake in [
        Limits {
            lease_in_database: 1,
            ..TIME
        },
        Limits {
            guards: dead_node,
            ..TIME
        },
        Limits {
            guards: lower,
            ..FAULTS
        },
    ] {
        explore(&mistake).expect_err("the mistake is found");
    }
}
