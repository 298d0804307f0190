//! Chats in the admin API: list all, show one. Their messages are not stored.

use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use super::json::{amount_json, time_json};
use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::list_blocks::List;
use crate::list_blocks::search::{RowQuery, Search};
use crate::replica::{CHAT_WRITE_TIME, Source};
use crate::store::Store;

macro_rules! select_chats {
    () => {
        "SELECT id, model, format, streamed, outcome, user_id, key_id, channel, request_id, settled, refunded, input, cached_input, \
         cache_write, output, reasoning, opened_at, closed_at, attempts, dropped FROM chats "
    };
}
/// The error code of a chat: the outcome of its last attempt, if that failed.
macro_rules! chat_error_code {
    (sqlite) => {
        "CASE WHEN outcome = 'failed' THEN json_extract(NULLIF(attempts, ''), '$[#-1].outcome') END"
    };
    (postgres) => {
        "CASE WHEN outcome = 'failed' THEN CAST(NULLIF(attempts, '') AS json) -> -1 ->> 'outcome' END"
    };
}
pub(crate) use chat_error_code;
macro_rules! list_chats {
    ($database:ident) => {
        concat!(
            select_chats!(),
            "WHERE id >= $1 AND id < $2 AND ",
            one_of!($database "user_id" "$3"), " AND ", one_of!($database "key_id" "$4"), " AND ",
            one_of!($database "model" "$5"), " AND ", one_of!($database "format" "$6"), " AND ",
            one_of!($database "channel" "$7"), " AND ", one_of!($database "outcome" "$8"), " AND ",
            one_of!($database "request_id" "$9"), " AND ", one_of!($database (chat_error_code!($database)) "$10"),
            " ORDER BY id DESC LIMIT $11"
        )
    };
}
const LIST_CHATS: Sql = Sql::per_database(list_chats!(sqlite), list_chats!(postgres));
const CHAT: Sql = Sql::both(concat!(select_chats!(), "WHERE id = $1"));

/// Filters of the list of chats.
#[derive(Debug, Clone, Default)]
pub struct ChatFilter {
    /// Only chats from this time on.
    pub from: Millis,
    /// Only chats before this time.
    pub to: Millis,
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Only of these keys.
    pub key_ids: Option<Vec<String>>,
    /// Only of these models.
    pub models: Option<Vec<String>>,
    /// Only in these formats.
    pub formats: Option<Vec<String>>,
    /// Only with responses of these channels.
    pub channels: Option<Vec<String>>,
    /// Only with these outcomes: `done`, `cut`, `client_gone`, `failed`, `lost`.
    pub outcomes: Option<Vec<String>>,
    /// Only of these requests.
    pub request_ids: Option<Vec<String>>,
    /// Only failed with one of these codes.
    pub error_codes: Option<Vec<String>>,
}

/// A chat in a list.
#[derive(Debug, Clone)]
pub struct ChatItem {
    /// Its id, which is also its position in the list.
    pub id: String,
    /// The chat as a JSON object of the admin API.
    pub value: Value,
    /// The failed attempts, as a JSON array; `None` once the details were purged.
    pub attempts: Option<Value>,
    /// The fields that a translation left out, as a JSON array; `None` if there are none, and once the details were purged.
    pub dropped: Option<Value>,
}

