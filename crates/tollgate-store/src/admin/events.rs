//! The trail of admin writes: events that are chained by hashes, so that a changed or missing row is detected.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tollgate_core::{Millis, id};

use super::json::time_json;
use super::request::AdminRequest;
use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::batch::Batch;

/// The updated row is locked until the commit, so that events of several nodes are numbered one after the other.
const NEXT_SEQ: Sql =
    Sql::both("UPDATE meta SET value = value + 1 WHERE name = 'admin_event_seq' RETURNING value");
const LAST_SEQ: Sql = Sql::both("SELECT value FROM meta WHERE name = 'admin_event_seq'");
const HASH_OF: Sql = Sql::both("SELECT hash FROM admin_events WHERE seq = $1");
const INSERT_EVENT: Sql = Sql::both(
    "INSERT INTO admin_events (seq, at, actor, token_id, address, request_id, action, object_type, object_id, before, after,
                               reason, prev_hash, hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
);
macro_rules! select_events {
    () => {
        "SELECT seq, at, actor, token_id, address, request_id, action, object_type, object_id, before, after, reason, \
         prev_hash, hash FROM admin_events "
    };
}
macro_rules! list_events {
    ($database:ident) => {
        concat!(
            select_events!(),
            "WHERE seq < $1 AND at >= $2 AND at < $3 AND ",
            one_of!($database "actor" "$4"), " AND ", one_of!($database "action" "$5"), " AND ",
            one_of!($database "object_id" "$6"), " ORDER BY seq DESC LIMIT $7"
        )
    };
}
const LIST_EVENTS: Sql = Sql::per_database(list_events!(sqlite), list_events!(postgres));
const EVENTS_AFTER: Sql = Sql::both(concat!(
    select_events!(),
    "WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT 1000"
));

/// The value in the first event for the hash of the event before it.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// An event of the trail.
#[derive(Debug, Clone)]
pub struct Event {
    /// The number of the event, from 1, without gaps.
    pub seq: i64,
    at: Millis,
    actor: String,
    token_id: Option<String>,
    address: Option<String>,
    request_id: Option<String>,
    action: String,
    object_type: String,
    object_id: String,
    before: Option<String>,
    after: Option<String>,
    reason: Option<String>,
    prev_hash: String,
    hash: String,
}

impl Event {
    /// The event as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        let parse = |text: &Option<String>| match text {
            Some(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            None => Value::Null,
        };
        json!({
            "seq": self.seq,
            "at": time_json(self.at),
            "actor": self.actor,
            "token_id": self.token_id,
            "address": self.address,
            "request_id": self.request_id,
            "action": self.action,
            "object": { "type": self.object_type, "id": self.object_id },
            "before": parse(&self.before),
            "after": parse(&self.after),
            "reason": self.reason,
            "prev_hash": self.prev_hash,
            "hash": self.hash,
        })
    }

    /// The hash of all other columns of the row.
    fn expected_hash(&self) -> String {
        let text = json!([
            self.prev_hash,
            self.seq,
            self.at,
            self.actor,
            self.token_id,
            self.address,
            self.request_id,
            self.action,
            self.object_type,
            self.object_id,
            self.before,
            self.after,
            self.reason,
        ]);
        id::hex(&Sha256::digest(text.to_string()))
    }
}

/// Filters of the list of events.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events from this time on.
    pub from: Millis,
    /// Only events before this time.
    pub to: Millis,
    /// Only of these actors.
    pub actors: Option<Vec<String>>,
    /// Only these actions.
    pub actions: Option<Vec<String>>,
    /// Only of the objects with these ids.
    pub object_ids: Option<Vec<String>>,
}

/// The result of verifying the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailVerification {
    /// How many events were found intact.
    pub rows: i64,
    /// The hash of the last intact event; `None` if there is no event.
    pub head: Option<String>,
    /// The number of the first event that is changed or missing.
    pub first_bad: Option<i64>,
}

/// The trail.
impl Store {
    /// Events, newest first: at most `limit` with numbers below `before`.
    pub async fn list_events(
        &self,
        filter: &EventFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let lists = [&filter.actors, &filter.actions, &filter.object_ids];
        let [actors, actions, objects] = lists.map(|list| list_arg(list.as_ref()));
        let args = args![
            before.unwrap_or(i64::MAX),
            filter.from,
            filter.to,
            actors.as_ref(),
            actions.as_ref(),
            objects.as_ref(),
            limit as i64
        ];
        let mut rows = self.query_slow(&LIST_EVENTS, args).await?;
        Ok(rows.iter_mut().map(read_event).collect::<Result<_, _>>()?)
    }

