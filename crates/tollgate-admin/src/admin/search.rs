//! Search: finds the object with an exact id.

use http::Method;
use serde_json::{Value, json};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{ChatFilter, Store};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::GET,
    path: "/search",
    access: Access::AnyOf(&[
        Scope::TasksRead,
        Scope::ChatsRead,
        Scope::UsersRead,
        Scope::KeysRead,
        Scope::ChannelsRead,
        Scope::PricesRead,
        Scope::ConfigRead,
        Scope::EventsRead,
    ]),
    summary: "The object with an exact id, if the caller may read it: task, chat, user, key, request or provider job.",
    query: &["q"],
    body: None,
    returns: Returns::Object("search", 200),
    handler: handler!(search),
}];

/// Shortest id that can be searched for, in characters.
const MIN_LENGTH: usize = 3;

async fn search(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let id = call.query.get("q").unwrap_or("").trim();
    if id.chars().count() < MIN_LENGTH {
        let message = format!("must be an id of at least {MIN_LENGTH} characters");
        return Err(AdminError::invalid("q", message));
    }
    let (store, scopes) = (&call.app.store, &call.actor()?.scopes);
    let mut found = Vec::new();
    if scopes.contains(Scope::TasksRead) {
        add_tasks(store, id, &mut found).await?;
    }
    if scopes.contains(Scope::ChatsRead) {
        add_chats(store, id, call.now, &mut found).await?;
    }
    if scopes.contains(Scope::UsersRead) {
        let user = store.user(id).await?;
        found.extend(user.map(|user| search_result("user", &user.id, &user.name)));
    }
    if scopes.contains(Scope::KeysRead) {
        let key = store.key(id).await?;
        found.extend(key.map(|key| search_result("key", &key.id, &key.label)));
    }
    Ok(Reply::json(json!({ "data": found })))
}

fn search_result(kind: &str, id: &str, label: &str) -> Value {
    json!({ "type": kind, "id": id, "label": label })
}

/// Adds the task with this id, and the task whose provider job has this id.
async fn add_tasks(store: &Store, id: &str, found: &mut Vec<Value>) -> Result<(), AdminError> {
    if let Some(task) = store.task(id).await? {
        found.push(search_result("task", &task.id, &task.model));
    }
    if let Some(task_id) = store.task_of_provider_job(id).await? {
        found.push(search_result("provider_job", &task_id, id));
    }
    Ok(())
}

/// Adds the chat with this id, and the chat of the request with this id if it is from the last seven days.
async fn add_chats(
    store: &Store,
    id: &str,
    now: i64,
    found: &mut Vec<Value>,
) -> Result<(), AdminError> {
    if let Some(chat) = store.admin_chat(id).await? {
        let model = chat.value["model"].as_str().unwrap_or("");
        found.push(search_result("chat", &chat.id, model));
    }
    if id.starts_with("req_") {
        let filter = ChatFilter {
            from: now - REQUESTS_WINDOW,
            to: now + 1,
            request_ids: Some(vec![id.to_owned()]),
            ..ChatFilter::default()
        };
        let chats = store.admin_list_chats(&filter, None, 1).await?;
        let chats = chats.iter();
        found.extend(chats.map(|chat| search_result("request", &chat.id, id)));
    }
    Ok(())
}

/// How far back requests are searched, in milliseconds.
const REQUESTS_WINDOW: i64 = 7 * 24 * 3_600_000;
