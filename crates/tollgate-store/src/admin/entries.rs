//! Ledger entries in the admin API.

use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use super::json::{amount_json, time_json};
use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::ledger::refunds::refunded_id;
use crate::list_blocks::List;
use crate::list_blocks::search::{RowQuery, Search};
use crate::store::Store;
use crate::writer::batch::Batch;

/// Kinds of entries that record what was granted and move no money: the trail shows such changes in more detail.
macro_rules! listed_kinds {
    () => {
        "kind NOT IN ('unlimited', 'limited', 'no_quota')"
    };
}
/// The charges of chats that were inserted at their end, as entries.
macro_rules! select_charges {
    () => {
        "SELECT id AS ref, 'charge' AS kind, user_id, key_id, settled AS amount, CAST(NULL AS TEXT) AS note,
                closed_at AS at, CAST(NULL AS TEXT) AS reference FROM chats "
    };
}
/// The ids of a JSON array.
macro_rules! in_ids {
    (sqlite $parameter:literal) => {
        concat!("IN (SELECT value FROM json_each(", $parameter, "))")
    };
    (postgres $parameter:literal) => {
        concat!(
            "= ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST(",
            $parameter,
            " AS TEXT) AS json))))"
        )
    };
}
// If a chat was inserted at its end, its id contains that time, so its charge is found by the id. Charges with ids before $10 were searched for
// before: $12 are their ids.
macro_rules! list_entries {
    ($database:ident, $ledger:literal, $($users:tt)+) => {
        concat!(
            "SELECT ref, kind, user_id, key_id, amount, note, at, reference FROM (
             SELECT * FROM (SELECT ref, kind, user_id, key_id, amount, note, at, reference FROM ", $ledger, "
                WHERE at >= $1 AND at < $2 AND (at, ref, kind) < ($3, $4, $5) AND ", $($users)+, " AND ",
            one_of!($database "key_id" "$7"), " AND ", one_of!($database "kind" "$8"), " AND ", listed_kinds!(),
            " ORDER BY at DESC, ref DESC, kind DESC LIMIT $9) l
             UNION ALL
             SELECT * FROM (", select_charges!(), "
                WHERE held IS NULL AND settled <> 0 AND id >= $10 AND id < $11 AND closed_at >= $1 AND closed_at < $2
                AND (closed_at, id, 'charge') < ($3, $4, $5) AND ", $($users)+, " AND ",
            one_of!($database "key_id" "$7"), " AND ", one_of!($database "'charge'" "$8"),
            " ORDER BY id DESC LIMIT $9) c
             UNION ALL
             ", select_charges!(), "WHERE id ", in_ids!($database "$12"), "
             UNION ALL
             SELECT * FROM (SELECT id AS ref, 'debt' AS kind, user_id, key_id, debt AS amount, CAST(NULL AS TEXT) AS note,
                closed_at AS at, CAST(NULL AS TEXT) AS reference FROM chats
                WHERE debt <> 0 AND closed_at >= $1 AND closed_at < $2 AND (closed_at, id, 'debt') < ($3, $4, $5) AND ",
            $($users)+, " AND ", one_of!($database "key_id" "$7"), " AND ", one_of!($database "'debt'" "$8"),
            " ORDER BY closed_at DESC, id DESC LIMIT $9) d
             ) e ORDER BY at DESC, ref DESC, kind DESC LIMIT $9"
        )
    };
}
/// The change that an entry makes to the balance of its user.
macro_rules! delta {
    () => {
        "CASE kind WHEN 'credit' THEN amount WHEN 'refund' THEN amount WHEN 'settle' THEN -amount WHEN 'charge' THEN -amount ELSE 0 END"
    };
}
/// The balance before the entries from the end of the listed time on.
macro_rules! balance_at_end {
    () => {
        concat!(
            "(SELECT balance FROM users WHERE id = $6)
             - COALESCE((SELECT CAST(SUM(", delta!(), ") AS BIGINT) FROM ledger WHERE user_id = $6 AND at >= $2), 0)
             + COALESCE((SELECT CAST(SUM(settled) AS BIGINT) FROM chats
                         WHERE held IS NULL AND user_id = $6 AND id >= $13 AND closed_at >= $2), 0)"
        )
    };
}
macro_rules! old_charges {
    ($database:ident) => {
        concat!(
            "SELECT id FROM chats WHERE id >= $1 AND id < $2 AND held IS NULL AND settled <> 0 AND closed_at >= $3 AND closed_at < $4
             AND (closed_at, id, 'charge') < ($5, $6, $7) AND ",
            one_of!($database "user_id" "$8"), " AND ", one_of!($database "key_id" "$9"), " ORDER BY id DESC LIMIT $10"
        )
    };
}
const OLD_CHARGES: Sql = Sql::per_database(old_charges!(sqlite), old_charges!(postgres));
const LIST_ENTRIES_OF_USER: Sql = Sql::per_database(
    list_entries!(sqlite, "ledger", "user_id = $6"),
    list_entries!(postgres, "ledger", "user_id = $6"),
);
const LIST_ENTRIES: Sql = Sql::per_database(
    list_entries!(sqlite, "ledger", one_of!(sqlite "user_id" "$6")),
    list_entries!(postgres, "ledger", one_of!(postgres "user_id" "$6")),
);
/// Only charges: the ledger contains those of chats whose hold on disk was too small. There are few, and their references are ids of chats; the limit
/// keeps the database from reading the complete ledger in the order of time instead.
macro_rules! charges_of_holds {
    ($database:ident) => {
        list_entries!(
            $database,
            "(SELECT * FROM ledger WHERE ref >= 'chat_' AND ref < 'chat`' AND kind = 'charge' LIMIT 9223372036854775807) charges",
            one_of!($database "user_id" "$6")
        )
    };
}
const LIST_CHARGES: Sql = Sql::per_database(charges_of_holds!(sqlite), charges_of_holds!(postgres));
// The balance is selected last, because parameters must first occur in ascending order.
macro_rules! user_entries {
    ($database:ident) => {
        concat!(
            "SELECT e.*, b.balance FROM (",
            list_entries!($database, "ledger", "user_id = $6"),
            ") e CROSS JOIN (SELECT ",
            balance_at_end!(),
            " AS balance) b ORDER BY e.at DESC, e.ref DESC, e.kind DESC"
        )
    };
}
const USER_ENTRIES: Sql = Sql::per_database(user_entries!(sqlite), user_entries!(postgres));
const OWNERS: Sql = Sql::per_database(
    concat!(
        "SELECT DISTINCT user_id FROM keys WHERE id ",
        in_ids!(sqlite "$1")
    ),
    concat!(
        "SELECT DISTINCT user_id FROM keys WHERE id ",
        in_ids!(postgres "$1")
    ),
);
const BY_REFERENCE: Sql = Sql::both(
    "SELECT ref, kind, user_id, key_id, amount, note, at, reference FROM ledger WHERE reference = $1",
);
// ';' follows ':' in the order of characters, and ':' separates the id from the number of a refund.
const ENTRIES_OF: Sql = Sql::both(
    "SELECT ref, kind, user_id, key_id, amount, note, at, reference FROM ledger WHERE ref >= $1 AND ref < $2
     UNION ALL
     SELECT id, 'charge', user_id, key_id, settled, NULL, closed_at, NULL FROM chats WHERE id = $1 AND held IS NULL AND settled <> 0
     ORDER BY 7, 1, 2",
);
pub(super) const SET_REFERENCE: Sql =
    Sql::both("UPDATE ledger SET reference = $1 WHERE ref = $2 AND kind = 'credit'");

/// A ledger entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id of the task, chat or credit; for a refund, followed by a colon and its number.
    pub object_id: String,
    /// `credit`, `hold`, `settle`, `release`, `charge`, `refund`, `debt` or `quota`.
    pub kind: String,
    /// The user whose balance it concerns.
    pub user_id: String,
    /// The key, if it concerns one.
    pub key_id: Option<String>,
    /// The amount that was moved.
    pub amount: Amount,
    /// The reason.
    pub reason: Option<String>,
    /// The time of the entry, in Unix milliseconds.
    pub at: Millis,
    /// The id that a payment system gave to a credit.
    pub reference: Option<String>,
}

impl Entry {
    pub(super) fn credit(credit_id: &str, user_id: &str, new: &NewCredit, now: Millis) -> Self {
        Self {
            object_id: credit_id.to_owned(),
            kind: "credit".to_owned(),
            user_id: user_id.to_owned(),
            key_id: None,
            amount: new.amount,
            reason: new.reason.clone(),
            at: now,
            reference: new.reference.clone(),
        }
    }

    /// The change that it makes to the balance of its user.
    pub fn delta(&self) -> Amount {
        match self.kind.as_str() {
            "credit" | "refund" => self.amount,
            "settle" | "charge" => -self.amount,
            _ => Amount::ZERO,
        }
    }

    /// The entry as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        json!({
            "id": format!("{}:{}", self.object_id, self.kind),
            "at": time_json(self.at),
            "user_id": self.user_id,
            "key_id": self.key_id,
            "kind": self.kind,
            "amount": amount_json(self.amount),
            "delta": amount_json(self.delta()),
            "ref": refunded_id(&self.object_id),
            "reference": self.reference,
            "reason": self.reason,
        })
    }
}

