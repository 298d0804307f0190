//! The trail of admin writes: `GET /events`, `GET /events/verify`.

use async_trait::async_trait;
use http::Method;
use serde_json::json;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{EventFilter, Store};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/events",
        access: Access::Scope(Scope::EventsRead),
        summary: "The trail of admin writes, newest first.",
        query: &["from", "to", "actor", "action", "object_id"],
        body: None,
        returns: Returns::List("event"),
        handler: handler!(list_events),
    },
    Endpoint {
        method: Method::GET,
        path: "/events/verify",
        access: Access::Scope(Scope::EventsRead),
        summary: "Verifies the hash chain of the trail from its first event; `first_bad` is the first event that was altered or is missing.",
        query: &[],
        body: None,
        returns: Returns::Object("verification", 200),
        handler: handler!(verify),
    },
];

struct Events(EventFilter);

#[async_trait]
impl Listing for Events {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "seq",
            "at",
            "actor",
            "token_id",
            "address",
            "request_id",
            "action",
            "object",
            "before",
            "after",
            "reason",
            "prev_hash",
            "hash",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let before = match after {
            Some([seq]) => seq.parse().ok(),
            _ => None,
        };
        let events = store.list_events(&self.0, before, limit).await?;
        let items = events.iter().map(|event| Item {
            position: vec![event.seq.to_string()],
            value: event.to_json(),
        });
        Ok(items.collect())
    }
}

async fn list_events(call: Call) -> Result<Reply, AdminError> {
    let query = &call.query;
    call.check_query()?;
    let (from, to) = query.window(call.now)?;
    let filter = EventFilter {
        from,
        to,
        actors: query.list("actor"),
        actions: query.list("action"),
        object_ids: query.list("object_id"),
    };
    list::reply(&call, Events(filter)).await
}

async fn verify(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let found = call.app.store.verify_events().await?;
    Ok(Reply::json(json!({
        "ok": found.first_bad.is_none(),
        "rows": found.rows,
        "head": found.head,
        "first_bad": found.first_bad,
    })))
}
