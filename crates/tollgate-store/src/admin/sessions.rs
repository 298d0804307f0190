//! Sessions of the console: sign-in, sign-out, and the limits on failed sign-ins.

use async_trait::async_trait;
use serde_json::json;
use tollgate_core::clock::{DAY, HOUR, MINUTE};
use tollgate_core::{Millis, id};

use super::admins::{
    ADMIN_BY_ID, ANY_ADMIN, Admin, DELETE_LINKS, END_SESSIONS_OF_ADMIN, LINK, insert_admin,
    read_admin,
};
use super::json::time_json;
use super::request::AdminRequest;
use super::sign_in_nonce::use_nonce;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

macro_rules! select_sessions {
    () => {
        "SELECT s.id, s.address, s.created_at, s.last_seen_at, s.fresh_until, a.id, a.name, a.role FROM admin_sessions s
         JOIN admins a ON a.id = s.admin_id AND a.disabled = 0 "
    };
}
const SESSION_BY_HASH: Sql = Sql::both(concat!(
    select_sessions!(),
    "WHERE s.hash = $1 AND s.last_seen_at > $2 AND s.created_at > $3"
));
const SESSIONS_OF_ADMIN: Sql = Sql::both(concat!(
    select_sessions!(),
    "WHERE s.admin_id = $1 AND s.last_seen_at > $2 AND s.created_at > $3 ORDER BY s.created_at DESC, s.id DESC"
));
const INSERT_SESSION: Sql = Sql::both(
    "INSERT INTO admin_sessions (hash, id, admin_id, address, created_at, last_seen_at, fresh_until)
     VALUES ($1, $2, $3, $4, $5, $5, $6)",
);
const DELETE_SESSION: Sql = Sql::both("DELETE FROM admin_sessions WHERE id = $1");
const SET_LAST_SEEN: Sql = Sql::both("UPDATE admin_sessions SET last_seen_at = $1 WHERE id = $2");
pub(super) const SET_FRESH: Sql =
    Sql::both("UPDATE admin_sessions SET fresh_until = $1 WHERE id = $2");
const SET_PASSWORD: Sql = Sql::both("UPDATE admins SET password = $1 WHERE id = $2");
const SET_SIGN_IN: Sql = Sql::both("UPDATE admins SET last_sign_in_at = $1 WHERE id = $2");
const TAKE_LINK: Sql =
    Sql::both("DELETE FROM admin_links WHERE hash = $1 AND expires_at > $2 RETURNING admin_id");
const COUNT_FAILURES: Sql = Sql::both(
    "SELECT COUNT(*), COALESCE(MIN(at), 0) FROM admin_sign_in_failures WHERE subject = $1 AND at > $2 AND id <> $3",
);
const INSERT_FAILURE: Sql = Sql::both(
    "INSERT INTO admin_sign_in_failures (subject, at, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);
const DELETE_FAILURE: Sql =
    Sql::both("DELETE FROM admin_sign_in_failures WHERE subject = $1 AND at = $2 AND id = $3");

/// A session ends when it was not used for this long.
pub(super) const MAX_IDLE: Millis = 12 * HOUR;
/// A session ends this long after the sign-in.
pub(super) const MAX_AGE: Millis = 7 * DAY;
/// How long after the password was entered the session may access money and secrets.
pub(super) const FRESH: Millis = 5 * MINUTE;
/// Failed sign-ins are counted over this time.
const FAILURE_WINDOW: Millis = 15 * MINUTE;
/// The role of the first admin.
const FIRST_ROLE: &str = "owner";

/// A session of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// `ses_` and 16 random characters; not the secret.
    pub id: String,
    /// The address of the client that signed in.
    pub address: String,
    /// When it began.
    pub created_at: Millis,
    /// When it was used last, to a minute.
    pub last_seen_at: Millis,
    /// Until when the session may access money and secrets.
    pub fresh_until: Millis,
    /// The id of its admin.
    pub admin_id: String,
    /// The name of its admin.
    pub admin: String,
    /// The role of its admin.
    pub role: String,
}

