//! After the load: compares everything that the gateways acknowledged with what they report now.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use super::accounts::{Account, Service};
use super::chat_costs::ChatCosts;
use super::customer::{check_image, download, link_path};
use super::observations::{Observations, increment};
use super::record_check::{TaskOutcome, billionths, check_record, task_outcome};
use crate::gateway::Gateway;
use crate::http::{Client, HttpRequest};

/// The time limit for the last tasks after the gateways are no longer killed.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// The records of all tasks of a user, by id.
type Records = HashMap<String, Value>;

/// Waits until all tasks are final, then checks tasks, files and money. Returns how long it waited.
pub(crate) async fn check(
    service: &Service,
    client: &Client,
    observations: &Observations,
) -> Duration {
    let began = Instant::now();
    let records = match await_final_records(service, client).await {
        Ok(records) => records,
        Err(e) => {
            observations.record_violation(e);
            return began.elapsed();
        }
    };
    let waited = began.elapsed();
    check_acknowledged_tasks(service, client, observations, &records).await;
    check_uploads(service, client, observations).await;
    for (at, (account, records)) in service.accounts.iter().zip(&records).enumerate() {
        let chats = observations.chat_costs(at);
        if let Err(mismatch) = check_money(service, client, account, records, chats).await {
            observations.record_violation(format!("user {}: {mismatch}", account.user));
        }
    }
    waited
}

/// The records of all users' tasks, after all tasks are final.
async fn await_final_records(service: &Service, client: &Client) -> Result<Vec<Records>, String> {
    let began = Instant::now();
    loop {
        let mut all = Vec::new();
        for account in &service.accounts {
            all.push(list_tasks(&service.addresses[0], client, &account.keys[0]).await?);
        }
        let open = all
            .iter()
            .flat_map(HashMap::values)
            .find(|r| task_outcome(r).is_none());
        match open {
            None => return Ok(all),
            Some(open) if began.elapsed() > SETTLE_LIMIT => {
                return Err(format!(
                    "not final {SETTLE_LIMIT:?} after the last kill: {open}"
                ));
            }
            Some(_) => sleep(PAUSE).await,
        }
    }
}

/// Every task of a key's user, read page by page.
async fn list_tasks(address: &str, client: &Client, key: &str) -> Result<Records, String> {
    let mut records = Records::new();
    let mut cursor = String::new();
    loop {
        let url = format!("http://{address}/v1/tasks?limit=100{cursor}");
        let response = client.send(key, HttpRequest::get(url)).await?;
        let mut page = response.json();
        let Some(tasks) = page["data"].as_array_mut() else {
            return Err(format!("GET /v1/tasks: {}", response.describe()));
        };
        for task in tasks {
            let id = task["id"].as_str().unwrap_or_default().to_owned();
            if records.insert(id, task.take()).is_some() {
                return Err("GET /v1/tasks lists a task twice".to_owned());
            }
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(records),
        }
    }
}

async fn check_acknowledged_tasks(
    service: &Service,
    client: &Client,
    observations: &Observations,
    records: &[Records],
) {
    for (id, task) in observations.acknowledged_tasks() {
        let Some(listed) = records[task.account].get(&id) else {
            observations.record_violation(format!("acknowledged task {id} is not listed"));
            continue;
        };
        let url = format!("http://{}/v1/tasks/{id}", service.addresses[0]);
        let record = match client.send(&task.key, HttpRequest::get(url)).await {
            Ok(response) if response.status == 200 => response.json()["data"].take(),
            Ok(response) => {
                observations
                    .record_violation(format!("acknowledged task {id}: {}", response.describe()));
                continue;
            }
            Err(e) => {
                observations.record_violation(format!("acknowledged task {id}: {e}"));
                continue;
            }
        };
        if let Some(mismatch) = check_record(&task.submission, task.cancellation, &record) {
            observations.record_violation(format!("task {id} {mismatch}"));
        }
        if record["cost"] != listed["cost"] || record["status"] != listed["status"] {
            observations
                .record_violation(format!("task {id} is listed as {listed} and is {record}"));
        }
        if let Some(before) = observations
            .record_final(&id, &record)
            .filter(|before| *before != record)
        {
            observations
                .record_violation(format!("task {id} was final as {before} and is {record}"));
        }
        match task_outcome(&record) {
            Some(TaskOutcome::Completed(links)) => {
                increment(&observations.counts.completed);
                for link in links {
                    let url = format!("http://{}{}", service.addresses[0], link_path(&link));
                    check_image(client, observations, &url, &task.submission).await;
                }
            }
            Some(TaskOutcome::Failed) => increment(&observations.counts.failed),
            Some(TaskOutcome::Cancelled) => increment(&observations.counts.cancelled),
            None => observations.record_violation(format!("task {id} is not final: {record}")),
        }
    }
}

