//! Usage in each hour and day: by model, user, key and channel together (tables `usage_hourly`, `usage_daily`), and by each of these alone
//! (`usage_totals`). The transaction that ends tasks and chats, or refunds them, inserts their sums into `usage_pending`; the roll-up adds these to
//! the other tables in one transaction. So nothing is lost or added twice, whichever process dies and in whatever order transactions are committed.
//! Reports also read what is pending.

pub(crate) mod report;
pub(crate) mod roll_up;

use std::sync::Arc;

use tollgate_core::clock::HOUR;
use tollgate_core::{Amount, Millis};

use crate::chats::record::{ChatEnd, NewChat};
use crate::db::{DbError, RowsSql, Sql, Tx, args};

static INSERT_PENDING: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO usage_pending (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
));

/// The values that are counted; cost in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageSums {
    pub(crate) cost: i64,
    pub(crate) requests: i64,
    pub(crate) tokens: i64,
    pub(crate) images: i64,
    /// Seconds of video.
    pub(crate) seconds: i64,
    pub(crate) failed: i64,
}

impl UsageSums {
    fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost.saturating_add(other.cost),
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
            images: self.images.saturating_add(other.images),
            seconds: self.seconds.saturating_add(other.seconds),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

/// The usage of tasks and chats that end or are refunded in one transaction.
#[derive(Default)]
pub(crate) struct PendingUsage(Vec<Item>);

struct Item {
    hour: Millis,
    source: Source,
    sums: UsageSums,
}

/// The values of model, user, key and channel.
enum Source {
    Chat(Arc<NewChat>, Arc<ChatEnd>),
    Names([String; 4]),
}

impl Item {
    fn group(&self) -> (Millis, [&str; 4]) {
        let names = match &self.source {
            Source::Chat(chat, end) => {
                let channel = end.channel.as_deref().unwrap_or_default();
                [&chat.model, &chat.user_id, &chat.key_id, channel]
            }
            Source::Names(names) => names.each_ref().map(String::as_str),
        };
        (self.hour, names)
    }
}

impl PendingUsage {
    /// Adds a chat that ends. Copies no text, because this runs for every plain chat.
    pub(crate) fn add_chat(
        &mut self,
        chat: &Arc<NewChat>,
        end: &Arc<ChatEnd>,
        cost: Amount,
        tokens: i64,
    ) {
        let sums = UsageSums {
            cost: cost.nanos(),
            requests: 1,
            tokens,
            failed: end.is_failed().into(),
            ..UsageSums::default()
        };
        self.0.push(Item {
            hour: hour_of(end.ended_at),
            source: Source::Chat(Arc::clone(chat), Arc::clone(end)),
            sums,
        });
    }

    /// Adds sums at the time `at` for a model, user, key and channel.
    pub(crate) fn add(&mut self, at: Millis, names: [String; 4], sums: UsageSums) {
        self.0.push(Item {
            hour: hour_of(at),
            source: Source::Names(names),
            sums,
        });
    }

    /// The cost, in billionths, of a user's or key's usage since the hour `since` that is not inserted yet.
    pub(crate) fn cost_of(&self, owner_id: &str, since: Millis) -> i64 {
        let of_owner = self.0.iter().filter(|item| {
            let (hour, [_, user_id, key_id, _]) = item.group();
            hour >= since && (user_id == owner_id || key_id == owner_id)
        });
        of_owner.fold(0, |sum, item| sum.saturating_add(item.sums.cost))
    }

    /// Inserts one row for each hour, model, user, key and channel.
    pub(crate) fn insert(&mut self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        let mut items = std::mem::take(&mut self.0);
        items.sort_unstable_by(|a, b| a.group().cmp(&b.group()));
        for group in items.chunk_by(|a, b| a.group() == b.group()) {
            let (hour, [model, user_id, key_id, channel]) = group[0].group();
            let sums = group.iter().map(|item| item.sums);
            let sums = sums.fold(UsageSums::default(), UsageSums::plus);
            let args = args![
                hour,
                model,
                user_id,
                key_id,
                channel,
                sums.cost,
                sums.requests,
                sums.tokens,
                sums.images,
                sums.seconds,
                sums.failed
            ];
            tx.queue_row(&INSERT_PENDING, args)?;
        }
        Ok(())
    }
}

/// When the hour of UTC that contains `at` began.
fn hour_of(at: Millis) -> Millis {
    at - at % HOUR
}
