//! Sign-in by an OpenID provider: finds or creates the admin, user and key of an account. Accounts are identified by issuer and subject, never by a
//! name.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use super::admins::{
    ADMIN_BY_ID, Admin, END_SESSIONS_OF_ADMIN, UPDATE_ADMIN, insert_admin, read_admin,
};
use super::budgets::HARD_BUDGET;
use super::keys::{CreateKey, NewAdminKey, find_key};
use super::request::AdminRequest;
use super::sessions::{FRESH, SET_FRESH, SignInAttempt, delete_attempt};
use super::sign_in_nonce::use_nonce;
use super::users::{CreateUser, NewUser, find_user};
use super::write::{AdminChange, AdminRejection, AdminResult};
use super::write::{Applied, Change};
use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::keys::{Key, NewKey};
use crate::store::Store;
use crate::users::{USER_BY_NAME, User, read_user};
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

const IDENTITY: Sql = Sql::both(
    "SELECT admin_id, user_id, key_id FROM oidc_identities WHERE issuer = $1 AND subject = $2",
);
const LINKED_USER: Sql = Sql::both("SELECT subject FROM oidc_identities WHERE user_id = $1");
const LINK_ADMIN: Sql = Sql::both(
    "INSERT INTO oidc_identities (issuer, subject, admin_id, created_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (issuer, subject) DO UPDATE SET admin_id = excluded.admin_id",
);
const LINK_USER: Sql = Sql::both(
    "INSERT INTO oidc_identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (issuer, subject) DO UPDATE SET user_id = excluded.user_id",
);
const HELD_AND_USED: Sql = Sql::both("SELECT held + used FROM keys WHERE id = $1");
const SET_KEY: Sql =
    Sql::both("UPDATE oidc_identities SET key_id = $1 WHERE issuer = $2 AND subject = $3");
const ADMIN_OF_SESSION: Sql = Sql::both("SELECT admin_id FROM admin_sessions WHERE id = $1");

/// An account of an OpenID provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcIdentity {
    /// The provider's issuer URL.
    pub issuer: String,
    /// The account's `sub`, which the provider assigns to no other account.
    pub subject: String,
}

/// How an account that signs in for the first time is mapped to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OidcUsers {
    /// To a new user.
    Create,
    /// To the user with the account's name, if no other account is mapped to it.
    Match,
}

/// The admin of a session has signed in again.
#[derive(Debug, Clone)]
pub struct OidcRefresh {
    /// The account.
    pub identity: OidcIdentity,
    /// SHA-256 of the sign-in's nonce, in hex.
    pub nonce_hash: String,
    /// When the user last entered the password at the provider.
    pub authenticated_at: Millis,
    /// The attempt to remove from the failed ones.
    pub attempt: SignInAttempt,
    /// The time of the sign-in, in Unix milliseconds.
    pub now: Millis,
}

/// Sign-in by an OpenID provider.
impl Store {
    /// Finds the admin of an account and sets the admin's role; creates the admin at the first sign-in. If the name is taken or the admin is
    /// disabled, the error is [`AdminRejection::Conflict`].
    pub async fn sign_in_oidc_admin(
        &self,
        request: &AdminRequest,
        identity: OidcIdentity,
        name: &str,
        role: &str,
    ) -> AdminResult {
        let sign_in = SignInAdmin {
            identity,
            new_id: id::short_id("admin_"),
            name: name.to_owned(),
            role: role.to_owned(),
        };
        self.admin_write(request, sign_in).await
    }

    /// Ends the sessions of the admin of an account, because the provider assigns no role to the account any more.
    pub async fn end_oidc_sessions(&self, identity: OidcIdentity) -> Result<(), StoreError> {
        self.write(EndSessions(identity)).await
    }