impl Session {
    /// The session as a JSON object in the list of the admin API.
    pub fn to_json(&self, current: Option<&str>) -> serde_json::Value {
        json!({
            "id": self.id,
            "created_at": time_json(self.created_at),
            "last_seen_at": time_json(self.last_seen_at),
            "address": self.address,
            "current": current == Some(self.id.as_str()),
        })
    }
}

/// A new session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// SHA-256 of its secret, in hex.
    pub hash: String,
    /// The address of the client that signs in.
    pub address: String,
    /// The admin who signs in, and how.
    pub sign_in: SignIn,
    /// The attempt to remove from the failed ones, if one was counted.
    pub attempt: Option<SignInAttempt>,
}

/// How an admin signs in.
#[derive(Debug, Clone)]
pub enum SignIn {
    /// With a password, which was verified.
    Password {
        /// The admin's id.
        admin_id: String,
    },
    /// With a one-time link, which is used up by this, and a new password.
    Link {
        /// SHA-256 of the link's code, in hex.
        hash: String,
        /// The argon2id hash of the new password.
        password: String,
        /// The name of the first admin; only for the link of a first sign-in.
        name: Option<String>,
    },
    /// With an account of an OpenID provider.
    Oidc {
        /// The admin's id.
        admin_id: String,
        /// SHA-256 of the sign-in's nonce, in hex: it can be used for one session.
        nonce_hash: String,
        /// When the password was last entered at the provider; `None` if the provider does not report it.
        authenticated_at: Option<Millis>,
    },
}

/// A sign-in that counts as failed until it succeeds.
#[derive(Debug, Clone)]
pub struct SignInAttempt {
    id: String,
    at: Millis,
    /// The subjects that were counted, each with its limit.
    subjects: Vec<(String, i64)>,
}

/// The result of counting a sign-in attempt.
#[derive(Debug, Clone)]
pub enum SignInAttemptOutcome {
    /// The sign-in may continue.
    Allowed(SignInAttempt),
    /// Too many sign-ins have failed.
    Throttled {
        /// Seconds until another attempt is allowed.
        retry_after_s: u32,
    },
}

/// Sessions.
impl Store {
    /// Counts a sign-in attempt of `subjects` (each with the number of failures allowed in 15 minutes) as failed, until [`Store::begin_session`] or
    /// [`Store::refresh_session`] removes it. Throttled attempts are not counted.
    pub async fn begin_sign_in(
        &self,
        subjects: Vec<(String, i64)>,
        now: Millis,
    ) -> Result<SignInAttemptOutcome, StoreError> {
        let id = id::short_id("");
        let attempt = SignInAttempt {
            id,
            at: now,
            subjects,
        };
        self.write(CountAttempt(attempt)).await
    }

    /// Begins a session. If the link is invalid, the error is [`AdminRejection::NotFound`].
    pub async fn begin_session(&self, request: &AdminRequest, new: NewSession) -> AdminResult {
        let begin = BeginSession {
            id: id::short_id("ses_"),
            admin_id: id::short_id("admin_"),
            new,
        };
        self.admin_write(request, begin).await
    }

    /// Ends a session.
    pub async fn end_session(&self, request: &AdminRequest, id: &str) -> AdminResult {
        self.admin_write(request, EndSession { id: id.to_owned() })
            .await
    }

    /// Makes a session fresh, for money and secrets, for five minutes; the caller has verified the password.
    pub async fn refresh_session(
        &self,
        id: &str,
        attempt: SignInAttempt,
        now: Millis,
    ) -> Result<Millis, StoreError> {
        let id = id.to_owned();
        self.write(RefreshSession { id, attempt, now }).await
    }

    /// The session with that hash, if it has not ended.
    pub async fn session_by_hash(
        &self,
        hash: &str,
        now: Millis,
    ) -> Result<Option<Session>, StoreError> {
        let args = args![hash, now - MAX_IDLE, now - MAX_AGE];
        self.first(&SESSION_BY_HASH, args, read_session).await
    }

    /// The sessions of an admin, newest first.
    pub async fn list_sessions(
        &self,
        admin_id: &str,
        now: Millis,
    ) -> Result<Vec<Session>, StoreError> {
        let args = args![admin_id, now - MAX_IDLE, now - MAX_AGE];
        let mut rows = self.query(&SESSIONS_OF_ADMIN, args).await?;
        Ok(rows
            .iter_mut()
            .map(read_session)
            .collect::<Result<_, _>>()?)
    }

