//! The protocol of grants, explored: every order in which, within some limits, a node's chats begin and end, its writes reach the database, are
//! answered, fail or stay without an answer, time passes, other nodes release what they take for dead, ask, and spend, and the node ends.
//!
//! The node is [`GrantsState`] itself; the database is the model of the random schedules. One node is enough: nodes meet only at
//! what is available, which the others raise and lower here as they like. The writer's queue is kept: a write is sent when the outcome of the one before
//! is known or given up.

use std::collections::HashSet;
use std::rc::Rc;

use super::Guards;
use super::world::{Action, LEASE, Limits, Violation, World};

/// Time passes and others release what they take for dead; every write is answered.
const TIME: Limits = Limits {
    ticks: 5,
    chats: 3,
    faults: 0,
    others: 0,
    lease_in_database: LEASE,
    guards: Guards::ALL,
};

/// Writes fail, are repeated and stay without an answer, while others spend and ask.
const FAULTS: Limits = Limits {
    ticks: 0,
    chats: 3,
    faults: 2,
    others: 1,
    ..TIME
};

/// The actions that led to a world, the last one first.
struct Path(Action, Option<Rc<Path>>);

/// Tries all orders; returns how many different worlds there are, or what is wrong and how it comes about.
fn explore(limits: &Limits) -> Result<usize, String> {
    let start = World::new(limits);
    let mut known = HashSet::from([start.fingerprint()]);
    let mut open: Vec<(World, Option<Rc<Path>>)> = vec![(start, None)];
    while let Some((world, path)) = open.pop() {
        for action in world.actions(limits) {
            let mut next = world.clone();
            let path = Rc::new(Path(action, path.clone()));
            let stepped = next.step(action, limits);
            if stepped.is_ok() && !known.insert(next.fingerprint()) {
                continue;
            }
            let checked = stepped
                .and_then(|()| next.clone().finish(limits))
                .and_then(|()| next.clone().crash(false, limits))
                .and_then(|()| next.clone().crash(true, limits));
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
fn no_order_of_events_breaks_the_protocol() {
    for limits in [TIME, FAULTS] {
        let worlds = explore(&limits).unwrap();
        // Fewer would mean that something never happens.
        assert!(worlds > 50_000, "{worlds}");
    }
}

#[test]
fn without_one_of_its_guards_the_protocol_is_broken() {
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
