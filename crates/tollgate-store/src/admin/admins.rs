//! Admins, who sign in to the console, and their one-time links.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::clock::{DAY, HOUR};
use tollgate_core::{Millis, id};

use super::json::{opt_time_json, time_json};
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

macro_rules! select_admins {
    () => {
        "SELECT id, name, role, disabled, created_at, last_sign_in_at, version, password FROM admins "
    };
}
pub(super) const ADMIN_BY_ID: Sql = Sql::both(concat!(select_admins!(), "WHERE id = $1"));
pub(super) const ADMIN_BY_NAME: Sql = Sql::both(concat!(select_admins!(), "WHERE name = $1"));
const LIST_ADMINS: Sql = Sql::both(concat!(
    select_admins!(),
    "WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3"
));
/// Ends the sessions of an admin.
pub(super) const END_SESSIONS_OF_ADMIN: Sql =
    Sql::both("DELETE FROM admin_sessions WHERE admin_id = $1");
pub(super) const ANY_ADMIN: Sql = Sql::both("SELECT id FROM admins LIMIT 1");
const INSERT_ADMIN: Sql = Sql::both(
    "INSERT INTO admins (id, name, role, disabled, created_at, version) VALUES ($1, $2, $3, 0, $4, 1)
     ON CONFLICT DO NOTHING",
);
pub(super) const UPDATE_ADMIN: Sql = Sql::both(
    "UPDATE admins SET name = $1, role = $2, disabled = $3, version = version + 1 WHERE id = $4 AND version = $5",
);
const DELETE_ADMIN: Sql = Sql::both("DELETE FROM admins WHERE id = $1");
pub(super) const DELETE_LINKS: Sql = Sql::both("DELETE FROM admin_links WHERE admin_id = $1");
const INSERT_LINK: Sql =
    Sql::both("INSERT INTO admin_links (hash, admin_id, expires_at) VALUES ($1, $2, $3)");
pub(super) const LINK: Sql =
    Sql::both("SELECT admin_id FROM admin_links WHERE hash = $1 AND expires_at > $2");

/// How long a sign-in link is valid.
const LINK_TTL: Millis = HOUR;
/// How long the link for a first sign-in is valid.
const FIRST_LINK_TTL: Millis = DAY;

/// An admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// `admin_` and 16 random characters.
    pub id: String,
    /// Unique.
    pub name: String,
    /// The role's name.
    pub role: String,
    /// Whether sign-in is rejected.
    pub disabled: bool,
    /// When it was created.
    pub created_at: Millis,
    /// When it signed in last. `None` if never.
    pub last_sign_in_at: Option<Millis>,
    /// Goes up with every change.
    pub version: i64,
}

/// An admin with the hash of the password, for signing in.
#[derive(Debug, Clone)]
pub struct AdminSignIn {
    /// The admin.
    pub admin: Admin,
    /// The argon2id hash; `None` if no link was used yet.
    pub password: Option<String>,
}

/// An admin to create.
#[derive(Debug, Clone)]
pub struct NewAdmin {
    /// Unique.
    pub name: String,
    /// The role's name.
    pub role: String,
    /// SHA-256 of the code in the one-time link, in hex.
    pub link_hash: String,
}

/// Changes of an admin; `None` changes nothing.
#[derive(Debug, Clone, Default)]
pub struct AdminPatch {
    /// A new name.
    pub name: Option<String>,
    /// The name of another role.
    pub role: Option<String>,
    /// Whether sign-in is rejected; disabling ends the sessions.
    pub disabled: Option<bool>,
}

impl Admin {
    /// The admin as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "role": self.role,
            "disabled": self.disabled,
            "created_at": time_json(self.created_at),
            "last_sign_in_at": opt_time_json(self.last_sign_in_at),
            "version": self.version,
        })
    }

    pub(super) fn reply(&self, status: u16) -> AdminReply {
        AdminReply::new(status, self.to_json(), Some(self.version))
    }
}

/// Admins.
impl Store {
    /// Creates an admin with a one-time link.
    pub async fn create_admin(&self, request: &AdminRequest, new: NewAdmin) -> AdminResult {
        let id = id::short_id("admin_");
        self.admin_write(request, CreateAdmin { id, new }).await
    }

    /// Changes an admin that has the version `if_match`; any version if that is `None`.
    pub async fn update_admin(
        &self,
        request: &AdminRequest,
        id: &str,
        if_match: Option<i64>,
        patch: AdminPatch,
    ) -> AdminResult {
        let edit = EditAdmin {
            id: id.to_owned(),
            if_match,
            patch: Some(patch),
        };
        self.admin_write(request, edit).await
    }

    /// Deletes an admin that has the version `if_match`, with its sessions and links.
    pub async fn delete_admin(
        &self,
        request: &AdminRequest,
        id: &str,
        if_match: i64,
    ) -> AdminResult {
        let edit = EditAdmin {
            id: id.to_owned(),
            if_match: Some(if_match),
            patch: None,
        };
        self.admin_write(request, edit).await
    }

    /// The admin with that id.
    pub async fn admin(&self, id: &str) -> Result<Option<Admin>, StoreError> {
        self.first(&ADMIN_BY_ID, args![id], read_admin).await
    }

    /// The admin with that name, to sign in.
    pub async fn admin_sign_in(&self, name: &str) -> Result<Option<AdminSignIn>, StoreError> {
        self.first(&ADMIN_BY_NAME, args![name], |row| {
            Ok(AdminSignIn {
                admin: read_admin(row)?,
                password: row.opt_text(7)?,
            })
        })
        .await
    }

