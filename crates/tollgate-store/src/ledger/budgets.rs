//! Budgets (table `budgets`): the most that a user or key may spend in a day, week or month of UTC.
//!
//! A budget's row is read and written only while the row of its owner is locked, so every movement of the owner's money sees it. A hard budget
//! rejects a hold if the amount spent in the period, the owner's held amount and the new hold together exceed the budget's amount. Amounts that are
//! held across the end of a period count in the next one, in which they are settled.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use tollgate_core::clock::DAY;
use tollgate_core::{Amount, Millis};

use super::sum::sum;
use crate::db::{DbError, Row, Sql, Tx, args};

macro_rules! select_budgets {
    () => {
        "SELECT id, owner_id, amount, period, hard, spent, period_start FROM budgets "
    };
}
pub(crate) const LOAD_BUDGETS: Sql = Sql::both(concat!(
    select_budgets!(),
    "WHERE owner_id = $1 ORDER BY id"
));
pub(super) const LOAD_ALL_BUDGETS: Sql = Sql::both(concat!(
    select_budgets!(),
    "WHERE owner_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST($1 AS TEXT) AS json)))) ORDER BY id"
));
pub(crate) const SET_SPENT: Sql =
    Sql::both("UPDATE budgets SET spent = $1, period_start = $2 WHERE id = $3");

/// Days from the Monday of the week of 1970-01-01 to that day, which was a Thursday.
const DAYS_SINCE_MONDAY: i64 = 3;

/// How long a budget runs before it starts again, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetPeriod {
    /// Begins at midnight.
    Day,
    /// Begins on Monday at midnight.
    Week,
    /// Begins on the first of the month at midnight.
    Month,
}

impl BudgetPeriod {
    /// Every period.
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// `day`, `week` or `month`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The period with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }

    /// When the period that contains `at` began.
    pub fn start(self, at: Millis) -> Millis {
        self.bounds(at)[0]
    }

    /// When the period that contains `at` ends and the next one begins.
    pub fn end(self, at: Millis) -> Millis {
        self.bounds(at)[1]
    }

    fn bounds(self, at: Millis) -> [Millis; 2] {
        let days = at.div_euclid(DAY);
        match self {
            Self::Day => [days * DAY, (days + 1) * DAY],
            Self::Week => {
                let monday = (days + DAYS_SINCE_MONDAY).div_euclid(7) * 7 - DAYS_SINCE_MONDAY;
                [monday * DAY, (monday + 7) * DAY]
            }
            // Only years beyond 9999 have no bounds here.
            Self::Month => month_bounds(at).unwrap_or([days * DAY, (days + 1) * DAY]),
        }
    }
}

fn month_bounds(at: Millis) -> Option<[Millis; 2]> {
    let at = jiff::Timestamp::from_millisecond(at).ok()?;
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.checked_add(1.month()).ok()?;
    let midnight = |date: jiff::civil::Date| date.to_zoned(TimeZone::UTC).ok();
    Some([midnight(first)?, midnight(next)?].map(|time| time.timestamp().as_millisecond()))
}

/// The kind of a budget's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetOwner {
    /// A user: all keys of the user together.
    User,
    /// A key.
    Key,
}

/// The hard budget that rejected a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededBudget {
    /// Whether its owner is a user or a key.
    pub owner: BudgetOwner,
    /// Its period.
    pub period: BudgetPeriod,
    /// The most that may be spent in the period.
    pub amount: Amount,
    /// The part of the amount that is not spent, held or reserved; 0 or more.
    pub available: Amount,
    /// When its period ends and the next one begins.
    pub resets_at: Millis,
}

/// A budget of a user or key of a batch, with the amount that the batch has spent of it.
#[derive(Debug)]
pub(crate) struct LoadedBudget {
    pub(crate) id: String,
    pub(crate) amount: Amount,
    pub(crate) period: BudgetPeriod,
    pub(crate) is_hard: bool,
    /// The amount spent since `period_start`.
    pub(crate) spent: Amount,
    pub(crate) period_start: Millis,
    /// The amount that this batch has spent of it.
    moved: Amount,
    is_changed: bool,
}

impl LoadedBudget {
    /// A budget that this transaction has inserted.
    pub(crate) fn new(
        id: String,
        amount: Amount,
        period: BudgetPeriod,
        is_hard: bool,
        spent: Amount,
        period_start: Millis,
    ) -> Self {
        Self {
            id,
            amount,
            period,
            is_hard,
            spent,
            period_start,
            moved: Amount::ZERO,
            is_changed: false,
        }
    }

    /// Applies a change of its row by this transaction; keeps the amount that this batch has spent.
    pub(crate) fn change(&mut self, to: Self) {
        let moved = self.moved;
        *self = Self { moved, ..to };
    }

    /// Reads a row of [`LOAD_BUDGETS`], with the id of its owner.
    pub(super) fn read(row: &mut Row) -> Result<(String, Self), DbError> {
        let period = row.text(3)?;
        let period = BudgetPeriod::from_name(&period)
            .ok_or_else(|| DbError::UnexpectedData(format!("period {period:?} of a budget")))?;
        let is_hard = row.int(4)? != 0;
        let (spent, period_start) = (row.amount(5)?, row.int(6)?);
        let budget = Self::new(
            row.text(0)?,
            row.amount(2)?,
            period,
            is_hard,
            spent,
            period_start,
        );
        Ok((row.text(1)?, budget))
    }

