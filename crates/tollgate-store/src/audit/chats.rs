//! The audit of chat requests: their entries, their arithmetic, and who has the open ones.

use super::{Check, cells};
use crate::db::{DbError, Sql, Tx, args};
use crate::model::{ChatEnd, Violation};
use crate::money::{Figures, PAGE_OF_CHATS};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "chat_entries",
        says: "held, settled, forgiven; then held, settled, released and charged from the entries",
        sql: Sql::both(
            "SELECT c.id, c.held, c.settled, c.forgiven, l.held, l.settled, l.released, l.charged FROM chats c
             LEFT JOIN (SELECT ref,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE kind WHEN 'settle' THEN amount ELSE 0 END) AS BIGINT) AS settled,
                CAST(SUM(CASE kind WHEN 'release' THEN amount ELSE 0 END) AS BIGINT) AS released,
                CAST(SUM(CASE kind WHEN 'charge' THEN amount ELSE 0 END) AS BIGINT) AS charged
                FROM entries WHERE kind IN ('hold', 'settle', 'release', 'charge') GROUP BY ref) l ON l.ref = c.id
             WHERE COALESCE(c.held, 0) <> COALESCE(l.held, 0)
                OR COALESCE(c.settled, 0) <> COALESCE(l.settled, 0) + COALESCE(l.charged, 0)
                OR (c.closed_at IS NOT NULL
                    AND COALESCE(c.held, 0) <> COALESCE(l.settled, 0) + COALESCE(l.released, 0))
                OR (c.closed_at IS NULL AND COALESCE(l.released, 0) <> 0)
                OR (COALESCE(l.charged, 0) > 0 AND COALESCE(l.released, 0) > 0)",
        ),
    },
    Check {
        name: "chat_owners",
        says: "user and key of a chat: one is missing, or the key is another user's",
        sql: Sql::both(
            "SELECT c.id, c.user_id, c.key_id FROM chats c
             LEFT JOIN users u ON u.id = c.user_id LEFT JOIN keys k ON k.id = c.key_id
             WHERE u.id IS NULL OR k.id IS NULL OR k.user_id <> c.user_id",
        ),
    },
    Check {
        name: "chat_shape",
        says: "held, settled, forgiven, outcome, node: an ended chat has all but held and node, an open one those two and no other; a lost one was held for, and nothing of it is owed",
        sql: Sql::both(
            "SELECT id, held, settled, forgiven, outcome, node FROM chats
             WHERE (closed_at IS NULL) <> (settled IS NULL) OR (closed_at IS NULL) <> (forgiven IS NULL)
                OR (closed_at IS NULL) <> (outcome IS NULL) OR (closed_at IS NULL) <> (node IS NOT NULL)
                OR (closed_at IS NULL AND held IS NULL)
                OR (outcome = 'lost' AND (held IS NULL OR settled <> 0 OR forgiven <> 0))
                OR streamed NOT IN (0, 1) OR estimated NOT IN (0, 1)",
        ),
    },
    Check {
        name: "open_chats",
        says: "a chat is open and its node unknown, or others have outlived that by an hour and not released it",
        sql: Sql::both(
            "SELECT c.id, c.node, n.alive_until FROM chats c LEFT JOIN nodes n ON n.id = c.node
             WHERE c.node IS NOT NULL
               AND (n.id IS NULL OR n.alive_until + 3600000 < (SELECT MAX(alive_until) FROM nodes))",
        ),
    },
];

/// Every hold, and every settlement with what was forgiven, is the sum of price × tokens, rounded half up once, and
/// every chat is as it was sealed.
pub(super) async fn arithmetic(tx: &mut Tx<'_>, found: &mut Vec<Violation>) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&PAGE_OF_CHATS, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            let shown = cells(&row, 3);
            let figures = Figures::read(&row, 5)?;
            let (id, user, key) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let mut wrong = |check, says| {
                found.push(Violation {
                    check,
                    subject: id.clone(),
                    detail: format!(
                        "{says}, the seal and outcome and then five prices, five counts, estimated, held, settled, forgiven: {shown}"
                    ),
                });
            };
            if !adds_up(&figures) {
                wrong("chat_arithmetic", "the amounts are not those of the tokens");
            }
            if figures.seal([&id, &user, &key]) != row.int(3)? {
                wrong("chat_seal", "a cell is not as it was written");
            }
            after = id;
        }
    }
}

/// Whether the amounts of a chat, open or ended, follow from its tokens.
fn adds_up(figures: &Figures) -> bool {
    let Some(cost) = figures.cost() else {
        return false;
    };
    match figures.ended {
        None => figures.held == Some(cost.nanos()),
        Some([settled, forgiven]) => {
            settled >= 0 && forgiven >= 0 && settled.checked_add(forgiven) == Some(cost.nanos())
        }
    }
}

/// The outcome that the statements above have.
const _: () = assert!(matches!(ChatEnd::LOST.as_bytes(), b"lost"));
