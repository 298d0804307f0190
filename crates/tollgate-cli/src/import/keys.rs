//! Imports users and API keys of another gateway, whose clients keep their keys: one JSON object a line (docs/guides/migrate.md).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tollgate_core::{Amount, Clock as _, Millis, SystemClock, id};
use tollgate_store::{KeyLimits, NewKey, RateLimits, Store};

use crate::common::{Common, Failed};
use crate::user::check_name;

/// The fewest characters of a key: shorter ones could be guessed.
const MIN_KEY: usize = 16;
/// Characters of a key that are stored and shown as its hint.
const HINT: usize = 11;
/// The hint of a key if only its hash is known.
const UNKNOWN_HINT: &str = "imported";

/// One line: a key, and the user to whom its requests are charged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The user's name.
    user: String,
    /// The balance of a user who is created; unlimited if it is missing.
    balance: Option<Amount>,
    /// The key itself, or its hash.
    key: Option<String>,
    sha256: Option<String>,
    /// A name for people.
    name: Option<String>,
    /// What the key may spend from now on; if it is missing, only its user's limit applies.
    quota: Option<Amount>,
    rpm: Option<u32>,
    tpm: Option<u32>,
    max_concurrency: Option<u32>,
    /// The only models that the key may use; all models if it is empty or missing.
    models: Option<Vec<String>>,
    /// When the key expires.
    expires: Option<String>,
}

/// A line that was checked.
struct Checked {
    line: Line,
    expires_at: Option<Millis>,
    hash: String,
    hint: String,
}

/// Creates the users and keys of a file; with `only_checks`, creates nothing.
pub(super) async fn import(common: &Common, text: &str, only_checks: bool) -> Result<(), Failed> {
    // The complete file is checked before anything is written.
    let lines = check_file(text)?;
    let (mut users, mut keys, mut skipped) = (0, 0, 0);
    if !only_checks {
        let store = common.store().await?;
        let names = store.list_users().await?.into_iter().map(|user| user.name);
        let mut names: BTreeSet<String> = names.collect();
        for checked in &lines {
            if store.key_by_hash(&checked.hash).await?.is_some() {
                skipped += 1;
                continue;
            }
            if names.insert(checked.line.user.clone()) {
                create_user(&store, &checked.line).await?;
                users += 1;
            }
            create_key(&store, checked).await?;
            keys += 1;
        }
    }
    let record = json!({ "lines": lines.len(), "users": users, "keys": keys, "skipped": skipped });
    common.print(&record, || match only_checks {
        true => format!("{} keys can be imported", lines.len()),
        false => {
            format!("{users} users and {keys} keys were created; {skipped} keys were there already")
        }
    })
}

fn check_file(text: &str) -> Result<Vec<Checked>, Failed> {
    let mut hashes = BTreeSet::new();
    let mut checked = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let number = at + 1;
        let line = check_line(line).map_err(|why| format!("line {number}: {why}"))?;
        if !hashes.insert(line.hash.clone()) {
            return Err(Failed::from(format!(
                "line {number}: its key is in another line too"
            )));
        }
        checked.push(line);
    }
    Ok(checked)
}

/// Checks a line. No error contains the key.
fn check_line(text: &str) -> Result<Checked, String> {
    // The message of serde_json can contain a value.
    let line: Line = serde_json::from_str(text).map_err(|e| match e.classify() {
        serde_json::error::Category::Data => format!(
            "a field is missing, unknown or of an invalid type, at column {}",
            e.column()
        ),
        _ => "it is not a JSON object".to_owned(),
    })?;
    check_name(&line.user).map_err(|_| "user must have 1 to 128 printable characters")?;
    for (field, amount) in [("balance", line.balance), ("quota", line.quota)] {
        if amount.is_some_and(Amount::is_negative) {
            return Err(format!("{field} must not be negative"));
        }
    }
    for (field, limit) in [
        ("rpm", line.rpm),
        ("tpm", line.tpm),
        ("max_concurrency", line.max_concurrency),
    ] {
        if limit == Some(0) {
            return Err(format!("{field} must be at least 1"));
        }
    }
    let expires = line.expires.as_deref().map(str::parse::<Timestamp>);
    let expires = expires.transpose();
    let expires = expires.map_err(|_| "expires must be a time such as 2027-01-31T00:00:00Z")?;
    let (hash, hint) = match (&line.key, &line.sha256) {
        (Some(key), None) if key.chars().count() >= MIN_KEY => {
            (id::key_hash(key), key.chars().take(HINT).collect())
        }
        (Some(_), None) => return Err(format!("key must have at least {MIN_KEY} characters")),
        (None, Some(hash)) if is_hash(hash) => (hash.clone(), UNKNOWN_HINT.to_owned()),
        (None, Some(_)) => return Err("sha256 must be 64 lower-case hexadecimal digits".to_owned()),
        (Some(_), Some(_)) | (None, None) => {
            return Err("it takes either key or sha256".to_owned());
        }
    };
    Ok(Checked {
        line,
        expires_at: expires.map(|at| at.as_millisecond()),
        hash,
        hint,
    })
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

async fn create_user(store: &Store, line: &Line) -> Result<(), Failed> {
    let (is_unlimited, balance) = (line.balance.is_none(), line.balance.unwrap_or_default());
    let now = SystemClock.now();
    store
        .create_user(
            &line.user,
            is_unlimited,
            balance,
            RateLimits::default(),
            now,
        )
        .await?;
    Ok(())
}

async fn create_key(store: &Store, checked: &Checked) -> Result<(), Failed> {
    let Checked {
        line,
        expires_at,
        hash,
        hint,
    } = checked;
    let new = NewKey {
        id: id::short_id("key_"),
        hash: hash.clone(),
        hint: hint.clone(),
        user: line.user.clone(),
        label: line.name.clone().unwrap_or_default(),
        quota: line.quota,
        limits: KeyLimits {
            rates: RateLimits {
                rpm: line.rpm,
                tpm: line.tpm,
                max_concurrency: line.max_concurrency,
            },
            models: line.models.clone().filter(|models| !models.is_empty()),
            expires_at: *expires_at,
            bare_envelope: false,
            trace_content: false,
        },
        now: SystemClock.now(),
    };
    store.create_key(new).await?;
    Ok(())
}