    /// Adds `amount`, which may be negative, to the amount spent at the time `at`. Does nothing if that is in an earlier period.
    fn spend(&mut self, amount: Amount, at: Millis) -> Result<(), DbError> {
        let start = self.period.start(at);
        if amount == Amount::ZERO || start < self.period_start {
            return Ok(());
        }
        if start > self.period_start {
            (self.period_start, self.spent) = (start, Amount::ZERO);
        }
        self.spent = sum(self.spent, amount)?;
        self.moved = sum(self.moved, amount)?;
        self.is_changed = true;
        Ok(())
    }

    /// The amount spent in the period that contains `at`.
    pub(crate) fn spent_at(&self, at: Millis) -> Amount {
        match self.period.start(at) > self.period_start {
            true => Amount::ZERO,
            false => self.spent,
        }
    }
}

/// The budgets of one user or key.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Vec<LoadedBudget>);

impl Budgets {
    pub(super) fn add(&mut self, budget: LoadedBudget) {
        self.0.push(budget);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.0.retain(|budget| budget.id != id);
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut LoadedBudget> {
        self.0.iter_mut().find(|budget| budget.id == id)
    }

    fn hard(&self) -> impl Iterator<Item = &LoadedBudget> {
        self.0.iter().filter(|budget| budget.is_hard)
    }

    pub(super) fn spend(&mut self, amount: Amount, at: Millis) -> Result<(), DbError> {
        let mut budgets = self.0.iter_mut();
        budgets.try_for_each(|budget| budget.spend(amount, at))
    }

    /// Rejects a hold of `amount` if a hard budget does not cover it in addition to what the owner has held and reserved.
    pub(super) fn check_hold(
        &self,
        owner: BudgetOwner,
        held_and_reserved: Amount,
        amount: Amount,
        at: Millis,
    ) -> Result<Result<(), ExceededBudget>, DbError> {
        for budget in self.hard() {
            let taken = sum(budget.spent_at(at), held_and_reserved)?;
            let available = sum(budget.amount, -taken)?.max(Amount::ZERO);
            if available < amount {
                return Ok(Err(ExceededBudget {
                    owner,
                    period: budget.period,
                    amount: budget.amount,
                    available,
                    resets_at: budget.period.end(at),
                }));
            }
        }
        Ok(Ok(()))
    }

    /// The largest amount that this batch has spent of a hard budget; `None` without a hard budget.
    pub(super) fn moved(&self) -> Option<Amount> {
        self.hard().map(|budget| budget.moved).max()
    }

    /// The smallest amount that the rows leave of a hard budget, without deducting what is held. A period that has ended since is treated as if it
    /// had not.
    pub(super) fn left_in_rows(&self) -> Option<Amount> {
        self.hard().map(|budget| budget.amount - budget.spent).min()
    }

    pub(super) fn write_back(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        for budget in self.0.iter().filter(|budget| budget.is_changed) {
            let args = args![budget.spent, budget.period_start, &budget.id];
            tx.queue_one(&SET_SPENT, args)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Millis {
        let time: jiff::Timestamp = text.parse().unwrap();
        time.as_millisecond()
    }

    #[test]
    fn periods_begin_at_midnight_utc_and_weeks_on_monday() {
        for (period, time, start, end) in [
            (
                BudgetPeriod::Day,
                "2026-11-23T22:15:01Z",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            (
                BudgetPeriod::Day,
                "2026-11-23T00:00:00Z",
                "2026-11-23T00:00:00Z",
                "2026-11-24T00:00:00Z",
            ),
            // 2026-11-23 is a Monday.
            (
                BudgetPeriod::Week,
                "2026-11-23T00:00:00Z",
                "2026-11-23T00:00:00Z",
                "2026-11-30T00:00:00Z",
            ),
            (
                BudgetPeriod::Week,
                "2026-11-22T23:59:59.999Z",
                "2026-11-16T00:00:00Z",
                "2026-11-23T00:00:00Z",
            ),
            (
                BudgetPeriod::Month,
                "2026-12-31T23:59:59Z",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                BudgetPeriod::Month,
                "2028-02-29T12:00:00Z",
                "2028-02-01T00:00:00Z",
                "2028-03-01T00:00:00Z",
            ),
        ] {
            assert_eq!(period.start(at(time)), at(start), "{period:?} of {time}");
            assert_eq!(period.end(at(time)), at(end), "{period:?} of {time}");
        }
    }

    #[test]
    fn a_new_period_begins_at_zero_and_excludes_spending_of_an_old_one() {
        let nanos = Amount::from_nanos;
        let today = at("2026-11-23T00:00:00Z");
        let mut budget = LoadedBudget::new(
            String::new(),
            nanos(10),
            BudgetPeriod::Day,
            true,
            nanos(4),
            today,
        );
        budget.spend(nanos(3), today + 1).unwrap();
        assert_eq!(budget.spent, nanos(7));
        budget.spend(nanos(2), today + DAY).unwrap();
        assert_eq!((budget.spent, budget.period_start), (nanos(2), today + DAY));
        budget.spend(nanos(5), today + 2).unwrap();
        assert_eq!((budget.spent, budget.moved), (nanos(2), nanos(5)));
    }
}
