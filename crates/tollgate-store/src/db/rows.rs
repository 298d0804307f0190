//! Statements on single rows that do not depend on each other. On PostgreSQL those of a batch are merged, up to 64 rows in one statement: the fixed
//! cost of a statement there is about that of two rows. SQLite runs them one by one, or inserts them in groups.

use std::sync::OnceLock;

use super::sql::{Sql, Value};

/// The numbers of rows that merged statements have, the largest first.
const SIZES: [usize; 6] = [64, 32, 16, 8, 4, 2];

/// How many rows SQLite inserts with one statement if all are known at once.
pub(super) const GROUP: usize = SIZES[SIZES.len() - 3];

/// A statement on one row; several can be merged to one.
pub(crate) struct RowsSql {
    /// The statement on one row.
    pub(crate) one: Sql,
    /// The parts of the statement on several rows on PostgreSQL: the text before the rows, a row with its parameters from `$1` on, and the text after
    /// the rows. `None` for an insertion, whose parts are derived from `one`.
    several: Option<[&'static str; 3]>,
    /// The merged statements, which are generated when they are first used.
    generated: [OnceLock<Sql>; SIZES.len()],
}

impl RowsSql {
    /// `INSERT INTO … VALUES (…)`.
    pub(crate) const fn insert(one: Sql) -> Self {
        Self::new(one, None)
    }

