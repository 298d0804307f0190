//! Scenarios: the store's behaviour for tasks, chats, webhooks, users and keys, one step after another.
//!
//! A file of `tests/cases` has scenarios: a heading, `# the behaviour that it proves`, and steps, `command arguments -> outcome`. Each
//! scenario runs on a new database, in which the audit must find no violation at the end. `…` in an outcome matches anything; without an outcome it
//! is `ok`. Options are `name=value`. Times are relative to the default time of a step: `at=+5` is 5 ms later.

mod accounts;
mod audit;
mod chats;
mod tasks;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt::Display;

use tollgate_core::Millis;
use tollgate_store::{Auditor, ChatHold, LeasedTask, NewChat, Rejection, Store, StoreError};

use crate::databases::{Db, on_postgres, on_sqlite};
use crate::fixtures::{NODE, NOW, TestAccount};
use crate::lost_commits::run_with_proxy;
use crate::old_schemas::undo_migrations;
use crate::proxy::Proxy;

macro_rules! scenarios {
    ($($file:ident),+ $(,)?) => { $(
        mod $file {
            #[test]
            fn sqlite() {
                let text = include_str!(concat!("../../cases/", stringify!($file), ".txt"));
                super::each(text, |scenario| super::on_sqlite(async |db| super::run(db, db.open().await, None, scenario).await));
            }

            #[test]
            fn postgres() {
                let text = include_str!(concat!("../../cases/", stringify!($file), ".txt"));
                super::each(text, |scenario| super::on_postgres(async |db| super::run(db, db.open().await, None, scenario).await));
            }
        }
    )+ };
}

/// Runs scenarios on a database in which the state of unfinished tasks is still in `tasks`, as while nodes of the version before `queue` are alive.
macro_rules! scenarios_before_the_move {
    ($($file:ident $name:ident),+ $(,)?) => { $(
        #[test]
        fn $name() {
            let text = include_str!(concat!("../../cases/", stringify!($file), ".txt"));
            each(text, |scenario| on_postgres(async |db| {
                drop(db.open().await);
                undo_migrations(db, 23).await;
                run(db, db.open().await, None, scenario).await;
            }));
        }
    )+ };
}

scenarios_before_the_move!(
    task_ends task_ends_before_the_move,
    idempotency idempotency_before_the_move,
    claims claims_before_the_move,
    leases leases_before_the_move,
    queued_attempts queued_attempts_before_the_move,
    outbox outbox_before_the_move,
    retention retention_before_the_move,
);

scenarios!(
    task_charges,
    task_ends,
    idempotency,
    claims,
    leases,
    queued_attempts,
    chat_charges,
    orphaned_chats,
    retention,
    outbox,
    users_and_keys,
    audit_of_money,
    audit_of_attempts,
    audit_of_webhooks,
    audit_of_results,
);

/// Steps that begin with `lose` lose the reply to their commit.
#[test]
fn writes_whose_replies_are_lost_are_applied_once() {
    each(include_str!("../../cases/lost_commits.txt"), |scenario| {
        run_with_proxy(async |db, proxy, store| {
            run(db, store.clone(), Some(proxy), scenario).await;
        });
    });
}

/// Calls `test` with each scenario of a file.
fn each(text: &str, test: impl Fn(&str)) {
    text.split("\n\n").for_each(test);
}

/// A step of a scenario.
struct Step<'a> {
    command: &'a str,
    args: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Step<'a> {
    fn new(text: &'a str) -> Self {
        let mut words = text.split_whitespace();
        let command = words.next().unwrap();
        let (options, args) = words.partition::<Vec<_>, _>(|word| word.contains('='));
        let options = options
            .into_iter()
            .map(|word| word.split_once('=').unwrap());
        Self {
            command,
            args,
            options: options.collect(),
        }
    }

    /// The value of that option.
    fn option(&self, name: &str) -> Option<&'a str> {
        self.options.get(name).copied()
    }

    /// The value of that option as a time.
    fn time(&self, name: &str, default: Millis) -> Millis {
        self.option(name).map_or(default, time)
    }

    /// The time of the step.
    fn now(&self) -> Millis {
        self.time("at", NOW)
    }
}

/// `+5` is 5 ms after `NOW`.
fn time(text: &str) -> Millis {
    let by: Millis = text.parse().unwrap_or_else(|_| panic!("{text} is no time"));
    NOW + by
}

/// A time as scenarios write it; `-` is none.
fn since(at: impl Into<Option<Millis>>) -> String {
    at.into()
        .map_or("-".to_owned(), |at| format!("{:+}", at - NOW))
}

/// An outcome as text: `ok` if there is nothing to show.
fn outcome<T>(result: Result<T, StoreError>, show: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => show(value),
        Err(StoreError::Invalid(why)) => format!("invalid: {why}"),
        Err(error) => format!("broken: {error}"),
    }
}