    /// Makes a session fresh, for money and secrets, until five minutes after the password was entered at the provider. Returns false, and changes
    /// nothing, if the session is not of the account's admin, or the nonce was used before.
    pub async fn refresh_oidc_session(
        &self,
        session_id: &str,
        sign_in: OidcRefresh,
    ) -> Result<bool, StoreError> {
        let session_id = session_id.to_owned();
        self.write(RefreshSession {
            session_id,
            sign_in,
        })
        .await
    }

    /// Finds the user of an account; at the first sign-in, the user is created or found by its name. [`AdminRejection::NotFound`] if there is no user
    /// of that name; [`AdminRejection::Conflict`] if the name is taken or the user is disabled.
    pub async fn sign_in_oidc_user(
        &self,
        request: &AdminRequest,
        identity: OidcIdentity,
        name: &str,
        users: OidcUsers,
    ) -> AdminResult {
        let new = NewUser {
            name: name.to_owned(),
            ..NewUser::default()
        };
        let sign_in = SignInUser {
            identity,
            users,
            create: CreateUser::new(new, request.now),
        };
        self.admin_write(request, sign_in).await
    }

    /// The key with which the user of an account uses the portal. It is `new` if there is none yet, or if the last one was revoked or has expired. It
    /// then has the limits of the last one, and what is left of its quota; [`AdminRejection::Conflict`] if the last one has a hard budget.
    pub async fn oidc_portal_key(
        &self,
        request: &AdminRequest,
        identity: OidcIdentity,
        user_id: &str,
        new: NewKey,
    ) -> AdminResult {
        let create = CreateKey(NewAdminKey {
            user_id: user_id.to_owned(),
            key: new,
        });
        let ensure = EnsureKey { identity, create };
        self.admin_write(request, ensure).await
    }
}

/// The admin, user and key of an account.
struct Links {
    admin_id: Option<String>,
    user_id: Option<String>,
    key_id: Option<String>,
}

async fn links(batch: &mut Batch<'_, '_>, identity: &OidcIdentity) -> Result<Links, DbError> {
    let args = args![&identity.issuer, &identity.subject];
    Ok(match batch.first(&IDENTITY, args).await? {
        None => Links {
            admin_id: None,
            user_id: None,
            key_id: None,
        },
        Some(mut row) => Links {
            admin_id: row.opt_text(0)?,
            user_id: row.opt_text(1)?,
            key_id: row.opt_text(2)?,
        },
    })
}

fn disabled(what: &str) -> Applied {
    AdminRejection::conflict("disabled", None, format!("the {what} is disabled")).into()
}

fn name_taken(what: &str, name: &str) -> Applied {
    let message =
        format!("there is {what} {name:?} already who does not sign in with this account");
    AdminRejection::conflict("name_taken", Some("name"), message).into()
}

/// Adds the account to an object of the trail.
fn with_identity(mut object: Value, identity: &OidcIdentity) -> Value {
    object["oidc"] = json!({ "issuer": identity.issuer, "subject": identity.subject });
    object
}

struct SignInAdmin {
    identity: OidcIdentity,
    /// The id of an admin who is created.
    new_id: String,
    name: String,
    role: String,
}

impl SignInAdmin {
    async fn create(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let now = request.now;
        let admin = insert_admin(batch, &self.new_id, &self.name, &self.role, now).await?;
        let Some(admin) = admin else {
            return Ok(name_taken("an admin", &self.name));
        };
        let OidcIdentity { issuer, subject } = &self.identity;
        batch.queue(&LINK_ADMIN, args![issuer, subject, &admin.id, now])?;
        Ok(Applied::Changed(Change {
            action: "admin.create",
            object_type: "admin",
            object_id: admin.id.clone(),
            before: None,
            after: Some(with_identity(admin.to_json(), &self.identity)),
            reply: admin.reply(201),
        }))
    }

