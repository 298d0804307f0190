//! Builds blocks of the rows that have ended since the last block.

use std::collections::HashMap;

use async_trait::async_trait;
use serde_json::json;
use tollgate_core::Millis;
use tollgate_core::clock::{MINUTE, SECOND};

use super::bloom;
use super::layout::{BLOCK_ROWS, GROUP_BLOCKS, HALF_GROUP, List};
use crate::admin::chats::chat_error_code;
use crate::db::{DbError, Row, Sql, args, known_schema_version};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// The age at which rows are put into blocks: if several nodes write, and if only this process writes, which counts the rows of a block and compares
/// every row with the last block.
const BUILD_AFTER: Millis = 3 * MINUTE;
const BUILD_AFTER_ALONE: Millis = SECOND;
/// The most blocks that one write adds, so that others do not wait long for it.
const BLOCKS_PER_WRITE: usize = 12;

/// Finds nodes of a version without blocks: they do not remove blocks when they insert a row late.
const OLDER_NODES: Sql = Sql::both(
    "SELECT id FROM nodes WHERE alive_until > $1 AND started_at IS NOT NULL AND (schema_version IS NULL OR schema_version < $2) LIMIT 1",
);

pub(crate) const STATE: Sql = Sql::both(
    "SELECT m.value, COALESCE(b.number, -1), COALESCE(b.last_id, '') FROM meta m
     LEFT JOIN (SELECT number, last_id FROM list_blocks WHERE list = $1 ORDER BY number DESC LIMIT 1) b ON 1 = 1
     WHERE m.name = 'list_blocks_version'",
);
macro_rules! next_chats {
    ($database:ident) => {
        concat!(
            "SELECT id, user_id, key_id, model, COALESCE(channel, ''), outcome, COALESCE(",
            chat_error_code!($database),
            ", ''), format,
                    request_id
             FROM chats WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3"
        )
    };
}
pub(crate) const NEXT_CHATS: Sql = Sql::per_database(next_chats!(sqlite), next_chats!(postgres));
pub(crate) const NEXT_TASKS: Sql = Sql::both(
    "SELECT t.id, t.user_id, t.key_id, t.model,
            COALESCE((SELECT a.channel FROM attempts a WHERE a.task_id = t.id ORDER BY a.number DESC LIMIT 1), ''),
            CASE WHEN t.state < 2 THEN NULL ELSE CAST(t.state AS TEXT) END, COALESCE(t.error_code, ''), t.kind, ''
     FROM tasks t WHERE t.id > $1 AND t.id < $2 ORDER BY t.id LIMIT $3",
);
/// Succeeds only if nobody has added or removed blocks since they were read.
pub(crate) const CLAIM_VERSION: Sql = Sql::both(
    "UPDATE meta SET value = value + 1 WHERE name = 'list_blocks_version' AND value = $1",
);
const COUNT_CHATS: Sql = Sql::both("SELECT COUNT(*) FROM chats WHERE id > $1 AND id <= $2");
const COUNT_TASKS: Sql = Sql::both("SELECT COUNT(*) FROM tasks WHERE id > $1 AND id <= $2");
const INSERT_BLOCK: Sql = Sql::both(
    "INSERT INTO list_blocks (list, number, first_id, last_id, requests) VALUES ($1, $2, $3, $4, $5)",
);
macro_rules! add_values {
    ($cells:literal $rows:literal) => {
        concat!(
            "INSERT INTO list_values (list, block_group, user_id, key_id, model, channel, outcome, error_code, kinds, low, high)
             SELECT $1, $2, ", $cells, " FROM ", $rows, " WHERE true
             ON CONFLICT (list, block_group, user_id, key_id, model, channel, outcome, error_code) DO UPDATE SET
                kinds = list_values.kinds | excluded.kinds, low = list_values.low | excluded.low, high = list_values.high | excluded.high"
        )
    };
}
const ADD_VALUES: Sql = Sql::per_database(
    add_values!("value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8" "json_each($3)"),
    add_values!("value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, CAST(value ->> 6 AS BIGINT),
                 CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT)" "json_array_elements(CAST(CAST($3 AS TEXT) AS json))"),
);

/// Blocks.
impl Store {
    /// Adds blocks of chats and tasks that ended some minutes before `now`, if there are enough rows for one. Returns whether there may be enough for
    /// another. Several processes may call it at the same time: one of them adds the blocks.
    ///
    /// # Errors
    /// The database's.
    pub async fn build_list_blocks(&self, now: Millis) -> Result<bool, StoreError> {
        let older = args![now, known_schema_version()];
        if self.is_shared() && !self.query(&OLDER_NODES, older).await?.is_empty() {
            return Ok(false);
        }
        let chats = self.build_blocks(List::Chats, &NEXT_CHATS, now).await?;
        let tasks = self.build_blocks(List::Tasks, &NEXT_TASKS, now).await?;
        Ok(chats || tasks)
    }