/// A credit to make.
#[derive(Debug, Clone)]
pub struct NewCredit {
    /// The amount; negative to deduct it from the balance.
    pub amount: Amount,
    /// The reason.
    pub reason: Option<String>,
    /// The id that a payment system gave to it: unique among all credits.
    pub reference: Option<String>,
}

/// Filters of the list of entries.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Only entries from this time on.
    pub from: Millis,
    /// Only entries before this time.
    pub to: Millis,
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Only of these keys.
    pub key_ids: Option<Vec<String>>,
    /// Only of these kinds.
    pub kinds: Option<Vec<String>>,
}

/// The position of an entry in a list.
#[derive(Debug, Clone)]
pub struct EntryPosition {
    /// The entry's time.
    pub at: Millis,
    /// The entry's object.
    pub object_id: String,
    /// The entry's kind.
    pub kind: String,
}

/// The users whose entries a statement reads.
#[derive(Clone, Copy)]
enum EntriesOf<'a> {
    /// The entries of some users; if it is `None`, of all users.
    Any(Option<&'a Vec<String>>),
    /// The entries of the only user in the list, in the order of an index.
    User(&'a Vec<String>),
    /// As `User`, with the user's balance.
    UserWithBalance(&'a Vec<String>),
}

/// Ledger entries.
impl Store {
    /// Entries, newest first, after `after`.
    pub async fn list_entries(
        &self,
        filter: &EntryFilter,
        after: Option<&EntryPosition>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        // The entries of a key are read as those of its user, because there is an index by user.
        let owners = match (&filter.user_ids, &filter.key_ids) {
            (None, Some(keys)) => Some(self.owners(keys).await?),
            _ => None,
        };
        let users = filter.user_ids.as_ref().or(owners.as_ref());
        let of = match users {
            Some(users) if users.len() == 1 => EntriesOf::User(users),
            _ => EntriesOf::Any(users),
        };
        let mut rows = self.query_entries(of, filter, after, limit).await?;
        Ok(rows.iter_mut().map(read_entry).collect::<Result<_, _>>()?)
    }

    /// Entries of one user, newest first, after `after`, and the balance after the last entry before `filter.to`: valid only if `after` is `None`,
    /// and 0 if there are no entries. The filter's users are ignored.
    pub async fn list_user_entries(
        &self,
        user_id: &str,
        filter: &EntryFilter,
        after: Option<&EntryPosition>,
        limit: usize,
    ) -> Result<(Vec<Entry>, Amount), StoreError> {
        let users = vec![user_id.to_owned()];
        let mut rows = self
            .query_entries(EntriesOf::UserWithBalance(&users), filter, after, limit)
            .await?;
        let balance = rows.first().map_or(Ok(Amount::ZERO), |row| row.amount(8))?;
        let entries = rows.iter_mut().map(read_entry).collect::<Result<_, _>>()?;
        Ok((entries, balance))
    }

    /// The users who own these keys.
    async fn owners(&self, keys: &[String]) -> Result<Vec<String>, StoreError> {
        let keys = serde_json::json!(keys).to_string();
        let mut rows = self.query(&OWNERS, args![&keys]).await?;
        Ok(rows
            .iter_mut()
            .map(|row| row.text(0))
            .collect::<Result<_, _>>()?)
    }

    async fn query_entries(
        &self,
        of: EntriesOf<'_>,
        filter: &EntryFilter,
        after: Option<&EntryPosition>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let is_charge = |kind: &String| kind == "charge";
        let is_charges = (filter.kinds.as_ref()).is_some_and(|kinds| kinds.iter().all(is_charge));
        let (users, sql) = match of {
            EntriesOf::Any(users) if is_charges => (users, &LIST_CHARGES),
            EntriesOf::Any(users) => (users, &LIST_ENTRIES),
            EntriesOf::User(users) => (Some(users), &LIST_ENTRIES_OF_USER),
            EntriesOf::UserWithBalance(users) => (Some(users), &USER_ENTRIES),
        };
        let users_list = list_arg(users);
        let users_arg = match of {
            EntriesOf::Any(_) => users_list.as_deref(),
            _ => users.and_then(|users| users.first()).map(String::as_str),
        };
        let keys = list_arg(filter.key_ids.as_ref());
        let kinds = list_arg(filter.kinds.as_ref());
        let (at, object_id, kind) = match after {
            Some(after) => (after.at, after.object_id.as_str(), after.kind.as_str()),
            None => (i64::MAX, "~", "~"),
        };
        // Charges after the position have no later time.
        let to_id = id::min_chat_id_at(filter.to.min(at.saturating_add(1)));
        let from_id = id::min_chat_id_at(filter.from);
        let search = Search {
            from_id: &from_id,
            to_id: &to_id,
            users,
            keys: filter.key_ids.as_ref(),
            ..Search::all(List::Chats)
        };
        let query = RowQuery {
            sql: &OLD_CHARGES,
            filters: args![
                filter.from,
                filter.to,
                at,
                object_id,
                kind,
                users_list.as_ref(),
                keys.as_ref(),
            ],
        };
        let has_charges =
            (filter.kinds.as_ref()).is_none_or(|kinds| kinds.iter().any(|kind| kind == "charge"));
        let (newest, mut charges) = match has_charges {
            true => search.rows_in_blocks_only(self, limit, &query).await?,
            false => (to_id.clone(), Vec::new()),
        };
        let charges = charges.iter_mut().map(|row| row.text(0));
        let charges = serde_json::json!(charges.collect::<Result<Vec<_>, _>>()?).to_string();
        // Needed for the balance, which only the first page reads.
        let end_id = match after {
            Some(_) => "~".to_owned(),
            None => id::min_chat_id_at(filter.to),
        };
        let args = args![
            filter.from,
            filter.to,
            at,
            object_id,
            kind,
            users_arg,
            keys.as_ref(),
            kinds.as_ref(),
            limit as i64,
            &newest,
            &to_id,
            &charges,
            &end_id
        ];
        let has_balance = matches!(of, EntriesOf::UserWithBalance(_));
        let count = args.len() - usize::from(!has_balance);
        self.query_slow(sql, &args[..count]).await
    }

    /// The ledger entries of a task or chat, the oldest first.
    pub async fn entries_of_object(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let end = format!("{id};");
        let mut rows = self.query(&ENTRIES_OF, args![id, &end]).await?;
        Ok(rows.iter_mut().map(read_entry).collect::<Result<_, _>>()?)
    }
}

/// The credit with that reference.
pub(super) async fn credit_by_reference(
    batch: &mut Batch<'_, '_>,
    reference: &str,
) -> Result<Option<Entry>, DbError> {
    match batch.first(&BY_REFERENCE, args![reference]).await? {
        Some(mut row) => read_entry(&mut row).map(Some),
        None => Ok(None),
    }
}

fn read_entry(row: &mut Row) -> Result<Entry, DbError> {
    Ok(Entry {
        object_id: row.text(0)?,
        kind: row.text(1)?,
        user_id: row.text(2)?,
        key_id: row.opt_text(3)?,
        amount: row.amount(4)?,
        reason: row.opt_text(5)?,
        at: row.int(6)?,
        reference: row.opt_text(7)?,
    })
}