    fn set_role(&self, batch: &mut Batch<'_, '_>, admin: &Admin) -> Result<Applied, DbError> {
        let mut changed = admin.clone();
        changed.role.clone_from(&self.role);
        changed.version += 1;
        let args = args![
            &changed.name,
            &changed.role,
            changed.disabled,
            &admin.id,
            admin.version
        ];
        batch.queue_one(&UPDATE_ADMIN, args)?;
        Ok(Applied::Changed(Change {
            action: "admin.update",
            object_type: "admin",
            object_id: admin.id.clone(),
            before: Some(admin.to_json()),
            after: Some(with_identity(changed.to_json(), &self.identity)),
            reply: changed.reply(200),
        }))
    }
}

#[async_trait(?Send)]
impl AdminChange for SignInAdmin {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let admin_id = links(batch, &self.identity).await?.admin_id;
        let row = match admin_id {
            Some(id) => batch.first(&ADMIN_BY_ID, args![&id]).await?,
            None => None,
        };
        // If the admin was deleted, a new one is created: to keep a person out, disable the admin or remove the role at the provider.
        let Some(mut row) = row else {
            return self.create(request, batch).await;
        };
        let admin = read_admin(&mut row)?;
        match () {
            () if admin.disabled => Ok(disabled("admin")),
            () if admin.role == self.role => Ok(Applied::Unchanged(admin.reply(200))),
            () => self.set_role(batch, &admin),
        }
    }
}

struct EndSessions(OidcIdentity);

#[async_trait(?Send)]
impl Write for EndSessions {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        match links(batch, &self.0).await?.admin_id {
            Some(admin_id) => batch.queue(&END_SESSIONS_OF_ADMIN, args![&admin_id]),
            None => Ok(()),
        }
    }
}

struct RefreshSession {
    session_id: String,
    sign_in: OidcRefresh,
}

#[async_trait(?Send)]
impl Write for RefreshSession {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let sign_in = &self.sign_in;
        let admin_id = links(batch, &sign_in.identity).await?.admin_id;
        let args = args![&self.session_id];
        let owner = match batch.first(&ADMIN_OF_SESSION, args).await? {
            Some(mut row) => Some(row.text(0)?),
            None => None,
        };
        if admin_id.is_none() || owner != admin_id {
            return Ok(false);
        }
        // If the reply to a commit was lost, this write itself has used the nonce.
        let used = use_nonce(batch, &sign_in.nonce_hash, sign_in.now).await?;
        if used.is_err() && !batch.commit_in_doubt {
            return Ok(false);
        }
        let fresh_until = sign_in.authenticated_at.min(sign_in.now) + FRESH;
        batch.queue(&SET_FRESH, args![fresh_until, &self.session_id])?;
        delete_attempt(batch, &sign_in.attempt)?;
        Ok(true)
    }
}

struct SignInUser {
    identity: OidcIdentity,
    users: OidcUsers,
    create: CreateUser,
}

impl SignInUser {
    fn link(&self, batch: &mut Batch<'_, '_>, user_id: &str, now: Millis) -> Result<(), DbError> {
        let OidcIdentity { issuer, subject } = &self.identity;
        batch.queue(&LINK_USER, args![issuer, subject, user_id, now])
    }

    async fn find_by_name(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let name = &self.create.user.name;
        let Some(mut row) = batch.first(&USER_BY_NAME, args![name]).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let user = read_user(&mut row)?;
        if user.disabled_at.is_some() {
            return Ok(disabled("user"));
        }
        // Another account with the same name belongs to another person.
        if batch.first(&LINKED_USER, args![&user.id]).await?.is_some() {
            return Ok(name_taken("a user", name));
        }
        self.link(batch, &user.id, request.now)?;
        Ok(Applied::Changed(Change {
            action: "user.update",
            object_type: "user",
            object_id: user.id.clone(),
            before: Some(user.to_trail_json()),
            after: Some(with_identity(user.to_trail_json(), &self.identity)),
            reply: user.reply(200),
        }))
    }
}

