//! Budgets in the admin API: create, change, delete, list. Their spending is counted by [`crate::ledger::budgets`].

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use super::json::{amount_json, time_json};
use super::keys::find_key;
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::users::find_user;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::access_changes::{record_key_change, record_user_change};
use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::ledger::budgets::{BudgetOwner, BudgetPeriod, LoadedBudget};
use crate::store::Store;
use crate::writer::AccountIds;
use crate::writer::batch::Batch;

/// Budgets that one user or key may have. The number is limited because all are read with every movement of the owner's money.
const MAX_OF_OWNER: i64 = 10;

macro_rules! select_budgets {
    () => {
        "SELECT b.id, b.owner_id, u.id, b.amount, b.period, b.hard, b.spent, b.period_start,
            COALESCE(u.held, k.held) - COALESCE((SELECT CAST(SUM(g.amount) AS BIGINT) FROM grants g
                WHERE g.user_id = COALESCE(u.id, k.user_id) AND (k.id IS NULL OR g.key_id = k.id)), 0), b.created_at, b.version
         FROM budgets b LEFT JOIN users u ON u.id = b.owner_id LEFT JOIN keys k ON k.id = b.owner_id "
    };
}
const BUDGET_BY_ID: Sql = Sql::both(concat!(select_budgets!(), "WHERE b.id = $1"));
macro_rules! list_budgets {
    ($database:ident) => {
        concat!(
            select_budgets!(),
            "WHERE (b.created_at, b.id) < ($1, $2) AND ",
            one_of!($database "u.id" "$3"),
            " AND ",
            one_of!($database "k.id" "$4"),
            " AND ",
            one_of!($database "b.owner_id" "$5"),
            " ORDER BY b.created_at DESC, b.id DESC LIMIT $6"
        )
    };
}
const LIST_BUDGETS: Sql = Sql::per_database(list_budgets!(sqlite), list_budgets!(postgres));
const INSERT_BUDGET: Sql = Sql::both(
    "INSERT INTO budgets (id, owner_id, amount, period, hard, spent, period_start, created_at, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)",
);
const UPDATE_BUDGET: Sql = Sql::both(
    "UPDATE budgets SET amount = $1, period = $2, hard = $3, spent = $4, period_start = $5, version = version + 1
     WHERE id = $6 AND version = $7",
);
const DELETE_BUDGET: Sql = Sql::both("DELETE FROM budgets WHERE id = $1");
const COUNT_FOR_USER: Sql =
    Sql::both("UPDATE users SET budgets = budgets + CAST($1 AS BIGINT) WHERE id = $2");
const COUNT_FOR_KEY: Sql =
    Sql::both("UPDATE keys SET budgets = budgets + CAST($1 AS BIGINT) WHERE id = $2");
pub(super) const HARD_BUDGET: Sql =
    Sql::both("SELECT id FROM budgets WHERE owner_id = $1 AND hard = 1 LIMIT 1");
const BUDGETS_OF_USER: Sql = Sql::both("SELECT budgets FROM users WHERE id = $1");
const BUDGETS_OF_KEY: Sql = Sql::both("SELECT budgets FROM keys WHERE id = $1");
const COST_OF_USER: Sql = Sql::both(
    "SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (
        SELECT cost FROM usage_hourly WHERE hour >= $1 AND user_id = $2
        UNION ALL SELECT cost FROM usage_pending WHERE hour >= $1 AND user_id = $2) used",
);
const COST_OF_KEY: Sql = Sql::both(
    "SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM (
        SELECT cost FROM usage_hourly WHERE hour >= $1 AND key_id = $2
        UNION ALL SELECT cost FROM usage_pending WHERE hour >= $1 AND key_id = $2) used",
);

/// The most that a user or key may spend in a day, week or month of UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// `bud_` and 16 random characters.
    pub id: String,
    /// Whether its owner is a user or a key.
    pub owner: BudgetOwner,
    /// The id of the user or key.
    pub owner_id: String,
    /// The most that may be spent in each period.
    pub amount: Amount,
    /// The period.
    pub period: BudgetPeriod,
    /// Whether requests that exceed it are rejected.
    pub is_hard: bool,
    /// Settlements and charges minus refunds since `period_start`.
    pub spent: Amount,
    /// When the period of `spent` began. It may have ended since.
    pub period_start: Millis,
    /// The amount that its user or key holds for unfinished tasks and chats, without grants.
    pub held: Amount,
    /// When it was created.
    pub created_at: Millis,
    /// Raised with every change except those of money.
    pub version: i64,
}

