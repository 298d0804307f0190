//! Users: their stored columns, and finding them. The admin API and commands change them (`admin/users.rs`, `admin/commands.rs`).

use tollgate_core::{Amount, Millis};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;

/// The columns that [`read_user`] reads, in its order. Grants of nodes for chats are not included in what is held.
macro_rules! select_users {
    () => {
        "SELECT id, name, unlimited, balance, \
         held - COALESCE((SELECT CAST(SUM(g.amount) AS BIGINT) FROM grants g WHERE g.user_id = users.id), 0), used, \
         disabled_at, rpm, tpm, max_concurrency, created_at, version FROM users"
    };
}
pub(crate) use select_users;
pub(crate) const USER_BY_ID: Sql = Sql::both(concat!(select_users!(), " WHERE id = $1"));
pub(crate) const USER_BY_NAME: Sql = Sql::both(concat!(select_users!(), " WHERE name = $1"));
const ALL_USERS: Sql = Sql::both(concat!(select_users!(), " ORDER BY created_at, id"));
const ANY_USER: Sql = Sql::both("SELECT id FROM users LIMIT 1");

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// `user_` and 16 random characters.
    pub id: String,
    /// Unique, chosen by the operator.
    pub name: String,
    /// Whether the balance is no limit and may become negative.
    pub unlimited: bool,
    /// Credits and refunds less settled charges.
    pub balance: Amount,
    /// Held for unfinished tasks, and for chats whose hold is in the database; grants of nodes are not included (docs/money.md).
    pub held: Amount,
    /// Settled charges less refunds.
    pub used: Amount,
    /// Limits of all its keys together.
    pub rates: RateLimits,
    /// When it was disabled, if it was.
    pub disabled_at: Option<Millis>,
    /// When it was created.
    pub created_at: Millis,
    /// Raised with every change except those of money.
    pub version: i64,
}

impl User {
    /// The user's debt: the negative balance of a limited user, as a positive amount. Credits pay it first.
    pub fn debt(&self) -> Amount {
        match self.unlimited {
            true => Amount::ZERO,
            false => (-self.balance).max(Amount::ZERO),
        }
    }
}

/// Rate limits; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// POST requests in a sliding minute.
    pub rpm: Option<u32>,
    /// Chat tokens in a sliding minute.
    pub tpm: Option<u32>,
    /// Requests in flight.
    pub max_concurrency: Option<u32>,
}

impl RateLimits {
    /// The values of the columns `rpm`, `tpm` and `max_concurrency`.
    pub(crate) fn to_columns(self) -> [Option<i64>; 3] {
        [self.rpm, self.tpm, self.max_concurrency].map(|limit| limit.map(i64::from))
    }

    /// Reads the three columns from `first` on.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self, DbError> {
        let limit = |column| {
            let limit = row.opt_int(column)?;
            Ok::<_, DbError>(limit.and_then(|n| u32::try_from(n).ok()))
        };
        Ok(Self {
            rpm: limit(first)?,
            tpm: limit(first + 1)?,
            max_concurrency: limit(first + 2)?,
        })
    }
}

/// Users.
impl Store {
    /// Every user, oldest first.
    pub async fn list_users(&self) -> Result<Vec<User>, StoreError> {
        let mut rows = self.query(&ALL_USERS, &[]).await?;
        Ok(rows.iter_mut().map(read_user).collect::<Result<_, _>>()?)
    }

    /// The user with that id.
    pub async fn user(&self, id: &str) -> Result<Option<User>, StoreError> {
        self.first(&USER_BY_ID, args![id], read_user).await
    }

    /// The user with that name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is none.
    pub async fn user_by_name(&self, name: &str) -> Result<User, StoreError> {
        self.first(&USER_BY_NAME, args![name], read_user)
            .await?
            .ok_or_else(|| {
                StoreError::Invalid(format!(
                    "there is no user {name:?}: see `tollgate user list`"
                ))
            })
    }

    /// Whether there is any user.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(!self.query(&ANY_USER, &[]).await?.is_empty())
    }
}

/// Reads a user from the columns `select_users`.
pub(crate) fn read_user(row: &mut Row) -> Result<User, DbError> {
    Ok(User {
        id: row.text(0)?,
        name: row.text(1)?,
        unlimited: row.int(2)? != 0,
        balance: row.amount(3)?,
        held: row.amount(4)?,
        used: row.amount(5)?,
        disabled_at: row.opt_int(6)?,
        rates: RateLimits::read(row, 7)?,
        created_at: row.int(10)?,
        version: row.int(11)?,
    })
}