    /// Verifies the trail from its first event, and stops at the first that is changed or missing.
    pub async fn verify_events(&self) -> Result<TrailVerification, StoreError> {
        let last = self.first(&LAST_SEQ, &[], |row| row.int(0)).await?;
        let last = last.unwrap_or(0);
        let (mut seq, mut head) = (0, None::<String>);
        loop {
            let mut rows = self.query_slow(&EVENTS_AFTER, args![seq, last]).await?;
            if rows.is_empty() {
                break;
            }
            for row in &mut rows {
                let event = read_event(row)?;
                let follows = event.prev_hash == head.as_deref().unwrap_or(NO_HASH);
                if event.seq != seq + 1 || !follows || event.hash != event.expected_hash() {
                    return Ok(verification(seq, head, Some(seq + 1)));
                }
                (seq, head) = (event.seq, Some(event.hash));
            }
            tokio::task::yield_now().await;
        }
        let first_bad = (seq < last).then_some(seq + 1);
        Ok(verification(seq, head, first_bad))
    }
}

fn verification(rows: i64, head: Option<String>, first_bad: Option<i64>) -> TrailVerification {
    TrailVerification {
        rows,
        head,
        first_bad,
    }
}

/// An event to append.
pub(crate) struct NewEvent<'a> {
    pub(crate) request: &'a AdminRequest,
    pub(crate) action: &'a str,
    pub(crate) object_type: &'a str,
    pub(crate) object_id: &'a str,
    pub(crate) before: Option<&'a Value>,
    pub(crate) after: Option<&'a Value>,
}

/// Appends an event to the chain.
pub(crate) async fn append_event(
    batch: &mut Batch<'_, '_>,
    new: &NewEvent<'_>,
) -> Result<(), DbError> {
    let missing = || DbError::UnexpectedData("meta has no admin_event_seq".to_owned());
    let row = batch.first(&NEXT_SEQ, &[]).await?.ok_or_else(missing)?;
    let seq = row.int(0)?;
    let prev_hash = match batch.first(&HASH_OF, args![seq - 1]).await? {
        Some(mut row) => row.text(0)?,
        None => NO_HASH.to_owned(),
    };
    let request = new.request;
    let mut event = Event {
        seq,
        at: request.now,
        actor: storable(&request.actor),
        token_id: request.token_id.clone(),
        address: request.address.clone(),
        request_id: request.request_id.clone(),
        action: new.action.to_owned(),
        object_type: new.object_type.to_owned(),
        object_id: storable(new.object_id),
        before: new.before.map(Value::to_string),
        after: new.after.map(Value::to_string),
        reason: request.reason.as_deref().map(storable),
        prev_hash,
        hash: String::new(),
    };
    event.hash = event.expected_hash();
    batch.queue(
        &INSERT_EVENT,
        args![
            event.seq,
            event.at,
            &event.actor,
            event.token_id.as_ref(),
            event.address.as_ref(),
            event.request_id.as_ref(),
            &event.action,
            &event.object_type,
            &event.object_id,
            event.before.as_ref(),
            event.after.as_ref(),
            event.reason.as_ref(),
            &event.prev_hash,
            &event.hash
        ],
    )
}

/// The text in the form in which both databases store it: PostgreSQL has no NUL, and the hash must be that of the stored text.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Reads an event from the columns `select_events`.
fn read_event(row: &mut Row) -> Result<Event, DbError> {
    Ok(Event {
        seq: row.int(0)?,
        at: row.int(1)?,
        actor: row.text(2)?,
        token_id: row.opt_text(3)?,
        address: row.opt_text(4)?,
        request_id: row.opt_text(5)?,
        action: row.text(6)?,
        object_type: row.text(7)?,
        object_id: row.text(8)?,
        before: row.opt_text(9)?,
        after: row.opt_text(10)?,
        reason: row.opt_text(11)?,
        prev_hash: row.text(12)?,
        hash: row.text(13)?,
    })
}