impl Budget {
    /// The amount that was spent in the period that contains `now`.
    pub fn spent_at(&self, now: Millis) -> Amount {
        match self.period.start(now) > self.period_start {
            true => Amount::ZERO,
            false => self.spent,
        }
    }

    /// The budget as a JSON object of the admin API.
    pub fn to_json(&self, now: Millis) -> Value {
        let mut object = self.to_trail_json();
        object["spent"] = amount_json(self.spent_at(now));
        object["held"] = amount_json(self.held);
        object["resets_at"] = time_json(self.period.end(now));
        object["version"] = json!(self.version);
        object
    }

    /// The budget as a JSON object of the trail: without money, whose movements are in the ledger.
    fn to_trail_json(&self) -> Value {
        let of = |owner| (self.owner == owner).then_some(&self.owner_id);
        json!({
            "id": self.id,
            "user_id": of(BudgetOwner::User),
            "key_id": of(BudgetOwner::Key),
            "amount": amount_json(self.amount),
            "period": self.period.name(),
            "mode": if self.is_hard { "hard" } else { "soft" },
        })
    }

    fn reply(&self, status: u16, now: Millis) -> AdminReply {
        AdminReply::new(status, self.to_json(now), Some(self.version))
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        let period = row.text(4)?;
        Ok(Self {
            id: row.text(0)?,
            owner_id: row.text(1)?,
            owner: match row.opt_text(2)? {
                Some(_) => BudgetOwner::User,
                None => BudgetOwner::Key,
            },
            amount: row.amount(3)?,
            period: BudgetPeriod::from_name(&period)
                .ok_or_else(|| DbError::UnexpectedData(format!("period {period:?} of a budget")))?,
            is_hard: row.int(5)? != 0,
            spent: row.amount(6)?,
            period_start: row.int(7)?,
            held: Amount::from_nanos(row.opt_int(8)?.unwrap_or(0)),
            created_at: row.int(9)?,
            version: row.int(10)?,
        })
    }
}

/// A budget to create.
#[derive(Debug, Clone)]
pub struct NewBudget {
    /// Whether its owner is a user or a key.
    pub owner: BudgetOwner,
    /// The id of the user or key.
    pub owner_id: String,
    /// The most that may be spent in each period, 0 or more.
    pub amount: Amount,
    /// The period.
    pub period: BudgetPeriod,
    /// Whether requests that exceed it are rejected.
    pub is_hard: bool,
}

/// Changes of a budget; `None` changes nothing.
#[derive(Debug, Clone, Default)]
pub struct BudgetPatch {
    /// The most that may be spent in each period, 0 or more.
    pub amount: Option<Amount>,
    /// The period.
    pub period: Option<BudgetPeriod>,
    /// Whether requests that exceed it are rejected.
    pub is_hard: Option<bool>,
}

/// Filters of the list of budgets.
#[derive(Debug, Clone, Default)]
pub struct BudgetFilter {
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Only of these keys.
    pub key_ids: Option<Vec<String>>,
    /// Only of these users and keys.
    pub owner_ids: Option<Vec<String>>,
}

/// Budgets, for the admin API.
impl Store {
    /// Creates a budget. What its owner has already spent in the period counts.
    pub async fn create_budget(&self, request: &AdminRequest, new: NewBudget) -> AdminResult {
        let create = CreateBudget {
            id: id::short_id("bud_"),
            new,
        };
        self.admin_write(request, create).await
    }

    /// Changes a budget that has the version `if_match`; any version if that is `None`.
    pub async fn update_budget(
        &self,
        request: &AdminRequest,
        budget: &Budget,
        if_match: Option<i64>,
        patch: BudgetPatch,
    ) -> AdminResult {
        let target = Target::new(budget, if_match);
        self.admin_write(request, UpdateBudget { target, patch })
            .await
    }

    /// Deletes a budget that has the version `if_match`; any version if that is `None`.
    pub async fn delete_budget(
        &self,
        request: &AdminRequest,
        budget: &Budget,
        if_match: Option<i64>,
    ) -> AdminResult {
        let target = Target::new(budget, if_match);
        self.admin_write(request, DeleteBudget { target }).await
    }

    /// The budget with that id.
    pub async fn budget(&self, id: &str) -> Result<Option<Budget>, StoreError> {
        self.first(&BUDGET_BY_ID, args![id], Budget::read).await
    }

    /// Whether a user or key (`owner_id`) has a hard budget of its own.
    pub async fn has_hard_budget(&self, owner_id: &str) -> Result<bool, StoreError> {
        let args = args![owner_id];
        let id = self.first(&HARD_BUDGET, args, |row| row.text(0)).await?;
        Ok(id.is_some())
    }