    /// An update of one row. For PostgreSQL, `several` has the parts of an update of several rows: the text before the rows, a row, and the text
    /// after the rows. It has the same parameters, and changes at most one row for each; the rows of a batch must be different.
    pub(crate) const fn update(one: Sql, several: [&'static str; 3]) -> Self {
        Self::new(one, Some(several))
    }

    const fn new(one: Sql, several: Option<[&'static str; 3]>) -> Self {
        Self {
            one,
            several,
            generated: [const { OnceLock::new() }; SIZES.len()],
        }
    }

    /// The insertion of [`GROUP`] rows.
    pub(super) fn of_group(&'static self, columns: usize) -> &'static Sql {
        debug_assert!(self.several.is_none(), "an insertion");
        self.sized(SIZES.len() - 3, columns)
    }

    /// The merged statement on `SIZES[size]` rows of `columns` parameters.
    fn sized(&'static self, size: usize, columns: usize) -> &'static Sql {
        self.generated[size].get_or_init(|| {
            let [before, row, after] = self.several.unwrap_or_else(|| split(self.one.postgres));
            let rows = (0..SIZES[size]).map(|number| renumber(row, number * columns));
            let rows: Vec<String> = rows.collect();
            Sql::both(format!("{before}{}{after}", rows.join(", ")).leak())
        })
    }
}

/// The parts of an `INSERT INTO … VALUES (…)`.
fn split(insert: &'static str) -> [&'static str; 3] {
    let values = insert.find("VALUES (").expect("an insertion of values");
    let (before, row) = insert.split_at(values + "VALUES ".len());
    [before, row, ""]
}

/// The text of a row with `by` added to the numbers of its parameters.
fn renumber(row: &str, by: usize) -> String {
    let mut parts = row.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = part.split_at(end.unwrap_or(part.len()));
        let number: usize = number.parse().expect("a number behind $");
        text.push_str(&format!("${}{rest}", number + by));
    }
    text
}

/// A statement that is waiting to be sent.
pub(super) struct Queued {
    pub(super) sql: &'static Sql,
    /// The statement on rows, if it can be merged with others. Else `None`.
    pub(super) rows: Option<&'static RowsSql>,
    pub(super) args: Vec<Value<'static>>,
    /// The number of rows that it must change.
    pub(super) expected: Option<u64>,
}

/// Merges statements. Only statements of one kind are merged, and only if there is no other statement between them, so that each finds the same rows
/// as without merging.
pub(super) fn merge(queued: Vec<Queued>) -> Vec<Queued> {
    let mut merged = Vec::with_capacity(queued.len());
    // The statements on rows since the last other statement, by kind, in the order of the first of each kind.
    let mut groups: Vec<(&'static RowsSql, Vec<Queued>)> = Vec::new();
    for one in queued {
        let Some(rows) = one.rows else {
            merge_groups(&mut groups, &mut merged);
            merged.push(one);
            continue;
        };
        match groups
            .iter_mut()
            .find(|(kind, _)| std::ptr::eq(*kind, rows))
        {
            Some((_, group)) => group.push(one),
            None => groups.push((rows, vec![one])),
        }
    }
    merge_groups(&mut groups, &mut merged);
    merged
}

fn merge_groups(groups: &mut Vec<(&'static RowsSql, Vec<Queued>)>, merged: &mut Vec<Queued>) {
    for (rows, group) in groups.drain(..) {
        let mut left = group.into_iter();
        for (size, count) in SIZES.iter().enumerate() {
            while left.len() >= *count {
                let some: Vec<Queued> = left.by_ref().take(*count).collect();
                let expected = some.iter().map(|one| one.expected).sum();
                let sql = rows.sized(size, some[0].args.len());
                merged.push(Queued {
                    sql,
                    rows: None,
                    args: some.into_iter().flat_map(|one| one.args).collect(),
                    expected,
                });
            }
        }
        merged.extend(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::args;

    static INSERT: RowsSql =
        RowsSql::insert(Sql::both("INSERT INTO a (b, c, d) VALUES ($1, 0, $2)"));
    static UPDATE: RowsSql = RowsSql::update(
        Sql::both("UPDATE a SET b = $1 WHERE c = $2"),
        [
            "UPDATE a SET b = m.b FROM (VALUES ",
            "(CAST($1 AS BIGINT), $2)",
            ") AS m (b, c) WHERE a.c = m.c",
        ],
    );
    static OTHER: Sql = Sql::both("DELETE FROM a WHERE b = $1");

    fn queued(rows: &'static RowsSql, number: i64, expected: Option<u64>) -> Queued {
        Queued {
            sql: &rows.one,
            rows: Some(rows),
            args: args![number, number + 1].to_vec(),
            expected,
        }
    }

    fn texts(queued: Vec<Queued>) -> Vec<(&'static str, usize, Option<u64>)> {
        let merged = merge(queued);
        let seen = merged.iter();
        seen.map(|one| (one.sql.postgres, one.args.len(), one.expected))
            .collect()
    }

    #[test]
    fn rows_are_merged_into_one_statement() {
        let mut all: Vec<Queued> = Vec::new();
        for number in 0..3 {
            all.push(queued(&INSERT, number, None));
            all.push(queued(&UPDATE, number, Some(1)));
        }
        assert_eq!(
            texts(all),
            [
                (
                    "INSERT INTO a (b, c, d) VALUES ($1, 0, $2), ($3, 0, $4)",
                    4,
                    None
                ),
                (INSERT.one.postgres, 2, None),
                (
                    "UPDATE a SET b = m.b FROM (VALUES (CAST($1 AS BIGINT), $2), (CAST($3 AS BIGINT), $4)) AS m (b, c) WHERE a.c = m.c",
                    4,
                    Some(2)
                ),
                (UPDATE.one.postgres, 2, Some(1)),
            ]
        );
    }

    #[test]
    fn many_rows_are_merged_into_few_statements_in_order() {
        let all = (0..127).map(|number| queued(&INSERT, number, None));
        let merged = merge(all.collect());
        let counts: Vec<usize> = merged.iter().map(|one| one.args.len() / 2).collect();
        assert_eq!(counts, [64, 32, 16, 8, 4, 2, 1]);
        let numbers = merged.iter().flat_map(|one| one.args.iter().step_by(2));
        assert!(numbers.eq(&(0..127).map(Value::Int).collect::<Vec<_>>()));
    }

    #[test]
    fn merging_keeps_the_order_of_statements() {
        let other = Queued {
            sql: &OTHER,
            rows: None,
            args: args![1].to_vec(),
            expected: Some(1),
        };
        let all = vec![
            queued(&INSERT, 1, None),
            queued(&INSERT, 2, None),
            other,
            queued(&INSERT, 3, None),
        ];
        let merged = texts(all);
        let arguments: Vec<usize> = merged.iter().map(|(_, count, _)| *count).collect();
        assert_eq!(arguments, [4, 1, 2]);
        assert_eq!(merged[1], (OTHER.postgres, 1, Some(1)));
    }
}
