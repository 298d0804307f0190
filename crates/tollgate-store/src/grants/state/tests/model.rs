//! The model that [`super::exploration`] explores: a node, its writes in progress, and the database, with every possible next step.

use std::collections::VecDeque;

use super::super::*;
use super::{ACCOUNT, Database, Guards};

/// The lease, in ticks of [`TICK`].
pub(super) const LEASE: i64 = 4;
const TICK: Duration = Duration::from_secs(10);
const BALANCE: i64 = 24;
/// The amount that each chat reserves.
const CHAT: i64 = 2;

/// How often each kind of event may happen.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) ticks: i64,
    pub(super) chats: u8,
    /// Writes that fail or stay without a reply.
    pub(super) faults: u8,
    /// Actions of other nodes: spending and requesting grants.
    pub(super) others: u8,
    /// For how many ticks chats may begin on grants, from the database's point of view: a value below [`LEASE`] is a mistake that must be found.
    pub(super) lease_in_database: i64,
    pub(super) guards: Guards,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Begin,
    End {
        chat: usize,
        cost: i64,
    },
    /// The next write is applied to the database.
    Apply,
    /// The writer does not know whether the write was committed, and sends it again.
    ApplyAgain,
    /// The reply to the write is received by the node.
    Reply,
    /// The write fails: the node does not know whether it was applied.
    Fail,
    Return,
    BecomeIdle,
    Heartbeat,
    Tick,
    OthersRelease,
    OthersRequest,
    OthersSpend,
}

#[derive(Clone)]
struct Chat {
    grant_id: String,
    reserved: i64,
    /// Whether other nodes have released its grant.
    is_uncovered: bool,
}

#[derive(Clone)]
enum Job {
    Heartbeat { sent: i64 },
    Give(GrantWrite),
    Return(Return),
    Settle { chat: Chat, covered: i64 },
}

#[derive(Clone, Copy)]
enum Applied {
    Alive,
    Given(Option<i64>),
    Returned(bool),
    Settled,
}

#[derive(Clone)]
struct Flight {
    job: Job,
    applied: Option<Applied>,
    is_repeated: bool,
}

#[derive(Clone)]
struct Node {
    state: GrantsState,
    /// When the last confirmed heartbeat was sent.
    sent: i64,
    is_idle: bool,
    chats: Vec<Chat>,
}

#[derive(Clone)]
pub(super) struct Model {
    tick: i64,
    db: Database,
    alive_until: i64,
    /// `None` once the node has ended.
    node: Option<Node>,
    flights: VecDeque<Flight>,
    /// The ids of the grants, in the order in which they were requested.
    ids: Vec<String>,
    chats: u8,
    faults: u8,
    others: u8,
}

