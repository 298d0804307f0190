//! Chats: list all, or show one. Their messages are not stored.

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{ChatFilter, Entry, Store};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::refunds::UNIT_OF_CHATS;
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/chats",
        access: Access::Scope(Scope::ChatsRead),
        summary: "Chats, newest first.",
        query: &[
            "from",
            "to",
            "user_id",
            "key_id",
            "model",
            "format",
            "channel",
            "outcome",
            "error_code",
            "request_id",
        ],
        body: None,
        returns: Returns::List("chat"),
        handler: handler!(list_chats),
    },
    Endpoint {
        method: Method::GET,
        path: "/chats/{id}",
        access: Access::Scope(Scope::ChatsRead),
        summary: "A chat with its failed attempts and its charge. Messages are not stored.",
        query: &[],
        body: None,
        returns: Returns::Object("chat_detail", 200),
        handler: handler!(get),
    },
];

/// The list of chats that match the filter, newest first.
pub(crate) struct Chats(pub(crate) ChatFilter);

#[async_trait]
impl Listing for Chats {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "model",
            "format",
            "streamed",
            "outcome",
            "user_id",
            "key_id",
            "channel",
            "request_id",
            "error_code",
            "cost",
            "refunded",
            "tokens",
            "created_at",
            "ended_at",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let before = list::position_id(after)?;
        let chats = store.admin_list_chats(&self.0, before, limit).await?;
        let items = chats.into_iter().map(|chat| Item {
            value: chat.value,
            position: vec![chat.id],
        });
        Ok(items.collect())
    }
}

async fn list_chats(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = chat_filter(&call)?;
    list::reply(&call, Chats(filter)).await
}

/// Parses the filter in the query.
///
/// # Errors
/// 400 for an invalid time.
pub(crate) fn chat_filter(call: &Call) -> Result<ChatFilter, AdminError> {
    let query = &call.query;
    let (from, to) = query.window(call.now)?;
    Ok(ChatFilter {
        from,
        to,
        user_ids: query.list("user_id"),
        key_ids: query.list("key_id"),
        models: query.list("model"),
        formats: query.list("format"),
        channels: query.list("channel"),
        outcomes: query.list("outcome"),
        request_ids: query.list("request_id"),
        error_codes: query.list("error_code"),
    })
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let store = &call.app.store;
    let chat = store.admin_chat(call.id()).await?;
    let chat = chat.ok_or_else(|| AdminError::not_found("chat"))?;
    call.check_query()?;
    let charge = store.chat_charge(call.id()).await?;
    let entries = store.entries_of_object(call.id()).await?;
    let mut page = chat.value;
    page["attempts"] = chat.attempts.unwrap_or_else(|| json!([]));
    page["dropped"] = chat.dropped.unwrap_or_else(|| json!([]));
    page["charge"] = charge.map_or(Value::Null, |charge| {
        charge.to_admin_json(Some(UNIT_OF_CHATS))
    });
    page["entries"] = entries.iter().map(Entry::to_json).collect();
    Ok(Reply::json(page))
}
