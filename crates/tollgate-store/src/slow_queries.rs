//! Queries that may take long, such as the lists and sums of the admin API. They have separate connections and, on SQLite, separate threads with a
//! low priority. Only a few run at the same time, and each ends at a time limit, so that they do not delay the requests of clients.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::db::{DbError, Row, Sql, Value, postgres, sqlite};

/// Slow queries that run at the same time.
const CONNECTIONS: usize = 3;
/// How long one may take, waiting for a connection included.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Added to the niceness of threads with slow queries: while all processors are busy, such a thread gets a thirtieth of the time of another.
const NICENESS: i32 = 15;

/// Connections for slow queries.
pub(crate) enum SlowReaders {
    Sqlite {
        pool: Arc<sqlite::Readers>,
        permits: Arc<Semaphore>,
    },
    Postgres(postgres::Readers),
}

impl SlowReaders {
    pub(crate) fn sqlite(path: &Path) -> Result<Self, DbError> {
        Ok(Self::Sqlite {
            pool: Arc::new(sqlite::Readers::open(path, CONNECTIONS)?),
            permits: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    pub(crate) fn postgres(config: &tokio_postgres::Config) -> Result<Self, DbError> {
        postgres::Readers::slow(config, CONNECTIONS, TIME_LIMIT).map(Self::Postgres)
    }

    /// Runs a query, and ends it after `limit`, which includes the wait for a connection.
    ///
    /// # Errors
    /// [`DbError::QueryTimeout`] after `limit`.
    pub(crate) async fn query(
        &self,
        sql: &'static Sql,
        args: &[Value<'_>],
        limit: Duration,
    ) -> Result<Vec<Row>, DbError> {
        let until = Instant::now() + limit;
        match self {
            Self::Sqlite { pool, permits } => {
                let permit = Arc::clone(permits).acquire_owned();
                let permit = tokio::time::timeout(limit, permit).await;
                let permit = permit.map_err(|_| DbError::QueryTimeout)?;
                let (pool, args) = (Arc::clone(pool), args.iter().cloned());
                let args: Vec<Value<'static>> = args.map(Value::into_owned).collect();
                let (sender, rows) = oneshot::channel();
                let thread = thread::Builder::new().name("slow-query".to_owned());
                let started = thread.spawn(move || {
                    let _permit = permit;
                    #[cfg(target_os = "linux")]
                    let _ = rustix::process::nice(NICENESS);
                    let _ = sender.send(pool.query_until(sql, &args, until));
                });
                started.map_err(|e| DbError::Failed(format!("cannot start a thread: {e}")))?;
                let rows = rows.await;
                rows.map_err(|_| DbError::Failed("a query ended without rows".to_owned()))?
            }
            // The server ends the query; the timeout here is for a server that does not respond.
            Self::Postgres(pool) => {
                let rows = tokio::time::timeout(limit, pool.query(sql, args)).await;
                rows.unwrap_or(Err(DbError::QueryTimeout))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::args;

    /// A query that counts to a million millions.
    const ENDLESS: Sql = Sql::per_database(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000000) SELECT COUNT(*) FROM n",
        "SELECT COUNT(*) FROM generate_series(1, 1000000000000)",
    );
    const ONE: Sql = Sql::both("SELECT CAST(1 AS BIGINT)");

    async fn check(readers: SlowReaders, limit: Duration) {
        let readers = Arc::new(readers);
        let endless = (0..2 * CONNECTIONS).map(|_| {
            let readers = Arc::clone(&readers);
            tokio::spawn(async move { readers.query(&ENDLESS, args![], limit).await })
        });
        for ended in endless.collect::<Vec<_>>() {
            let rows = ended.await.unwrap();
            assert!(matches!(rows, Err(DbError::QueryTimeout)), "{rows:?}");
        }
        // The connections are free again.
        let rows = readers.query(&ONE, args![], TIME_LIMIT).await.unwrap();
        assert_eq!(rows[0].int(0).unwrap(), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_endless_query_of_sqlite_ends_at_the_time_limit() {
        let folder = std::env::temp_dir().join(format!("tollgate-slow-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db");
        drop(sqlite::open(&path).unwrap());
        let readers = SlowReaders::sqlite(&path).unwrap();
        check(readers, Duration::from_millis(100)).await;
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_endless_query_of_postgresql_is_ended_by_the_server() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES_URL") else {
            return eprintln!("skipped: TOLLGATE_TEST_POSTGRES_URL names no server");
        };
        let config = postgres::config(&url).unwrap();
        let limit = Duration::from_millis(100);
        let pool = postgres::Readers::slow(&config, CONNECTIONS, limit).unwrap();
        check(SlowReaders::Postgres(pool), TIME_LIMIT).await;
    }
}