    /// Records that a session was used, without waiting for the write.
    pub fn note_session_use(&self, id: &str, now: Millis) {
        let id = id.to_owned();
        self.writer.write_detached(NoteSessionUse { id, now });
    }
}

struct CountAttempt(SignInAttempt);

#[async_trait(?Send)]
impl Write for CountAttempt {
    type Out = SignInAttemptOutcome;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<SignInAttemptOutcome, DbError> {
        let attempt = &self.0;
        for (subject, limit) in &attempt.subjects {
            // If the reply to a commit was lost, this write itself has counted the attempt.
            let args = args![subject, attempt.at - FAILURE_WINDOW, &attempt.id];
            let Some(row) = batch.first(&COUNT_FAILURES, args).await? else {
                continue;
            };
            if row.int(0)? >= *limit {
                let left = row.int(1)? + FAILURE_WINDOW - attempt.at;
                let retry_after_s = u32::try_from(left / 1000 + 1).unwrap_or(1);
                return Ok(SignInAttemptOutcome::Throttled { retry_after_s });
            }
        }
        for (subject, _) in &attempt.subjects {
            batch.queue(&INSERT_FAILURE, args![subject, attempt.at, &attempt.id])?;
        }
        Ok(SignInAttemptOutcome::Allowed(attempt.clone()))
    }
}

pub(super) fn delete_attempt(
    batch: &mut Batch<'_, '_>,
    attempt: &SignInAttempt,
) -> Result<(), DbError> {
    for (subject, _) in &attempt.subjects {
        batch.queue(&DELETE_FAILURE, args![subject, attempt.at, &attempt.id])?;
    }
    Ok(())
}

struct BeginSession {
    id: String,
    /// The id of the first admin.
    admin_id: String,
    new: NewSession,
}

impl BeginSession {
    /// The admin who signs in, after the new password was stored. `Err` if that is not possible.
    async fn admin(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Result<Admin, AdminRejection>, DbError> {
        let (hash, password, name) = match &self.new.sign_in {
            SignIn::Password { admin_id } => return enabled_admin(batch, admin_id).await,
            SignIn::Oidc {
                admin_id,
                nonce_hash,
                ..
            } => {
                return match enabled_admin(batch, admin_id).await? {
                    Ok(admin) => Ok(use_nonce(batch, nonce_hash, request.now)
                        .await?
                        .map(|()| admin)),
                    Err(rejection) => Ok(Err(rejection)),
                };
            }
            SignIn::Link {
                hash,
                password,
                name,
            } => (hash, password, name),
        };
        let now = request.now;
        let Some(mut link) = batch.first(&LINK, args![hash, now]).await? else {
            return Ok(Err(AdminRejection::NotFound));
        };
        let admin_id = link.text(0)?;
        let existing = match (admin_id.as_str(), name) {
            ("", Some(_)) if batch.first(&ANY_ADMIN, &[]).await?.is_none() => None,
            ("", _) => return Ok(Err(AdminRejection::NotFound)),
            (id, _) => match enabled_admin(batch, id).await? {
                Ok(admin) => Some(admin),
                Err(rejection) => return Ok(Err(rejection)),
            },
        };
        // On PostgreSQL another node may have used the link meanwhile.
        if batch.first(&TAKE_LINK, args![hash, now]).await?.is_none() {
            return Ok(Err(AdminRejection::NotFound));
        }
        let admin = match (existing, name) {
            (Some(admin), _) => Some(admin),
            (None, Some(name)) => {
                batch.queue(&DELETE_LINKS, args![""])?;
                insert_admin(batch, &self.admin_id, name, FIRST_ROLE, now).await?
            }
            (None, None) => None,
        };
        let Some(admin) = admin else {
            return Ok(Err(AdminRejection::NotFound));
        };
        batch.queue(&END_SESSIONS_OF_ADMIN, args![&admin.id])?;
        batch.queue(&SET_PASSWORD, args![password, &admin.id])?;
        Ok(Ok(admin))
    }
}

async fn enabled_admin(
    batch: &mut Batch<'_, '_>,
    id: &str,
) -> Result<Result<Admin, AdminRejection>, DbError> {
    let admin = match batch.first(&ADMIN_BY_ID, args![id]).await? {
        Some(mut row) => Some(read_admin(&mut row)?),
        None => None,
    };
    let enabled = admin.filter(|admin| !admin.disabled);
    Ok(enabled.ok_or(AdminRejection::NotFound))
}

#[async_trait(?Send)]
impl AdminChange for BeginSession {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let admin = match self.admin(request, batch).await? {
            Ok(admin) => admin,
            Err(rejection) => return Ok(rejection.into()),
        };
        let (now, new) = (request.now, &self.new);
        let session = Session {
            id: self.id.clone(),
            address: new.address.clone(),
            created_at: now,
            last_seen_at: now,
            fresh_until: match new.sign_in {
                SignIn::Oidc {
                    authenticated_at, ..
                } => authenticated_at.map_or(now, |at| at.min(now) + FRESH),
                SignIn::Password { .. } | SignIn::Link { .. } => now + FRESH,
            },
            admin_id: admin.id.clone(),
            admin: admin.name,
            role: admin.role,
        };
        let args = args![
            &new.hash,
            &session.id,
            &session.admin_id,
            &session.address,
            now,
            session.fresh_until
        ];
        batch.queue(&INSERT_SESSION, args)?;
        batch.queue(&SET_SIGN_IN, args![now, &session.admin_id])?;
        if let Some(attempt) = &new.attempt {
            delete_attempt(batch, attempt)?;
        }
        let after = json!({ "id": session.id, "admin_id": admin.id, "name": session.admin, "role": session.role });
        Ok(Applied::Changed(Change {
            action: "session.sign_in",
            object_type: "admin",
            object_id: admin.id,
            before: None,
            after: Some(after.clone()),
            reply: AdminReply::new(201, after, None),
        }))
    }
}

