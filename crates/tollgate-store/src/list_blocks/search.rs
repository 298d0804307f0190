//! Reads a list with filters: the rows after the last block, then the blocks that may contain a wanted row, the newest first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::bloom;
use super::layout::{GROUP_BLOCKS, HALF_GROUP, List, REMOVALS_SHIFT, id_after};
use crate::db::{Row, Sql, Value, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::replica::Source;
use crate::store::Store;

/// How often a search is tried if blocks are removed during it, before it reads all rows.
const ATTEMPTS: usize = 3;
/// The time limit for all queries of a list together.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The version; the last block; the first block that ends after the id $2, and the last that begins before the id $3.
const BOUNDS: Sql = Sql::both(
    "SELECT (SELECT value FROM meta WHERE name = 'list_blocks_version'), l.last_id,
            COALESCE((SELECT number FROM list_blocks WHERE list = $1 AND first_id <= $2 ORDER BY first_id DESC LIMIT 1), 0),
            COALESCE((SELECT number FROM list_blocks WHERE list = $1 AND first_id < $3 ORDER BY first_id DESC LIMIT 1), -1)
     FROM list_blocks l WHERE l.list = $1 ORDER BY l.number DESC LIMIT 1",
);
const VERSION: Sql = Sql::both("SELECT value FROM meta WHERE name = 'list_blocks_version'");
/// A condition: the column has one of the values of an array, or the parameter is null. On PostgreSQL the array is the text of a PostgreSQL array,
/// for which the planner knows how many rows match, and so whether an index is useful; on SQLite it is JSON.
macro_rules! in_array {
    (sqlite $column:literal $parameter:literal) => {
        one_of!(sqlite $column $parameter)
    };
    (postgres $column:literal $parameter:literal) => {
        concat!(
            "(CAST(", $parameter, " AS TEXT) IS NULL OR ", $column, " = ANY (CAST(CAST(", $parameter, " AS TEXT) AS TEXT[])))"
        )
    };
}
/// A condition: one of the kinds is among the column's bits, or all are wanted. On PostgreSQL the parameter is the array of all values with such a
/// bit.
macro_rules! has_kind {
    (sqlite $parameter:literal) => {
        concat!("kinds & ", $parameter, " <> 0")
    };
    (postgres $parameter:literal) => {
        concat!(
            "(CAST(",
            $parameter,
            " AS TEXT) IS NULL OR kinds = ANY (CAST(CAST(",
            $parameter,
            " AS TEXT) AS BIGINT[])))"
        )
    };
}
macro_rules! groups_with {
    ($database:ident, $low:literal, $high:literal, $group_by:literal) => {
        concat!(
            "SELECT block_group, ", $low, ", ", $high, " FROM list_values
             WHERE list = $1 AND block_group >= $2 AND block_group <= $3 AND ",
            in_array!($database "user_id" "$4"), " AND ", in_array!($database "key_id" "$5"), " AND ",
            in_array!($database "model" "$6"), " AND ", in_array!($database "channel" "$7"), " AND ",
            in_array!($database "outcome" "$8"), " AND ", in_array!($database "error_code" "$9"), " AND ", has_kind!($database "$10"), $group_by
        )
    };
}
const GROUPS_WITH: Sql = Sql::per_database(
    groups_with!(sqlite, "low", "high", ""),
    groups_with!(
        postgres,
        "bit_or(low)",
        "bit_or(high)",
        " GROUP BY block_group"
    ),
);
const BLOCKS: Sql = Sql::both(
    "SELECT number, first_id, last_id FROM list_blocks WHERE list = $1 AND number >= $2 AND number <= $3 ORDER BY number",
);
const BLOCKS_WITH_REQUESTS: Sql = Sql::both(
    "SELECT number, first_id, last_id, requests FROM list_blocks WHERE list = $1 AND number >= $2 AND number <= $3 ORDER BY number",
);

macro_rules! bit_is_set {
    ($at:literal $bit:literal) => {
        concat!(
            "(get_byte(cells, CAST(CAST(",
            $at,
            " AS BIGINT) AS INTEGER)) - 48) & CAST(",
            $bit,
            " AS BIGINT) <> 0"
        )
    };
}
/// On PostgreSQL, for one request id: the blocks whose filter may contain it, and those with a filter of another length. So the filters, two
/// kilobytes each, need not be sent to the client.
const BLOCKS_WITH_REQUEST: Sql = Sql::both(concat!(
    "SELECT number, first_id, last_id, requests FROM (
        SELECT number, first_id, last_id, requests, convert_to(requests, 'UTF8') AS cells FROM list_blocks
        WHERE list = $1 AND number >= $2 AND number <= $3 OFFSET 0) b
     WHERE octet_length(requests) <> 2048 OR (",
    bit_is_set!("$4" "$5"), " AND ", bit_is_set!("$6" "$7"), " AND ", bit_is_set!("$8" "$9"), " AND ", bit_is_set!("$10" "$11"), " AND ",
    bit_is_set!("$12" "$13"), " AND ", bit_is_set!("$14" "$15"), " AND ", bit_is_set!("$16" "$17"), " AND ", bit_is_set!("$18" "$19"),
    ") ORDER BY number"
));
const _: () = assert!(bloom::FULL_LENGTH == 2048, "as the statement has it");

/// The filters of a search. A filter that is `None` is not set.
pub(crate) struct Search<'a> {
    pub(crate) list: List,
    /// Only ids from this one on.
    pub(crate) from_id: &'a str,
    /// Only ids before this one.
    pub(crate) to_id: &'a str,
    pub(crate) users: Option<&'a Vec<String>>,
    pub(crate) keys: Option<&'a Vec<String>>,
    pub(crate) models: Option<&'a Vec<String>>,
    pub(crate) channels: Option<&'a Vec<String>>,
    /// Outcomes of chats; for tasks, the numbers of their states.
    pub(crate) outcomes: Option<&'a Vec<String>>,
    pub(crate) error_codes: Option<&'a Vec<String>>,
    /// Formats of chats, or kinds of tasks.
    pub(crate) kinds: Option<&'a Vec<String>>,
    pub(crate) requests: Option<&'a Vec<String>>,
    /// The database to read from.
    pub(crate) source: Source,
}

