//! Opens, refills, returns, reclaims and releases grants.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tollgate_core::{Amount, Millis};

use super::reservation::{GrantReservation, GrantStep};
use super::state::GrantWrite;
use super::writes::{CloseOrphanedGrant, GiveGrant, RequestGrants, ReturnGrant};
use crate::db::{Sql, args};
use crate::error::StoreError;
use crate::ledger::account::Account;
use crate::store::Store;

/// How often a chat waits for a grant before its money is held in the database.
const WAITS: usize = 2;
/// How long a request that found too little available waits for other nodes to return grants, and how often it checks.
const RECLAIM_TIMEOUT: Duration = Duration::from_millis(1_500);
const RECLAIM_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) const REQUESTED_GRANTS: Sql =
    Sql::both("SELECT id FROM grants WHERE node = $1 AND asked_at IS NOT NULL");
pub(crate) const GRANTS_OF_USER: Sql =
    Sql::both("SELECT id FROM grants WHERE user_id = $1 AND amount > 0 LIMIT 1");
pub(crate) const ORPHANED_GRANTS: Sql = Sql::both(
    "SELECT g.id, g.user_id, g.key_id FROM grants g LEFT JOIN nodes n ON n.id = g.node
     WHERE g.node <> $1 AND COALESCE(n.alive_until, 0) <= $2 LIMIT 500",
);

/// Grants.
impl Store {
    /// Allows chats of this node to begin on grants: its heartbeat, sent at `sent` and at `now` by the wall clock, is on disk and valid for `lease`.
    /// Without this, every chat is held in the database. Does nothing if the database is not shared.
    pub fn allow_grants(&self, node: &str, sent: Instant, now: Millis, lease: Millis) {
        if self.is_shared() {
            let grants = &self.writer.grants;
            grants.heartbeat_confirmed(node, sent, now, lease);
        }
    }

    /// The number of grants of this process.
    pub fn count_grants(&self) -> usize {
        self.writer.grants.count()
    }

    /// Reserves `amount` from a grant of this node; `None` if the chat's money must be held in the database.
    pub(crate) async fn reserve_from_grant(
        &self,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
    ) -> Option<GrantReservation> {
        for waits in 0..=WAITS {
            let grants = &self.writer.grants;
            let (step, write) = grants.reserve(account, amount, at, waits > 0);
            if let Some(write) = write {
                self.give_grant(account, write);
            }
            match step {
                GrantStep::Reserved(reservation) => return Some(reservation),
                GrantStep::Wait(changed) => changed.await,
                GrantStep::Hold => return None,
            }
        }
        None
    }

    /// Opens or raises a grant in a separate task: other chats wait for it too, so it must not end with the request that needed it first.
    fn give_grant(&self, account: Account<'_>, write: GrantWrite) {
        let store = self.clone();
        let (user_id, key_id) = (account.user_id.to_owned(), account.key_id.to_owned());
        tokio::spawn(async move {
            let written = store.write(GiveGrant {
                user_id: user_id.clone(),
                key_id: key_id.clone(),
                write: write.clone(),
            });
            let written = written.await;
            let mut state = store.writer.grants.lock();
            let account = Account {
                user_id: &user_id,
                key_id: &key_id,
            };
            match (write, written) {
                (GrantWrite::Open(new), Ok(Ok(Some(amount)))) => {
                    state.record_open(account, new.id, amount);
                }
                (GrantWrite::Raise(raise), Ok(Ok(Some(amount)))) => {
                    state.record_raise(&raise.id, amount);
                }
                (_, Ok(Err(_))) => state.leave_without(&user_id),
                (GrantWrite::Open(new), _) => state.may_be_open(account, new.id),
                (GrantWrite::Raise(raise), _) => state.retire_uncertain(&raise.id),
            }
            state.end_change(&key_id);
        });
    }

    /// Releases the parts of this node's grants that it does not need or that other nodes have requested. Call it several times a second.
    ///
    /// # Errors
    /// The database's.
    pub async fn return_unused_grants(&self, now: Millis) -> Result<(), StoreError> {
        let node = self.writer.grants.lock().node_with_grants();
        if let Some(node) = node {
            for mut row in self.query(&REQUESTED_GRANTS, args![&node]).await? {
                let mut state = self.writer.grants.lock();
                let user = state.user_of(&row.text(0)?);
                user.iter().for_each(|user| state.retire_of_user(user));
            }
        }
        self.write_returns(now).await
    }

    /// Releases all grants of this node, except what running chats have reserved. Call it at the end, when no more chats begin.
    ///
    /// # Errors
    /// The database's.
    pub async fn return_all_grants(&self, now: Millis) -> Result<(), StoreError> {
        self.writer.grants.lock().retire_all();
        self.write_returns(now).await
    }

    async fn write_returns(&self, now: Millis) -> Result<(), StoreError> {
        let returns = self.writer.grants.lock().take_returns();
        let writes = returns.into_iter().map(|returned| async move {
            let (id, is_closed) = (returned.id.clone(), returned.part.is_none());
            let written = self.write(ReturnGrant { returned, at: now }).await;
            // If a grant that should be closed does not exist, other nodes have released it, which has the same effect.
            let is_written = match &written {
                Ok(is_as_known) => is_closed || *is_as_known,
                Err(_) => false,
            };
            self.writer
                .grants
                .lock()
                .record_return(&id, is_closed, is_written);
            written.map(drop)
        });
        join_all(writes).await.into_iter().collect()
    }

    /// Reclaims the grants of a user's balance from all nodes, for a request that finds too little available. Returns false if there are none; waits
    /// at most 1.5 s for other nodes.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn reclaim_grants(
        &self,
        user_id: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let has_grants = async || -> Result<bool, StoreError> {
            let rows = self.query(&GRANTS_OF_USER, args![user_id]).await?;
            Ok(!rows.is_empty())
        };
        if !self.is_shared() || !has_grants().await? {
            return Ok(false);
        }
        self.writer.grants.lock().retire_of_user(user_id);
        self.write_returns(now).await?;
        let user_id = user_id.to_owned();
        self.write(RequestGrants { user_id, now }).await?;
        let started = Instant::now();
        while has_grants().await? && started.elapsed() < RECLAIM_TIMEOUT {
            tokio::time::sleep(RECLAIM_INTERVAL).await;
            self.write_returns(now).await?;
        }
        Ok(true)
    }

    /// Releases what is left of the grants of nodes that are not alive. Returns the number of grants. Call it as often as [`Store::heartbeat`].
    ///
    /// # Errors
    /// The database's.
    pub async fn release_orphaned_grants(
        &self,
        now: Millis,
        own_node: &str,
    ) -> Result<u64, StoreError> {
        if !self.is_shared() {
            return Ok(0);
        }
        let mut released = 0;
        for mut row in self.query(&ORPHANED_GRANTS, args![own_node, now]).await? {
            let close = CloseOrphanedGrant {
                id: row.text(0)?,
                user_id: row.text(1)?,
                key_id: row.text(2)?,
                now,
            };
            released += u64::from(self.write(close).await?);
        }
        Ok(released)
    }
}
