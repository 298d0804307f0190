//! Usage: sums of what ended in each hour, rolled up from the rows that the writes insert.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::clock::{DAY, HOUR};
use tollgate_core::{Millis, TaskKind};
use tollgate_store::{
    AdminRequest, ChatEnd, ChatHold, DatabaseLocation, Delivered, NewRefund, Store, TaskEnd,
    UsageQuery, UsageRow,
};

use crate::databases::{Db, on_both, on_postgres};
use crate::fixtures::{
    NOW, TestAccount, account, amount, assert_clean, cancel, chat, chat_end, claim_one, failed,
    finish, hold, node, start_attempt, submit, task, tokens,
};
use crate::old_schemas::undo_migrations;

on_both!(
    usage_counts_ended_and_refunded_work,
    concurrent_roll_ups_count_everything_once,
    sums_that_an_older_node_did_not_update_are_repaired,
    sums_of_days_equal_those_of_their_hours,
    sums_of_one_dimension_equal_those_of_two,
    a_changed_sum_is_a_violation,
    usage_of_earlier_versions_is_filled_in,
);

fn by_all(period: Millis) -> UsageQuery {
    UsageQuery {
        period: Some(period),
        by_model: true,
        by_user: true,
        by_key: true,
        by_channel: true,
        from: 0,
        to: i64::MAX,
        ..UsageQuery::default()
    }
}

async fn report(store: &Store, query: &UsageQuery) -> Vec<UsageRow> {
    let all = store.usage(query, None, 1000).await.unwrap();
    // Pages of one row have the same rows as the list.
    let mut paged = Vec::new();
    while let [row] = &store
        .usage(query, paged.last().map(|row: &UsageRow| &row.position), 1)
        .await
        .unwrap()[..]
    {
        paged.push(row.clone());
    }
    assert_eq!(paged, all);
    all
}

/// Cost, then requests, tokens, images, seconds and failed.
fn sums(row: &UsageRow) -> (String, [i64; 5]) {
    let counts = [
        row.requests,
        row.tokens,
        row.images,
        row.seconds,
        row.failed,
    ];
    (row.cost.to_string(), counts)
}

/// Settles a chat that costs 0.5 for 500,000 tokens.
async fn end_chat(store: &Store, ann: &TestAccount, is_held: bool, end: ChatEnd) -> String {
    let chat = chat(ann, "1", "1");
    let id = chat.id.clone();
    let mut held = ChatHold::None;
    if is_held {
        hold(store, &chat, tokens(900_000, 0)).await.unwrap();
        held = ChatHold::Stored;
    }
    store.settle_chat(chat, &held, end).await.unwrap();
    id
}

async fn end_video(store: &Store, ann: &TestAccount, end: Option<TaskEnd>) -> String {
    let mut task = task(ann, 4, "0.1");
    task.kind = TaskKind::Video;
    task.model = "sora-2".to_owned();
    task.echoed_fields = r#"{"seconds":"8"}"#.to_owned();
    let id = submit(store, task).await;
    let Some(end) = end else {
        let task = store.task(&id).await.unwrap().unwrap();
        cancel(store, &task, NOW + 1).await;
        return id;
    };
    let leased = claim_one(store, NOW).await;
    start_attempt(store, &leased, NOW).await.unwrap();
    finish(store, &leased, end, NOW + 1).await;
    id
}

