//! `tollgate admin create | list | disable`.

use clap::Subcommand;
use serde_json::{Value, json};
use tollgate_admin::admin::scope::{ROLES, Role};
use tollgate_admin::admin::sign_in_link;
use tollgate_config::Overrides;
use tollgate_core::{Clock as _, SystemClock, id};
use tollgate_store::{self as store, AdminPatch, AdminRequest, NewAdmin};

use super::common::{Common, Failed, accepted};

/// Admins that a listing reads with one query.
const PAGE: usize = 200;

#[derive(Subcommand)]
pub(super) enum Admin {
    /// Create an admin of the console; prints a one-time link to sign in
    Create {
        /// Unique name
        name: String,
        /// owner, operator, finance, support or viewer
        #[arg(long, value_name = "ROLE", value_parser = ROLES.map(|(_, name)| name))]
        role: String,
    },
    /// List the admins
    List,
    /// Disable an admin and end its sessions
    Disable {
        /// The admin's name
        name: String,
    },
}

impl Admin {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let request = AdminRequest::cli(SystemClock.now());
        match self {
            Self::Create { name, role } => {
                super::user::check_actor_name(&name)?;
                let config = common.configuration(Overrides::default())?;
                let code = id::random_secret("");
                let new = NewAdmin {
                    name,
                    role: Role::from_name(&role).map_or("", Role::name).to_owned(),
                    link_hash: id::key_hash(&code),
                };
                let store = super::common::open_store(&config).await?;
                let created = accepted(store.create_admin(&request, new).await?)?;
                let admin = config.admin_listener.as_ref();
                let admin = admin.map_or("", |listener| &listener.listen);
                let url = config.console_url(&config.listen, admin);
                let mut shown = record(&created.body);
                shown["link"] = json!(sign_in_link(&url, &code));
                let link = shown["link"].as_str().unwrap_or_default().to_owned();
                common.print(&shown, || {
                    format!(
                        "{}\n{link}\nThe link works once, for an hour.",
                        line(&shown)
                    )
                })
            }
            Self::List => {
                let admins = list(&common.store().await?).await?;
                let records: Vec<Value> = admins
                    .iter()
                    .map(|admin| record(&admin.to_json()))
                    .collect();
                let lines = records.iter().map(line).collect::<Vec<_>>().join("\n");
                common.print(&Value::Array(records), || lines)
            }
            Self::Disable { name } => {
                let store = common.store().await?;
                let found = store.admin_sign_in(&name).await?;
                let unknown = || format!("there is no admin {name:?}: see `tollgate admin list`");
                let admin = found.ok_or_else(unknown)?.admin;
                let patch = AdminPatch {
                    disabled: Some(true),
                    ..AdminPatch::default()
                };
                let disabled = store.update_admin(&request, &admin.id, None, patch).await?;
                let shown = record(&accepted(disabled)?.body);
                common.print(&shown, || line(&shown))
            }
        }
    }
}

async fn list(store: &store::Store) -> Result<Vec<store::Admin>, Failed> {
    let mut admins: Vec<store::Admin> = Vec::new();
    loop {
        let last = admins.last().map(|last| store::PageStart {
            at: last.created_at,
            id: last.id.clone(),
        });
        let page = store.list_admins(last.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        admins.extend(page);
        if is_last {
            return Ok(admins);
        }
    }
}

fn record(admin: &Value) -> Value {
    let members =
        ["id", "name", "role", "disabled"].map(|name| (name.to_owned(), admin[name].clone()));
    Value::Object(members.into_iter().collect())
}

fn line(admin: &Value) -> String {
    let text = |name: &str| admin[name].as_str().unwrap_or_default().to_owned();
    let disabled = if admin["disabled"] == true {
        ", disabled"
    } else {
        ""
    };
    format!(
        "{}  {}  {}{disabled}",
        text("id"),
        text("name"),
        text("role")
    )
}
