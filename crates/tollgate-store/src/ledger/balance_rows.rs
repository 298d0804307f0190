//! Reads and locks the rows of the users and keys of a batch.

use std::collections::BTreeSet;

use crate::db::{DbError, Row, Sql, Tx, Value};

macro_rules! user_columns {
    () => {
        "SELECT id, balance, held, used, unlimited, disabled_at, budgets FROM users "
    };
}
macro_rules! key_columns {
    () => {
        "SELECT id, held, used, quota, revoked_at, user_id, budgets FROM keys "
    };
}
/// Selects the rows of a JSON array of ids, locked in the order of the ids.
macro_rules! of_ids {
    () => {
        "WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST($1 AS TEXT) AS json)))) ORDER BY id FOR UPDATE"
    };
}
/// Waits for the batches of other nodes that move money of these users, a JSON array of ids: locks in the order of their keys, until the end of the
/// transaction. The statement after it then sees what they committed. Otherwise PostgreSQL would wait for each row, and then read and check it again,
/// one row at a time.
const WAIT_FOR_USERS: Sql = Sql::both(
    "SELECT COUNT(*) FROM (SELECT pg_advisory_xact_lock(key) FROM (
         SELECT DISTINCT hashtextextended(id, 7053118) AS key FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS json)) AS ids (id) ORDER BY 1
     ) AS keys) AS locked",
);
/// If a batch has more users than this, it does not wait first, because a server has few locks of this kind.
const MAX_WAITED_FOR: usize = 64;
const LOAD_USER: Sql = Sql::both(concat!(user_columns!(), "WHERE id = $1"));
const LOAD_USERS: Sql = Sql::both(concat!(user_columns!(), of_ids!()));
const LOAD_KEY: Sql = Sql::both(concat!(key_columns!(), "WHERE id = $1"));
const LOAD_KEYS: Sql = Sql::both(concat!(key_columns!(), of_ids!()));

/// Reads and locks the rows of users and keys; on PostgreSQL in one round trip.
pub(super) async fn load_rows(
    tx: &mut Tx<'_>,
    users: &BTreeSet<&str>,
    keys: &BTreeSet<&str>,
) -> Result<(Vec<Row>, Vec<Row>), DbError> {
    let pg = match tx {
        Tx::Sqlite(_) => {
            let users = tx.query_by_ids(&LOAD_USER, &LOAD_USERS, users).await?;
            return Ok((users, tx.query_by_ids(&LOAD_KEY, &LOAD_KEYS, keys).await?));
        }
        Tx::Postgres(pg) => pg,
    };
    let lists = [users, keys].map(|ids| serde_json::json!(ids).to_string());
    let [of_users, of_keys] = lists.each_ref().map(|list| [Value::from(list)]);
    let mut queries: Vec<(&Sql, &[Value<'_>])> = Vec::new();
    if !users.is_empty() {
        if users.len() <= MAX_WAITED_FOR {
            pg.queue(&WAIT_FOR_USERS, &of_users, None);
        }
        queries.push((&LOAD_USERS, &of_users));
    }
    if !keys.is_empty() {
        queries.push((&LOAD_KEYS, &of_keys));
    }
    if queries.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut rows = pg.query_all(&queries).await?;
    let key_rows = if keys.is_empty() {
        Vec::new()
    } else {
        rows.pop().unwrap_or_default()
    };
    Ok((rows.pop().unwrap_or_default(), key_rows))
}
