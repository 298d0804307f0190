//! The PostgreSQL driver: connecting (TLS with `sslmode=require`), prepared statements, pipelined batches, a pool of readers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::rows::{Queued, RowsSql, merge};
use super::sql::{DbError, Row, Sql, Value};

/// Timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a server may send nothing before the connection counts as lost (keepalive and TCP user timeout).
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// Settings of every writer connection. If a lock is not granted in 4 s, a node that holds it hangs. The server ends a transaction that its node
/// leaves idle for 2 s, because all other nodes wait for the rows that it has locked.
const SESSION_SETTINGS: &str = "SET synchronous_commit = on; SET lock_timeout = '4s'; \
                      SET idle_in_transaction_session_timeout = '2s'; SET client_min_messages = warning";
/// Settings of connections whose statements run frequently. The table `queue` alternates between empty and large: without these settings, a plan that
/// was made while it was empty, and scans it, would be kept for too long. Plans without an index then have such high costs that PostgreSQL would
/// compile them. A statement on a partitioned table would be planned again each time, because PostgreSQL does not know that a kept plan reads only
/// one partition too.
const PLAN_OPTIONS: &str = "-c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan";
/// Connections in the pool of readers.
const READERS: usize = 8;

/// Parses a `postgres://` URL. With `sslmode=require`, TLS is used and certificates are verified.
pub(crate) fn config(url: &str) -> Result<Config, DbError> {
    let mut config: Config = url
        .parse()
        .map_err(|e| DbError::Failed(format!("database.url is not a PostgreSQL URL: {e}")))?;
    config.connect_timeout(CONNECT_TIMEOUT);
    config.tcp_user_timeout(SILENCE_TIMEOUT);
    config.keepalives_idle(SILENCE_TIMEOUT);
    config.application_name("tollgate");
    Ok(config)
}

/// The configuration with additional settings of the session.
fn with_options(config: &Config, options: &str) -> Config {
    let mut config = config.clone();
    let others = config.get_options().unwrap_or_default();
    let options = format!("{others} {options}");
    config.options(options.trim());
    config
}

fn tls() -> MakeRustlsConnect {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the ring provider supports the default TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}

/// One connection with its prepared statements.
pub(crate) struct Connection {
    client: Client,
    /// Keyed by the address of the SQL text: every statement is a `&'static str`.
    statements: HashMap<usize, Statement>,
}

impl Connection {
    /// Connects. The connection's driver task runs on the current runtime.
    pub(crate) async fn open(config: &Config) -> Result<Self, DbError> {
        let config = with_options(config, PLAN_OPTIONS);
        let client = if config.get_ssl_mode() != SslMode::Require {
            let (client, driver) = config.connect(NoTls).await.map_err(unavailable)?;
            tokio::spawn(async move { drop(driver.await) });
            client
        } else {
            let (client, driver) = config.connect(tls()).await.map_err(unavailable)?;
            tokio::spawn(async move { drop(driver.await) });
            client
        };
        client
            .batch_execute(SESSION_SETTINGS)
            .await
            .map_err(unavailable)?;
        Ok(Self {
            client,
            statements: HashMap::new(),
        })
    }

    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Begins a read-write transaction.
    pub(crate) fn begin(&mut self) -> Transaction<'_> {
        // The isolation level is set explicitly: a statement that waited for a lock must see what the other transaction committed, whatever the
        // server's default is.
        self.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    }

    /// Begins a read-only transaction on one snapshot.
    pub(crate) fn begin_snapshot(&mut self) -> Transaction<'_> {
        self.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    fn begin_with(&mut self, begin: &'static str) -> Transaction<'_> {
        Transaction {
            conn: self,
            begin: Some(begin),
            queued: Vec::new(),
        }
    }

    async fn statement(&mut self, sql: &Sql) -> Result<Statement, DbError> {
        if let Some(statement) = self.statements.get(&sql.postgres.as_ptr().addr()) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql.postgres).await.map_err(db_error)?;
        self.statements
            .insert(sql.postgres.as_ptr().addr(), statement.clone());
        Ok(statement)
    }
}