/// Two chats an hour apart, one of which failed; an image task of 3 of 5 images; videos that completed, failed and were cancelled; a refund of a chat
/// and of a task.
async fn use_everything(store: &Store, ann: &TestAccount) {
    let later = ChatEnd {
        ended_at: NOW + HOUR,
        ..chat_end(tokens(500_000, 0))
    };
    let failed_chat = ChatEnd {
        outcome: "failed",
        channel: None,
        ..chat_end(tokens(0, 0))
    };
    let refunded = end_chat(store, ann, false, chat_end(tokens(250_000, 250_000))).await;
    end_chat(store, ann, true, later).await;
    end_chat(store, ann, false, failed_chat).await;
    submit(store, task(ann, 5, "0.1")).await;
    let leased = claim_one(store, NOW).await;
    start_attempt(store, &leased, NOW).await.unwrap();
    finish(store, &leased, crate::fixtures::delivered(3), NOW + 1).await;
    let completed = TaskEnd::Completed {
        delivered: Delivered::FullOrder,
        result: r#"{"files":[{"name":"x"}]}"#.to_owned(),
    };
    end_video(store, ann, Some(completed)).await;
    end_video(store, ann, Some(failed())).await;
    end_video(store, ann, None).await;
    let request = AdminRequest::cli(NOW + 2);
    let charge = store.chat_charge(&refunded).await.unwrap().unwrap();
    let refund = |text: &str| NewRefund {
        amount: Some(amount(text)),
        reason: "late".to_owned(),
        unit: None,
    };
    let chat = store.admin_refund_chat(&request, charge, refund("0.2"));
    chat.await.unwrap().unwrap();
    let charge = store.task_charge(&leased.task.id).await.unwrap().unwrap();
    let task = store.admin_refund_task(&request, charge, refund("0.1"));
    task.await.unwrap().unwrap();
}

/// The usage of [`use_everything`], the last hour first.
const EXPECTED: [(&str, &str, &str, [i64; 5]); 6] = [
    ("gpt-5", "main", "0.5", [1, 500_000, 0, 0, 0]),
    ("gpt-5", "", "0", [1, 0, 0, 0, 1]),
    ("gpt-5", "main", "0.3", [1, 500_000, 0, 0, 0]),
    ("seedream-5", "main", "0.2", [1, 0, 3, 0, 0]),
    ("sora-2", "", "0", [1, 0, 0, 0, 0]),
    ("sora-2", "main", "0.4", [2, 0, 0, 8, 1]),
];

fn assert_expected(rows: &[UsageRow], ann: &TestAccount) {
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.position.names.clone(), sums(row)))
        .collect();
    let expected = EXPECTED.map(|(model, channel, cost, counts)| {
        let names = [model, &ann.user_id, &ann.key_id, channel].map(str::to_owned);
        (names, (cost.to_owned(), counts))
    });
    assert_eq!(found, expected);
}

async fn usage_counts_ended_and_refunded_work(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "100").await;
    use_everything(&store, &ann).await;
    // The report is the same before the roll-up, after it, and after a restart.
    assert_expected(&report(&store, &by_all(HOUR)).await, &ann);
    assert_clean(&store).await;
    store.roll_up_usage().await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM usage_pending").await, 0);
    assert_eq!(db.number("SELECT COUNT(*) FROM usage_hourly").await, 6);
    drop(store);
    let store = node(db).await;
    let rows = report(&store, &by_all(HOUR)).await;
    assert_expected(&rows, &ann);
    let hours: BTreeSet<_> = rows.iter().map(|row| row.position.period).collect();
    let hour = NOW - NOW % HOUR;
    assert_eq!(hours, BTreeSet::from([hour, hour + HOUR]));
    let all = UsageQuery {
        to: i64::MAX,
        ..UsageQuery::default()
    };
    let only = |change: fn(&mut UsageQuery)| {
        let mut query = all.clone();
        change(&mut query);
        query
    };
    for (query, expected) in [
        (all.clone(), ("1.4", [7, 1_000_000, 3, 8, 2])),
        (
            only(|query| query.models = Some(vec!["gpt-5".into(), "seedream-5".into()])),
            ("1", [4, 1_000_000, 3, 0, 1]),
        ),
        (
            only(|query| query.channels = Some(vec![String::new()])),
            ("0", [2, 0, 0, 0, 1]),
        ),
        (
            only(|query| query.from = NOW + HOUR),
            ("0.5", [1, 500_000, 0, 0, 0]),
        ),
        (only(|query| query.to = NOW), ("0.9", [6, 500_000, 3, 8, 2])),
        (
            only(|query| query.period = Some(DAY)),
            ("1.4", [7, 1_000_000, 3, 8, 2]),
        ),
    ] {
        let rows = report(&store, &query).await;
        let found: Vec<_> = rows.iter().map(sums).collect();
        assert_eq!(found, [(expected.0.to_owned(), expected.1)], "{query:?}");
    }
    let nobody = only(|query| query.user_ids = Some(vec!["nobody".to_owned()]));
    assert_eq!(report(&store, &nobody).await, []);
}

