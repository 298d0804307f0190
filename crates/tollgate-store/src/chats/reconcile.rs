//! The usage of a channel's chats by model and day, for a comparison with the usage that the provider reports.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, money};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// Milliseconds of a day.
const DAY: Millis = 86_400_000;

// Units and billionths are summed separately: the sum of many amounts in billionths may exceed 64 bits.
const USED: Sql = Sql::both(
    "SELECT closed_at / 86400000, COALESCE(upstream_model, model), COUNT(*), CAST(SUM(estimated) AS BIGINT),
            CAST(SUM(input + cached_input + cache_write) AS BIGINT), CAST(SUM(output + reasoning) AS BIGINT),
            CAST(SUM(CASE WHEN estimated = 1 THEN input + cached_input + cache_write + output + reasoning ELSE 0 END) AS BIGINT),
            CAST(SUM(clamped) AS BIGINT),
            CAST(SUM(settled / 1000000000) AS BIGINT), CAST(SUM(settled % 1000000000) AS BIGINT),
            CAST(SUM(debt / 1000000000) AS BIGINT), CAST(SUM(debt % 1000000000) AS BIGINT)
     FROM chats WHERE channel = $1 AND closed_at >= $2 AND closed_at < $3 GROUP BY 1, 2 ORDER BY 1, 2",
);
const PARTS: Sql = Sql::both(
    "SELECT closed_at / 86400000, COALESCE(upstream_model, model), estimated, parts
     FROM chats WHERE channel = $1 AND closed_at >= $2 AND closed_at < $3 AND parts <> ''",
);
const FORGET: Sql = Sql::both("DELETE FROM reconciliations WHERE channel = $1");
const RECORD: Sql = Sql::both(
    "INSERT INTO reconciliations (channel, model, counted, reported, at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (channel, model) DO UPDATE SET counted = excluded.counted, reported = excluded.reported, at = excluded.at",
);
const LAST: Sql = Sql::both(
    "SELECT channel, model, counted, reported FROM reconciliations ORDER BY channel, model",
);

/// The usage of one channel's ended chats on one day with one model of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelUsage {
    /// The day on which they ended, in UTC, counted from 1970-01-01.
    pub day: i64,
    /// The provider's id of the model.
    pub model: String,
    /// Number of chats, including those that were charged nothing.
    pub chats: i64,
    /// The number of chats whose tokens the gateway estimated.
    pub estimated: i64,
    /// Prompt tokens, including those read from and written to the cache.
    pub input: i64,
    /// Output tokens, including reasoning.
    pub output: i64,
    /// The number of tokens, among these, that the gateway estimated.
    pub estimated_tokens: i64,
    /// Tokens that the provider reported beyond what the requests can have used; they are not charged and not included in the others.
    pub clamped_tokens: i64,
    /// The amount that was charged.
    pub charged: Amount,
    /// The part of it that neither balance nor quota covered.
    pub debt: Amount,
}

/// The tokens of one channel and model in the last reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// The channel's name.
    pub channel: String,
    /// The provider's id of the model.
    pub model: String,
    /// The number of tokens by the gateway's count.
    pub counted: i64,
    /// The number of tokens by the provider's count.
    pub reported: i64,
}

/// Reconciliation.
impl Store {
    /// The usage of the chats of `channel` that ended on the days from `from` to before `until`, by day and model. Reads every chat.
    pub async fn channel_usage(
        &self,
        channel: &str,
        from: i64,
        until: i64,
    ) -> Result<Vec<ChannelUsage>, StoreError> {
        let period = args![channel, from.saturating_mul(DAY), until.saturating_mul(DAY)];
        let mut rows = self.query(&USED, period).await?;
        let usage = rows.iter_mut().map(read_usage);
        let mut usage: Vec<ChannelUsage> = usage.collect::<Result<_, _>>()?;
        let mut at = BTreeMap::new();
        for (index, used) in usage.iter().enumerate() {
            at.insert((used.day, used.model.clone()), index);
        }
        // Tokens of parts with a separate price are not included in the other counts.
        for row in &mut self.query(&PARTS, period).await? {
            let (day, model, is_estimated) = (row.int(0)?, row.text(1)?, row.int(2)? == 1);
            let used = at
                .get(&(day, model))
                .and_then(|index| usage.get_mut(*index));
            let Some(used) = used else { continue };
            let (input, output) = part_tokens(&row.text(3)?);
            used.input += input;
            used.output += output;
            used.estimated_tokens += if is_estimated { input + output } else { 0 };
        }
        Ok(usage)
    }

    /// Stores the last reconciliation of `channel`; it replaces the previous one.
    pub async fn record_reconciliation(
        &self,
        channel: &str,
        reconciled: Vec<Reconciled>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let channel = channel.to_owned();
        self.write(Record {
            channel,
            reconciled,
            now,
        })
        .await
    }

    /// The last reconciliation of each channel.
    pub async fn reconciliations(&self) -> Result<Vec<Reconciled>, StoreError> {
        let mut rows = self.query(&LAST, args![]).await?;
        let read = |row: &mut Row| {
            Ok::<_, DbError>(Reconciled {
                channel: row.text(0)?,
                model: row.text(1)?,
                counted: row.int(2)?,
                reported: row.int(3)?,
            })
        };
        Ok(rows.iter_mut().map(read).collect::<Result<_, _>>()?)
    }
}

fn read_usage(row: &mut Row) -> Result<ChannelUsage, DbError> {
    let sum = |row: &Row, at: usize| -> Result<Amount, DbError> {
        let nanos = row.int(at)?.saturating_mul(money::NANOS);
        Ok(Amount::from_nanos(nanos.saturating_add(row.int(at + 1)?)))
    };
    Ok(ChannelUsage {
        day: row.int(0)?,
        model: row.text(1)?,
        chats: row.int(2)?,
        estimated: row.int(3)?,
        input: row.int(4)?,
        output: row.int(5)?,
        estimated_tokens: row.int(6)?,
        clamped_tokens: row.int(7)?,
        charged: sum(row, 8)?,
        debt: sum(row, 10)?,
    })
}

/// The tokens in the column `parts`: of the prompt, and of the output. Calls of tools are not counted.
fn part_tokens(parts: &str) -> (i64, i64) {
    let parts: Vec<(String, i64, i64, i64)> = serde_json::from_str(parts).unwrap_or_default();
    let sum = |names: &[&str]| {
        let parts = parts
            .iter()
            .filter(|(name, ..)| names.contains(&name.as_str()));
        parts.map(|(_, units, ..)| *units).sum()
    };
    (
        sum(&["cache_write_1h", "audio_input", "image_input"]),
        sum(&["audio_output", "image_output"]),
    )
}

struct Record {
    channel: String,
    reconciled: Vec<Reconciled>,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for Record {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&FORGET, args![&self.channel])?;
        for row in &self.reconciled {
            let Reconciled {
                channel,
                model,
                counted,
                reported,
            } = row;
            batch.queue(
                &RECORD,
                args![channel, model, *counted, *reported, self.now],
            )?;
        }
        Ok(())
    }
}
