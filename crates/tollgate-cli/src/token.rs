//! `tollgate token create | list | revoke`.

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate_admin::admin::scope::{Scope, scope_names};
use tollgate_core::{Clock as _, SystemClock, id};
use tollgate_store::{self as store, AdminRequest, NewAdminToken};

use super::common::{Common, Failed, accepted};

/// Tokens that a listing reads with one query.
const PAGE: usize = 200;

#[derive(Subcommand)]
pub(super) enum Token {
    /// Create a token of the admin API, which is shown only once
    Create {
        /// A label for the token
        name: String,
        /// Its scopes, such as users:read,keys:write
        #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// When it expires
        #[arg(long, value_name = "RFC3339")]
        expires: Option<Timestamp>,
    },
    /// List the tokens
    List,
    /// Revoke a token: it stops working immediately
    Revoke {
        /// The token's id, such as tok_…
        id: String,
    },
}

impl Token {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let request = AdminRequest::cli(SystemClock.now());
        match self {
            Self::Create {
                name,
                mut scopes,
                expires,
            } => {
                super::user::check_actor_name(&name)?;
                if let Some(unknown) = scopes.iter().find(|s| Scope::from_name(s).is_none()) {
                    let known = scope_names().join(", ");
                    return Err(Failed::from(format!(
                        "{unknown:?} is not a scope; there are: {known}"
                    )));
                }
                let mut seen = std::collections::HashSet::new();
                scopes.retain(|scope| seen.insert(scope.clone()));
                let secret = id::admin_token();
                let new = NewAdminToken {
                    id: id::short_id("tok_"),
                    name,
                    scopes,
                    hash: id::key_hash(&secret),
                    hint: id::hint(&secret, "adm_"),
                    expires_at: expires.map(Timestamp::as_millisecond),
                };
                let store = common.store().await?;
                let mut shown = accepted(store.create_admin_token(&request, new).await?)?.body;
                shown["secret"] = json!(secret);
                common.print(&shown, || {
                    format!("{secret}\n{}\nThe token is not shown again.", line(&shown))
                })
            }
            Self::List => {
                let tokens = list(&common.store().await?).await?;
                let records: Vec<Value> = tokens.iter().map(store::AdminToken::to_json).collect();
                let lines = records.iter().map(line).collect::<Vec<_>>().join("\n");
                common.print(&Value::Array(records), || lines)
            }
            Self::Revoke { id } => {
                let store = common.store().await?;
                let unknown = || format!("there is no token {id:?}: see `tollgate token list`");
                let token = store.admin_token(&id).await?.ok_or_else(unknown)?;
                accepted(store.delete_admin_token(&request, &id, None).await?)?;
                let shown = token.to_json();
                common.print(&shown, || format!("{}, revoked", line(&shown)))
            }
        }
    }
}

async fn list(store: &store::Store) -> Result<Vec<store::AdminToken>, Failed> {
    let mut tokens: Vec<store::AdminToken> = Vec::new();
    loop {
        let last = tokens.last().map(|last| store::PageStart {
            at: last.created_at,
            id: last.id.clone(),
        });
        let page = store.list_admin_tokens(last.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        tokens.extend(page);
        if is_last {
            return Ok(tokens);
        }
    }
}

fn line(token: &Value) -> String {
    let text = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
    let scopes = token["scopes"].as_array().into_iter().flatten();
    let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
    format!(
        "{}  {}  {}  {}",
        text("id"),
        text("hint"),
        text("name"),
        scopes.join(",")
    )
}
