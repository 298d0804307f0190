//! Checks of chat requests: their ledger entries, amounts and checksums, and the nodes of open ones.

use super::check::{AuditViolation, Check, cells_to_text};
use tollgate_core::Amount;

use crate::chats::parts::cost_of_column;
use crate::chats::record::ChatEnd;
use crate::db::{DbError, Sql, Tx, args};
use crate::ledger::chat_rows::{ChatAmounts, READ_CHATS_AFTER};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "chat_entries",
        details: "held, settled, written off; then held, settled, released and charged from the entries",
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
        details: "user and key of a chat: one is missing, or the key is another user's",
        sql: Sql::both(
            "SELECT c.id, c.user_id, c.key_id FROM chats c
             LEFT JOIN users u ON u.id = c.user_id LEFT JOIN keys k ON k.id = c.key_id
             WHERE u.id IS NULL OR k.id IS NULL OR k.user_id <> c.user_id",
        ),
    },
    Check {
        name: "chat_shape",
        details: "held, settled, written off, debt, clamped, outcome, node: the debt is a part of what was settled; a closed chat has settled, written off and outcome; an open one has held and node only; a lost one has a hold, and nothing settled or written off",
        sql: Sql::both(
            "SELECT id, held, settled, forgiven, debt, clamped, outcome, node FROM chats
             WHERE (closed_at IS NULL) <> (settled IS NULL) OR (closed_at IS NULL) <> (forgiven IS NULL)
                OR (closed_at IS NULL) <> (outcome IS NULL) OR (closed_at IS NULL) <> (node IS NOT NULL)
                OR (closed_at IS NULL AND held IS NULL)
                OR (outcome = 'lost' AND (held IS NULL OR settled <> 0 OR forgiven <> 0))
                OR debt < 0 OR debt > COALESCE(settled, 0) OR clamped < 0 OR (closed_at IS NULL AND clamped <> 0)
                OR streamed NOT IN (0, 1) OR estimated NOT IN (0, 1)",
        ),
    },
    Check {
        name: "open_chats",
        details: "an open chat whose node is unknown, or has been dead for an hour in which no other node released the chat",
        sql: Sql::both(
            "SELECT c.id, c.node, n.alive_until FROM chats c LEFT JOIN nodes n ON n.id = c.node
             WHERE c.node IS NOT NULL
               AND (n.id IS NULL OR n.alive_until + 3600000 < (SELECT MAX(alive_until) FROM nodes))",
        ),
    },
];

/// Checks that every hold, and every settlement plus what was written off, is the sum of price × tokens, rounded half up once; and the checksum of
/// every chat.
pub(super) async fn check_amounts(
    tx: &mut Tx<'_>,
    found: &mut Vec<AuditViolation>,
) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&READ_CHATS_AFTER, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            let shown = cells_to_text(&row, 3);
            let amounts = ChatAmounts::read(&row, 5)?;
            let parts = row.text(23)?;
            let (id, user, key) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let mut violated = |check, problem| {
                found.push(AuditViolation {
                    check,
                    subject: id.clone(),
                    detail: format!(
                        "{problem}: checksum, outcome, five prices, five counts, estimated, held, settled, written off, debt, clamped, cost of parts, refunded, parts: {shown}"
                    ),
                });
            };
            if !amounts_agree(&amounts) {
                violated(
                    "chat_arithmetic",
                    "the amounts are not the cost of the tokens",
                );
            }
            let is_sum = cost_of_column(&parts).map(Amount::nanos) == Some(amounts.parts_cost);
            if amounts.closed.is_some() && !is_sum {
                violated("chat_arithmetic", "parts_cost is not the cost of the parts");
            }
            if amounts.checksum([&id, &user, &key]) != row.int(3)? {
                violated("chat_seal", "the checksum does not match");
            }
            after = id;
        }
    }
}

/// Whether the amounts of a chat, open or closed, are the cost of its tokens.
fn amounts_agree(amounts: &ChatAmounts) -> bool {
    let Some(cost) = amounts.cost() else {
        return false;
    };
    match amounts.closed {
        None => amounts.held == Some(cost.nanos()),
        Some([settled, written_off]) => {
            settled >= 0
                && written_off >= 0
                && settled.checked_add(written_off) == Some(cost.nanos())
        }
    }
}

/// The outcome is a literal in the statements above.
const _: () = assert!(matches!(ChatEnd::OUTCOME_LOST.as_bytes(), b"lost"));