    /// Budgets, newest first.
    pub async fn list_budgets(
        &self,
        filter: &BudgetFilter,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<Budget>, StoreError> {
        let (at, id) = page_args(after);
        let users = list_arg(filter.user_ids.as_ref());
        let keys = list_arg(filter.key_ids.as_ref());
        let owners = list_arg(filter.owner_ids.as_ref());
        let args = args![
            at,
            id,
            users.as_ref(),
            keys.as_ref(),
            owners.as_ref(),
            limit as i64
        ];
        let mut rows = self.query_slow(&LIST_BUDGETS, args).await?;
        Ok(rows
            .iter_mut()
            .map(Budget::read)
            .collect::<Result<_, _>>()?)
    }
}

/// The row to lock: spending takes the same lock, so nothing is spent between reading and writing a budget.
fn owner_account(owner: BudgetOwner, owner_id: &str) -> AccountIds<'_> {
    match owner {
        BudgetOwner::User => AccountIds::user(owner_id),
        BudgetOwner::Key => AccountIds::key(owner_id),
    }
}

/// The settlements, charges and refunds of an owner since that time, including this batch.
async fn spent_since(
    batch: &mut Batch<'_, '_>,
    owner: BudgetOwner,
    owner_id: &str,
    since: Millis,
) -> Result<Amount, DbError> {
    let sql = match owner {
        BudgetOwner::User => &COST_OF_USER,
        BudgetOwner::Key => &COST_OF_KEY,
    };
    let row = batch.first(sql, args![since, owner_id]).await?;
    let stored = row.map_or(Ok(0), |row| row.int(0))?;
    let nanos = stored.saturating_add(batch.usage.cost_of(owner_id, since));
    Ok(Amount::from_nanos(nanos))
}

struct CreateBudget {
    id: String,
    new: NewBudget,
}

#[async_trait(?Send)]
impl AdminChange for CreateBudget {
    fn accounts(&self) -> AccountIds<'_> {
        owner_account(self.new.owner, &self.new.owner_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let &NewBudget {
            owner,
            ref owner_id,
            amount,
            period,
            is_hard,
        } = &self.new;
        let (field, held, of_owner, count) = match owner {
            BudgetOwner::User => {
                let user = find_user(batch, owner_id).await?;
                let held = user.map(|user| user.held);
                ("user_id", held, &BUDGETS_OF_USER, &COUNT_FOR_USER)
            }
            BudgetOwner::Key => {
                let key = find_key(batch, owner_id).await?;
                let held = key.map(|key| key.held);
                ("key_id", held, &BUDGETS_OF_KEY, &COUNT_FOR_KEY)
            }
        };
        let Some(held) = held else {
            let message = format!("there is no such {}", field.trim_end_matches("_id"));
            return Ok(AdminRejection::Invalid { field, message }.into());
        };
        let existing = batch.first(of_owner, args![owner_id]).await?;
        if existing.map_or(Ok(0), |row| row.int(0))? >= MAX_OF_OWNER {
            let message = format!("has {MAX_OF_OWNER} budgets already, which is the most");
            return Ok(AdminRejection::Invalid { field, message }.into());
        }
        let period_start = period.start(request.now);
        let budget = Budget {
            id: self.id.clone(),
            owner,
            owner_id: owner_id.clone(),
            amount,
            period,
            is_hard,
            spent: spent_since(batch, owner, owner_id, period_start).await?,
            period_start,
            held,
            created_at: request.now,
            version: 1,
        };
        let args = args![
            &budget.id,
            owner_id,
            amount,
            period.name(),
            is_hard,
            budget.spent,
            period_start,
            request.now
        ];
        batch.queue_one(&INSERT_BUDGET, args)?;
        batch.queue_one(count, args![1, owner_id])?;
        batch.balances.add_new_budget(owner_id, budget.loaded());
        record_owner_change(batch, owner, owner_id)?;
        Ok(Applied::Changed(Change {
            action: "budget.create",
            object_type: "budget",
            object_id: budget.id.clone(),
            before: None,
            after: Some(budget.to_trail_json()),
            reply: budget.reply(201, request.now),
        }))
    }
}

impl Budget {
    fn loaded(&self) -> LoadedBudget {
        LoadedBudget::new(
            self.id.clone(),
            self.amount,
            self.period,
            self.is_hard,
            self.spent,
            self.period_start,
        )
    }
}

/// The budget that a write changes.
struct Target {
    id: String,
    owner: BudgetOwner,
    owner_id: String,
    if_match: Option<i64>,
}

impl Target {
    fn new(budget: &Budget, if_match: Option<i64>) -> Self {
        Self {
            id: budget.id.clone(),
            owner: budget.owner,
            owner_id: budget.owner_id.clone(),
            if_match,
        }
    }