    /// Whether there is any admin.
    pub async fn has_admins(&self) -> Result<bool, StoreError> {
        Ok(!self.query(&ANY_ADMIN, &[]).await?.is_empty())
    }

    /// Admins, newest first.
    pub async fn list_admins(
        &self,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<Admin>, StoreError> {
        let (at, id) = page_args(after);
        let mut rows = self
            .query_slow(&LIST_ADMINS, args![at, id, limit as i64])
            .await?;
        Ok(rows.iter_mut().map(read_admin).collect::<Result<_, _>>()?)
    }

    /// Adds a link for a first sign-in, which creates the first admin. The link becomes invalid as soon as there is an admin.
    pub async fn create_first_link(&self, hash: &str, now: Millis) -> Result<(), StoreError> {
        let hash = hash.to_owned();
        self.write(CreateFirstLink { hash, now }).await
    }

    /// The owner of the link with this hash: the id of an admin, or an empty text for the link of a first sign-in. `None` if there is no valid link
    /// with this hash.
    pub async fn admin_link(&self, hash: &str, now: Millis) -> Result<Option<String>, StoreError> {
        self.first(&LINK, args![hash, now], |row| row.text(0)).await
    }
}

fn name_taken(name: &str) -> Applied {
    let message = format!("there is an admin {name:?} already: choose another name");
    AdminRejection::conflict("name_taken", Some("name"), message).into()
}

struct CreateAdmin {
    id: String,
    new: NewAdmin,
}

#[async_trait(?Send)]
impl AdminChange for CreateAdmin {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(admin) =
            insert_admin(batch, &self.id, &self.new.name, &self.new.role, request.now).await?
        else {
            return Ok(name_taken(&self.new.name));
        };
        let args = args![&self.new.link_hash, &self.id, request.now + LINK_TTL];
        batch.queue(&INSERT_LINK, args)?;
        Ok(Applied::Changed(Change {
            action: "admin.create",
            object_type: "admin",
            object_id: admin.id.clone(),
            before: None,
            after: Some(admin.to_json()),
            reply: admin.reply(201),
        }))
    }
}

/// Inserts an admin without a password. `None` if the name is taken.
pub(super) async fn insert_admin(
    batch: &mut Batch<'_, '_>,
    id: &str,
    name: &str,
    role: &str,
    now: Millis,
) -> Result<Option<Admin>, DbError> {
    let inserted = batch
        .execute(&INSERT_ADMIN, args![id, name, role, now])
        .await?;
    Ok((inserted == 1).then(|| Admin {
        id: id.to_owned(),
        name: name.to_owned(),
        role: role.to_owned(),
        disabled: false,
        created_at: now,
        last_sign_in_at: None,
        version: 1,
    }))
}

struct EditAdmin {
    id: String,
    if_match: Option<i64>,
    /// The changes; `None` deletes the admin.
    patch: Option<AdminPatch>,
}

#[async_trait(?Send)]
impl AdminChange for EditAdmin {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(mut row) = batch.first(&ADMIN_BY_ID, args![&self.id]).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let admin = read_admin(&mut row)?;
        if self
            .if_match
            .is_some_and(|version| version != admin.version)
        {
            return Ok(Applied::Rejected(AdminRejection::Stale {
                current: admin.to_json(),
                version: admin.version,
            }));
        }
        let Some(patch) = &self.patch else {
            batch.queue(&END_SESSIONS_OF_ADMIN, args![&admin.id])?;
            batch.queue(&DELETE_LINKS, args![&admin.id])?;
            batch.queue(&DELETE_ADMIN, args![&admin.id])?;
            return Ok(Applied::Changed(Change {
                action: "admin.delete",
                object_type: "admin",
                object_id: admin.id.clone(),
                before: Some(admin.to_json()),
                after: None,
                reply: AdminReply::new(204, Value::Null, None),
            }));
        };
        let mut patched = admin.clone();
        patched.name = patch.name.clone().unwrap_or(patched.name);
        patched.role = patch.role.clone().unwrap_or(patched.role);
        patched.disabled = patch.disabled.unwrap_or(patched.disabled);
        if patched == admin {
            return Ok(Applied::Unchanged(admin.reply(200)));
        }
        if patched.name != admin.name
            && batch
                .first(&ADMIN_BY_NAME, args![&patched.name])
                .await?
                .is_some()
        {
            return Ok(name_taken(&patched.name));
        }
        patched.version += 1;
        let args = args![
            &patched.name,
            &patched.role,
            patched.disabled,
            &admin.id,
            admin.version
        ];
        batch.queue_one(&UPDATE_ADMIN, args)?;
        if patched.disabled {
            batch.queue(&END_SESSIONS_OF_ADMIN, args![&admin.id])?;
        }
        Ok(Applied::Changed(Change {
            action: "admin.update",
            object_type: "admin",
            object_id: admin.id.clone(),
            before: Some(admin.to_json()),
            after: Some(patched.to_json()),
            reply: patched.reply(200),
        }))
    }
}

struct CreateFirstLink {
    hash: String,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for CreateFirstLink {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(
            &INSERT_LINK,
            args![&self.hash, "", self.now + FIRST_LINK_TTL],
        )
    }
}

pub(super) fn read_admin(row: &mut Row) -> Result<Admin, DbError> {
    Ok(Admin {
        id: row.text(0)?,
        name: row.text(1)?,
        role: row.text(2)?,
        disabled: row.int(3)? != 0,
        created_at: row.int(4)?,
        last_sign_in_at: row.opt_int(5)?,
        version: row.int(6)?,
    })
}
