//! The user's history: ledger entries, usage, tasks, chats. Channels, attempts and provider job ids are hidden.

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{ChatFilter, EntryFilter, Store, TaskFilter};

use super::authenticate::own_key;
use crate::admin::chats::{Chats, chat_filter};
use crate::admin::endpoint::{Access, Endpoint, Returns, handler};
use crate::admin::entries::UserEntries;
use crate::admin::tasks::{self, Tasks, task_filter};
use crate::admin::usage::{GROUPS, Usage};
use crate::admin::{Call, Item, Listing, Reply, list};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/entries",
        access: Access::Any,
        summary: "The user's ledger entries, newest first, each with the balance after it.",
        query: &["from", "to"],
        body: None,
        returns: Returns::List("user_entry"),
        handler: handler!(list_entries),
    },
    Endpoint {
        method: Method::GET,
        path: "/usage",
        access: Access::Any,
        summary: "Amounts that the user spent and outputs that the user generated, latest first; `from` and `to` select full hours.",
        query: &["from", "to", "group_by", "metric", "model", "key_id"],
        body: None,
        returns: Returns::List("usage"),
        handler: handler!(report_usage),
    },
    Endpoint {
        method: Method::GET,
        path: "/tasks",
        access: Access::Any,
        summary: "The user's tasks, newest first.",
        query: &[
            "from",
            "to",
            "key_id",
            "kind",
            "model",
            "state",
            "error_code",
        ],
        body: None,
        returns: Returns::List("portal_task"),
        handler: handler!(list_tasks),
    },
    Endpoint {
        method: Method::GET,
        path: "/tasks/{id}",
        access: Access::Any,
        summary: "A task of the user with its record, request, charge, webhook and files.",
        query: &[],
        body: None,
        returns: Returns::Object("portal_task_detail", 200),
        handler: handler!(get_task),
    },
    Endpoint {
        method: Method::GET,
        path: "/chats",
        access: Access::Any,
        summary: "The user's chats, newest first. Messages are not stored.",
        query: &[
            "from",
            "to",
            "key_id",
            "model",
            "format",
            "outcome",
            "request_id",
            "error_code",
        ],
        body: None,
        returns: Returns::List("portal_chat"),
        handler: handler!(list_chats),
    },
];

/// Members that only operators see.
const HIDDEN: &[&str] = &["channel", "provider_job_id", "attempts", "timeline"];

/// An object without the members that only operators see.
fn without_hidden(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, _| !HIDDEN.contains(&name.as_str()));
    }
    object
}

/// A list of the admin API without the members that only operators see.
struct WithoutHidden<L> {
    inner: L,
    columns: Vec<&'static str>,
}

impl<L: Listing> WithoutHidden<L> {
    fn new(inner: L) -> Self {
        let columns = inner.columns().iter().copied();
        let columns = columns.filter(|name| !HIDDEN.contains(name)).collect();
        Self { inner, columns }
    }
}

#[async_trait]
impl<L: Listing> Listing for WithoutHidden<L> {
    fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let items = self.inner.page(store, after, limit).await?.into_iter();
        let items = items.map(|item| Item {
            value: without_hidden(item.value),
            ..item
        });
        Ok(items.collect())
    }
}

fn own_user_id(call: &Call) -> Result<String, AdminError> {
    Ok(own_key(call)?.user_id.clone())
}

async fn list_entries(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let (from, to) = call.query.window(call.now)?;
    let filter = EntryFilter {
        from,
        to,
        ..EntryFilter::default()
    };
    let user_id = own_user_id(&call)?;
    list::reply(&call, UserEntries { user_id, filter }).await
}

async fn report_usage(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let groups = GROUPS.iter().copied();
    let groups: Vec<_> = groups
        .filter(|group| !["user", "channel"].contains(&group.0))
        .collect();
    let mut usage = Usage::parse(&call, &groups)?;
    usage.query.user_ids = Some(vec![own_user_id(&call)?]);
    usage.reply(&call).await
}

async fn list_tasks(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = TaskFilter {
        user_ids: Some(vec![own_user_id(&call)?]),
        ..task_filter(&call)?
    };
    list::reply(&call, WithoutHidden::new(Tasks(filter))).await
}

async fn get_task(call: Call) -> Result<Reply, AdminError> {
    let task = tasks::find(&call).await?;
    if task.user_id != own_user_id(&call)? {
        return Err(AdminError::not_found("task"));
    }
    call.check_query()?;
    Ok(Reply::json(without_hidden(
        tasks::page(&call, &task).await?,
    )))
}

async fn list_chats(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = ChatFilter {
        user_ids: Some(vec![own_user_id(&call)?]),
        ..chat_filter(&call)?
    };
    list::reply(&call, WithoutHidden::new(Chats(filter))).await
}