impl ChatItem {
    fn read(row: &mut Row) -> Result<Self, DbError> {
        let attempts = row.text(18)?;
        let attempts: Option<Value> = serde_json::from_str(&attempts).ok();
        let outcome = row.opt_text(4)?;
        let is_failed = outcome.as_deref() == Some("failed");
        let last_failure = attempts.as_ref().and_then(|list| list.as_array()?.last());
        let error_code = last_failure
            .filter(|_| is_failed)
            .map(|attempt| attempt["outcome"].clone());
        let mut tokens = [0; 5];
        for (at, count) in tokens.iter_mut().enumerate() {
            *count = row.int(11 + at)?;
        }
        let [input, cached_input, cache_write, output, reasoning] = tokens;
        let request_id = row.text(8)?;
        let id = row.text(0)?;
        let value = json!({
            "id": id,
            "model": row.text(1)?,
            "format": row.text(2)?,
            "streamed": row.int(3)? != 0,
            "outcome": outcome,
            "user_id": row.text(5)?,
            "key_id": row.text(6)?,
            "channel": row.opt_text(7)?,
            "request_id": Some(request_id).filter(|id| !id.is_empty()),
            "error_code": error_code,
            "cost": amount_json(row.opt_int(9)?.map_or(Amount::ZERO, Amount::from_nanos)),
            "refunded": amount_json(row.amount(10)?),
            "tokens": {
                "input": input,
                "cached_input": cached_input,
                "cache_write": cache_write,
                "output": output,
                "reasoning": reasoning,
            },
            "created_at": time_json(row.int(16)?),
            "ended_at": row.opt_int(17)?.map(time_json),
        });
        let dropped = row.opt_text(19)?;
        Ok(Self {
            id,
            value,
            attempts,
            dropped: dropped.and_then(|names| serde_json::from_str(&names).ok()),
        })
    }
}

/// Chats.
impl Store {
    /// Chats of all users, newest first, older than the one with the id `before`.
    pub async fn admin_list_chats(
        &self,
        filter: &ChatFilter,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ChatItem>, StoreError> {
        let list = async |source, times, limit| {
            self.list_chats_between(source, filter, times, before, limit)
                .await
        };
        let Some(until) = self.replica_complete_until(CHAT_WRITE_TIME) else {
            return list(Source::Primary, (filter.from, filter.to), limit).await;
        };
        // Chats of that age have ended or were released as lost. Before that an id may still change: a chat that is not held on disk gets the time of
        // its end in its id.
        let until = until.clamp(filter.from, filter.to.max(filter.from));
        let mut items = list(Source::Primary, (until, filter.to), limit).await?;
        let left = limit - items.len().min(limit);
        if left > 0 {
            items.extend(list(Source::Replica, (filter.from, until), left).await?);
        }
        Ok(items)
    }

    /// The chats with ids from these times.
    async fn list_chats_between(
        &self,
        source: Source,
        filter: &ChatFilter,
        (from, to): (Millis, Millis),
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ChatItem>, StoreError> {
        let lists = [
            &filter.user_ids,
            &filter.key_ids,
            &filter.models,
            &filter.formats,
            &filter.channels,
            &filter.outcomes,
            &filter.request_ids,
            &filter.error_codes,
        ];
        let [
            users,
            keys,
            models,
            formats,
            channels,
            outcomes,
            requests,
            codes,
        ] = lists.map(|list| list_arg(list.as_ref()));
        let from = id::min_chat_id_at(from);
        let to = id::min_chat_id_at(to);
        let search = Search {
            list: List::Chats,
            from_id: &from,
            to_id: before.map_or(to.as_str(), |before| before.min(&to)),
            users: filter.user_ids.as_ref(),
            keys: filter.key_ids.as_ref(),
            models: filter.models.as_ref(),
            channels: filter.channels.as_ref(),
            outcomes: filter.outcomes.as_ref(),
            error_codes: filter.error_codes.as_ref(),
            kinds: filter.formats.as_ref(),
            requests: filter.request_ids.as_ref(),
            source,
        };
        let query = RowQuery {
            sql: &LIST_CHATS,
            filters: args![
                users.as_ref(),
                keys.as_ref(),
                models.as_ref(),
                formats.as_ref(),
                channels.as_ref(),
                outcomes.as_ref(),
                requests.as_ref(),
                codes.as_ref(),
            ],
        };
        let mut rows = search.rows(self, limit, &query).await?;
        Ok(rows
            .iter_mut()
            .map(ChatItem::read)
            .collect::<Result<_, _>>()?)
    }

    /// A chat of any user.
    pub async fn admin_chat(&self, chat_id: &str) -> Result<Option<ChatItem>, StoreError> {
        self.first(&CHAT, args![chat_id], ChatItem::read).await
    }
}
