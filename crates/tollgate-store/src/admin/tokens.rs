//! Bearer tokens of the admin API.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::Millis;

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

macro_rules! select_tokens {
    () => {
        "SELECT id, name, scopes, hint, created_at, expires_at, last_used_at, version FROM admin_tokens "
    };
}
const TOKEN_BY_HASH: Sql = Sql::both(concat!(select_tokens!(), "WHERE hash = $1"));
const TOKEN_BY_ID: Sql = Sql::both(concat!(select_tokens!(), "WHERE id = $1"));
const LIST_TOKENS: Sql = Sql::both(concat!(
    select_tokens!(),
    "WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3"
));
const INSERT_TOKEN: Sql = Sql::both(
    "INSERT INTO admin_tokens (id, name, scopes, hash, hint, created_at, expires_at, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 1)",
);
const DELETE_TOKEN: Sql = Sql::both("DELETE FROM admin_tokens WHERE id = $1");
const SET_LAST_USED: Sql = Sql::both("UPDATE admin_tokens SET last_used_at = $1 WHERE id = $2");

/// A token of the admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// `tok_` and 16 random characters.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The names of its scopes.
    pub scopes: Vec<String>,
    /// Its first characters.
    pub hint: String,
    /// When it was created.
    pub created_at: Millis,
    /// When it expires.
    pub expires_at: Option<Millis>,
    /// When it was used last, to a minute.
    pub last_used_at: Option<Millis>,
    /// Goes up with every change.
    pub version: i64,
}

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewAdminToken {
    /// `tok_` and 16 random characters.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The names of its scopes.
    pub scopes: Vec<String>,
    /// SHA-256 of the token, in hex.
    pub hash: String,
    /// Its first characters.
    pub hint: String,
    /// When it expires.
    pub expires_at: Option<Millis>,
}

impl AdminToken {
    /// The token as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "scopes": self.scopes,
            "hint": self.hint,
            "created_at": time_json(self.created_at),
            "expires_at": opt_time_json(self.expires_at),
            "last_used_at": opt_time_json(self.last_used_at),
            "version": self.version,
        })
    }
}

/// Admin tokens.
impl Store {
    /// Creates a token.
    pub async fn create_admin_token(
        &self,
        request: &AdminRequest,
        new: NewAdminToken,
    ) -> AdminResult {
        self.admin_write(request, CreateToken(new)).await
    }

    /// Deletes a token that has the version `if_match`; any version if that is `None`.
    pub async fn delete_admin_token(
        &self,
        request: &AdminRequest,
        id: &str,
        if_match: Option<i64>,
    ) -> AdminResult {
        let id = id.to_owned();
        self.admin_write(request, DeleteToken { id, if_match })
            .await
    }

    /// The token with that id.
    pub async fn admin_token(&self, id: &str) -> Result<Option<AdminToken>, StoreError> {
        self.first(&TOKEN_BY_ID, args![id], read_token).await
    }

    /// The token with that hash.
    pub async fn admin_token_by_hash(&self, hash: &str) -> Result<Option<AdminToken>, StoreError> {
        self.first(&TOKEN_BY_HASH, args![hash], read_token).await
    }

    /// Tokens, newest first.
    pub async fn list_admin_tokens(
        &self,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<AdminToken>, StoreError> {
        let (at, id) = page_args(after);
        let mut rows = self
            .query_slow(&LIST_TOKENS, args![at, id, limit as i64])
            .await?;
        Ok(rows.iter_mut().map(read_token).collect::<Result<_, _>>()?)
    }

    /// Records that a token was used, without waiting for the write.
    pub fn note_admin_token_use(&self, id: &str, now: Millis) {
        let id = id.to_owned();
        self.writer.write_detached(NoteTokenUse { id, now });
    }
}

struct CreateToken(NewAdminToken);

#[async_trait(?Send)]
impl AdminChange for CreateToken {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let new = &self.0;
        let token = AdminToken {
            id: new.id.clone(),
            name: new.name.clone(),
            scopes: new.scopes.clone(),
            hint: new.hint.clone(),
            created_at: request.now,
            expires_at: new.expires_at,
            last_used_at: None,
            version: 1,
        };
        let scopes = json!(token.scopes).to_string();
        let args = args![
            &token.id,
            &token.name,
            &scopes,
            &new.hash,
            &token.hint,
            token.created_at,
            token.expires_at
        ];
        batch.queue(&INSERT_TOKEN, args)?;
        Ok(Applied::Changed(Change {
            action: "token.create",
            object_type: "token",
            object_id: token.id.clone(),
            before: None,
            after: Some(token.to_json()),
            reply: AdminReply::new(201, token.to_json(), Some(1)),
        }))
    }
}

struct DeleteToken {
    id: String,
    if_match: Option<i64>,
}

#[async_trait(?Send)]
impl AdminChange for DeleteToken {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(mut row) = batch.first(&TOKEN_BY_ID, args![&self.id]).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let token = read_token(&mut row)?;
        if self
            .if_match
            .is_some_and(|version| version != token.version)
        {
            return Ok(Applied::Rejected(AdminRejection::Stale {
                current: token.to_json(),
                version: token.version,
            }));
        }
        batch.queue(&DELETE_TOKEN, args![&self.id])?;
        Ok(Applied::Changed(Change {
            action: "token.delete",
            object_type: "token",
            object_id: token.id.clone(),
            before: Some(token.to_json()),
            after: None,
            reply: AdminReply::new(204, Value::Null, None),
        }))
    }
}

struct NoteTokenUse {
    id: String,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for NoteTokenUse {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&SET_LAST_USED, args![self.now, &self.id])
    }
}

fn read_token(row: &mut Row) -> Result<AdminToken, DbError> {
    let scopes = row.text(2)?;
    Ok(AdminToken {
        id: row.text(0)?,
        name: row.text(1)?,
        scopes: serde_json::from_str(&scopes)
            .map_err(|e| DbError::UnexpectedData(format!("scopes of a token: {e}")))?,
        hint: row.text(3)?,
        created_at: row.int(4)?,
        expires_at: row.opt_int(5)?,
        last_used_at: row.opt_int(6)?,
        version: row.int(7)?,
    })
}
