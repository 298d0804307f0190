//! Reads the state of a database without changing it: whether this version can use it, and its time.

use tollgate_core::Millis;

use crate::db::{DbError, Row, Sql, Value, known_schema_version, postgres, sqlite};
use crate::error::StoreError;
use crate::store::DatabaseLocation;
use crate::tasks::lease::DATABASE_NOW;

const HAS_META: Sql = Sql::per_database(
    "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'",
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'meta'",
);
const SCHEMA_VERSION: Sql = Sql::both("SELECT value FROM meta WHERE name = 'schema_version'");
const OLDEST_COMPATIBLE: Sql = Sql::both("SELECT value FROM meta WHERE name = 'oldest_compatible'");

/// The state of a database before migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseState {
    /// How many migrations were applied to it; `None` if it has no schema of ours yet.
    pub schema_version: Option<i64>,
    /// The oldest schema version whose programs may use it; `None` if none is stored.
    pub oldest_compatible: Option<i64>,
    /// The schema version to which this program migrates it.
    pub known_version: i64,
    /// Its time: on SQLite that of this machine.
    pub now: Millis,
}

impl DatabaseState {
    /// Whether a newer version of this program has changed it so that this one must not open it.
    pub fn is_too_new(&self) -> bool {
        let oldest = self.oldest_compatible.or(self.schema_version);
        self.schema_version > Some(self.known_version) && oldest > Some(self.known_version)
    }
}

/// Reads the state of a database. Nothing is created or migrated. `None` if it is a SQLite file that does not exist.
///
/// # Errors
/// [`StoreError::Setup`] if it is not a database or its URL is invalid; [`StoreError::Unavailable`] if it does not respond.
pub async fn inspect_database(
    location: &DatabaseLocation,
) -> Result<Option<DatabaseState>, StoreError> {
    match location {
        DatabaseLocation::Sqlite(path) if !path.exists() => Ok(None),
        DatabaseLocation::Sqlite(path) => {
            let named = path.display().to_string();
            let setup = |e: DbError| StoreError::from(e).in_setup(&named);
            let connection = sqlite::open_reader(path).map_err(setup)?;
            let query = async |sql: &Sql| sqlite::query(&connection, sql, &[]);
            read_state(query).await.map(Some).map_err(setup)
        }
        DatabaseLocation::Postgres(url) => {
            let setup = |e: DbError| StoreError::from(e).in_setup("database.url");
            let config = postgres::config(url).map_err(setup)?;
            let readers = postgres::Readers::new(&config).map_err(setup)?;
            let no_arguments: &[Value<'_>] = &[];
            let query = async |sql: &Sql| readers.query(sql, no_arguments).await;
            read_state(query).await.map(Some).map_err(setup)
        }
    }
}

async fn read_state(
    query: impl AsyncFn(&Sql) -> Result<Vec<Row>, DbError>,
) -> Result<DatabaseState, DbError> {
    let number = async |sql: &Sql| match query(sql).await?.first() {
        Some(row) => row.int(0).map(Some),
        None => Ok(None),
    };
    let has_meta = number(&HAS_META).await? > Some(0);
    let (schema_version, oldest_compatible) = match has_meta {
        true => (
            number(&SCHEMA_VERSION).await?,
            number(&OLDEST_COMPATIBLE).await?,
        ),
        false => (None, None),
    };
    Ok(DatabaseState {
        schema_version,
        oldest_compatible,
        known_version: known_schema_version(),
        now: number(&DATABASE_NOW).await?.unwrap_or_default(),
    })
}