struct EndSession {
    id: String,
}

#[async_trait(?Send)]
impl AdminChange for EndSession {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        batch.queue(&DELETE_SESSION, args![&self.id])?;
        Ok(Applied::Changed(Change {
            action: "session.sign_out",
            object_type: "session",
            object_id: self.id.clone(),
            before: None,
            after: None,
            reply: AdminReply::new(204, serde_json::Value::Null, None),
        }))
    }
}

struct RefreshSession {
    id: String,
    attempt: SignInAttempt,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for RefreshSession {
    type Out = Millis;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Millis, DbError> {
        let fresh_until = self.now + FRESH;
        batch.queue(&SET_FRESH, args![fresh_until, &self.id])?;
        delete_attempt(batch, &self.attempt)?;
        Ok(fresh_until)
    }
}

struct NoteSessionUse {
    id: String,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for NoteSessionUse {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&SET_LAST_SEEN, args![self.now, &self.id])
    }
}

fn read_session(row: &mut Row) -> Result<Session, DbError> {
    Ok(Session {
        id: row.text(0)?,
        address: row.text(1)?,
        created_at: row.int(2)?,
        last_seen_at: row.int(3)?,
        fresh_until: row.int(4)?,
        admin_id: row.text(5)?,
        admin: row.text(6)?,
        role: row.text(7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DatabaseLocation;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_attempt_whose_write_is_repeated_is_counted_once() {
        let folder = std::env::temp_dir().join(format!("tollgate-attempts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let location = DatabaseLocation::Sqlite(folder.join("a.db"));
        let store = Store::open(&location).await.unwrap();
        let attempt = |id: &str| SignInAttempt {
            id: id.to_owned(),
            at: DAY,
            subjects: vec![("name:ann".to_owned(), 1)],
        };
        for _ in 0..2 {
            let counted = store.write(CountAttempt(attempt("one"))).await.unwrap();
            assert!(matches!(counted, SignInAttemptOutcome::Allowed(_)));
        }
        let other = store.write(CountAttempt(attempt("two"))).await.unwrap();
        assert!(matches!(other, SignInAttemptOutcome::Throttled { .. }));
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