/// A violated rule.
#[derive(Debug)]
pub(super) struct Violation(pub(super) &'static str);

fn require_rule(holds: bool, rule: &'static str) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(rule)) }
}

fn millis(ticks: i64) -> Millis {
    ticks * i64::try_from(TICK.as_millis()).expect("short")
}

fn ago(ticks: i64) -> Instant {
    let ticks = u32::try_from(ticks).expect("past");
    let past = Instant::now().checked_sub(TICK * ticks);
    past.expect("the machine runs for a while")
}

impl Node {
    /// Sets the times that the state has stored to be as long ago as in the model.
    fn set_clock(&mut self, tick: i64) {
        if let Some(heartbeat) = &mut self.state.heartbeat {
            heartbeat.sent = ago(tick - self.sent);
        }
        let now = Instant::now();
        for key in self.state.keys.values_mut() {
            key.need.window = now;
            let idle = now.checked_sub(IDLE);
            key.need.last_chat = match self.is_idle {
                true => idle.expect("the machine runs for a while"),
                false => now,
            };
        }
        for until in self.state.without.values_mut() {
            *until = now + DENIED_FOR;
        }
    }

    fn finish_job(&mut self, job: Job, applied: Option<Applied>, tick: i64) {
        match (job, applied) {
            (Job::Heartbeat { sent }, Some(_)) => {
                let lease = millis(LEASE);
                let (at, wall) = (ago(tick - sent), millis(sent));
                self.state.heartbeat_confirmed("node", at, wall, lease);
                self.sent = sent;
            }
            (Job::Heartbeat { .. }, None) => {}
            (Job::Give(write), applied) => self.given(write, applied),
            (Job::Return(returned), applied) => {
                let is_closed = returned.part.is_none();
                let is_written =
                    matches!(applied, Some(Applied::Returned(known)) if is_closed || known);
                self.state
                    .record_return(&returned.id, is_closed, is_written);
            }
            (Job::Settle { chat, covered }, applied) => {
                let spent = match applied {
                    Some(_) => Amount::from_nanos(covered),
                    None => {
                        self.state.retire_uncertain(&chat.grant_id);
                        Amount::ZERO
                    }
                };
                let reserved = Amount::from_nanos(chat.reserved);
                self.state.end_reservation(&chat.grant_id, reserved, spent);
            }
        }
    }

    /// Models `Store::give_grant`.
    fn given(&mut self, write: GrantWrite, applied: Option<Applied>) {
        match (write, applied) {
            (_, Some(Applied::Given(None))) => self.state.leave_without("user"),
            (GrantWrite::Open(new), Some(Applied::Given(Some(amount)))) => {
                let amount = Amount::from_nanos(amount);
                self.state.record_open(ACCOUNT, new.id, amount);
            }
            (GrantWrite::Raise(raise), Some(Applied::Given(Some(amount)))) if amount > 0 => {
                self.state
                    .record_raise(&raise.id, Amount::from_nanos(amount));
            }
            (GrantWrite::Open(new), _) => self.state.may_be_open(ACCOUNT, new.id),
            (GrantWrite::Raise(raise), _) => self.state.retire_uncertain(&raise.id),
        }
        self.state.end_change("key");
    }
}

impl Model {
    /// A model of a node whose key has had one chat.
    pub(super) fn new(limits: &Limits) -> Self {
        let mut state = GrantsState::default();
        state.heartbeat_confirmed("node", Instant::now(), 0, millis(LEASE));
        state.reserve(ACCOUNT, Amount::from_nanos(CHAT), 0, false);
        Self {
            tick: 0,
            db: Database::new(BALANCE, limits.guards),
            alive_until: limits.lease_in_database,
            node: Some(Node {
                state,
                sent: 0,
                is_idle: false,
                chats: Vec::new(),
            }),
            flights: VecDeque::new(),
            ids: Vec::new(),
            chats: 0,
            faults: 0,
            others: 0,
        }
    }

    pub(super) fn actions(&self, limits: &Limits) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(node) = &self.node {
            if self.chats < limits.chats {
                actions.push(Action::Begin);
            }
            for (chat, of) in node.chats.iter().enumerate() {
                actions.extend(
                    [0, of.reserved, of.reserved + 1].map(|cost| Action::End { chat, cost }),
                );
            }
            actions.push(Action::Return);
            let is_beating = |flight: &Flight| matches!(flight.job, Job::Heartbeat { .. });
            if !self.flights.iter().any(is_beating) && node.sent < self.tick {
                actions.push(Action::Heartbeat);
            }
            if !node.is_idle {
                actions.push(Action::BecomeIdle);
            }
        }
        if let Some(next) = self.flights.front() {
            match next.applied {
                None => actions.push(Action::Apply),
                Some(_) => actions.push(Action::Reply),
            }
            if next.applied.is_some() && !next.is_repeated && limits.faults > 0 {
                actions.push(Action::ApplyAgain);
            }
            if self.faults < limits.faults {
                actions.push(Action::Fail);
            }
        }
        if self.tick < limits.ticks {
            actions.push(Action::Tick);
        }
        if !self.db.rows.is_empty() {
            actions.push(Action::OthersRelease);
        }
        if self.others < limits.others {
            actions.extend([Action::OthersRequest, Action::OthersSpend]);
        }
        actions
    }

    pub(super) fn step(&mut self, action: Action, limits: &Limits) -> Result<(), Violation> {
        let tick = self.tick;
        if let Some(node) = &mut self.node {
            node.set_clock(tick);
        }
        match (action, &mut self.node) {
            (Action::Apply, _) => self.apply_next(limits)?,
            (Action::ApplyAgain, _) => self.apply_next_again(),
            (Action::Reply, _) => self.end_next(true),
            (Action::Fail, _) => {
                self.faults += 1;
                self.end_next(false);
            }
            (Action::Tick, _) => {
                self.tick += 1;
                self.node
                    .iter_mut()
                    .for_each(|node| node.state.without.clear());
            }
            (Action::OthersRelease, _) => self.release_as_others(),
            (Action::OthersSpend, _) => {
                self.others += 1;
                // Guarded like every hold.
                let spent = CHAT.min(self.db.available.max(0));
                self.db.available -= spent;
                self.db.spent += spent;
            }
            (Action::OthersRequest, node) => {
                self.others += 1;
                node.iter_mut()
                    .for_each(|node| node.state.retire_of_user("user"));
            }
            (Action::Begin, Some(_)) => self.begin()?,
            (Action::End { chat, cost }, Some(node)) => {
                let mut chat = node.chats.remove(chat);
                if cost > chat.reserved {
                    let missing = Amount::from_nanos(cost - chat.reserved);
                    let more = node.state.reserve_more(&chat.grant_id, missing);
                    chat.reserved += more.nanos();
                }
                let covered = cost.min(chat.reserved);
                self.send(Job::Settle { chat, covered });
            }
            (Action::Return, Some(node)) => {
                for returned in node.state.take_returns() {
                    self.send(Job::Return(returned));
                }
            }
            (Action::BecomeIdle, Some(node)) => node.is_idle = true,
            (Action::Heartbeat, Some(_)) => self.send(Job::Heartbeat { sent: tick }),
            (_, None) => unreachable!("the node has ended"),
        }
        self.check()
    }

    fn send(&mut self, job: Job) {
        self.flights.push_back(Flight {
            job,
            applied: None,
            is_repeated: false,
        });
    }

    fn begin(&mut self) -> Result<(), Violation> {
        self.chats += 1;
        let tick = self.tick;
        let node = self.node.as_mut().expect("it runs");
        let amount = Amount::from_nanos(CHAT);
        let (step, write) = node.state.reserve(ACCOUNT, amount, millis(tick), false);
        if let Step::Reserved(grant_id) = step {
            require_rule(
                self.db.rows.contains_key(&grant_id),
                "a chat begins on no grant that others have released",
            )?;
            node.is_idle = false;
            node.chats.push(Chat {
                grant_id,
                reserved: CHAT,
                is_uncovered: false,
            });
        }
        if let Some(write) = write {
            if let GrantWrite::Open(new) = &write {
                self.ids.push(new.id.clone());
            }
            self.send(Job::Give(write));
        }
        Ok(())
    }

    fn apply_next(&mut self, limits: &Limits) -> Result<(), Violation> {
        let next = self.flights.front_mut().expect("there is one");
        let applied = match &next.job {
            Job::Heartbeat { sent } => {
                self.alive_until = self.alive_until.max(sent + limits.lease_in_database);
                Applied::Alive
            }
            Job::Give(write) => Applied::Given(self.db.give(0, write)),
            Job::Return(returned) => Applied::Returned(self.db.apply_return(returned)),
            Job::Settle { chat, covered } => {
                let is_paid = self.db.settle(&chat.grant_id, *covered);
                require_rule(
                    is_paid || chat.is_uncovered,
                    "a grant covers what its chats have reserved",
                )?;
                Applied::Settled
            }
        };
        next.applied = Some(applied);
        Ok(())
    }

    /// Applies the next write again, as writes do when a commit is in doubt: a new grant and a settlement recognise themselves, the guards of the
    /// others fail.
    fn apply_next_again(&mut self) {
        let next = self.flights.front_mut().expect("there is one");
        next.is_repeated = true;
        let again = match &next.job {
            Job::Heartbeat { .. } | Job::Settle { .. } | Job::Give(GrantWrite::Open(_)) => return,
            Job::Give(write) => Applied::Given(self.db.give(0, write)),
            Job::Return(returned) => Applied::Returned(self.db.apply_return(returned)),
        };
        next.applied = Some(again);
    }

    /// Delivers the outcome of the next write to the node, or that it is unknown.
    fn end_next(&mut self, is_known: bool) {
        let tick = self.tick;
        let flight = self.flights.pop_front().expect("there is one");
        if let Some(node) = &mut self.node {
            let applied = flight.applied.filter(|_| is_known);
            node.finish_job(flight.job, applied, tick);
        }
    }

    pub(super) fn has_writes(&self) -> bool {
        !self.flights.is_empty()
    }

    /// The state after the node has ended without its writes; the next write may still be applied.
    pub(super) fn crash(&self, is_next_applied: bool) -> Self {
        let may_be_applied = |flight: &&Flight| flight.applied.is_none() && is_next_applied;
        let next = self.flights.front().filter(may_be_applied);
        Self {
            db: self.db.clone(),
            node: None,
            flights: next.cloned().into_iter().collect(),
            ids: self.ids.clone(),
            // No chat begins any more, and nothing else is counted.
            chats: 0,
            faults: 0,
            others: 0,
            ..*self
        }
    }

    fn release_as_others(&mut self) {
        if !self.db.guards.dead_node || self.alive_until <= self.tick {
            let node = self.node.iter_mut();
            let chats = node.flat_map(|node| &mut node.chats);
            let settling = self
                .flights
                .iter_mut()
                .filter_map(|flight| match &mut flight.job {
                    Job::Settle { chat, .. } => Some(chat),
                    _ => None,
                });
            chats
                .chain(settling)
                .for_each(|chat| chat.is_uncovered = true);
            self.db.release_all_of(0);
        }
    }

    fn check(&self) -> Result<(), Violation> {
        let held: i64 = self.db.rows.values().map(|row| row.amount).sum();
        require_rule(
            self.db.available + held + self.db.spent == BALANCE,
            "money is neither created nor lost",
        )?;
        require_rule(
            self.db.rows.values().all(|row| row.amount >= 0),
            "no grant is overdrawn",
        )?;
        let is_settled_late = self.db.is_settled_late;
        require_rule(
            self.db.available >= 0 || is_settled_late,
            "no balance is overdrawn but by chats whose grant others have released",
        )?;
        let Some(node) = &self.node else {
            return Ok(());
        };
        for (id, row) in &self.db.rows {
            let Some(grant) = node.state.grants.get(id) else {
                continue;
            };
            let unsettled = node.chats.iter().filter(|chat| chat.grant_id == *id);
            let mut reserved: i64 = unsettled.map(|chat| chat.reserved).sum();
            for flight in &self.flights {
                if let Job::Settle { chat, covered } = &flight.job
                    && chat.grant_id == *id
                {
                    let spent = if flight.applied.is_some() {
                        *covered
                    } else {
                        0
                    };
                    reserved += chat.reserved - spent;
                }
            }
            require_rule(
                reserved <= row.amount,
                "what chats have reserved is covered",
            )?;
            let free = grant.free.nanos();
            require_rule(
                grant.is_uncertain || free + reserved <= row.amount,
                "what is free is covered",
            )?;
        }
        Ok(())
    }

    /// Ends everything that is in progress, with writes that succeed.
    pub(super) fn finish(mut self, limits: &Limits) -> Result<(), Violation> {
        loop {
            while !self.flights.is_empty() {
                let next = self.flights.front().expect("there is one");
                let action = match next.applied {
                    None => Action::Apply,
                    Some(_) => Action::Reply,
                };
                self.step(action, limits)?;
            }
            let Some(node) = &mut self.node else { break };
            node.state.retire_all();
            match node.chats.is_empty() {
                false => self.step(Action::End { chat: 0, cost: 0 }, limits)?,
                true => self.step(Action::Return, limits)?,
            }
            if self.flights.is_empty() {
                break;
            }
        }
        if self.node.is_none() {
            self.tick = self.tick.max(self.alive_until);
            self.release_as_others();
        }
        require_rule(self.db.rows.is_empty(), "every grant is returned")?;
        self.check()
    }

    /// A value that is equal for two states from which the same events can follow.
    pub(super) fn fingerprint(&self) -> Vec<i64> {
        let index = |id: &str| self.ids.iter().position(|known| known == id);
        let number = |id: &str| index(id).map_or(-1, |at| i64::try_from(at).expect("few"));
        let flag = i64::from;
        let mut all = vec![
            self.tick,
            self.db.available,
            flag(self.db.is_settled_late),
            self.alive_until,
            self.chats.into(),
            self.faults.into(),
            self.others.into(),
        ];
        for (id, row) in &self.db.rows {
            all.extend([-2, number(id), row.amount, row.granted, row.released]);
        }
        for flight in &self.flights {
            all.push(-3);
            match &flight.job {
                Job::Heartbeat { sent } => all.extend([1, *sent]),
                Job::Give(GrantWrite::Open(new)) => {
                    all.extend([2, number(&new.id), new.max.nanos()])
                }
                Job::Give(GrantWrite::Raise(raise)) => all.extend([
                    3,
                    number(&raise.id),
                    raise.max.nanos(),
                    raise.granted.nanos(),
                ]),
                Job::Return(returned) => {
                    let part = returned.part.as_ref();
                    let part = part.map_or([-1; 2], |part| {
                        [part.amount, part.released].map(Amount::nanos)
                    });
                    all.extend([4, number(&returned.id)]);
                    all.extend(part);
                }
                Job::Settle { chat, covered } => all.extend([
                    5,
                    number(&chat.grant_id),
                    chat.reserved,
                    flag(chat.is_uncovered),
                    *covered,
                ]),
            }
            all.extend(match flight.applied {
                None => [0, 0],
                Some(Applied::Alive | Applied::Settled) => [1, 0],
                Some(Applied::Given(amount)) => [2, amount.unwrap_or(-1)],
                Some(Applied::Returned(known)) => [3, known.into()],
            });
            all.push(flag(flight.is_repeated));
        }
        let Some(node) = &self.node else { return all };
        all.extend([-4, node.sent, flag(node.is_idle)]);
        for chat in &node.chats {
            all.extend([
                number(&chat.grant_id),
                chat.reserved,
                flag(chat.is_uncovered),
            ]);
        }
        let mut grants: Vec<[i64; 8]> = Vec::new();
        for (id, grant) in &node.state.grants {
            grants.push([
                number(id),
                grant.free.nanos(),
                grant.reserved.nanos(),
                grant.granted.nanos(),
                grant.released.nanos(),
                flag(grant.is_retired),
                flag(grant.is_uncertain),
                flag(grant.is_returning),
            ]);
        }
        grants.sort_unstable();
        all.extend(grants.into_iter().flatten());
        for key in node.state.keys.values() {
            let grant = key.grant_id.as_deref();
            all.extend([
                -5,
                grant.map_or(-1, number),
                flag(key.is_changing),
                key.need.sums[0].nanos(),
            ]);
        }
        all.push(i64::try_from(node.state.without.len()).expect("few"));
        all
    }
}