    async fn build_blocks(
        &self,
        list: List,
        next: &'static Sql,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let mut state = self.query(&STATE, args![list.name()]).await?;
        let Some(state) = state.first_mut() else {
            return Ok(false);
        };
        let (version, last_number, last_id) = (state.int(0)?, state.int(1)?, state.text(2)?);
        let is_alone = !self.is_shared();
        let age = if is_alone {
            BUILD_AFTER_ALONE
        } else {
            BUILD_AFTER
        };
        let end = list.min_id_at(now - age);
        let max_rows = BLOCKS_PER_WRITE * BLOCK_ROWS;
        let args = args![&last_id, &end, max_rows as i64];
        let mut rows = self.query_slow(next, args).await?;
        let mut ended = Vec::with_capacity(rows.len());
        for row in &mut rows {
            match EndedRow::read(list, row)? {
                Some(row) => ended.push(row),
                None => break,
            }
        }
        let (blocks, _) = ended.as_chunks::<BLOCK_ROWS>();
        if blocks.is_empty() {
            return Ok(false);
        }
        let was_full = ended.len() == max_rows;
        let mut added = AddBlocks::new(list, version, last_number + 1, blocks);
        added.counted_after = is_alone.then_some(last_id);
        Ok(self.write(added).await? && was_full)
    }
}

/// A row that has ended, with the values that filters compare.
struct EndedRow {
    id: String,
    /// In the order of the columns of `list_values`: user, key, model, channel, outcome, error code.
    values: [String; 6],
    kind: i64,
    request_id: String,
}

impl EndedRow {
    /// Reads a row; `None` if it has not ended.
    fn read(list: List, row: &mut Row) -> Result<Option<Self>, DbError> {
        let Some(outcome) = row.opt_text(5)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: row.text(0)?,
            values: [
                row.text(1)?,
                row.text(2)?,
                row.text(3)?,
                row.text(4)?,
                outcome,
                row.text(6)?,
            ],
            kind: list.kind_bit(&row.text(7)?),
            request_id: row.text(8)?,
        }))
    }
}

/// Blocks to add, built from rows that were read when the version was `version`.
struct AddBlocks {
    list: List,
    version: i64,
    /// If it must be checked that no row was left out: the id before the first row. Rows after it may have been committed since they were read.
    counted_after: Option<String>,
    /// The number of each block, its first and last id, and the filter of its request ids.
    blocks: Vec<(i64, [String; 3])>,
    /// For each group of blocks, its rows of `list_values` as a JSON array.
    values: Vec<(i64, String)>,
}

/// The bits of kinds and of blocks.
#[derive(Default)]
struct Bits {
    kinds: i64,
    blocks: [i64; 2],
}

impl AddBlocks {
    fn new(list: List, version: i64, first_number: i64, blocks: &[[EndedRow; BLOCK_ROWS]]) -> Self {
        let mut groups: HashMap<i64, HashMap<&[String; 6], Bits>> = HashMap::new();
        let mut described = Vec::with_capacity(blocks.len());
        for (number, rows) in (first_number..).zip(blocks) {
            let values = groups.entry(number / GROUP_BLOCKS).or_default();
            let [half, bit] = place_in_group(number);
            for row in rows {
                let bits = values.entry(&row.values).or_default();
                bits.kinds |= row.kind;
                bits.blocks[half as usize] |= 1 << bit;
            }
            let requests = rows.iter().map(|row| row.request_id.as_str());
            let requests = bloom::write(requests.filter(|id| !id.is_empty()));
            let [first, .., last] = rows;
            described.push((number, [first.id.clone(), last.id.clone(), requests]));
        }
        let values = groups.into_iter().map(|(group, values)| {
            // Sorted in the order of the table's key.
            let mut values: Vec<_> = values.into_iter().collect();
            values.sort_unstable_by_key(|(values, _)| *values);
            let rows = values.into_iter().map(|(values, bits)| {
                let [user, key, model, channel, outcome, code] = values;
                let [low, high] = bits.blocks;
                json!([
                    user, key, model, channel, outcome, code, bits.kinds, low, high
                ])
            });
            (group, serde_json::Value::Array(rows.collect()).to_string())
        });
        Self {
            list,
            version,
            counted_after: None,
            blocks: described,
            values: values.collect(),
        }
    }
}

impl AddBlocks {
    /// Checks, if required, that no other row is between these. Rows that are committed later remove the blocks, because they are late.
    async fn has_all_rows(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let (Some(after), Some((_, [_, last_id, _]))) = (&self.counted_after, self.blocks.last())
        else {
            return Ok(true);
        };
        let sql = match self.list {
            List::Chats => &COUNT_CHATS,
            List::Tasks => &COUNT_TASKS,
        };
        let counted = batch.first(sql, args![after, last_id]).await?;
        let counted = counted.map_or(Ok(0), |row| row.int(0))?;
        Ok(counted == (self.blocks.len() * BLOCK_ROWS) as i64)
    }
}

/// Which half of its group a block is in, and its position there.
fn place_in_group(number: i64) -> [i64; 2] {
    let position = number % GROUP_BLOCKS;
    [position / HALF_GROUP, position % HALF_GROUP]
}

#[async_trait(?Send)]
impl Write for AddBlocks {
    /// Whether the blocks were added.
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        if !self.has_all_rows(batch).await?
            || batch.execute(&CLAIM_VERSION, args![self.version]).await? == 0
        {
            return Ok(false);
        }
        let list = self.list.name();
        for (number, [first_id, last_id, requests]) in &self.blocks {
            let args = args![list, *number, first_id, last_id, requests];
            batch.queue(&INSERT_BLOCK, args)?;
        }
        for (group, values) in &self.values {
            batch.queue(&ADD_VALUES, args![list, *group, values])?;
        }
        if let Some((_, [_, last_id, _])) = self.blocks.last() {
            batch.block_ends.raise(self.list, last_id);
        }
        Ok(true)
    }
}