/// An open transaction. If it is dropped without [`Transaction::commit`] or a rollback, the connection must be discarded.
pub(crate) struct Transaction<'c> {
    conn: &'c mut Connection,
    /// The statement that begins the transaction. It is sent together with the first statement, so that it needs no separate round trip.
    begin: Option<&'static str>,
    queued: Vec<Queued>,
}

/// A query with its parameters.
pub(crate) type Query<'q> = (&'q Sql, &'q [Value<'q>]);

impl Transaction<'_> {
    pub(crate) async fn query(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        let rows = self.query_all(&[(sql, args)]).await?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Runs queries in one round trip, in their order, and returns the rows of each.
    pub(crate) async fn query_all(
        &mut self,
        queries: &[Query<'_>],
    ) -> Result<Vec<Vec<Row>>, DbError> {
        let queued = merge(std::mem::take(&mut self.queued));
        Ok(self.exchange(queued, queries).await?.1)
    }

    pub(crate) async fn execute(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        self.flush().await?;
        let statement = self.conn.statement(sql).await?;
        self.send_begin().await?;
        self.conn
            .client
            .execute_raw(&statement, args.iter().map(Parameter))
            .await
            .map_err(db_error)
    }

    async fn send_begin(&mut self) -> Result<(), DbError> {
        match self.begin.take() {
            Some(begin) => self
                .conn
                .client
                .batch_execute(begin)
                .await
                .map_err(db_error),
            None => Ok(()),
        }
    }

    /// Runs several statements separated by semicolons.
    pub(crate) async fn run_script(&mut self, text: &str) -> Result<(), DbError> {
        self.flush().await?;
        self.send_begin().await?;
        self.conn.client.batch_execute(text).await.map_err(db_error)
    }

    pub(crate) fn queue(&mut self, sql: &'static Sql, args: &[Value<'_>], expected: Option<u64>) {
        let args = args.iter().map(|a| a.clone().into_owned()).collect();
        self.queued.push(Queued {
            sql,
            rows: None,
            args,
            expected,
        });
    }

    pub(crate) fn queue_row(
        &mut self,
        rows: &'static RowsSql,
        args: &[Value<'_>],
        expected: Option<u64>,
    ) {
        self.queue(&rows.one, args, expected);
        if let Some(queued) = self.queued.last_mut() {
            queued.rows = Some(rows);
        }
    }

    pub(crate) async fn execute_each(
        &mut self,
        sql: &'static Sql,
        lists: Vec<Vec<Value<'static>>>,
    ) -> Result<Vec<u64>, DbError> {
        self.flush().await?;
        let queued = lists.into_iter().map(|args| Queued {
            sql,
            rows: None,
            args,
            expected: None,
        });
        Ok(self.exchange(queued.collect(), &[]).await?.0)
    }

    /// Sends the queued statements in one round trip.
    pub(crate) async fn flush(&mut self) -> Result<(), DbError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let queued = merge(std::mem::take(&mut self.queued));
        self.exchange(queued, &[]).await.map(drop)
    }

    /// Sends statements and then queries in one round trip, after `BEGIN` if that was not sent yet. The server runs them in order. Returns the number
    /// of rows that each statement changed, and the rows of each query.
    async fn exchange(
        &mut self,
        queued: Vec<Queued>,
        queries: &[Query<'_>],
    ) -> Result<(Vec<u64>, Vec<Vec<Row>>), DbError> {
        let mut statements = Vec::with_capacity(queued.len() + queries.len());
        let sent = queued.iter().map(|one| one.sql);
        for sql in sent.chain(queries.iter().map(|(sql, _)| *sql)) {
            statements.push(self.conn.statement(sql).await?);
        }
        let (for_queued, for_queries) = statements.split_at(queued.len());
        let begin = self.begin.take();
        let client = &self.conn.client;
        // The first poll of a future sends its statement, so they are sent in this order.
        let mut started = begin.map(|begin| Box::pin(client.batch_execute(begin)));
        let started_early = match &mut started {
            Some(started) => Some(futures_util::poll!(started)),
            None => None,
        };
        let mut executions = Vec::with_capacity(queued.len());
        for (statement, one) in for_queued.iter().zip(&queued) {
            let args = one.args.iter().map(Parameter);
            let mut execution = Box::pin(client.execute_raw(statement, args));
            let early = futures_util::poll!(&mut execution);
            executions.push((execution, early));
        }
        let mut read = Vec::with_capacity(queries.len());
        for (statement, (_, args)) in for_queries.iter().zip(queries) {
            let mut reading = Box::pin(rows(client, statement, args));
            let early = futures_util::poll!(&mut reading);
            read.push((reading, early));
        }
        if let Some(started) = started {
            finish(started, started_early.unwrap_or(Poll::Pending))
                .await
                .map_err(db_error)?;
        }
        let mut counts = Vec::with_capacity(queued.len());
        for ((execution, early), one) in executions.into_iter().zip(&queued) {
            let changed = finish(execution, early).await.map_err(db_error)?;
            if let Some(expected) = one.expected {
                super::sql::expect_changed(expected, changed, one.sql)?;
            }
            counts.push(changed);
        }
        let mut found = Vec::with_capacity(queries.len());
        for (reading, early) in read {
            found.push(finish(reading, early).await?);
        }
        Ok((counts, found))
    }

    /// Commits. After the error `Unavailable` it is unknown whether the transaction was committed.
    pub(crate) async fn commit(mut self) -> Result<(), DbError> {
        self.flush().await?;
        if self.begin.is_some() {
            return Ok(());
        }
        self.conn
            .client
            .batch_execute("COMMIT")
            .await
            .map_err(db_error)
    }

    /// Rolls back.
    pub(crate) async fn roll_back(self) -> Result<(), DbError> {
        if self.begin.is_some() {
            return Ok(());
        }
        self.conn
            .client
            .batch_execute("ROLLBACK")
            .await
            .map_err(db_error)
    }
}

/// The output of a future that has already been polled once.
async fn finish<F: Future + Unpin>(future: F, early: Poll<F::Output>) -> F::Output {
    match early {
        Poll::Ready(output) => output,
        Poll::Pending => future.await,
    }
}

/// A pool of connections for readers.
pub(crate) struct Readers(deadpool_postgres::Pool);

impl Readers {
    pub(crate) fn new(config: &Config) -> Result<Self, DbError> {
        let config = with_options(config, PLAN_OPTIONS);
        Self::of_size(&config, READERS, Some(CONNECT_TIMEOUT))
    }

    /// A pool of `connections` whose queries the server ends after `limit`. Each query is planned for its own parameters, because these determine
    /// which rows it reads; none is compiled, which takes longer than reading some thousand rows; and none uses more than one processor, because
    /// others serve clients.
    pub(crate) fn slow(
        config: &Config,
        connections: usize,
        limit: Duration,
    ) -> Result<Self, DbError> {
        let options = format!(
            "-c statement_timeout={} -c plan_cache_mode=force_custom_plan -c jit=off -c max_parallel_workers_per_gather=0",
            limit.as_millis()
        );
        let config = with_options(config, &options);
        Self::of_size(&config, connections, None)
    }

    /// A pool of `connections`. A query waits at most `wait` for one of them; if that is `None`, as long as its caller waits.
    fn of_size(
        config: &Config,
        connections: usize,
        wait: Option<Duration>,
    ) -> Result<Self, DbError> {
        let manager = if config.get_ssl_mode() != SslMode::Require {
            deadpool_postgres::Manager::new(config.clone(), NoTls)
        } else {
            deadpool_postgres::Manager::new(config.clone(), tls())
        };
        deadpool_postgres::Pool::builder(manager)
            .max_size(connections)
            .wait_timeout(wait)
            .create_timeout(Some(CONNECT_TIMEOUT))
            .recycle_timeout(Some(CONNECT_TIMEOUT))
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .build()
            .map(Self)
            .map_err(|e| DbError::Failed(e.to_string()))
    }

    pub(crate) fn query<'a>(
        &'a self,
        sql: &'a Sql,
        args: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Vec<Row>, DbError>> {
        // Boxed, because otherwise the compiler would prove for each query anew that the pool's and the client's futures are `Send`.
        Box::pin(async move {
            let client = self
                .0
                .get()
                .await
                .map_err(|e| DbError::Unavailable(e.to_string()))?;
            let statement = client
                .prepare_cached(sql.postgres)
                .await
                .map_err(db_error)?;
            rows(&client, &statement, args).await
        })
    }
}

async fn rows(
    client: &Client,
    statement: &Statement,
    args: &[Value<'_>],
) -> Result<Vec<Row>, DbError> {
    use futures_util::TryStreamExt as _;
    let stream = client
        .query_raw(statement, args.iter().map(Parameter))
        .await
        .map_err(db_error)?;
    let found: Vec<tokio_postgres::Row> = stream.try_collect().await.map_err(db_error)?;
    found.iter().map(row).collect()
}

fn row(row: &tokio_postgres::Row) -> Result<Row, DbError> {
    let mut cells = Vec::with_capacity(row.len());
    for (i, column) in row.columns().iter().enumerate() {
        cells.push(match *column.type_() {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(i)
                .map_err(db_error)?
                .map_or(Value::Null, Value::Int),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(i)
                .map_err(db_error)?
                .map_or(Value::Null, |n| Value::Int(n.into())),
            Type::TEXT | Type::VARCHAR => row
                .try_get::<_, Option<String>>(i)
                .map_err(db_error)?
                .map_or(Value::Null, |t| Value::Text(Cow::Owned(t))),
            ref other => return Err(DbError::UnexpectedData(format!("a column of type {other}"))),
        });
    }
    Ok(Row(cells))
}

/// A [`Value`] as a parameter of tokio-postgres.
#[derive(Debug)]
struct Parameter<'a>(&'a Value<'a>);

impl ToSql for Parameter<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Value::Int(n) => n.to_sql(ty, out),
            Value::Text(t) if t.contains('\0') => t.replace('\0', "\u{fffd}").to_sql(ty, out),
            Value::Text(t) => t.as_ref().to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT8 | Type::INT4 | Type::TEXT | Type::VARCHAR)
    }

    to_sql_checked!();
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err takes
fn unavailable(e: tokio_postgres::Error) -> DbError {
    DbError::Unavailable(message(&e))
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err takes
fn db_error(e: tokio_postgres::Error) -> DbError {
    if e.code() == Some(&SqlState::QUERY_CANCELED) {
        return DbError::QueryTimeout;
    }
    if e.code() == Some(&SqlState::UNIQUE_VIOLATION) {
        return DbError::Duplicate(message(&e));
    }
    let is_transient = match e.code() {
        // 57P..: the server is shutting down or starting, or an operator ended the session. 25P03: our transaction was idle too long. 40...: a
        // deadlock or serialisation failure. 53...: out of connections or disk. 55P03: lock timeout. A retry may succeed after each of them.
        Some(code) => {
            let code = code.code();
            ["57P", "08", "40", "53"]
                .iter()
                .any(|class| code.starts_with(class))
                || matches!(code, "55P03" | "25P03")
        }
        // An error without a code is from the client: a broken connection, or a value that does not fit its column.
        None => e.is_closed() || e.source().is_some_and(|s| s.is::<std::io::Error>()),
    };
    if is_transient {
        DbError::Unavailable(message(&e))
    } else {
        DbError::Failed(message(&e))
    }
}

/// The error with its cause, without the connection parameters (they contain the password).
fn message(e: &tokio_postgres::Error) -> String {
    match e.source() {
        Some(source) => format!("{e}: {source}"),
        None => e.to_string(),
    }
}
