//! Lists: pages with keyset cursors that are valid only for the same path and filters, or the complete list as CSV.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::stream;
use http::header;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::Store;

use super::call::Call;
use super::csv;
use super::query::Query;
use super::reply::Reply;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;
/// Items that a CSV export reads at a time.
const CSV_PAGE: usize = 1000;

/// An item of a list, with the values that determine its position.
#[derive(Debug)]
pub struct Item {
    /// The members of the item that the list shows.
    pub value: Value,
    /// The item's position in the list, for the cursor.
    pub position: Vec<String>,
}

/// A list of objects, with its filters.
#[async_trait]
pub trait Listing: Send + Sync + 'static {
    /// The members of an item, in order: the columns of the CSV.
    fn columns(&self) -> &[&'static str];

    /// At most `limit` items after the position `after`.
    ///
    /// # Errors
    /// 400 if the position is not one of this list.
    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError>;
}

/// Replies with a page of the list, or with the complete list if the client accepts CSV. The caller has checked all other query parameters.
///
/// # Errors
/// 400 for an invalid `limit` or `cursor`.
pub async fn reply<L: Listing>(call: &Call, listing: L) -> Result<Reply, AdminError> {
    let limit = parse_limit(&call.query)?;
    let binding = format!("{} {}", call.path, call.query.filters());
    let cursor = call.query.get("cursor");
    let after = cursor.map(|cursor| parse_cursor(cursor, &binding));
    let after = after.transpose()?;
    if accepts_csv(call) {
        return Ok(Reply::stream(
            "text/csv; charset=utf-8",
            csv_body(call, listing, after),
        ));
    }
    let store = &call.app.store;
    let mut items = listing.page(store, after.as_deref(), limit + 1).await?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more);
    let next = next.map(|item| write_cursor(&item.position, &binding));
    let data: Vec<Value> = items.into_iter().map(|item| item.value).collect();
    Ok(Reply::json(json!({ "data": data, "next_cursor": next })))
}

/// The id after which a page begins, for lists that are sorted by id; `None` for the first page.
///
/// # Errors
/// 400 if the position is not one of such a list.
pub fn position_id(after: Option<&[String]>) -> Result<Option<&str>, AdminError> {
    match after {
        None => Ok(None),
        Some([id]) => Ok(Some(id)),
        Some(_) => Err(AdminError::invalid(
            "cursor",
            "is not a cursor of this list",
        )),
    }
}

fn parse_limit(query: &Query) -> Result<usize, AdminError> {
    let Some(text) = query.get("limit") else {
        return Ok(DEFAULT_LIMIT);
    };
    let limit = text.parse().ok().filter(|n| (1..=MAX_LIMIT).contains(n));
    limit.ok_or_else(|| {
        AdminError::invalid(
            "limit",
            format!("must be a whole number from 1 to {MAX_LIMIT}"),
        )
    })
}

fn accepts_csv(call: &Call) -> bool {
    let accept = call.headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or("");
    accept
        .split([',', ';'])
        .any(|part| part.trim() == "text/csv")
}

/// Encodes a cursor: the position, and a checksum over position, path and filters.
fn write_cursor(position: &[String], binding: &str) -> String {
    let position = json!(position).to_string();
    let checksum = checksum(&position, binding);
    URL_SAFE_NO_PAD.encode(format!("{checksum}{position}"))
}

fn parse_cursor(cursor: &str, binding: &str) -> Result<Vec<String>, AdminError> {
    let parse = || {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (given, position) = text.split_at_checked(CHECKSUM_LENGTH)?;
        let is_own = given == checksum(position, binding);
        serde_json::from_str(position).ok().filter(|_| is_own)
    };
    parse().ok_or_else(|| {
        AdminError::invalid("cursor", "is not a cursor of this list with these filters")
    })
}

const CHECKSUM_LENGTH: usize = 16;

fn checksum(position: &str, binding: &str) -> String {
    let digest = Sha256::digest(json!([position, binding]).to_string());
    id::hex(&digest[..CHECKSUM_LENGTH / 2])
}

/// Streams the header row, then one page after the other.
fn csv_body<L: Listing>(call: &Call, listing: L, after: Option<Vec<String>>) -> Body {
    struct State<L> {
        listing: L,
        app: Arc<tollgate_server::state::App>,
        after: Option<Vec<String>>,
        is_first: bool,
        has_ended: bool,
    }
    let state = State {
        listing,
        app: Arc::clone(&call.app),
        after,
        is_first: true,
        has_ended: false,
    };
    Body::from_stream(stream::try_unfold(state, |mut state| async move {
        if state.has_ended {
            return Ok(None);
        }
        let page = state
            .listing
            .page(&state.app.store, state.after.as_deref(), CSV_PAGE)
            .await;
        let items = page.map_err(|e| std::io::Error::other(format!("{e:?}")))?;
        let mut text = String::new();
        if std::mem::take(&mut state.is_first) {
            text.push_str(&csv::header_row(state.listing.columns()));
        }
        for item in &items {
            text.push_str(&csv::item_row(state.listing.columns(), &item.value));
        }
        state.has_ended = items.len() < CSV_PAGE;
        state.after = items.into_iter().next_back().map(|item| item.position);
        Ok::<_, std::io::Error>(Some((text, state)))
    }))
}

/// A list of objects in memory, each with its unique name, sorted by name.
pub struct NamedObjects {
    /// The members of an object.
    pub columns: &'static [&'static str],
    /// The objects with their names, sorted by name.
    pub objects: Vec<(String, Value)>,
}

#[async_trait]
impl Listing for NamedObjects {
    fn columns(&self) -> &'static [&'static str] {
        self.columns
    }

    async fn page(
        &self,
        _store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = match after {
            None => None,
            Some([name]) => Some(name),
            Some(_) => {
                return Err(AdminError::invalid(
                    "cursor",
                    "is not a cursor of this list",
                ));
            }
        };
        let rest = self
            .objects
            .iter()
            .filter(|(name, _)| after.is_none_or(|after| name > after));
        let items = rest.take(limit).map(|(name, value)| Item {
            value: value.clone(),
            position: vec![name.clone()],
        });
        Ok(items.collect())
    }
}

/// Parses a position that consists of a time and an id; `None` for the first page.
///
/// # Errors
/// 400 if it does not have this form.
pub fn page_start(
    after: Option<&[String]>,
) -> Result<Option<tollgate_store::PageStart>, AdminError> {
    let Some(after) = after else {
        return Ok(None);
    };
    let start = match after {
        [at, id] => at
            .parse()
            .ok()
            .map(|at| tollgate_store::PageStart { at, id: id.clone() }),
        _ => None,
    };
    start
        .map(Some)
        .ok_or_else(|| AdminError::invalid("cursor", "is not a cursor of this list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_belong_to_one_list_with_its_filters() {
        let position = vec!["17".to_owned(), "user_x".to_owned()];
        let cursor = write_cursor(&position, "/users []");
        assert_eq!(parse_cursor(&cursor, "/users []"), Ok(position));
        let mut altered = cursor.clone();
        altered.pop();
        for (cursor, binding) in [
            (cursor.as_str(), "/keys []"),
            (&cursor, "/users [[\"name\",\"a\"]]"),
            (&altered, "/users []"),
            ("", "/users []"),
            ("e30", "/users []"),
            ("é", "/users []"),
        ] {
            assert!(parse_cursor(cursor, binding).is_err(), "{cursor} {binding}");
        }
    }
}
