//! Lists with filters return exactly the rows that a search of all rows would find, whichever blocks exist.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tollgate_core::clock::{DAY, MINUTE};
use tollgate_core::{Millis, TaskState, id};
use tollgate_store::{
    ChatFilter, ChatHold, DatabaseLocation, EntryFilter, EntryPosition, Store, TaskFilter,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{account, chat, chat_end, submit, task_at, tokens};

on_both!(
    filtered_lists_equal_a_scan_of_all_rows,
    a_row_inserted_after_its_block_was_built_is_found,
);

/// The time of the first row: long before the test runs.
const BEGIN: Millis = 1_600_000_000_000;
/// The number of rows of each list: several blocks, and remaining rows that are in none.
const ROWS: u64 = 5000;
/// The time at which all rows are old enough for blocks.
const LATER: Millis = BEGIN + DAY;
const QUERIES: usize = 150;

/// A seeded generator of numbers.
struct Numbers(StdRng);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.random_range(0..end)
    }

    /// Mostly a small number, rarely a large one: some values are frequent, some rare.
    fn skewed(&mut self, end: u64) -> u64 {
        let largest = self.below(end) + 1;
        let largest = self.below(largest) + 1;
        self.below(largest)
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A chat or task, with the values that filters compare. An empty value is one that the row does not have.
#[derive(Clone)]
struct Listed {
    id: String,
    at: Millis,
    user: String,
    key: String,
    model: String,
    channel: String,
    outcome: String,
    code: String,
    kind: String,
    /// A chat's request id, or the id of a task's job at the provider.
    name: String,
    amount: i64,
}

impl Listed {
    fn new(numbers: &mut Numbers, number: u64, is_chat: bool) -> Self {
        // Some rows share a millisecond.
        let at = BEGIN
            + i64::try_from(number).unwrap() * 500
            + i64::try_from(numbers.below(3)).unwrap() * 250;
        let user = numbers.skewed(40);
        let outcomes: &[&str] = match is_chat {
            true => &["done", "failed", "cut", "client_gone", "lost"],
            false => &["2", "3", "4"],
        };
        let kinds: &[&str] = match is_chat {
            true => &[
                "chat-completions",
                "messages",
                "responses",
                "generate-content",
                "else",
            ],
            false => &["image", "video", "speech"],
        };
        let pick = |numbers: &mut Numbers, from: &[&str]| {
            let at = numbers.skewed(from.len() as u64);
            from[usize::try_from(at).unwrap()].to_owned()
        };
        // Some of the last rows have not ended.
        let is_open = number > ROWS - 100 && numbers.is_one_in(5);
        let outcome = match is_open {
            true => String::new(),
            false => pick(numbers, outcomes),
        };
        let code = match outcome.as_str() {
            "failed" | "3" => format!("code-{}", numbers.skewed(12)),
            _ => String::new(),
        };
        let channel = match numbers.is_one_in(9) {
            true => String::new(),
            false => format!("channel-{}", numbers.skewed(20)),
        };
        // A task without a channel has no attempt.
        let has_name = (is_chat || !channel.is_empty()) && !numbers.is_one_in(9);
        Self {
            id: if is_chat {
                id::chat_id(at)
            } else {
                id::task_id(at)
            },
            at,
            user: format!("user_{user}"),
            key: format!("key_{user}_{}", numbers.skewed(3)),
            model: format!("model-{}", numbers.skewed(30)),
            channel,
            outcome,
            code,
            kind: pick(numbers, kinds),
            // Some rows have the same name.
            name: match has_name {
                true => format!("name_{}", numbers.below(ROWS)),
                false => String::new(),
            },
            amount: i64::try_from(numbers.below(3)).unwrap(),
        }
    }

    fn value(&self, filter: usize) -> &str {
        let values = [
            &self.user,
            &self.key,
            &self.model,
            &self.channel,
            &self.outcome,
            &self.code,
            &self.kind,
            &self.name,
        ];
        values[filter]
    }
}

const FILTERS: usize = 8;

fn quoted(text: &str) -> String {
    match text {
        "" => "NULL".to_owned(),
        text => format!("'{text}'"),
    }
}

async fn insert(db: &Db, table: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<_> = rows.collect();
    for part in rows.chunks(500) {
        db.batch(&format!("INSERT INTO {table} VALUES {}", part.join(", ")))
            .await;
    }
}

async fn insert_chats(db: &Db, rows: &[Listed]) {
    let columns = "chats (id, user_id, key_id, model, format, streamed, request_id, input_price, cached_input_price, cache_write_price, \
        output_price, reasoning_price, input, cached_input, cache_write, output, reasoning, estimated, settled, outcome, channel, attempts, \
        opened_at, closed_at, seal)";
    let cells = rows.iter().map(|row| {
        let Listed { id, at, user, key, model, kind, name, amount, .. } = row;
        let attempts = match row.code.as_str() {
            "" => "[]".to_owned(),
            code => format!(r#"[{{"outcome":"other"}},{{"outcome":"{code}"}}]"#),
        };
        let [settled, closed_at] = match row.outcome.as_str() {
            "" => ["NULL".to_owned(), "NULL".to_owned()],
            _ => [amount.to_string(), at.to_string()],
        };
        format!(
            "('{id}', '{user}', '{key}', '{model}', '{kind}', 0, '{name}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {settled}, {}, {}, '{attempts}', \
             {at}, {closed_at}, 0)",
            quoted(&row.outcome),
            quoted(&row.channel)
        )
    });
    insert(db, columns, cells).await;
}

async fn insert_tasks(db: &Db, rows: &[Listed]) {
    // PostgreSQL does not have this column any more, and SQLite does not use it.
    let has_due_at = matches!(db.location, DatabaseLocation::Sqlite(_));
    let [due_at, due] = if has_due_at {
        [", due_at", ", 0"]
    } else {
        [""; 2]
    };
    let columns = format!(
        "tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, deadline_at{due_at}, fence, \
         failed_attempts, job, adjustments, shown, error_code, cost, request_id)"
    );
    let cells = rows.iter().map(|row| {
        let Listed { id, at, user, key, model, kind, .. } = row;
        let state = if row.outcome.is_empty() { "0" } else { &row.outcome };
        format!(
            "('{id}', '{user}', '{key}', '{kind}', '', '{model}', {state}, 0, {at}, {at}{due}, 0, 0, '{{}}', '[]', '{{}}', {}, 0, '')",
            quoted(&row.code)
        )
    });
    insert(db, &columns, cells).await;
    let columns = "charges (id, user_id, key_id, model, price, per, units, held, opened_at, seal)";
    let cells = rows.iter().map(|row| {
        let Listed {
            id,
            at,
            user,
            key,
            model,
            ..
        } = row;
        format!("('{id}', '{user}', '{key}', '{model}', 0, 1, 1, 0, {at}, 0)")
    });
    insert(db, columns, cells).await;
    // An attempt before the last one, on another channel and with another name.
    let columns = "attempts (task_id, number, channel, fence, queued, ticket, started_at)";
    let with_channel = rows.iter().filter(|row| !row.channel.is_empty());
    let cells = with_channel.map(|row| {
        let Listed { id, channel, name, at, .. } = row;
        let name = quoted(name);
        format!("('{id}', 1, 'channel-0', 1, 1, 'name_1', {at}), ('{id}', 2, '{channel}', 1, 1, {name}, {at})")
    });
    insert(db, columns, cells).await;
}

/// A random filter: for each member that is set, the values that it allows.
type Filter = [Option<Vec<String>>; FILTERS];

fn random_filter(numbers: &mut Numbers, rows: &[Listed]) -> Filter {
    let mut filter = Filter::default();
    let row = &rows[usize::try_from(numbers.below(rows.len() as u64)).unwrap()];
    for (member, wanted) in filter.iter_mut().enumerate() {
        if !numbers.is_one_in(4) {
            continue;
        }
        let mut values = Vec::new();
        for _ in 0..=numbers.skewed(3) {
            let other = &rows[usize::try_from(numbers.below(rows.len() as u64)).unwrap()];
            values.push(match numbers.below(4) {
                0 => other.value(member).to_owned(),
                1 => "nothing has this".to_owned(),
                _ => row.value(member).to_owned(),
            });
        }
        values.retain(|value| !value.is_empty());
        *wanted = Some(values);
    }
    filter
}

/// A window of time, mostly with its ends within the rows.
fn random_window(numbers: &mut Numbers) -> [Millis; 2] {
    let mut time = || BEGIN + i64::try_from(numbers.below(ROWS * 500)).unwrap();
    let (a, b) = (time(), time());
    match numbers.below(3) {
        0 => [0, LATER],
        _ => [a.min(b), a.max(b)],
    }
}

/// The ids that a list must have, of rows in the list's order: the newest first.
fn expected<'a>(
    rows: &'a [Listed],
    filter: &Filter,
    [from, to]: [Millis; 2],
    before: Option<&str>,
    limit: usize,
) -> Vec<&'a str> {
    let is_wanted = |row: &&Listed| {
        (from..to).contains(&row.at)
            && before.is_none_or(|before| row.id.as_str() < before)
            && filter.iter().enumerate().all(|(member, values)| {
                let value = row.value(member);
                values.as_ref().is_none_or(|values| {
                    !value.is_empty() && values.iter().any(|wanted| wanted == value)
                })
            })
    };
    let wanted = rows.iter().filter(is_wanted);
    wanted.map(|row| row.id.as_str()).take(limit).collect()
}