    fn accounts(&self) -> AccountIds<'_> {
        owner_account(self.owner, &self.owner_id)
    }

    /// The budget in this batch, if it exists and has the expected version.
    async fn find(
        &self,
        batch: &mut Batch<'_, '_>,
        now: Millis,
    ) -> Result<Result<Budget, AdminRejection>, DbError> {
        let Some(mut row) = batch.first(&BUDGET_BY_ID, args![&self.id]).await? else {
            return Ok(Err(AdminRejection::NotFound));
        };
        let mut budget = Budget::read(&mut row)?;
        // The batch writes its movements of money only at its end.
        let moved = match self.owner {
            BudgetOwner::User => batch.balances.moved_of_user(&self.owner_id)[1],
            BudgetOwner::Key => batch.balances.moved_of_key(&self.owner_id)[0],
        };
        budget.held += moved;
        if let Some(loaded) = batch.balances.budget_mut(&self.owner_id, &self.id) {
            (budget.spent, budget.period_start) = (loaded.spent, loaded.period_start);
        }
        if self
            .if_match
            .is_some_and(|version| version != budget.version)
        {
            return Ok(Err(AdminRejection::Stale {
                current: budget.to_json(now),
                version: budget.version,
            }));
        }
        Ok(Ok(budget))
    }
}

struct UpdateBudget {
    target: Target,
    patch: BudgetPatch,
}

#[async_trait(?Send)]
impl AdminChange for UpdateBudget {
    fn accounts(&self) -> AccountIds<'_> {
        self.target.accounts()
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Self { target, patch } = self;
        let budget = match target.find(batch, request.now).await? {
            Ok(budget) => budget,
            Err(rejection) => return Ok(rejection.into()),
        };
        let mut patched = Budget {
            amount: patch.amount.unwrap_or(budget.amount),
            period: patch.period.unwrap_or(budget.period),
            is_hard: patch.is_hard.unwrap_or(budget.is_hard),
            ..budget.clone()
        };
        if patched == budget {
            return Ok(Applied::Unchanged(budget.reply(200, request.now)));
        }
        patched.version += 1;
        if patched.period != budget.period {
            patched.period_start = patched.period.start(request.now);
            let (owner, owner_id) = (patched.owner, &patched.owner_id);
            patched.spent = spent_since(batch, owner, owner_id, patched.period_start).await?;
        }
        let args = args![
            patched.amount,
            patched.period.name(),
            patched.is_hard,
            patched.spent,
            patched.period_start,
            &patched.id,
            budget.version
        ];
        batch.queue_one(&UPDATE_BUDGET, args)?;
        if let Some(loaded) = batch.balances.budget_mut(&target.owner_id, &target.id) {
            loaded.change(patched.loaded());
        }
        Ok(Applied::Changed(Change {
            action: "budget.update",
            object_type: "budget",
            object_id: patched.id.clone(),
            before: Some(budget.to_trail_json()),
            after: Some(patched.to_trail_json()),
            reply: patched.reply(200, request.now),
        }))
    }
}

/// Cached keys contain whether the key or its user has budgets, so a change must be recorded.
fn record_owner_change(
    batch: &mut Batch<'_, '_>,
    owner: BudgetOwner,
    owner_id: &str,
) -> Result<(), DbError> {
    match owner {
        BudgetOwner::User => record_user_change(batch, owner_id),
        BudgetOwner::Key => record_key_change(batch, owner_id),
    }
}

struct DeleteBudget {
    target: Target,
}

#[async_trait(?Send)]
impl AdminChange for DeleteBudget {
    fn accounts(&self) -> AccountIds<'_> {
        self.target.accounts()
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let target = &self.target;
        let budget = match target.find(batch, request.now).await? {
            Ok(budget) => budget,
            Err(rejection) => return Ok(rejection.into()),
        };
        let count = match target.owner {
            BudgetOwner::User => &COUNT_FOR_USER,
            BudgetOwner::Key => &COUNT_FOR_KEY,
        };
        batch.queue_one(&DELETE_BUDGET, args![&target.id])?;
        batch.queue_one(count, args![-1, &target.owner_id])?;
        batch.balances.remove_budget(&target.owner_id, &target.id);
        record_owner_change(batch, target.owner, &target.owner_id)?;
        Ok(Applied::Changed(Change {
            action: "budget.delete",
            object_type: "budget",
            object_id: budget.id.clone(),
            before: Some(budget.to_trail_json()),
            after: None,
            reply: AdminReply::new(204, Value::Null, None),
        }))
    }
}
