//! The database writes of grants.

use async_trait::async_trait;
use tollgate_core::{Amount, Millis};

use super::state::{GrantWrite, Return};
use crate::db::{DbError, Sql, args};
use crate::ledger::account::{Account, Rejection};
use crate::ledger::grants::{close_grant, lower_grant, open_grant, raise_grant};
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

const REQUEST_GRANTS: Sql = Sql::both(
    "UPDATE grants SET asked_at = COALESCE(asked_at, CAST($1 AS BIGINT)) WHERE user_id = $2",
);

/// Opens or raises a grant. Returns the amount; `None` if the grant to raise does not exist any more, or is not as this node expects.
pub(super) struct GiveGrant {
    pub(super) user_id: String,
    pub(super) key_id: String,
    pub(super) write: GrantWrite,
}

#[async_trait(?Send)]
impl Write for GiveGrant {
    type Out = Result<Option<Amount>, Rejection>;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        match &self.write {
            GrantWrite::Open(new) => {
                let opened = open_grant(batch, account, new).await?;
                Ok(opened.map(Some))
            }
            GrantWrite::Raise(raise) => raise_grant(batch, account, raise).await,
        }
    }
}

/// Releases a part of a grant of this node, or all of it.
pub(super) struct ReturnGrant {
    pub(super) returned: Return,
    pub(super) at: Millis,
}

#[async_trait(?Send)]
impl Write for ReturnGrant {
    /// Whether the grant exists, and was as this node expects.
    type Out = bool;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.returned.user_id, &self.returned.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let Return {
            id,
            user_id,
            key_id,
            part,
        } = &self.returned;
        let account = Account { user_id, key_id };
        match part {
            Some(part) => {
                let grant = (id.as_str(), part.released);
                lower_grant(batch, account, grant, part.amount, self.at).await
            }
            None => close_grant(batch, account, id, None, self.at).await,
        }
    }
}

/// Closes a grant of another node, if that node is dead.
pub(super) struct CloseOrphanedGrant {
    pub(super) id: String,
    pub(super) user_id: String,
    pub(super) key_id: String,
    pub(super) now: Millis,
}

#[async_trait(?Send)]
impl Write for CloseOrphanedGrant {
    /// Whether the grant was closed.
    type Out = bool;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        close_grant(batch, account, &self.id, Some(self.now), self.now).await
    }
}

/// Requests all nodes to return their grants of a user. The user's row is locked first, as by every write that changes grants.
pub(super) struct RequestGrants {
    pub(super) user_id: String,
    pub(super) now: Millis,
}

#[async_trait(?Send)]
impl Write for RequestGrants {
    type Out = ();

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::user(&self.user_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&REQUEST_GRANTS, args![self.now, &self.user_id])
    }
}