/// The positions of the rows of a list that are in blocks.
struct Bounds {
    /// How often blocks had been removed at that time.
    removals: i64,
    /// The first id of the searched range that is after all blocks.
    newest: String,
    /// The first and last block that may contain an id of the searched range.
    numbers: [i64; 2],
}

/// A contiguous range of blocks: its first and last id.
struct Range {
    first_id: String,
    last_id: String,
    last_number: i64,
}

/// A query for the rows of a list.
pub(crate) struct RowQuery<'a> {
    /// The first parameter is the first wanted id, the second the id after the last wanted one, the last the number of rows to read, the newest
    /// first.
    pub(crate) sql: &'static Sql,
    /// The parameters between these: the query itself applies all filters.
    pub(crate) filters: &'a [Value<'a>],
}

/// The queries of one search, which share a time limit.
struct SearchQueries<'a> {
    store: &'a Store,
    source: Source,
    until: Instant,
}

impl<'a> SearchQueries<'a> {
    fn new(store: &'a Store, source: Source) -> Self {
        Self {
            store,
            source,
            until: Instant::now() + TIME_LIMIT,
        }
    }

    async fn query(&self, sql: &'static Sql, args: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        // If the replica is lost between two queries, the others read from the primary, which has the same or newer blocks.
        let Self {
            store,
            source,
            until,
        } = *self;
        store.query_slow_from(source, sql, args, until).await
    }

    async fn read(
        &self,
        query: &RowQuery<'_>,
        from_id: &str,
        to_id: &str,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let mut args = Vec::with_capacity(query.filters.len() + 3);
        args.extend([Value::from(from_id), Value::from(to_id)]);
        args.extend(query.filters.iter().cloned());
        args.push(Value::from(limit as i64));
        self.query(query.sql, &args).await
    }

    /// How often blocks have been removed.
    async fn removals(&self) -> Result<i64, StoreError> {
        let rows = self.query(&VERSION, args![]).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))? >> REMOVALS_SHIFT)
    }
}

