//! The users of a test and their keys, and the prices of the models that they use.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

use crate::gateway::Gateway;

/// The price per image, in billionths; [`PRICES`] configures the same for the gateway.
pub(super) const GROK_PRICE: i64 = 20_000_000;
pub(super) const GPT_PRICE: i64 = 40_000_000;
pub(super) const GPT_HIGH_PRICE: i64 = 107_000_000;

pub(crate) const PRICES: &str = r#"
[price."grok-imagine-1.0-partner"]
per_image = 0.02
[price."gpt-image-1-official"]
per_image = 0.04
when = [ { quality = "high", per_image = 0.107 } ]
[price."gpt-5"]
input_per_million = 1.25
output_per_million = 10.0
"#;

/// A user and the amount credited to it, in billionths; `None` for a user without limit.
pub(crate) struct Account {
    pub(crate) user: &'static str,
    pub(crate) keys: Vec<String>,
    pub(crate) credited: Mutex<Option<i64>>,
}

/// What the customers use: the gateways, and the accounts on them.
pub(crate) struct Service {
    /// Host and port of each gateway, or of the load balancer in front of them.
    pub(crate) addresses: Vec<String>,
    pub(crate) accounts: Vec<Account>,
    /// Whether a misbehaving provider has a higher priority than the sandbox.
    pub(crate) failing_provider: bool,
}

/// Creates four users: one with more than it can spend, one whose balance runs out, one with nearly no balance from the start, one without limit.
/// Each has a key without a quota; those with a balance also have one with a quota.
pub(crate) fn create_accounts(node: &Gateway) -> Result<Vec<Account>, String> {
    let users = [
        ("rich", Some((100_000, 50))),
        ("modest", Some((60, 25))),
        ("poor", Some((3, 2))),
        ("boundless", None),
    ];
    let mut accounts = Vec::new();
    for (user, limits) in users {
        let balance = limits.map(|(balance, _)| i64::from(balance));
        match balance {
            Some(balance) => {
                node.cli_json(&["user", "create", user, "--balance", &balance.to_string()])?
            }
            None => node.cli_json(&["user", "create", user, "--unlimited"])?,
        };
        let free = node.cli_json(&["key", "create", "--user", user, "--name", "free"])?;
        let mut keys = vec![parse_key(&free)?];
        if let Some((_, quota)) = limits {
            let quota = quota.to_string();
            let tied = [
                "key", "create", "--user", user, "--name", "tied", "--quota", &quota,
            ];
            keys.push(parse_key(&node.cli_json(&tied)?)?);
        }
        accounts.push(Account {
            user,
            keys,
            credited: Mutex::new(balance.map(|b| b * 1_000_000_000)),
        });
    }
    // As documented: "Commands that write work beside a running server, which sees the change within one second."
    std::thread::sleep(Duration::from_secs(1));
    Ok(accounts)
}

fn parse_key(record: &Value) -> Result<String, String> {
    let key = record["key"].as_str();
    key.map(str::to_owned)
        .ok_or_else(|| format!("`key create` printed no key: {record}"))
}