fn chat_filter(filter: &Filter, [from, to]: [Millis; 2]) -> ChatFilter {
    let [
        user_ids,
        key_ids,
        models,
        channels,
        outcomes,
        error_codes,
        formats,
        request_ids,
    ] = filter.clone();
    ChatFilter {
        from,
        to,
        user_ids,
        key_ids,
        models,
        formats,
        channels,
        outcomes,
        request_ids,
        error_codes,
    }
}

fn task_filter(filter: &Filter, [from, to]: [Millis; 2]) -> TaskFilter {
    let [
        user_ids,
        key_ids,
        models,
        channels,
        states,
        error_codes,
        kinds,
        provider_job_ids,
    ] = filter.clone();
    let state = |number: &String| number.parse().ok().and_then(TaskState::from_number);
    let states = states.map(|numbers| numbers.iter().filter_map(state).collect());
    TaskFilter {
        from,
        to,
        user_ids,
        key_ids,
        kinds,
        models,
        channels,
        states,
        error_codes,
        provider_job_ids,
    }
}

/// Compares pages of random searches.
async fn compare(store: &Store, numbers: &mut Numbers, chats: &[Listed], tasks: &[Listed]) {
    let is_charged = |row: &&Listed| !row.outcome.is_empty() && row.amount != 0;
    let charged: Vec<_> = chats.iter().filter(is_charged).cloned().collect();
    for _ in 0..QUERIES {
        let window = random_window(numbers);
        let limit = usize::try_from(1 + numbers.skewed(300)).unwrap();
        for (rows, is_chat) in [(chats, true), (tasks, false)] {
            let filter = random_filter(numbers, rows);
            let mut before = match numbers.is_one_in(2) {
                true => None,
                false => Some(
                    rows[usize::try_from(numbers.below(rows.len() as u64)).unwrap()]
                        .id
                        .clone(),
                ),
            };
            // Two pages.
            for _ in 0..2 {
                let start = before.as_deref();
                let listed: Vec<String> = match is_chat {
                    true => {
                        let filter = chat_filter(&filter, window);
                        let page = store.admin_list_chats(&filter, start, limit);
                        page.await
                            .unwrap()
                            .into_iter()
                            .map(|chat| chat.id)
                            .collect()
                    }
                    false => {
                        let filter = task_filter(&filter, window);
                        let page = store.admin_list_tasks(&filter, start, limit);
                        page.await
                            .unwrap()
                            .into_iter()
                            .map(|task| task.id)
                            .collect()
                    }
                };
                let all = expected(rows, &filter, window, start, limit);
                assert_eq!(listed, all, "{filter:?} {window:?} {start:?} {limit}");
                before = listed.last().cloned();
            }
        }
        compare_entries(store, numbers, (chats, &charged), window, limit).await;
    }
}

