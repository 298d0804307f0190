//! `tollgate key create | list | revoke`.

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate_core::{Amount, Clock as _, SystemClock, id};
use tollgate_store::{self as store, KeyLimits, NewKey, RateLimits};

use super::common::{Common, Failed};

#[derive(Subcommand)]
pub(super) enum Key {
    /// Create a key, which is shown only once
    Create(Create),
    /// List the keys
    List,
    /// Revoke a key: it stops working within a second
    Revoke {
        /// The key's id, such as key_…
        id: String,
    },
}

#[derive(Args)]
pub(super) struct Create {
    /// The user to whom requests are charged
    #[arg(long, value_name = "NAME")]
    user: String,
    /// A label for the key
    #[arg(long, value_name = "LABEL", default_value = "")]
    name: String,
    /// The amount that it may spend in total, such as 25
    #[arg(long, value_name = "AMOUNT", conflicts_with = "unlimited")]
    quota: Option<Amount>,
    /// No quota: limited only by its user's balance (the default)
    #[arg(long)]
    unlimited: bool,
    /// Limit of POST requests in a sliding minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rpm: Option<u32>,
    /// Limit of chat tokens in a sliding minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tpm: Option<u32>,
    /// Limit of concurrent requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrency: Option<u32>,
    /// The models that it may use [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// When it expires
    #[arg(long, value_name = "RFC3339")]
    expires: Option<Timestamp>,
    /// `none`: chat responses without envelope, also on paths that normally have one
    #[arg(long, value_enum)]
    envelope: Option<Envelope>,
    /// Record the messages of its chats in traces
    #[arg(long)]
    trace_content: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Envelope {
    /// Responses without the envelope `{code, data}`
    None,
}

impl Key {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Create(create) => create.run(common).await,
            Self::List => {
                let keys = common.store().await?.list_keys().await?;
                let records: Value = keys.iter().map(record).collect();
                common.print(&records, || {
                    keys.iter().map(line).collect::<Vec<_>>().join("\n")
                })
            }
            Self::Revoke { id } => {
                let key = common
                    .store()
                    .await?
                    .revoke_key(&id, SystemClock.now())
                    .await?;
                common.print(&record(&key), || line(&key))
            }
        }
    }
}

impl Create {
    async fn run(self, common: &Common) -> Result<(), Failed> {
        if self.quota.is_some_and(Amount::is_negative) {
            return Err(Failed::from("--quota must not be negative"));
        }
        let limits = KeyLimits {
            rates: RateLimits {
                rpm: self.rpm,
                tpm: self.tpm,
                max_concurrency: self.max_concurrency,
            },
            models: self.models,
            expires_at: self.expires.map(|t| t.as_millisecond()),
            bare_envelope: self.envelope.is_some(),
            trace_content: self.trace_content,
        };
        let store = common.store().await?;
        let (key, secret) = create(&store, &self.user, &self.name, self.quota, limits).await?;
        let mut shown = record(&key);
        shown["key"] = json!(secret);
        common.print(&shown, || {
            format!("{secret}\n{}\nThe key is not shown again.", line(&key))
        })
    }
}

/// Creates a key; returns it with the secret, which is shown only this once.
pub(super) async fn create(
    store: &store::Store,
    user: &str,
    label: &str,
    quota: Option<Amount>,
    limits: KeyLimits,
) -> Result<(store::Key, String), store::StoreError> {
    let secret = id::api_key();
    let new = NewKey {
        id: id::short_id("key_"),
        hash: id::key_hash(&secret),
        hint: id::hint(&secret, "sk-"),
        user: user.to_owned(),
        label: label.to_owned(),
        quota,
        limits,
        now: SystemClock.now(),
    };
    Ok((store.create_key(new).await?, secret))
}

fn record(key: &store::Key) -> Value {
    json!({
        "id": key.id,
        "name": key.label,
        "user": key.user,
        "quota": key.quota,
        "unlimited": key.quota.is_none(),
        "used": key.used,
        "held": key.held,
        "rpm": key.limits.rates.rpm,
        "tpm": key.limits.rates.tpm,
        "max_concurrency": key.limits.rates.max_concurrency,
        "models": key.limits.models,
        "expires": key.limits.expires_at.map(rfc3339),
        "envelope": if key.limits.bare_envelope { "none" } else { "standard" },
        "revoked": key.revoked_at.is_some(),
    })
}

fn rfc3339(at: i64) -> String {
    Timestamp::from_millisecond(at).map_or_else(|_| at.to_string(), |t| t.to_string())
}

fn line(key: &store::Key) -> String {
    let quota = match key.quota {
        Some(quota) => format!("quota {quota}"),
        None => "unlimited".to_owned(),
    };
    let revoked = if key.revoked_at.is_some() {
        ", revoked"
    } else {
        ""
    };
    format!(
        "{}  user {}  {}  {quota}, used {}{revoked}",
        key.id, key.user, key.label, key.used
    )
}
