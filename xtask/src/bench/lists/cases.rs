//! The kinds of requests that are measured.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::client::Client;
use super::data::DAYS;

/// A kind of request.
pub(super) struct Case {
    pub(super) name: String,
    /// The paths, which are requested in turn.
    paths: Vec<String>,
    /// Whether each request is for the page after the previous one.
    pub(super) is_paged: bool,
}

impl Case {
    fn new(name: impl Into<String>, paths: Vec<String>) -> Self {
        Self {
            name: name.into(),
            paths,
            is_paged: false,
        }
    }

    /// The path and query of request `number`.
    pub(super) fn path(&self, number: usize) -> String {
        self.paths[number % self.paths.len()].clone()
    }
}

/// Filters of chats, of tasks and of ledger entries: the name, and the query, in which `#` is replaced by a number.
const CHAT_FILTERS: &[(&str, &str)] = &[
    ("all", ""),
    ("a user", "&user_id=user_bench000#"),
    ("a key", "&key_id=key_bench000#"),
    ("a model", "&model=chat-model-3"),
    ("a channel", "&channel=chat-channel-2"),
    ("a format", "&format=messages"),
    ("failed", "&outcome=failed"),
    ("an error code", "&error_code=overloaded"),
    ("failed of a user", "&user_id=user_bench000#&outcome=failed"),
    (
        "a user with a model",
        "&user_id=user_bench000#&model=chat-model-3",
    ),
    ("a rare user", "&user_id=user_rare"),
    ("a rare key", "&key_id=key_rare"),
    ("a rare model", "&model=rare-model"),
    ("a rare channel", "&channel=rare-channel"),
    ("a rare error code", "&error_code=rare_error"),
    ("no such user", "&user_id=user_none"),
    ("no such model", "&model=none"),
    ("no such channel", "&channel=none"),
    ("no such error code", "&error_code=none"),
    ("no such outcome", "&outcome=lost"),
    ("no such format", "&format=generate-content"),
    ("no such request", "&request_id=req_none#"),
    (
        "a model on a channel without it",
        "&model=chat-model-3&channel=chat-channel-2",
    ),
];
const TASK_FILTERS: &[(&str, &str)] = &[
    ("all", ""),
    ("a user", "&user_id=user_bench000#"),
    ("a key", "&key_id=key_bench000#"),
    ("a kind", "&kind=video"),
    ("a model", "&model=task-model-3"),
    ("a channel", "&channel=task-channel-2"),
    ("failed", "&state=failed"),
    ("unfinished", "&state=submitted,in_progress"),
    ("an error code", "&error_code=provider_error"),
    ("a rare user", "&user_id=user_rare"),
    ("a rare key", "&key_id=key_rare"),
    ("a rare model", "&model=rare-model"),
    ("a rare channel", "&channel=rare-channel"),
    ("a rare error code", "&error_code=rare_error"),
    ("no such user", "&user_id=user_none"),
    ("no such model", "&model=none"),
    ("no such error code", "&error_code=none"),
    ("no such provider job", "&provider_job_id=none#"),
    (
        "a model on a channel without it",
        "&model=task-model-3&channel=task-channel-2",
    ),
];
const ENTRY_FILTERS: &[(&str, &str)] = &[
    ("all", ""),
    ("a user", "&user_id=user_bench000#"),
    ("a key", "&key_id=key_bench000#"),
    ("charges", "&kind=charge"),
    ("a rare user", "&user_id=user_rare"),
    ("a rare key", "&key_id=key_rare"),
    ("no such user", "&user_id=user_none"),
];
/// The values of `group_by` for sums of usage; empty for one sum.
const GROUPS: &[&str] = &[
    "",
    "day",
    "hour",
    "model",
    "user",
    "key",
    "channel",
    "day,model",
    "day,user",
    "day,key",
    "day,channel",
    "hour,model",
];