async fn concurrent_roll_ups_count_everything_once(db: &Db) {
    let (first, second) = (node(db).await, node(db).await);
    let ann = account(&first, "ann", "1000").await;
    futures_util::future::join_all((0..60).map(async |n| {
        let store = if n % 2 == 0 { &first } else { &second };
        end_chat(store, &ann, n % 3 == 0, chat_end(tokens(500_000, 0))).await;
        if n % 5 == 0 {
            let other = if n % 2 == 0 { &second } else { &first };
            other.roll_up_usage().await.unwrap();
        }
    }))
    .await;
    first.roll_up_usage().await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM usage_pending").await, 0);
    assert_eq!(db.number("SELECT COUNT(*) FROM usage_hourly").await, 1);
    let rows = report(&second, &by_all(HOUR)).await;
    assert_eq!(sums(&rows[0]), ("30".to_owned(), [60, 30_000_000, 0, 0, 0]));
}

/// Before the queue has its own table, each batch of a node holds that lock (tasks/queue_table.rs).
#[test]
fn the_roll_up_does_not_wait_for_batches_of_other_nodes() {
    on_postgres(async |db| {
        let store = node(db).await;
        let ann = account(&store, "ann", "1000").await;
        end_chat(&store, &ann, false, chat_end(tokens(500_000, 0))).await;
        let DatabaseLocation::Postgres(url) = &db.location else {
            unreachable!("this test is for PostgreSQL")
        };
        let (other, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let batch = "BEGIN; SELECT pg_advisory_xact_lock_shared(7053117)";
        other.batch_execute(batch).await.unwrap();
        store.roll_up_usage().await.unwrap();
        assert_eq!(db.number("SELECT COUNT(*) FROM usage_pending").await, 0);
        db.batch("UPDATE usage_daily SET cost = 2 * cost").await;
        assert_eq!(store.repair_usage_sums(NOW).await, Ok(true));
        assert_clean(&store).await;
        other.batch_execute("COMMIT").await.unwrap();
    });
}

/// A program before schema 19 moves pending usage only to the hours.
async fn sums_that_an_older_node_did_not_update_are_repaired(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1000").await;
    end_chat(&store, &ann, false, chat_end(tokens(500_000, 0))).await;
    store.roll_up_usage().await.unwrap();
    end_chat(&store, &ann, false, chat_end(tokens(500_000, 0))).await;
    db.batch(
        "UPDATE usage_hourly SET cost = 2 * cost, requests = 2 * requests, tokens = 2 * tokens; DELETE FROM usage_pending",
    )
    .await;
    if matches!(db.location, DatabaseLocation::Sqlite(_)) {
        // No other process uses this database, so the repair does nothing.
        assert_eq!(store.repair_usage_sums(NOW).await, Ok(false));
        for table in ["usage_daily", "usage_totals"] {
            db.raw(&format!(
                "UPDATE {table} SET cost = 2 * cost, requests = 2 * requests, tokens = 2 * tokens"
            ))
            .await;
        }
        return assert_clean(&store).await;
    }
    let violations = store.audit().await.unwrap();
    for check in ["usage_days", "usage_totals"] {
        assert!(violations.iter().any(|v| v.check == check), "{check}");
    }
    assert_eq!(store.repair_usage_sums(NOW + DAY).await, Ok(false));
    assert_eq!(store.repair_usage_sums(NOW).await, Ok(true));
    assert_clean(&store).await;
    assert_eq!(store.repair_usage_sums(NOW).await, Ok(false));
}

/// For any times, complete days are read from the sums of days, and the remaining hours from the sums of hours.
async fn sums_of_days_equal_those_of_their_hours(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1000").await;
    let midnight = NOW - NOW % DAY;
    let chats = [0, 1, 22, 23, 24, 25, 47, 48, 60, 71, 72, 80, 95, 96, 120]
        .map(|hours: i64| (midnight + hours * HOUR, 1_000 + hours));
    for (hour, input) in chats {
        let end = ChatEnd {
            ended_at: hour + 5,
            ..chat_end(tokens(input.unsigned_abs(), 0))
        };
        end_chat(&store, &ann, false, end).await;
        if hour == midnight + 71 * HOUR {
            store.roll_up_usage().await.unwrap();
        }
    }
    for pending in [true, false] {
        let times = (-2..126).step_by(7).flat_map(|hours| {
            let at = midnight + hours * HOUR;
            [at, at + 1, at + HOUR / 2]
        });
        let times: Vec<Millis> = times.chain([0, i64::MAX]).collect();
        let windows = times
            .iter()
            .flat_map(|from| times.iter().map(move |to| (*from, *to)));
        // Of the windows that end before they begin, only those that end at 0.
        for (from, to) in windows.filter(|(from, to)| from <= to || *to == 0) {
            let mut expected = BTreeMap::new();
            for (hour, input) in chats {
                // Hours that end after `from` and begin before `to` count, in a window that is not empty.
                if from < to && hour + HOUR > from && hour < to {
                    let day = expected.entry(hour / DAY * DAY).or_insert([0; 2]);
                    day[0] += 1;
                    day[1] += input;
                }
            }
            let query = UsageQuery {
                period: Some(DAY),
                from,
                to,
                ..UsageQuery::default()
            };
            let days = store.usage(&query, None, 1000).await.unwrap();
            let found: BTreeMap<_, _> = days
                .iter()
                .map(|row| (row.position.period, [row.requests, row.tokens]))
                .collect();
            assert_eq!(found, expected, "{from} to {to}, pending: {pending}");
        }
        store.roll_up_usage().await.unwrap();
        assert_clean(&store).await;
    }
}

/// Totals of one dimension are stored; those of two are calculated from the sums by all four.
async fn sums_of_one_dimension_equal_those_of_two(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "100").await;
    let ben = account(&store, "ben", "100").await;
    use_everything(&store, &ann).await;
    let late = ChatEnd {
        ended_at: NOW + DAY + 3 * HOUR,
        ..chat_end(tokens(700_000, 1))
    };
    end_chat(&store, &ben, false, late).await;
    compare_all_dimensions(&store, &ann).await;
    store.roll_up_usage().await.unwrap();
    end_chat(&store, &ben, false, chat_end(tokens(1_000, 7))).await;
    compare_all_dimensions(&store, &ann).await;
    assert_clean(&store).await;
    // A database of an older version has no totals; usage that ends from then on is added to totals that are incomplete.
    drop(store);
    undo_migrations(db, 26).await;
    let store = node(db).await;
    store.roll_up_usage().await.unwrap();
    let from = "SELECT value FROM meta WHERE name = 'usage_totals_from'";
    let mut days = vec![db.number(from).await];
    loop {
        compare_all_dimensions(&store, &ann).await;
        assert_clean(&store).await;
        if !store.fill_usage_totals().await.unwrap() {
            break;
        }
        days.push(db.number(from).await);
    }
    let today = NOW - NOW % DAY;
    assert_eq!(days, [i64::MAX, today + DAY, today]);
    assert_eq!(db.number(from).await, 0);
    assert_clean(&store).await;
}

