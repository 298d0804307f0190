//! The face of the store: what the gateway can ask it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Amount, Millis, id};

use crate::audit;
use crate::db::{DbError, Row, Sql, Tx, Value, args, postgres, sqlite};
use crate::error::StoreError;
use crate::model::{
    AttemptStart, Cancelled, Ended, Finish, Key, Leased, NewKey, NewTask, Page, Refusal, Retry,
    Submitted, Task, Totals, User, Violation,
};
use crate::ops::{access, end, lease, purge, read, submit};
use crate::writer::{Target, Write, Writer, WriterStats};

/// How long a read may take before the database counts as away.
const READ_LIMIT: Duration = Duration::from_secs(4);
/// How long a write may take. It may still be done after that: writes can be repeated.
const WRITE_LIMIT: Duration = Duration::from_secs(15);
/// Connections for readers of SQLite; a read takes microseconds.
const SQLITE_READERS: usize = 4;
/// Tasks that a page may hold.
const PAGE_MAX: usize = 100;

/// Which database.
#[derive(Debug, Clone)]
pub enum Location {
    /// A SQLite file; its folder exists.
    Sqlite(PathBuf),
    /// A `postgres://` URL.
    Postgres(String),
}

/// A handle on the store; clones share everything.
#[derive(Clone)]
pub struct Store {
    writer: Writer,
    readers: Arc<Readers>,
}

enum Readers {
    Sqlite {
        path: PathBuf,
        pool: sqlite::Readers,
    },
    Postgres {
        config: Box<tokio_postgres::Config>,
        pool: postgres::Readers,
    },
}

impl Store {
    /// Opens the database and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Setup`] where it is newer than this program, [`StoreError::Unavailable`] where it does not
    /// answer, [`StoreError::Broken`] where it is no database of ours.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let (writer, readers) = match location {
            Location::Sqlite(path) => {
                let writer = Writer::start(Target::Sqlite(path.clone())).await?;
                let pool = sqlite::Readers::open(path, SQLITE_READERS)?;
                (
                    writer,
                    Readers::Sqlite {
                        path: path.clone(),
                        pool,
                    },
                )
            }
            Location::Postgres(url) => {
                let config = Box::new(postgres::config(url)?);
                let writer = Writer::start(Target::Postgres(config.clone())).await?;
                let pool = postgres::Readers::new(&config)?;
                (writer, Readers::Postgres { config, pool })
            }
        };
        Ok(Self {
            writer,
            readers: Arc::new(readers),
        })
    }

    /// What the writer has done.
    pub fn stats(&self) -> &WriterStats {
        &self.writer.stats
    }

    /// Whether other processes may be working on the same tasks.
    pub fn is_shared(&self) -> bool {
        matches!(*self.readers, Readers::Postgres { .. })
    }

    async fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { pool, .. } => Ok(pool.query(sql, args)?),
            Readers::Postgres { pool, .. } => {
                match tokio::time::timeout(READ_LIMIT, pool.query(sql, args)).await {
                    Ok(rows) => Ok(rows?),
                    Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
                }
            }
        }
    }

    async fn first<T>(
        &self,
        sql: &Sql,
        args: &[Value<'_>],
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Option<T>, StoreError> {
        match self.query(sql, args).await?.first_mut() {
            Some(row) => Ok(Some(read(row)?)),
            None => Ok(None),
        }
    }

    async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        match tokio::time::timeout(WRITE_LIMIT, self.writer.write(write)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
        }
    }
}

/// Users and keys.
impl Store {
    /// Makes a user; `opening` is credited to it.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where the name is taken.
    pub async fn create_user(
        &self,
        name: &str,
        unlimited: bool,
        opening: Amount,
        now: Millis,
    ) -> Result<User, StoreError> {
        let user_id = id::short_id("user_");
        let create = access::CreateUser {
            id: user_id.clone(),
            name: name.to_owned(),
            unlimited,
            now,
        };
        if !self.write(create).await? {
            return Err(StoreError::Invalid(format!(
                "there is a user {name:?} already: choose another name"
            )));
        }
        if opening != Amount::ZERO {
            self.credit(name, opening, Some("opening balance"), now)
                .await?;
        }
        self.user(&user_id)
            .await?
            .ok_or_else(|| StoreError::Broken(format!("user {user_id} is gone")))
    }

    /// Adds to a user's balance or, negative, takes from it; answers the user afterwards.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user, or taking would touch what is held.
    pub async fn credit(
        &self,
        name: &str,
        amount: Amount,
        note: Option<&str>,
        now: Millis,
    ) -> Result<User, StoreError> {
        let user = self.user_named(name).await?;
        let credit = access::Credit {
            reference: id::short_id("credit_"),
            user_id: user.id.clone(),
            amount,
            note: note.map(str::to_owned),
            now,
        };
        match self.write(credit).await? {
            Ok(()) => self.user_named(name).await,
            Err(Refusal::UserBalance { available }) => Err(StoreError::Invalid(format!(
                "only {available} of the balance of {name:?} can be taken: the rest is held or spent"
            ))),
            Err(_) => Err(StoreError::Broken(format!("user {name:?} is gone"))),
        }
    }