/// All kinds of requests.
pub(super) async fn all_cases(client: &mut Client) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for days in [7, DAYS] {
        let lists = [
            ("chats", CHAT_FILTERS),
            ("tasks", TASK_FILTERS),
            ("entries", ENTRY_FILTERS),
        ];
        for (list, filters) in lists {
            for (name, filter) in filters {
                let path = format!("/{list}?from={}{filter}", days_ago(days));
                cases.push(Case::new(
                    format!("{list}, {days} days, {name}"),
                    numbered_paths(&path),
                ));
            }
        }
    }
    for list in ["chats", "tasks", "entries"] {
        for (name, filter) in [("all", ""), ("a user", "&user_id=user_bench000017")] {
            let path = format!("/{list}?limit=200&from={}{filter}", days_ago(DAYS));
            let mut case = Case::new(format!("{list}, pages 1 to 100 of 200, {name}"), vec![path]);
            case.is_paged = true;
            cases.push(case);
        }
    }
    add_cases_by_id(client, &mut cases).await?;
    for days in [1, 7, DAYS] {
        for groups in GROUPS {
            let path = format!("/usage?from={}&group_by={groups}", days_ago(days));
            let path = path.trim_end_matches("&group_by=").to_owned();
            let by = if groups.is_empty() { "in all" } else { groups };
            cases.push(Case::new(format!("usage, {days} days, {by}"), vec![path]));
        }
    }
    Ok(cases)
}

/// Adds requests for users, keys, and objects that are found by an id.
async fn add_cases_by_id(client: &mut Client, cases: &mut Vec<Case>) -> Result<(), String> {
    for list in ["users", "keys"] {
        cases.push(Case::new(list, vec![format!("/{list}")]));
    }
    cases.push(Case::new(
        "entries of a user with balance",
        numbered_paths("/users/user_bench000#/entries?limit=50"),
    ));
    let end = days_ago(3);
    let chats = client.get(&format!("/chats?limit=200&to={end}")).await?;
    let tasks = client.get(&format!("/tasks?limit=200&to={end}")).await?;
    let search = |name: &str, list: &Value, member: &str| {
        let paths = member_values(list, member).map(|id| format!("/search?q={id}"));
        Case::new(format!("search, {name}"), paths.collect())
    };
    cases.push(search("a chat", &chats, "id"));
    cases.push(search("a request", &chats, "request_id"));
    cases.push(search("a task", &tasks, "id"));
    cases.push(search("a provider job", &tasks, "provider_job_id"));
    cases.push(Case::new(
        "search, a user",
        numbered_paths("/search?q=user_bench000#"),
    ));
    cases.push(Case::new(
        "search, a key",
        numbered_paths("/search?q=key_bench000#"),
    ));
    cases.push(Case::new(
        "search, no such request",
        numbered_paths("/search?q=req_none#"),
    ));
    let from = days_ago(DAYS);
    let requests =
        member_values(&chats, "request_id").map(|id| format!("/chats?from={from}&request_id={id}"));
    cases.push(Case::new(
        format!("chats, {DAYS} days, a request"),
        requests.collect(),
    ));
    let jobs = member_values(&tasks, "provider_job_id")
        .map(|id| format!("/tasks?from={from}&provider_job_id={id}"));
    cases.push(Case::new(
        format!("tasks, {DAYS} days, a provider job"),
        jobs.collect(),
    ));
    Ok(())
}

fn member_values<'a>(list: &'a Value, member: &'a str) -> impl Iterator<Item = &'a str> {
    let items = list["data"].as_array().into_iter().flatten();
    items.filter_map(move |item| item[member].as_str())
}

/// The path a hundred times, each with another number.
fn numbered_paths(path: &str) -> Vec<String> {
    (100..200)
        .map(|number| path.replace('#', &number.to_string()))
        .collect()
}

/// The time that many days before now, in the format of the admin API.
fn days_ago(days: u64) -> String {
    time_text(Timestamp::now() - Duration::from_secs(days * 86_400))
}

/// Formats a time as RFC 3339, in whole seconds.
fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_admin_api_reads_them() {
        let text = |seconds| time_text(Timestamp::from_second(seconds).unwrap());
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(1_709_210_096), "2024-02-29T12:34:56Z");
        assert_eq!(text(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
