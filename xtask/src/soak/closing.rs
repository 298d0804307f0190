//! After the load: every promise is compared with what the gateway says now.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use super::chats::Bill;
use super::customer::{check_picture, download, path};
use super::notes::{Notes, count};
use super::site::{Account, Site};
use super::verdict::{End, end, judge, nanos};
use crate::http::{Ask, Client};

/// How long the last tasks may take once nobody kills the gateway any more.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// The records of all tasks of a user, by id.
type Records = HashMap<String, Value>;

/// Waits until all is final, then checks tasks, files and money. Returns how long it waited.
pub(super) async fn check(site: &Site, client: &Client, notes: &Notes) -> Duration {
    let began = Instant::now();
    let records = match settled(site, client).await {
        Ok(records) => records,
        Err(e) => {
            notes.violation(e);
            return began.elapsed();
        }
    };
    let waited = began.elapsed();
    check_promises(site, client, notes, &records).await;
    check_uploads(site, client, notes).await;
    for (at, (account, records)) in site.accounts.iter().zip(&records).enumerate() {
        let chats = notes.chats_of(at);
        if let Err(wrong) = check_money(site, client, account, records, chats).await {
            notes.violation(format!("user {}: {wrong}", account.user));
        }
    }
    waited
}

/// The records of all users' tasks, once all are final.
async fn settled(site: &Site, client: &Client) -> Result<Vec<Records>, String> {
    let began = Instant::now();
    loop {
        let mut all = Vec::new();
        for account in &site.accounts {
            all.push(list(&site.addresses[0], client, &account.keys[0]).await?);
        }
        let open = all
            .iter()
            .flat_map(HashMap::values)
            .find(|r| end(r).is_none());
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

/// Every task of a key's user, page by page.
async fn list(address: &str, client: &Client, key: &str) -> Result<Records, String> {
    let mut records = Records::new();
    let mut cursor = String::new();
    loop {
        let url = format!("http://{address}/v1/tasks?limit=100{cursor}");
        let answer = client.ask(key, Ask::get(url)).await?;
        let mut page = answer.json();
        let Some(tasks) = page["data"].as_array_mut() else {
            return Err(format!("GET /v1/tasks: {}", answer.describe()));
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

async fn check_promises(site: &Site, client: &Client, notes: &Notes, records: &[Records]) {
    for (id, promise) in notes.promises() {
        let Some(listed) = records[promise.account].get(&id) else {
            notes.violation(format!("acknowledged task {id} is not listed"));
            continue;
        };
        let url = format!("http://{}/v1/tasks/{id}", site.addresses[0]);
        let record = match client.ask(&promise.key, Ask::get(url)).await {
            Ok(answer) if answer.status == 200 => answer.json()["data"].take(),
            Ok(answer) => {
                notes.violation(format!("acknowledged task {id}: {}", answer.describe()));
                continue;
            }
            Err(e) => {
                notes.violation(format!("acknowledged task {id}: {e}"));
                continue;
            }
        };
        if let Some(wrong) = judge(&promise.order, promise.cancel, &record) {
            notes.violation(format!("task {id} {wrong}"));
        }
        if record["cost"] != listed["cost"] || record["status"] != listed["status"] {
            notes.violation(format!("task {id} is listed as {listed} and is {record}"));
        }
        if let Some(before) = notes.seen(&id, &record).filter(|before| *before != record) {
            notes.violation(format!("task {id} was final as {before} and is {record}"));
        }
        match end(&record) {
            Some(End::Completed(links)) => {
                count(&notes.counts.completed);
                for link in links {
                    let url = format!("http://{}{}", site.addresses[0], path(&link));
                    check_picture(client, notes, &url, &promise.order).await;
                }
            }
            Some(End::Failed) => count(&notes.counts.failed),
            Some(End::Cancelled) => count(&notes.counts.cancelled),
            None => notes.violation(format!("task {id} is not final: {record}")),
        }
    }
}

async fn check_uploads(site: &Site, client: &Client, notes: &Notes) {
    for (link, bytes) in notes.uploads() {
        let url = format!("http://{}{}", site.addresses[0], path(&link));
        match download(client, &url).await {
            Ok(answer) if answer.status == 200 && answer.body == bytes => {}
            Ok(answer) => {
                let (status, got) = (answer.status, answer.body.len());
                let what = format!(
                    "upload {link} of {} bytes: {status}, {got} bytes",
                    bytes.len()
                );
                notes.violation(what);
            }
            Err(e) => notes.violation(format!("upload {link}: {e}")),
        }
    }
}

/// A user has used what its tasks and chats cost, its keys together too, and has left what remains of the
/// credits.
async fn check_money(
    site: &Site,
    client: &Client,
    account: &Account,
    records: &Records,
    chats: Bill,
) -> Result<(), String> {
    let balance = |key, path: &'static str| async move {
        let url = format!("http://{}{path}", site.addresses[0]);
        let answer = client.ask(key, Ask::get(url)).await?;
        let balance = answer.json();
        let used = nanos(&balance["used_balance"]);
        match (nanos(&balance["remain_balance"]), used) {
            (Some(remain), Some(used)) => Ok((remain, used)),
            _ => Err(format!("{path}: {}", answer.describe())),
        }
    };
    let (remain, used) = balance(&account.keys[0], "/v1/user/balance").await?;
    let costs = records.values().map(|record| nanos(&record["cost"]));
    let cost: i64 = costs
        .sum::<Option<i64>>()
        .ok_or("a record without a cost")?;
    if !chats.allows(used, cost) {
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

/// The books close beside the running gateways and after their end, which is an orderly one.
pub(super) fn audit_and_stop(site: &Site, notes: &Notes) {
    let audit = |when: &str| {
        count(&notes.counts.audits);
        if let Err(e) = site.node(0).cli(&["audit"]) {
            notes.violation(format!("`audit` {when}: {e}"));
        }
    };
    audit("at the end, beside the gateway");
    for at in 0..site.count() {
        match site.node(at).stop() {
            Ok(status) if status.success() => {}
            Ok(status) => notes.violation(format!("after SIGTERM the gateway ended with {status}")),
            Err(e) => notes.violation(e),
        }
    }
    audit("after the end");
    if notes.counts.completed.load(Ordering::Relaxed) == 0 {
        notes.violation("nothing was completed: the soak has shown nothing");
    }
}
