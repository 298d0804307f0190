//! The ledger entries: of all users, and of one user with its running balance.

use async_trait::async_trait;
use http::Method;
use tollgate_core::Amount;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Entry, EntryFilter, EntryPosition, Store, amount_json};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;
use super::users;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/entries",
        access: Access::Scope(Scope::UsersRead),
        summary: "Ledger entries, newest first.",
        query: &["from", "to", "user_id", "key_id", "kind"],
        body: None,
        returns: Returns::List("entry"),
        handler: handler!(list_entries),
    },
    Endpoint {
        method: Method::GET,
        path: "/users/{id}/entries",
        access: Access::Scope(Scope::UsersRead),
        summary: "Ledger entries of a user, newest first, each with the balance after it.",
        query: &["from", "to"],
        body: None,
        returns: Returns::List("user_entry"),
        handler: handler!(list_user_entries),
    },
];

struct Entries(EntryFilter);

#[async_trait]
impl Listing for Entries {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "at",
            "user_id",
            "key_id",
            "kind",
            "amount",
            "delta",
            "ref",
            "reference",
            "reason",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = after.map(position).transpose()?;
        let entries = store.list_entries(&self.0, after.as_ref(), limit).await?;
        let items = entries.iter().map(|entry| Item {
            value: entry.to_json(),
            position: position_of(entry),
        });
        Ok(items.collect())
    }
}

/// The balance before a change of it by `delta`.
///
/// # Errors
/// 400 if the balance that the cursor has is out of range.
fn previous_balance(balance: Amount, delta: Amount) -> Result<Amount, AdminError> {
    let previous = balance.checked_add(-delta);
    previous.ok_or_else(|| AdminError::invalid("cursor", "is not a cursor of this list"))
}

fn position_of(entry: &Entry) -> Vec<String> {
    vec![
        entry.at.to_string(),
        entry.object_id.clone(),
        entry.kind.clone(),
    ]
}

fn position(after: &[String]) -> Result<EntryPosition, AdminError> {
    let position = match after {
        [at, object_id, kind, ..] => at.parse().ok().map(|at| EntryPosition {
            at,
            object_id: object_id.clone(),
            kind: kind.clone(),
        }),
        _ => None,
    };
    position.ok_or_else(|| AdminError::invalid("cursor", "is not a cursor of this list"))
}

async fn list_entries(call: Call) -> Result<Reply, AdminError> {
    let query = &call.query;
    call.check_query()?;
    let (from, to) = query.window(call.now)?;
    let filter = EntryFilter {
        from,
        to,
        user_ids: query.list("user_id"),
        key_ids: query.list("key_id"),
        kinds: query.list("kind"),
    };
    list::reply(&call, Entries(filter)).await
}

/// The ledger entries of a user, newest first, each with the balance after it.
pub(crate) struct UserEntries {
    pub(crate) user_id: String,
    pub(crate) filter: EntryFilter,
}

#[async_trait]
impl Listing for UserEntries {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "at",
            "user_id",
            "key_id",
            "kind",
            "amount",
            "delta",
            "ref",
            "reference",
            "reason",
            "balance_after",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let start = after.map(position).transpose()?;
        let page = store.list_user_entries(&self.user_id, &self.filter, start.as_ref(), limit);
        let (entries, newest) = page.await?;
        // The position of a later page includes the balance before the last entry of the page before it.
        let balance = after.and_then(|after| after.get(3)?.parse().ok());
        let mut balance = balance.map_or(newest, Amount::from_nanos);
        let items = entries.iter().map(|entry| {
            let mut value = entry.to_json();
            value["balance_after"] = amount_json(balance);
            balance = previous_balance(balance, entry.delta())?;
            let mut position = position_of(entry);
            position.push(balance.nanos().to_string());
            Ok(Item { value, position })
        });
        items.collect()
    }
}

async fn list_user_entries(call: Call) -> Result<Reply, AdminError> {
    let user = users::find(&call).await?;
    call.check_query()?;
    let (from, to) = call.query.window(call.now)?;
    let filter = EntryFilter {
        from,
        to,
        ..EntryFilter::default()
    };
    let user_id = user.id;
    list::reply(&call, UserEntries { user_id, filter }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_out_of_range_is_an_error_of_the_cursor() {
        let amount = Amount::from_nanos;
        assert_eq!(previous_balance(amount(5), amount(2)), Ok(amount(3)));
        for (balance, delta) in [(i64::MIN, 1), (i64::MAX, -1)] {
            let error = previous_balance(amount(balance), amount(delta)).unwrap_err();
            let expected = AdminError::invalid("cursor", "is not a cursor of this list");
            assert_eq!(error, expected);
        }
    }
}