async fn compare_all_dimensions(store: &Store, ann: &TestAccount) {
    for (from, to) in [(0, i64::MAX), (NOW + HOUR, i64::MAX), (0, NOW + DAY)] {
        for period in [None, Some(HOUR), Some(DAY)] {
            for index in 0..5 {
                compare_with_two_dimensions(store, [from, to], period, index, ann).await;
            }
        }
    }
}

/// Compares the rows of the dimension at `index` (4: of none), of all names and of one name, with those that also have another dimension.
async fn compare_with_two_dimensions(
    store: &Store,
    [from, to]: [Millis; 2],
    period: Option<Millis>,
    index: usize,
    ann: &TestAccount,
) {
    let names = [
        "gpt-5".to_owned(),
        ann.user_id.clone(),
        ann.key_id.clone(),
        "main".to_owned(),
    ];
    for name in std::iter::once(None).chain(names.get(index).cloned().map(Some)) {
        let only = |of: usize| (of == index).then(|| name.clone().map(|name| vec![name]));
        let only = |of: usize| only(of).flatten();
        let one = UsageQuery {
            period,
            by_model: index == 0,
            by_user: index == 1,
            by_key: index == 2,
            by_channel: index == 3,
            from,
            to,
            models: only(0),
            user_ids: only(1),
            key_ids: only(2),
            channels: only(3),
        };
        let other = if index == 0 { 3 } else { 0 };
        let mut two = one.clone();
        two.by_model |= other == 0;
        two.by_channel |= other == 3;
        // For no dimension, `two` has all four.
        two.by_key |= index == 4;
        let mut expected = BTreeMap::new();
        for row in store.usage(&two, None, 1000).await.unwrap() {
            let mut names = row.position.names.clone();
            names[other].clear();
            if index == 4 {
                names = Default::default();
            }
            let sum = expected
                .entry((row.position.period, names))
                .or_insert((amount("0"), [0; 5]));
            sum.0 += row.cost;
            for (sum, count) in sum.1.iter_mut().zip(sums(&row).1) {
                *sum += count;
            }
        }
        let rows = store.usage(&one, None, 1000).await.unwrap();
        let found: BTreeMap<_, _> = rows
            .iter()
            .map(|row| {
                let position = (row.position.period, row.position.names.clone());
                (position, (row.cost, sums(row).1))
            })
            .collect();
        assert_eq!(found, expected, "{one:?}");
        assert_eq!(found.len(), rows.len());
    }
}