async fn check_uploads(service: &Service, client: &Client, observations: &Observations) {
    for (link, bytes) in observations.uploads() {
        let url = format!("http://{}{}", service.addresses[0], link_path(&link));
        match download(client, &url).await {
            Ok(response) if response.status == 200 && response.body == bytes => {}
            Ok(response) => {
                let (status, got) = (response.status, response.body.len());
                let what = format!(
                    "upload {link} of {} bytes: {status}, {got} bytes",
                    bytes.len()
                );
                observations.record_violation(what);
            }
            Err(e) => observations.record_violation(format!("upload {link}: {e}")),
        }
    }
}

/// Checks that a user has used what its tasks and chats cost, also summed over its keys, and that its balance is the remaining part of its credits.
async fn check_money(
    service: &Service,
    client: &Client,
    account: &Account,
    records: &Records,
    chats: ChatCosts,
) -> Result<(), String> {
    let balance = |key, path: &'static str| async move {
        let url = format!("http://{}{path}", service.addresses[0]);
        let response = client.send(key, HttpRequest::get(url)).await?;
        let balance = response.json();
        let used = billionths(&balance["used_balance"]);
        match (billionths(&balance["remain_balance"]), used) {
            (Some(remain), Some(used)) => Ok((remain, used)),
            _ => Err(format!("{path}: {}", response.describe())),
        }
    };
    let (remain, used) = balance(&account.keys[0], "/v1/user/balance").await?;
    let costs = records.values().map(|record| billionths(&record["cost"]));
    let cost: i64 = costs
        .sum::<Option<i64>>()
        .ok_or("a record without a cost")?;
    if !chats.is_possible(used, cost) {
        return Err(format!(
            "its tasks cost {cost}, its chats {chats:?}, and it used {used}"
        ));
    }
    let mut used_by_keys = 0;
    for key in &account.keys {
        used_by_keys += balance(key, "/v1/balance").await?.1;
    }
    if used_by_keys != used {
        return Err(format!("its keys used {used_by_keys} and it used {used}"));
    }
    let credited = *account
        .credited
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match credited {
        Some(credited) if remain + used != credited => {
            Err(format!("credited {credited}, used {used}, left {remain}"))
        }
        None if remain != -1_000_000_000 => Err(format!("unlimited, and left {remain}")),
        _ => Ok(()),
    }
}

/// Checks that the audit succeeds while the gateways run and after they have stopped, and that they stop cleanly.
pub(crate) fn audit_and_stop(nodes: &[Mutex<Gateway>], observations: &Observations) {
    let node = |at: usize| nodes[at].lock().unwrap_or_else(PoisonError::into_inner);
    let audit = |when: &str| {
        increment(&observations.counts.audits);
        if let Err(e) = node(0).cli(&["audit"]) {
            observations.record_violation(format!("`audit` {when}: {e}"));
        }
    };
    audit("at the end, beside the gateway");
    for at in 0..nodes.len() {
        match node(at).stop() {
            Ok(status) if status.success() => {}
            Ok(status) => observations
                .record_violation(format!("after SIGTERM the gateway ended with {status}")),
            Err(e) => observations.record_violation(e),
        }
    }
    audit("after the end");
    if observations.counts.completed.load(Ordering::Relaxed) == 0 {
        observations.record_violation("nothing was completed: the run has shown nothing");
    }
}
