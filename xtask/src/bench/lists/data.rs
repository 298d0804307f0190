//! Creates the stored rows in the database itself, with one script for both databases (`data.sql`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use super::super::fill;
use crate::process::{TempDir, output};

const SCRIPT: &str = include_str!("data.sql");
const DAY_MS: u64 = 86_400_000;
pub(super) const DAYS: u64 = 60;
/// The number of rows of the gateway's blocks, and the time limit for building all blocks.
const BLOCK_ROWS: u64 = 1024;
const BLOCKS_LIMIT: Duration = Duration::from_mins(5);
/// The digits of ids, in ascending order.
const DIGITS: &str = "0123456789abcdefghjkmnpqrstvwxyz";

/// The gateway's database.
pub(super) enum Database {
    Sqlite(PathBuf),
    /// The path of `psql`, and the URL of the database.
    Postgres(PathBuf, String),
}

impl Database {
    /// The SQLite database in a data directory.
    pub(super) fn sqlite(data: &Path) -> Result<Self, String> {
        fill::find_database(data).map(Self::Sqlite)
    }

    fn run_script(&self, script: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(path) => {
                let failed = |e: rusqlite::Error| format!("cannot fill {}: {e}", path.display());
                let connection = Connection::open(path).map_err(failed)?;
                connection
                    .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000; PRAGMA temp_store = MEMORY; BEGIN;")
                    .map_err(failed)?;
                connection.execute_batch(script).map_err(failed)?;
                connection
                    .execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")
                    .map_err(failed)?;
                let written = fs::File::open(path).and_then(|file| file.sync_all());
                written.map_err(|e| format!("cannot write {}: {e}", path.display()))
            }
            Self::Postgres(psql, url) => {
                let folder = TempDir::new("lists")?;
                let path = folder.path().join("data.sql");
                fs::write(&path, script).map_err(|e| format!("{}: {e}", path.display()))?;
                let mut psql = Command::new(psql);
                psql.arg(url).args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
                psql.arg("-f").arg(&path).args(["-c", "VACUUM ANALYZE"]);
                output(&mut psql).map(drop)
            }
        }
    }

    fn query_number(&self, query: &str) -> Result<u64, String> {
        match self {
            Self::Sqlite(path) => {
                let connection = Connection::open(path).map_err(|e| e.to_string())?;
                let number: i64 = connection
                    .query_row(query, [], |row| row.get(0))
                    .map_err(|e| format!("{query}: {e}"))?;
                Ok(number.unsigned_abs())
            }
            Self::Postgres(psql, url) => {
                let mut psql = Command::new(psql);
                psql.arg(url).args(["-X", "-A", "-t", "-c", query]);
                let text = output(&mut psql)?;
                text.trim().parse().map_err(|_| format!("{query}: {text}"))
            }
        }
    }
}

/// Creates the rows: four chats for each task.
pub(super) fn create_rows(database: &Database, rows: u64) -> Result<(), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |time| time.as_secs() * 1000);
    let is_sqlite = matches!(database, Database::Sqlite(_));
    database.run_script(&render_script(rows, now, is_sqlite))
}

/// Waits until the gateway has put all rows into blocks.
pub(super) fn await_blocks(database: &Database, rows: u64) -> Result<(), String> {
    let [chats, tasks] = [rows / 5 * 4, rows / 5];
    // The newest rows are not put into blocks yet.
    let expected = (chats / BLOCK_ROWS + tasks / BLOCK_ROWS).saturating_sub(4);
    let began = Instant::now();
    while database.query_number("SELECT COUNT(*) FROM list_blocks")? < expected {
        if began.elapsed() > BLOCKS_LIMIT {
            return Err(format!(
                "there are no {expected} blocks after {BLOCKS_LIMIT:?}"
            ));
        }
        sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// The script for a database.
fn render_script(rows: u64, now_ms: u64, is_sqlite: bool) -> String {
    let time = (0..10).rev().map(|digit| {
        let shift = digit * 5;
        format!("substr('{DIGITS}', CAST(1 + (t >> {shift}) % 32 AS INTEGER), 1)")
    });
    let span = DAYS * DAY_MS;
    let mut text = SCRIPT
        .replace("{chats}", &(rows / 5 * 4).to_string())
        .replace("{tasks}", &(rows / 5).to_string())
        .replace("{start}", &(now_ms - span).to_string())
        .replace("{span}", &span.to_string())
        .replace("{time}", &time.collect::<Vec<_>>().join(" || "));
    text = replace_each(&text, "{series ", |count| match is_sqlite {
        true => format!(
            "(WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < {count} - 1) SELECT i FROM s) s"
        ),
        false => format!("generate_series(CAST(0 AS BIGINT), {count} - 1) AS s(i)"),
    });
    text = replace_each(&text, "{sqlite ", |part| {
        if is_sqlite {
            part.to_owned()
        } else {
            String::new()
        }
    });
    text = replace_each(&text, "{six ", |number| {
        format!("substr(CAST(1000000 + {number} AS TEXT), 2)")
    });
    match is_sqlite {
        true => text
            .replace("{random}", "lower(hex(randomblob(10)))")
            .replace(" AS BIGINT", " AS INTEGER"),
        false => text.replace("{random}", "substr(md5(CAST(i AS TEXT)), 1, 20)"),
    }
}

/// Replaces each placeholder that begins with `begin`; `replace` receives its content.
fn replace_each(text: &str, begin: &str, replace: impl Fn(&str) -> String) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(begin) {
        let (inner, after) = from.split_once('}').unwrap_or((from, ""));
        replaced.push_str(before);
        replaced.push_str(&replace(inner));
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_replaced() {
        for is_sqlite in [true, false] {
            let text = render_script(1000, 1_800_000_000_000, is_sqlite);
            let rest = text
                .lines()
                .find(|line| line.contains("{s") || line.contains("{r") || line.contains("{t"));
            assert_eq!(rest.filter(|line| !line.starts_with("--")), None);
        }
    }
}