impl Search<'_> {
    /// A search without filters.
    pub(crate) fn all(list: List) -> Self {
        Self {
            list,
            from_id: "",
            to_id: "~",
            users: None,
            keys: None,
            models: None,
            channels: None,
            outcomes: None,
            error_codes: None,
            kinds: None,
            requests: None,
            source: Source::Primary,
        }
    }

    fn has_filter(&self) -> bool {
        let filters = [
            self.users,
            self.keys,
            self.models,
            self.channels,
            self.outcomes,
            self.error_codes,
            self.kinds,
            self.requests,
        ];
        filters.iter().any(Option::is_some)
    }

    /// Reads at most `limit` rows, the newest first.
    pub(crate) async fn rows(
        &self,
        store: &Store,
        limit: usize,
        query: &RowQuery<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let queries = SearchQueries::new(store, self.source);
        for _ in 0..ATTEMPTS {
            let Some(bounds) = self.bounds(&queries).await? else {
                break;
            };
            let newest = bounds.newest.as_str();
            let mut rows = match newest < self.to_id {
                true => queries.read(query, newest, self.to_id, limit).await?,
                false => Vec::new(),
            };
            let older = self.rows_in_blocks(&queries, &bounds, limit - rows.len(), query);
            rows.extend(older.await?);
            if queries.removals().await? == bounds.removals {
                return Ok(rows);
            }
        }
        queries.read(query, self.from_id, self.to_id, limit).await
    }

    /// As [`Search::rows`], but only rows in blocks; also returns the first id of the searched range that is after all blocks. Returns the range's
    /// first id and no rows if there are no blocks, or no filter is set.
    pub(crate) async fn rows_in_blocks_only(
        &self,
        store: &Store,
        limit: usize,
        query: &RowQuery<'_>,
    ) -> Result<(String, Vec<Row>), StoreError> {
        let queries = SearchQueries::new(store, self.source);
        for _ in 0..ATTEMPTS {
            let Some(bounds) = self.bounds(&queries).await? else {
                break;
            };
            let rows = self.rows_in_blocks(&queries, &bounds, limit, query).await?;
            if queries.removals().await? == bounds.removals {
                return Ok((bounds.newest, rows));
            }
        }
        Ok((self.from_id.to_owned(), Vec::new()))
    }

    /// As [`Search::rows`], without using blocks: for a query that does not read all rows of the range.
    pub(crate) async fn rows_at_once(
        &self,
        store: &Store,
        limit: usize,
        query: &RowQuery<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        SearchQueries::new(store, self.source)
            .read(query, self.from_id, self.to_id, limit)
            .await
    }

    async fn rows_in_blocks(
        &self,
        queries: &SearchQueries<'_>,
        bounds: &Bounds,
        limit: usize,
        query: &RowQuery<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        // Frequent values are found in the newest group; for rare ones, few queries should cover many groups.
        let [first, mut last] = bounds.numbers;
        let mut groups = 1;
        while rows.len() < limit && last >= first {
            let oldest = (last / GROUP_BLOCKS + 1 - groups) * GROUP_BLOCKS;
            let part = [oldest.max(first), last];
            for range in self.ranges(queries, part).await? {
                if rows.len() >= limit {
                    break;
                }
                let end = id_after(&range.last_id);
                let from = range.first_id.as_str().max(self.from_id);
                let to = end.as_str().min(self.to_id);
                if from < to {
                    rows.extend(queries.read(query, from, to, limit - rows.len()).await?);
                }
            }
            last = part[0] - 1;
            groups *= 2;
        }
        Ok(rows)
    }

    /// `None` if there are no blocks, or all rows are wanted.
    async fn bounds(&self, queries: &SearchQueries<'_>) -> Result<Option<Bounds>, StoreError> {
        if !self.has_filter() {
            return Ok(None);
        }
        let args = args![self.list.name(), self.from_id, self.to_id];
        let mut rows = queries.query(&BOUNDS, args).await?;
        let read = |row: &mut Row| -> Result<_, crate::db::DbError> {
            Ok(Bounds {
                removals: row.int(0)? >> REMOVALS_SHIFT,
                newest: id_after(&row.text(1)?).max(self.from_id.to_owned()),
                numbers: [row.int(2)?, row.int(3)?],
            })
        };
        Ok(rows.first_mut().map(read).transpose()?)
    }

    /// Those of these blocks that may contain a wanted row, the newest first, joined if they are contiguous.
    async fn ranges(
        &self,
        queries: &SearchQueries<'_>,
        part: [i64; 2],
    ) -> Result<Vec<Range>, StoreError> {
        let groups = self.groups(queries, part).await?;
        let mut ranges: Vec<Range> = Vec::new();
        let bit_positions = match self.requests.map(Vec::as_slice) {
            Some([request]) if queries.store.is_shared() => bloom::bit_positions(request),
            _ => Vec::new(),
        };
        let sql = match self.requests {
            Some(_) if !bit_positions.is_empty() => &BLOCKS_WITH_REQUEST,
            Some(_) => &BLOCKS_WITH_REQUESTS,
            None => &BLOCKS,
        };
        // Groups without such blocks are not read; contiguous groups are read together.
        for [first, last] in contiguous(groups.keys().copied()) {
            let first = (first * GROUP_BLOCKS).max(part[0]);
            let last = ((last + 1) * GROUP_BLOCKS - 1).min(part[1]);
            let mut args = args![self.list.name(), first, last].to_vec();
            args.extend(
                bit_positions
                    .iter()
                    .flat_map(|(at, bit)| [Value::from(*at), Value::from(*bit)]),
            );
            for mut row in queries.query(sql, &args).await? {
                let number = row.int(0)?;
                let [low, high] = groups
                    .get(&(number / GROUP_BLOCKS))
                    .copied()
                    .unwrap_or_default();
                let position = number % GROUP_BLOCKS;
                let bits = if position < HALF_GROUP { low } else { high };
                let mut is_wanted = bits & (1 << (position % HALF_GROUP)) != 0;
                if let Some(requests) = self.requests.filter(|_| is_wanted) {
                    let filter = row.text(3)?;
                    is_wanted = requests.iter().any(|id| bloom::may_contain(&filter, id));
                }
                if !is_wanted {
                    continue;
                }
                let (first_id, last_id) = (row.text(1)?, row.text(2)?);
                match ranges
                    .last_mut()
                    .filter(|range| range.last_number + 1 == number)
                {
                    Some(range) => (range.last_id, range.last_number) = (last_id, number),
                    None => ranges.push(Range {
                        first_id,
                        last_id,
                        last_number: number,
                    }),
                }
            }
        }
        ranges.reverse();
        Ok(ranges)
    }

    /// Those of these groups of blocks that contain wanted values, with the blocks of each.
    async fn groups(
        &self,
        queries: &SearchQueries<'_>,
        [first, last]: [i64; 2],
    ) -> Result<BTreeMap<i64, [i64; 2]>, StoreError> {
        let filters = [
            self.users,
            self.keys,
            self.models,
            self.channels,
            self.outcomes,
            self.error_codes,
        ];
        let (first, last) = (first / GROUP_BLOCKS, last / GROUP_BLOCKS);
        let bits = |kinds: &Vec<String>| {
            let bits = kinds.iter().map(|kind| self.list.kind_bit(kind));
            bits.fold(0, |all, bit| all | bit)
        };
        let kinds = self.kinds.map(bits);
        if filters.iter().all(Option::is_none) && kinds.is_none() {
            return Ok((first..=last).map(|group| (group, [-1, -1])).collect());
        }
        let is_postgres = queries.store.is_shared();
        let arg = if is_postgres {
            postgres_array
        } else {
            list_arg
        };
        let [users, keys, models, channels, outcomes, codes] = filters.map(arg);
        let with_kinds = kinds.map(|kinds| self.list.postgres_kinds(kinds));
        let kinds = match is_postgres {
            true => Value::from(with_kinds.as_ref()),
            false => Value::from(kinds.unwrap_or(-1)),
        };
        let args = args![
            self.list.name(),
            first,
            last,
            users.as_ref(),
            keys.as_ref(),
            models.as_ref(),
            channels.as_ref(),
            outcomes.as_ref(),
            codes.as_ref(),
            kinds
        ];
        let mut groups: BTreeMap<i64, [i64; 2]> = BTreeMap::new();
        for row in queries.query(&GROUPS_WITH, args).await? {
            let [low, high] = groups.entry(row.int(0)?).or_default();
            *low |= row.int(1)?;
            *high |= row.int(2)?;
        }
        Ok(groups)
    }
}