async fn a_changed_sum_is_a_violation(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "100").await;
    use_everything(&store, &ann).await;
    store.roll_up_usage().await.unwrap();
    end_chat(&store, &ann, false, chat_end(tokens(1, 0))).await;
    for (table, change, back, check) in [
        (
            "usage_hourly",
            "cost = cost + 1",
            "cost = cost - 1",
            "usage",
        ),
        (
            "usage_hourly",
            "requests = requests + 1",
            "requests = requests - 1",
            "usage",
        ),
        (
            "usage_hourly",
            "tokens = tokens + 1",
            "tokens = tokens - 1",
            "usage",
        ),
        (
            "usage_hourly",
            "model = model || 'x'",
            "model = substr(model, 1, length(model) - 1)",
            "usage",
        ),
        (
            "usage_hourly",
            "hour = hour + 7200000",
            "hour = hour - 7200000",
            "usage",
        ),
        (
            "usage_hourly",
            "failed = failed + 9",
            "failed = failed - 9",
            "usage_counts",
        ),
        (
            "usage_daily",
            "images = images + 1",
            "images = images - 1",
            "usage_days",
        ),
        (
            "usage_totals",
            "seconds = seconds + 1",
            "seconds = seconds - 1",
            "usage_totals",
        ),
        (
            "usage_pending",
            "cost = cost - 1",
            "cost = cost + 1",
            "usage",
        ),
    ] {
        db.raw(&format!("UPDATE {table} SET {change}")).await;
        let found = store.audit().await.unwrap();
        assert!(
            found.iter().any(|violation| violation.check == check),
            "{change}: {found:?}"
        );
        db.raw(&format!("UPDATE {table} SET {back}")).await;
        assert_clean(&store).await;
    }
}

async fn usage_of_earlier_versions_is_filled_in(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "100").await;
    use_everything(&store, &ann).await;
    drop(store);
    undo_migrations(db, 12).await;
    let store = node(db).await;
    assert_expected(&report(&store, &by_all(HOUR)).await, &ann);
}