    /// Disables a user: its keys answer 403 from then on.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user.
    pub async fn disable_user(&self, name: &str, now: Millis) -> Result<User, StoreError> {
        let disable = access::DisableUser {
            name: name.to_owned(),
            now,
        };
        self.write(disable).await?;
        self.user_named(name).await
    }

    /// Every user, oldest first.
    pub async fn users(&self) -> Result<Vec<User>, StoreError> {
        let mut rows = self.query(&read::USERS, &[]).await?;
        Ok(rows.iter_mut().map(read::user).collect::<Result<_, _>>()?)
    }

    /// The user of that id.
    pub async fn user(&self, id: &str) -> Result<Option<User>, StoreError> {
        self.first(&read::USER, args![id], read::user).await
    }

    /// The user of that name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is none.
    pub async fn user_named(&self, name: &str) -> Result<User, StoreError> {
        self.first(&read::USER_BY_NAME, args![name], read::user)
            .await?
            .ok_or_else(|| {
                StoreError::Invalid(format!(
                    "there is no user {name:?}: see `tollgate user list`"
                ))
            })
    }

    /// Whether there is any user at all.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(!self.query(&read::ANY_USER, &[]).await?.is_empty())
    }

    /// Makes a key of a user that exists.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user.
    pub async fn create_key(&self, key: NewKey) -> Result<Key, StoreError> {
        let user_id = self.user_named(&key.user).await?.id;
        let id = key.id.clone();
        self.write(access::CreateKey { key, user_id }).await?;
        self.key(&id)
            .await?
            .ok_or_else(|| StoreError::Broken(format!("key {id} is gone")))
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such key.
    pub async fn revoke_key(&self, id: &str, now: Millis) -> Result<Key, StoreError> {
        let revoke = access::RevokeKey {
            id: id.to_owned(),
            now,
        };
        self.write(revoke).await?;
        self.key(id).await?.ok_or_else(|| {
            StoreError::Invalid(format!("there is no key {id:?}: see `tollgate key list`"))
        })
    }

    /// Every key, oldest first.
    pub async fn keys(&self) -> Result<Vec<Key>, StoreError> {
        let mut rows = self.query(&read::KEYS, &[]).await?;
        Ok(rows.iter_mut().map(read::key).collect::<Result<_, _>>()?)
    }

    /// The key of that id.
    pub async fn key(&self, id: &str) -> Result<Option<Key>, StoreError> {
        self.first(&read::KEY_BY_ID, args![id], read::key).await
    }

    /// The key of that hash ([`tollgate_core::id::key_hash`]).
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<Key>, StoreError> {
        self.first(&read::KEY_BY_HASH, args![hash], read::key).await
    }

    /// A number that goes up whenever users or keys change: what was remembered of them is then stale.
    pub async fn access_version(&self) -> Result<i64, StoreError> {
        let rows = self.query(&read::ACCESS_VERSION, &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| StoreError::Broken("meta has no access_version".to_owned()))?;
        Ok(row.int(0)?)
    }
}

/// Tasks, as their users see them.
impl Store {
    /// Takes a submission: idempotency record, hold and task, on disk when it returns.
    pub async fn submit(&self, task: NewTask) -> Result<Submitted, StoreError> {
        self.write(submit::Submit(task)).await
    }

    /// What an `Idempotency-Key` of a user stands for: fingerprint and receipt, if it came in the last 24 h.
    pub async fn receipt(
        &self,
        user_id: &str,
        key: &str,
        now: Millis,
    ) -> Result<Option<(String, String)>, StoreError> {
        let mut rows = self.query(&read::RECEIPT, args![user_id, key]).await?;
        match rows.first_mut() {
            Some(row) if row.int(2)? > now - purge::IDEMPOTENCY_LIFE => {
                Ok(Some((row.text(0)?, row.text(1)?)))
            }
            _ => Ok(None),
        }
    }

    /// The task of that id, whoever it belongs to.
    pub async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.first(&read::TASK, args![id], read::task).await
    }

    /// A user's tasks, newest first, up to 100, older than `cursor`.
    pub async fn tasks_of(
        &self,
        user_id: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page, StoreError> {
        let limit = limit.clamp(1, PAGE_MAX);
        // '~' sorts behind every character of an id.
        let before = cursor.unwrap_or("~");
        let mut rows = self
            .query(
                &read::TASKS_OF_USER,
                args![user_id, before, limit as i64 + 1],
            )
            .await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let tasks = rows
            .iter_mut()
            .map(read::task)
            .collect::<Result<Vec<_>, _>>()?;
        let next = tasks.last().filter(|_| more).map(|t| t.id.clone());
        Ok(Page { tasks, next })
    }

    /// Ends an unfinished task of that user; releases its hold.
    pub async fn cancel(&self, task: &Task, now: Millis) -> Result<Cancelled, StoreError> {
        let cancel = end::CancelTask {
            task_id: task.id.clone(),
            user_id: task.user_id.clone(),
            key_id: task.key_id.clone(),
            now,
        };
        self.write(cancel).await
    }
}

