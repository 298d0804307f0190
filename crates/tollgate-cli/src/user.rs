//! `tollgate user create | credit | list | disable`.

use clap::Subcommand;
use serde_json::{Value, json};
use tollgate_admin::admin::fields;
use tollgate_core::{Amount, Clock as _, SystemClock};
use tollgate_store::{self as store, RateLimits};

use super::common::{Common, Failed};

#[derive(Subcommand)]
pub(super) enum User {
    /// Create a user
    Create {
        /// Unique name
        name: String,
        /// Opening balance, such as 12.5
        #[arg(long, value_name = "AMOUNT", conflicts_with = "unlimited")]
        balance: Option<Amount>,
        /// The balance may go below zero
        #[arg(long)]
        unlimited: bool,
        /// Limit of POST requests of all its keys together in a sliding minute
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// Limit of chat tokens of all its keys together in a sliding minute
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        tpm: Option<u32>,
        /// Limit of concurrent requests of all its keys together
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        max_concurrency: Option<u32>,
    },
    /// Add credit to a balance or, with a negative amount, subtract from it
    Credit {
        /// The user's name
        name: String,
        /// Such as 10 or -2.5
        #[arg(allow_hyphen_values = true)]
        amount: Amount,
        /// A note for the ledger entry
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// List the users
    List,
    /// Disable a user; its keys stop working
    Disable {
        /// The user's name
        name: String,
    },
}

impl User {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let now = SystemClock.now();
        match self {
            Self::Create {
                name,
                balance,
                unlimited,
                rpm,
                tpm,
                max_concurrency,
            } => {
                check_name(&name)?;
                let opening = balance.unwrap_or_default();
                if opening.is_negative() {
                    return Err(Failed::from("--balance must not be negative"));
                }
                let rates = RateLimits {
                    rpm,
                    tpm,
                    max_concurrency,
                };
                let user = common
                    .store()
                    .await?
                    .create_user(&name, unlimited, opening, rates, now)
                    .await?;
                print(common, &user)
            }
            Self::Credit { name, amount, note } => {
                let user = common
                    .store()
                    .await?
                    .credit_user(&name, amount, note.as_deref(), now)
                    .await?;
                print(common, &user)
            }
            Self::Disable { name } => {
                let user = common.store().await?.disable_user(&name, now).await?;
                print(common, &user)
            }
            Self::List => {
                let users = common.store().await?.list_users().await?;
                let records: Value = users.iter().map(record).collect();
                common.print(&records, || {
                    users.iter().map(line).collect::<Vec<_>>().join("\n")
                })
            }
        }
    }
}

/// Checks the name of an admin or a token.
pub(super) fn check_actor_name(name: &str) -> Result<(), Failed> {
    check_name(name)?;
    fields::check_actor_name(name).map_err(|e| Failed::from(format!("the name {e}")))
}

/// Checks the name of an object.
pub(super) fn check_name(name: &str) -> Result<(), Failed> {
    let fine = (1..=128).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fine && !name.trim().is_empty() {
        return Ok(());
    }
    Err(Failed::from(format!(
        "the name is {name:?}, but a name has 1 to 128 printable characters"
    )))
}

fn print(common: &Common, user: &store::User) -> Result<(), Failed> {
    common.print(&record(user), || line(user))
}

fn record(user: &store::User) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "balance": user.balance - user.held,
        "unlimited": user.unlimited,
        "used": user.used,
        "held": user.held,
        "debt": user.debt(),
        "rpm": user.rates.rpm,
        "tpm": user.rates.tpm,
        "max_concurrency": user.rates.max_concurrency,
        "disabled": user.disabled_at.is_some(),
    })
}

fn line(user: &store::User) -> String {
    let balance = if user.unlimited {
        "unlimited".to_owned()
    } else {
        format!("balance {}", user.balance - user.held)
    };
    let disabled = if user.disabled_at.is_some() {
        ", disabled"
    } else {
        ""
    };
    let debt = match user.debt() {
        Amount::ZERO => String::new(),
        debt => format!(", debt {debt}"),
    };
    format!(
        "{}  {}  {balance}, held {}, used {}{debt}{disabled}",
        user.id, user.name, user.held, user.used
    )
}
