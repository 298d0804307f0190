//! Chat requests: held for, ended, and let go where their node is gone; and which nodes are alive.

use std::sync::Arc;

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, clock};

use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{ChatEnd, ChatSettled, NewChat, Refusal, TokenUnits};
use crate::money::{self, Payer, Reservation};
use crate::writer::{Payers, Write};

/// No chat request lasts as long: a hold of that age has been left behind, whoever has it.
pub(crate) const LONGEST: Millis = clock::DAY;

/// Of the open requests `c` and their nodes `n`, those that nobody will end: too old, or another node's that is not
/// alive.
macro_rules! dead {
    ($old:literal, $own:literal, $alive:literal) => {
        concat!(
            "c.node IS NOT NULL AND (c.opened_at <= ",
            $old,
            " OR (c.node <> ",
            $own,
            " AND COALESCE(n.alive_until, 0) <= ",
            $alive,
            "))"
        )
    };
}

pub(crate) const DEAD: Sql = Sql::both(concat!(
    "SELECT c.id, c.user_id, c.key_id FROM chats c LEFT JOIN nodes n ON n.id = c.node WHERE ",
    dead!("$1", "$2", "$3"),
    " LIMIT 500"
));
pub(crate) const STILL_DEAD: Sql = Sql::both(concat!(
    "SELECT c.id FROM chats c LEFT JOIN nodes n ON n.id = c.node WHERE c.id = $1 AND ",
    dead!("$2", "$3", "$4")
));
pub(super) const OPEN: Sql = Sql::both("SELECT id FROM chats WHERE id = $1 AND node IS NOT NULL");
pub(super) const BEAT: Sql = Sql::both(
    "INSERT INTO nodes (id, alive_until) VALUES ($1, $2)
     ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until",
);
pub(crate) const OLD_NODES: Sql = Sql::both(
    "SELECT id FROM nodes WHERE id <> $1 AND alive_until <= $2
     AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.node = nodes.id)",
);
pub(super) const FORGET_NODE: Sql = Sql::both(
    "DELETE FROM nodes WHERE id = $1 AND alive_until <= $2
     AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.node = nodes.id)",
);

/// Holds for the worst case of a request.
pub(crate) struct HoldChat {
    pub(crate) chat: NewChat,
    pub(crate) worst: TokenUnits,
    pub(crate) node: String,
}

#[async_trait(?Send)]
impl Write for HoldChat {
    type Out = Result<Amount, Refusal>;

    fn payers(&self) -> Payers<'_> {
        payers(&self.chat.user_id, &self.chat.key_id)
    }

    fn only_moves_money(&self) -> bool {
        true
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        if batch.again {
            // Held for before by this very write, tried before.
            if let Some(held) = money::chat_hold(batch, &self.chat.id).await? {
                return Ok(Ok(held));
            }
        }
        money::open_chat(batch, &self.chat, &self.worst, &self.node)
    }
}

/// Ends a request.
pub(crate) struct SettleChat {
    pub(crate) chat: Arc<NewChat>,
    pub(crate) end: Arc<ChatEnd>,
    /// It was held for, or has perhaps been ended: its row is looked for. Else it is written at once.
    pub(crate) may_be_there: bool,
    /// Ends when this is on disk.
    pub(crate) reservation: Option<Reservation>,
}

#[async_trait(?Send)]
impl Write for SettleChat {
    type Out = ChatSettled;

    fn payers(&self) -> Payers<'_> {
        payers(&self.chat.user_id, &self.chat.key_id)
    }

    fn only_moves_money(&self) -> bool {
        true
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<ChatSettled, DbError> {
        let chat = &self.chat;
        if self.may_be_there || batch.again {
            let payer = Payer {
                user_id: &chat.user_id,
                key_id: &chat.key_id,
            };
            if let Some(settled) = money::close_chat(batch, &chat.id, payer, &self.end).await? {
                return Ok(settled);
            }
        }
        let cost = money::charge_chat(batch, chat, &self.end, self.reservation.as_ref())?;
        Ok(ChatSettled::Done { cost })
    }
}

/// Releases the hold of a request that nobody will end, if it is still open; answers whether it was.
pub(crate) struct ReleaseChat {
    pub(crate) id: String,
    pub(crate) user_id: String,
    pub(crate) key_id: String,
    pub(crate) why: Why,
    pub(crate) now: Millis,
}

/// Why nobody will end it.
pub(crate) enum Why {
    /// Who asked for the hold did not wait for the answer.
    Unheard,
    /// As [`DEAD`] says, with its parameters: it must say so still.
    Dead(Dead),
}

/// Whose requests are dead.
#[derive(Clone)]
pub(crate) struct Dead {
    /// Those opened until then.
    pub(crate) opened_until: Millis,
    /// And of all nodes but this one
    pub(crate) own_node: String,
    /// those that are alive no longer than until then.
    pub(crate) alive_until: Millis,
}

#[async_trait(?Send)]
impl Write for ReleaseChat {
    type Out = bool;

    fn payers(&self) -> Payers<'_> {
        payers(&self.user_id, &self.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let open = match &self.why {
            Why::Unheard => batch.first(&OPEN, args![&self.id]).await?,
            Why::Dead(dead) => {
                let args = args![
                    &self.id,
                    dead.opened_until,
                    &dead.own_node,
                    dead.alive_until
                ];
                batch.first(&STILL_DEAD, args).await?
            }
        };
        if open.is_none() {
            return Ok(false);
        }
        let end = ChatEnd {
            units: TokenUnits::default(),
            estimated: false,
            channel: None,
            upstream_model: None,
            attempts: String::new(),
            outcome: ChatEnd::LOST,
            ended_at: self.now,
        };
        let payer = Payer {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        Ok(money::close_chat(batch, &self.id, payer, &end)
            .await?
            .is_some())
    }
}

/// Says that a node is alive.
pub(crate) struct Beat {
    pub(crate) node: String,
    pub(crate) alive_until: Millis,
}

#[async_trait(?Send)]
impl Write for Beat {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.run(&BEAT, args![&self.node, self.alive_until])
    }
}

/// Forgets a node that was last alive before `dead_since` and has nothing open.
pub(crate) struct ForgetNode {
    pub(crate) node: String,
    pub(crate) dead_since: Millis,
}

#[async_trait(?Send)]
impl Write for ForgetNode {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.run(&FORGET_NODE, args![&self.node, self.dead_since])
    }
}

fn payers<'a>(user_id: &'a str, key_id: &'a str) -> Payers<'a> {
    Payers {
        user: Some(user_id),
        key: Some(key_id),
    }
}