/// Compares the entries of a key or of a user, which are charges of chats.
async fn compare_entries(
    store: &Store,
    numbers: &mut Numbers,
    (chats, charged): (&[Listed], &[Listed]),
    window: [Millis; 2],
    limit: usize,
) {
    let row = &chats[usize::try_from(numbers.below(chats.len() as u64)).unwrap()];
    let mut filter = Filter::default();
    filter[0] = Some(vec![row.user.clone()]);
    if numbers.is_one_in(2) {
        filter[1] = Some(vec![row.key.clone()]);
    }
    let [from, to] = window;
    // A list over all users is restricted to charges; the users of the chats have no other entries.
    let kinds = numbers.is_one_in(3).then(|| vec!["charge".to_owned()]);
    if kinds.is_some() {
        filter = Filter::default();
    }
    let entries = EntryFilter {
        from,
        to,
        user_ids: filter[0].clone(),
        key_ids: filter[1].clone(),
        kinds,
    };
    let mut after: Option<EntryPosition> = None;
    for _ in 0..2 {
        let page = store
            .list_entries(&entries, after.as_ref(), limit)
            .await
            .unwrap();
        let listed: Vec<_> = page.iter().map(|entry| entry.object_id.as_str()).collect();
        let start = after.as_ref().map(|after| after.object_id.as_str());
        let all = expected(charged, &filter, window, start, limit);
        assert_eq!(listed, all, "{entries:?} {after:?} {limit}");
        after = page.last().map(|entry| EntryPosition {
            at: entry.at,
            object_id: entry.object_id.clone(),
            kind: entry.kind.clone(),
        });
    }
}

async fn build(store: &Store, now: Millis) {
    while store.build_list_blocks(now).await.unwrap() {}
}