#[async_trait(?Send)]
impl AdminChange for SignInUser {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let user: Option<User> = match links(batch, &self.identity).await?.user_id {
            Some(user_id) => find_user(batch, &user_id).await?,
            None => None,
        };
        match (user, self.users) {
            (Some(user), _) if user.disabled_at.is_some() => Ok(disabled("user")),
            (Some(user), _) => Ok(Applied::Unchanged(user.reply(200))),
            (None, OidcUsers::Match) => self.find_by_name(request, batch).await,
            (None, OidcUsers::Create) => {
                let mut applied = self.create.apply(request, batch).await?;
                if let Applied::Changed(change) = &mut applied {
                    self.link(batch, &change.object_id, request.now)?;
                    let after = change.after.take();
                    change.after = after.map(|after| with_identity(after, &self.identity));
                }
                Ok(applied)
            }
        }
    }
}

struct EnsureKey {
    identity: OidcIdentity,
    create: CreateKey,
}

fn has_expired(key: &Key, now: Millis) -> bool {
    key.limits.expires_at.is_some_and(|at| at <= now)
}

impl EnsureKey {
    /// The key that replaces `previous`. It has the same limits, except an expiry that is over: otherwise users could remove limits by revoking the
    /// key.
    async fn limit_to_previous(
        &self,
        previous: &Key,
        now: Millis,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Result<CreateKey, AdminRejection>, DbError> {
        // The budget counts the spending of the previous key, so it cannot be moved.
        let budget = batch.first(&HARD_BUDGET, args![&previous.id]).await?;
        if let Some(mut budget) = budget {
            let message = format!(
                "the user's last key for the portal, {}, was revoked or has expired, and has the hard budget {}: delete the budget or make it soft",
                previous.id,
                budget.text(0)?
            );
            return Ok(Err(AdminRejection::conflict("disabled", None, message)));
        }
        let NewAdminKey { user_id, mut key } = self.create.0.clone();
        key.limits = previous.limits.clone();
        if has_expired(previous, now) {
            key.limits.expires_at = None;
        }
        if let Some(quota) = previous.quota {
            let spent = spent_of_key(batch, &previous.id).await?;
            key.quota = Some((quota - spent).max(Amount::ZERO));
        }
        Ok(Ok(CreateKey(NewAdminKey { user_id, key })))
    }
}

/// What a key has used, holds (including grants) and has reserved.
async fn spent_of_key(batch: &mut Batch<'_, '_>, key_id: &str) -> Result<Amount, DbError> {
    let row = batch.first(&HELD_AND_USED, args![key_id]).await?;
    let stored = row.map_or(Ok(Amount::ZERO), |row| row.amount(0))?;
    // The batch writes its movements of money only at its end.
    let [held, used] = batch.balances.moved_of_key(key_id);
    Ok(stored + held + used + batch.balances.reserved_of_key(key_id)?)
}

#[async_trait(?Send)]
impl AdminChange for EnsureKey {
    fn accounts(&self) -> AccountIds<'_> {
        self.create.accounts()
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let key = match links(batch, &self.identity).await?.key_id {
            Some(key_id) => find_key(batch, &key_id).await?,
            None => None,
        };
        let previous = key.filter(|key| key.user_id == self.create.0.user_id);
        let applied = match previous {
            None => self.create.apply(request, batch).await?,
            Some(key) if key.revoked_at.is_none() && !has_expired(&key, request.now) => {
                return Ok(Applied::Unchanged(key.reply(200)));
            }
            Some(previous) => {
                let create = self.limit_to_previous(&previous, request.now, batch);
                match create.await? {
                    Ok(create) => create.apply(request, batch).await?,
                    Err(rejection) => return Ok(rejection.into()),
                }
            }
        };
        if let Applied::Changed(change) = &applied {
            let OidcIdentity { issuer, subject } = &self.identity;
            batch.queue_one(&SET_KEY, args![&change.object_id, issuer, subject])?;
        }
        Ok(applied)
    }
}
