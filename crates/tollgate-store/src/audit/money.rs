//! Checks of money: balances, quotas and charges agree with the ledger entries.

use super::check::Check;
use crate::db::Sql;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "user_sums",
        details: "balance, held, used; then the same from the entries; then what nodes have granted themselves, a part of held",
        sql: Sql::both(
            "SELECT u.id, u.balance, u.held, u.used, l.balance, l.held, l.used, g.amount FROM users u
             LEFT JOIN (SELECT user_id,
                CAST(SUM(CASE kind WHEN 'credit' THEN amount WHEN 'refund' THEN amount WHEN 'settle' THEN -amount WHEN 'charge' THEN -amount ELSE 0 END) AS BIGINT) AS balance,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE WHEN kind IN ('settle', 'charge') THEN amount WHEN kind = 'refund' THEN -amount ELSE 0 END) AS BIGINT) AS used
                FROM entries GROUP BY user_id) l ON l.user_id = u.id
             LEFT JOIN (SELECT user_id, CAST(SUM(amount) AS BIGINT) AS amount FROM grants GROUP BY user_id) g ON g.user_id = u.id
             WHERE u.balance <> COALESCE(l.balance, 0) OR u.held <> COALESCE(l.held, 0) + COALESCE(g.amount, 0)
                OR u.used <> COALESCE(l.used, 0)",
        ),
    },
    Check {
        name: "unlimited_users",
        details: "unlimited, and the ledger entry of it",
        sql: Sql::both(
            "SELECT u.id, u.unlimited, l.ref FROM users u
             LEFT JOIN (SELECT user_id, MAX(ref) AS ref FROM ledger WHERE kind IN ('unlimited', 'limited') GROUP BY user_id) last
                ON last.user_id = u.id
             LEFT JOIN ledger l ON l.ref = last.ref AND l.kind = 'unlimited'
             WHERE u.unlimited NOT IN (0, 1) OR (u.unlimited = 1) <> (l.ref IS NOT NULL)",
        ),
    },
    Check {
        name: "key_sums",
        details: "held, used, quota; then the same from the entries; then what nodes have granted themselves, a part of held",
        sql: Sql::both(
            "SELECT k.id, k.held, k.used, k.quota, l.held, l.used, q.amount, g.amount FROM keys k
             LEFT JOIN (SELECT key_id,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE WHEN kind IN ('settle', 'charge') THEN amount WHEN kind = 'refund' THEN -amount ELSE 0 END) AS BIGINT) AS used,
                MAX(CASE WHEN kind IN ('quota', 'no_quota') THEN ref END) AS last_quota
                FROM entries WHERE key_id IS NOT NULL GROUP BY key_id) l ON l.key_id = k.id
             LEFT JOIN ledger q ON q.ref = l.last_quota AND q.kind = 'quota'
             LEFT JOIN (SELECT key_id, CAST(SUM(amount) AS BIGINT) AS amount FROM grants GROUP BY key_id) g ON g.key_id = k.id
             WHERE k.held <> COALESCE(l.held, 0) + COALESCE(g.amount, 0) OR k.used <> COALESCE(l.used, 0)
                OR COALESCE(k.quota, -1) <> COALESCE(q.amount, -1)",
        ),
    },
    Check {
        name: "grants",
        details: "what is left of a grant, granted, settled, released: left + settled + released is not what was granted, one is negative, or the key is another user's",
        sql: Sql::both(
            "SELECT g.id, g.amount, g.granted, g.settled, g.released FROM grants g LEFT JOIN keys k ON k.id = g.key_id
             WHERE g.amount < 0 OR g.settled < 0 OR g.released < 0 OR g.amount + g.settled + g.released <> g.granted
                OR k.user_id IS NULL OR k.user_id <> g.user_id",
        ),
    },
    Check {
        name: "open_grants",
        details: "the grant's node is unknown, or has been dead for an hour in which no other node released the grant",
        sql: Sql::both(
            "SELECT g.id, g.node, n.alive_until FROM grants g LEFT JOIN nodes n ON n.id = g.node
             WHERE n.id IS NULL OR n.alive_until + 3600000 < (SELECT MAX(alive_until) FROM nodes)",
        ),
    },
    Check {
        name: "never_overdrawn",
        details: "balance and held of a limited user: more is owed than its chats recorded as debt",
        sql: Sql::both(
            "SELECT u.id, u.balance, u.held FROM users u
             WHERE u.held < 0 OR u.used < 0 OR (u.unlimited = 0 AND u.balance - u.held < 0
                AND u.held - u.balance > (SELECT CAST(COALESCE(SUM(debt), 0) AS BIGINT) FROM chats WHERE user_id = u.id AND debt <> 0))",
        ),
    },
    Check {
        name: "quota_kept",
        details: "quota, held, used: the quota is exceeded by more than the key's chats recorded as debt",
        sql: Sql::both(
            "SELECT k.id, k.quota, k.held, k.used FROM keys k
             WHERE k.held < 0 OR k.used < 0 OR (k.held + k.used > k.quota AND k.held + k.used - k.quota
                > (SELECT CAST(COALESCE(SUM(debt), 0) AS BIGINT) FROM chats WHERE user_id = k.user_id AND key_id = k.id AND debt <> 0))",
        ),
    },
    Check {
        name: "charge_entries",
        details: "held, settled, released; then the same from the ledger",
        sql: Sql::both(
            "SELECT c.id, c.held, c.settled, c.released, l.held, l.settled, l.released FROM charges c
             LEFT JOIN (SELECT ref,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE kind WHEN 'settle' THEN amount ELSE 0 END) AS BIGINT) AS settled,
                CAST(SUM(CASE kind WHEN 'release' THEN amount ELSE 0 END) AS BIGINT) AS released
                FROM ledger WHERE kind IN ('hold', 'settle', 'release') GROUP BY ref) l ON l.ref = c.id
             WHERE c.held <> COALESCE(l.held, 0) OR COALESCE(c.settled, 0) <> COALESCE(l.settled, 0)
                OR COALESCE(c.released, 0) <> COALESCE(l.released, 0)
                OR (c.closed_at IS NULL) <> (c.settled IS NULL) OR (c.closed_at IS NULL) <> (c.released IS NULL)
                OR (c.closed_at IS NULL) <> (c.units_settled IS NULL)
                OR (c.closed_at IS NOT NULL AND c.settled + c.released <> c.held)",
        ),
    },
    Check {
        name: "entry_owners",
        details: "a ledger entry without its charge or chat, user or key, of an unknown kind, negative where that is not allowed, or of another user or key",
        sql: Sql::both(
            "SELECT l.ref, l.kind, l.user_id, l.key_id, l.amount FROM ledger l
             LEFT JOIN charges c ON c.id = l.ref LEFT JOIN chats t ON t.id = l.ref LEFT JOIN users u ON u.id = l.user_id LEFT JOIN keys k ON k.id = l.key_id
             WHERE u.id IS NULL OR l.kind NOT IN ('credit', 'unlimited', 'limited', 'quota', 'no_quota', 'hold', 'settle', 'release', 'charge', 'refund')
                OR (l.kind IN ('credit', 'unlimited', 'limited')) <> (l.key_id IS NULL)
                OR (l.kind IN ('unlimited', 'limited', 'no_quota') AND l.amount <> 0)
                OR (l.kind IN ('unlimited', 'limited') AND l.ref <> l.user_id
                    AND substr(l.ref, 1, length(l.user_id) + 1) <> l.user_id || ':')
                OR (l.kind IN ('quota', 'no_quota') AND l.ref <> l.key_id
                    AND substr(l.ref, 1, length(l.key_id) + 1) <> l.key_id || ':')
                OR (l.key_id IS NOT NULL AND (k.id IS NULL OR k.user_id <> l.user_id OR l.amount < 0))
                OR (c.id IS NOT NULL AND t.id IS NOT NULL)
                OR (l.kind IN ('hold', 'settle', 'release')
                    AND (COALESCE(c.user_id, t.user_id, '') <> l.user_id OR COALESCE(c.key_id, t.key_id, '') <> l.key_id))
                OR (l.kind = 'charge' AND (t.id IS NULL OR t.user_id <> l.user_id OR t.key_id <> l.key_id))",
        ),
    },
    Check {
        name: "refunds",
        details: "settled and refunded of a task or chat; then the sum of its refunds in the ledger",
        sql: Sql::both(
            "SELECT c.id, c.settled, c.refunded, r.refunded FROM
                (SELECT id, settled, refunded FROM charges UNION ALL SELECT id, settled, refunded FROM chats) c
             LEFT JOIN (SELECT substr(ref, 1, length(ref) - 20) AS id, CAST(SUM(amount) AS BIGINT) AS refunded
                FROM ledger WHERE kind = 'refund' GROUP BY substr(ref, 1, length(ref) - 20)) r ON r.id = c.id
             WHERE c.refunded <> COALESCE(r.refunded, 0) OR c.refunded < 0 OR c.refunded > COALESCE(c.settled, 0)",
        ),
    },
    Check {
        name: "refund_owners",
        details: "a refund of 0 or less, without its task or chat, or of another user or key",
        sql: Sql::both(
            "SELECT l.ref, l.user_id, l.key_id, l.amount FROM ledger l
             LEFT JOIN charges c ON c.id = substr(l.ref, 1, length(l.ref) - 20)
             LEFT JOIN chats t ON t.id = substr(l.ref, 1, length(l.ref) - 20)
             WHERE l.kind = 'refund' AND (l.amount <= 0 OR COALESCE(c.user_id, t.user_id, '') <> l.user_id
                OR COALESCE(c.key_id, t.key_id, '') <> l.key_id)",
        ),
    },
    Check {
        name: "charge_owners",
        details: "user and key of a charge: one is missing, or the key is another user's",
        sql: Sql::both(
            "SELECT c.id, c.user_id, c.key_id FROM charges c
             LEFT JOIN users u ON u.id = c.user_id LEFT JOIN keys k ON k.id = c.key_id
             WHERE u.id IS NULL OR k.id IS NULL OR k.user_id <> c.user_id",
        ),
    },
    Check {
        name: "task_charges",
        details: "state, cost and refunds of a task; then what its charge settled and refunded, and when it closed",
        sql: Sql::both(
            "SELECT t.id, t.state, t.cost, t.refunded, c.settled, c.refunded, c.closed_at FROM tasks t LEFT JOIN charges c ON c.id = t.id
             WHERE c.id IS NULL OR c.user_id <> t.user_id OR c.key_id <> t.key_id OR t.cost <> COALESCE(c.settled, 0)
                OR t.refunded <> c.refunded
                OR (t.state < 2) <> (c.closed_at IS NULL)
                OR (t.state IN (3, 4) AND COALESCE(c.units_settled, 0) <> 0)
                OR (t.state = 2 AND COALESCE(c.units_settled, 0) < 1)",
        ),
    },
    Check {
        name: "open_charges",
        details: "a charge is open and no unfinished task has it",
        sql: Sql::both(
            "SELECT c.id, c.held FROM charges c LEFT JOIN tasks t ON t.id = c.id WHERE c.closed_at IS NULL AND t.id IS NULL",
        ),
    },
];