async fn blocks(db: &Db, list: &str) -> i64 {
    db.number(&format!(
        "SELECT COUNT(*) FROM list_blocks WHERE list = '{list}'"
    ))
    .await
}

fn newest_first(numbers: &mut Numbers, is_chat: bool) -> Vec<Listed> {
    let mut rows: Vec<_> = (0..ROWS)
        .map(|number| Listed::new(numbers, number, is_chat))
        .collect();
    rows.sort_unstable_by(|a, b| b.id.cmp(&a.id));
    rows
}

async fn filtered_lists_equal_a_scan_of_all_rows(db: &Db) {
    let store = db.open().await;
    let mut numbers = Numbers::new(7);
    let chats = newest_first(&mut numbers, true);
    let tasks = newest_first(&mut numbers, false);
    insert_chats(db, &chats).await;
    insert_tasks(db, &tasks).await;
    if matches!(db.location, DatabaseLocation::Postgres(_)) {
        // The server runs this by itself before long: without it each search reads complete tables.
        db.batch("ANALYZE").await;
    }
    compare(&store, &mut numbers, &chats, &tasks).await;
    // A row is in no block until it is some minutes old; then only complete blocks of ended rows are built.
    build(&store, BEGIN + MINUTE).await;
    assert_eq!(blocks(db, "chats").await, 0);
    build(&store, BEGIN + i64::try_from(ROWS).unwrap() * 250).await;
    assert!((1..3).contains(&blocks(db, "chats").await));
    compare(&store, &mut numbers, &chats, &tasks).await;
    build(&store, LATER).await;
    assert_eq!(
        [blocks(db, "chats").await, blocks(db, "tasks").await],
        [4, 4]
    );
    compare(&store, &mut numbers, &chats, &tasks).await;
    // These rows have no checksum and no usage.
    db.batch("DELETE FROM chats; DELETE FROM attempts; DELETE FROM charges; DELETE FROM tasks")
        .await;
}

async fn a_row_inserted_after_its_block_was_built_is_found(db: &Db) {
    let store = db.open().await;
    let mut numbers = Numbers::new(8);
    let chats: Vec<_> = (0..ROWS)
        .map(|n| Listed::new(&mut numbers, n, true))
        .collect();
    let tasks: Vec<_> = (0..ROWS)
        .map(|n| Listed::new(&mut numbers, n, false))
        .collect();
    insert_chats(db, &chats).await;
    insert_tasks(db, &tasks).await;
    build(&store, LATER).await;
    let ann = account(&store, "ann", "100").await;
    let at = chats[2500].at;
    let settle_late = async |store: &Store, at| {
        let mut late = chat(&ann, "1", "1");
        late.id = id::chat_id(at);
        let chat_id = late.id.clone();
        let end = tollgate_store::ChatEnd {
            ended_at: at,
            ..chat_end(tokens(500_000, 0))
        };
        store.settle_chat(late, &ChatHold::None, end).await.unwrap();
        chat_id
    };
    let chat_id = settle_late(&store, at).await;
    let task_id = submit(&store, task_at(&ann, 1, "0.1", at)).await;
    let find = async || {
        let users = Some(vec![ann.user_id.clone()]);
        let chats = ChatFilter {
            to: LATER,
            user_ids: users.clone(),
            ..ChatFilter::default()
        };
        let tasks = TaskFilter {
            to: LATER,
            user_ids: users,
            ..TaskFilter::default()
        };
        let chats = store.admin_list_chats(&chats, None, 9).await.unwrap();
        let tasks = store.admin_list_tasks(&tasks, None, 9).await.unwrap();
        let ids = chats.into_iter().map(|chat| chat.id);
        ids.chain(tasks.into_iter().map(|task| task.id))
            .collect::<Vec<_>>()
    };
    let both = [chat_id, task_id];
    assert_eq!(
        [blocks(db, "chats").await, blocks(db, "tasks").await],
        [2, 2]
    );
    assert_eq!(find().await, both);
    // The task has not ended, so its block is not built.
    build(&store, LATER).await;
    assert_eq!(
        [blocks(db, "chats").await, blocks(db, "tasks").await],
        [4, 2]
    );
    assert_eq!(find().await, both);
    // Another process, which did not build these blocks.
    let other = db.open().await;
    let earlier = settle_late(&other, chats[500].at).await;
    assert_eq!(blocks(db, "chats").await, 0);
    build(&store, LATER).await;
    assert_eq!(blocks(db, "chats").await, 4);
    let [chat_id, task_id] = both;
    assert_eq!(find().await, [chat_id, earlier, task_id]);
    db.batch("DELETE FROM chats WHERE seal = 0").await;
    db.batch("DELETE FROM attempts; DELETE FROM tasks WHERE family = ''; DELETE FROM charges WHERE seal = 0").await;
}