/// Tasks, as workers see them.
impl Store {
    /// Leases up to `limit` due tasks to `owner` until `until`, the longest due first.
    pub async fn claim(
        &self,
        owner: &str,
        limit: usize,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<Leased>, StoreError> {
        let claim = lease::Claim {
            owner: owner.to_owned(),
            limit: limit as i64,
            until,
            now,
        };
        self.write(claim).await
    }

    /// Keeps leases until `until`; answers the task ids that are lost.
    pub async fn keep(
        &self,
        owner: &str,
        leases: Vec<(String, i64)>,
        until: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let keep = lease::Keep {
            owner: owner.to_owned(),
            leases,
            until,
        };
        self.write(keep).await
    }

    /// Says how far a task is, 0 to 100.
    pub async fn progress(&self, task_id: &str, fence: i64, percent: u8) -> Result<(), StoreError> {
        let progress = lease::Progress {
            task_id: task_id.to_owned(),
            fence,
            percent: percent.min(100),
        };
        self.write(progress).await
    }

    /// Puts a leased task back until `due_at`, because no channel has room for it now.
    pub async fn postpone(&self, task_id: &str, fence: i64, due_at: Millis) -> Result<(), StoreError> {
        let postpone = lease::Postpone {
            task_id: task_id.to_owned(),
            fence,
            due_at,
        };
        self.write(postpone).await
    }

    /// Gives back what `owner` has leased, or (none: a single node's start) what anybody has; answers how many.
    pub async fn hand_back(&self, owner: Option<&str>, now: Millis) -> Result<u64, StoreError> {
        let hand_back = lease::HandBack {
            owner: owner.map(str::to_owned),
            now,
        };
        self.write(hand_back).await
    }

    /// Writes an attempt down; answers its number, or none when the lease is lost.
    pub async fn begin_attempt(&self, attempt: AttemptStart) -> Result<Option<i64>, StoreError> {
        self.write(lease::BeginAttempt(attempt)).await
    }

    /// The channels whose attempts at a task failed, in the order in which they were tried.
    pub async fn failed_channels(&self, task_id: &str) -> Result<Vec<String>, StoreError> {
        let mut rows = self.query(&read::FAILED_CHANNELS, args![task_id]).await?;
        Ok(rows.iter_mut().map(|row| row.text(0)).collect::<Result<_, _>>()?)
    }

    /// Ends a failed attempt and puts the task back; answers false when the lease is lost.
    pub async fn try_again(&self, retry: Retry) -> Result<bool, StoreError> {
        self.write(lease::TryAgain(retry)).await
    }

    /// Ends a task: state, result, settlement and release in one transaction.
    pub async fn finish(&self, finish: Finish) -> Result<Ended, StoreError> {
        self.write(end::FinishTask(finish)).await
    }

    /// When the next task is due, leases included; none when there is no unfinished task.
    pub async fn next_due(&self) -> Result<Option<Millis>, StoreError> {
        let rows = self.query(&read::NEXT_DUE, &[]).await?;
        Ok(rows
            .first()
            .map(|row| row.opt_int(0))
            .transpose()?
            .flatten())
    }

    /// Forgets some tasks that ended until `ended_until`, and idempotency keys of more than a day; answers
    /// how many rows went. Call it until that is 0.
    pub async fn purge(&self, ended_until: Millis, now: Millis) -> Result<u64, StoreError> {
        self.write(purge::Purge { ended_until, now }).await
    }
}

/// The whole.
impl Store {
    /// Numbers for metrics; also shows that the database answers.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        let unfinished = self.query(&read::UNFINISHED, &[]).await?;
        let sums = self.query(&read::SUMS, &[]).await?;
        let sums = sums
            .first()
            .ok_or_else(|| StoreError::Broken("no sums".to_owned()))?;
        Ok(read::totals(&unfinished, sums)?)
    }

    /// Proves every money and task invariant; safe beside running servers. Violations, none when all is well.
    pub async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { path, .. } => audit_sqlite(path).await,
            Readers::Postgres { config, .. } => {
                let mut conn = postgres::Connection::open(config).await?;
                let mut tx = Tx::Postgres(conn.begin_snapshot().await?);
                Ok(audit::audit(&mut tx).await?)
            }
        }
    }
}

async fn audit_sqlite(path: &Path) -> Result<Vec<Violation>, StoreError> {
    let conn = sqlite::open_reader(path)?;
    sqlite::script(&conn, "BEGIN")?;
    let found = audit::audit(&mut Tx::Sqlite(&conn)).await?;
    sqlite::script(&conn, "COMMIT")?;
    Ok(found)
}