/// The values as the text of a PostgreSQL array.
fn postgres_array(values: Option<&Vec<String>>) -> Option<String> {
    let quoted =
        |value: &String| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    values.map(|values| {
        format!(
            "{{{}}}",
            values.iter().map(quoted).collect::<Vec<_>>().join(",")
        )
    })
}

/// The first and last number of each run of consecutive numbers.
fn contiguous(numbers: impl Iterator<Item = i64>) -> Vec<[i64; 2]> {
    let mut runs: Vec<[i64; 2]> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => runs.push([number; 2]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_postgres_arrays_are_quoted() {
        let values = ["a", "NULL", "", r#"b"c\d"#, "{e,f}"].map(str::to_owned);
        let array = postgres_array(Some(&values.to_vec()));
        assert_eq!(
            array.as_deref(),
            Some(r#"{"a","NULL","","b\"c\\d","{e,f}"}"#)
        );
        assert_eq!(postgres_array(Some(&Vec::new())).as_deref(), Some("{}"));
        assert_eq!(postgres_array(None), None);
    }

    #[test]
    fn consecutive_numbers_become_one_range() {
        assert_eq!(
            contiguous([1, 2, 3, 5, 8, 9].into_iter()),
            [[1, 3], [5, 5], [8, 9]]
        );
        assert!(contiguous(std::iter::empty()).is_empty());
    }
}