fn ok<T>(_: T) -> String {
    "ok".to_owned()
}

fn rejected(rejection: Rejection) -> String {
    match rejection {
        Rejection::InsufficientBalance { available } => format!("balance {available}"),
        Rejection::InsufficientQuota { available } => format!("quota {available}"),
        Rejection::BudgetExceeded(budget) => format!("budget {}", budget.available),
        Rejection::AccountInactive => "inactive".to_owned(),
    }
}

/// `-` if there is none.
fn or_dash(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// The database of a scenario, and the things that its steps name.
struct Fixture<'a> {
    db: &'a Db,
    store: Store,
    /// The accounts by key; a user's first key has its user's name.
    accounts: BTreeMap<String, TestAccount>,
    /// The ids of tasks.
    tasks: BTreeMap<String, String>,
    /// Leases by task and fence: `a@1`.
    leases: BTreeMap<String, LeasedTask>,
    chats: BTreeMap<String, (NewChat, ChatHold)>,
    /// The last user whose task the last claim returned.
    last_user: String,
    /// `Some` from the first audit on.
    auditor: Option<Auditor>,
}

async fn run(db: &Db, store: Store, proxy: Option<&Proxy>, scenario: &str) {
    let mut fixture = Fixture {
        db,
        store,
        accounts: BTreeMap::new(),
        tasks: BTreeMap::new(),
        leases: BTreeMap::new(),
        chats: BTreeMap::new(),
        last_user: String::new(),
        auditor: None,
    };
    let heading = scenario.lines().next().unwrap();
    for line in scenario.lines().filter(|line| !line.starts_with('#')) {
        let (step, expected) = line.split_once(" -> ").unwrap_or((line, "ok"));
        let lost = step.strip_prefix("lose ");
        if let (Some(proxy), Some(_)) = (proxy, lost) {
            proxy.lose_next_commit();
        }
        let found = fixture.step(lost.unwrap_or(step)).await;
        let is_lost = proxy.is_none_or(|proxy| !proxy.has_commit_to_lose());
        assert!(is_lost, "{line}: there was no commit");
        let is_expected = match expected.split_once('…') {
            Some((start, end)) => found.starts_with(start) && found.ends_with(end),
            None => found == expected,
        };
        assert!(is_expected, "{heading}\n{line}\n  got {found}");
    }
}

impl Fixture<'_> {
    async fn step(&mut self, text: &str) -> String {
        let step = Step::new(text);
        let rest = text[step.command.len()..].trim_start();
        match step.command {
            "audit" => {
                self.assert_clean().await;
                ok(())
            }
            "sql" => self.sql(rest).await,
            "violations" | "corrupt" | "shift" | "delete-each" | "double-each" => {
                self.audit_step(step.command, rest).await
            }
            "user" | "key" | "credit" | "disable" | "revoke" | "sums" | "need" | "name"
            | "secret" => self.account_step(&step).await,
            "submit" | "claim" | "time-out" | "waiting" | "finish" | "cancel" | "task"
            | "receipt" | "purge" => self.task_step(&step).await,
            "start" | "accept" | "retry" | "postpone" | "progress" | "renew" | "release"
            | "due" | "channels" | "queued" => self.lease_step(&step).await,
            "hold" | "settle" | "heartbeat" | "orphans" => self.chat_step(&step).await,
            _ => self.webhook_step(&step).await,
        }
    }

    /// The rows of a query in which `{name}` is the id of a task or chat. Cells are separated by spaces, rows by `/`.
    async fn sql(&self, text: &str) -> String {
        let sql = self.with_ids(text);
        let rows = self.db.raw(&sql).await;
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().map(or_dash);
            cells.collect::<Vec<_>>().join(" ")
        });
        rows.collect::<Vec<_>>().join(" / ")
    }

    /// The text with the ids of tasks and chats in place of `{name}`.
    fn with_ids(&self, text: &str) -> String {
        let chats = self.chats.iter().map(|(name, (chat, _))| (name, &chat.id));
        self.tasks
            .iter()
            .chain(chats)
            .fold(text.to_owned(), |text, (name, id)| {
                text.replace(&format!("{{{name}}}"), &format!("'{id}'"))
            })
    }

    fn account(&self, name: &str) -> &TestAccount {
        self.accounts
            .get(name)
            .unwrap_or_else(|| panic!("no account {name}"))
    }

    fn task_id(&self, name: &str) -> &str {
        self.tasks
            .get(name)
            .unwrap_or_else(|| panic!("no task {name}"))
    }

    fn lease(&self, name: &str) -> &LeasedTask {
        self.leases
            .get(name)
            .unwrap_or_else(|| panic!("no lease {name}"))
    }

    /// The name of a task's id.
    fn name_of(&self, id: &str) -> String {
        let found = self.tasks.iter().find(|(_, task)| *task == id);
        found.map_or("?".to_owned(), |(name, _)| name.clone())
    }
}
