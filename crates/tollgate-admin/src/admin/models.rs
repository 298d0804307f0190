//! `GET /models`: the models that can be requested, with the JSON Schema of each model's requests.

use http::Method;
use serde_json::{Value, json};
use tollgate_media::RequestLayout;
use tollgate_server::http::admin_error::AdminError;

use super::authenticate::ActorKind;
use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;
use crate::openapi::chat;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::GET,
    path: "/models",
    access: Access::Scope(Scope::PricesRead),
    summary: "Lists the models of the catalogue with their aliases and the JSON Schema of their requests, by name.",
    query: &[],
    body: None,
    returns: Returns::List("model"),
    handler: handler!(list_models),
}];

const COLUMNS: &[&str] = &["id", "kind", "family", "endpoint", "aliases", "schema"];

/// Lists the models of the catalogue; in the portal only those that the key may use.
pub(crate) async fn list_models(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let mut models = models(&call);
    if let ActorKind::Key(key, _) = &call.actor()?.kind
        && let Some(allowed) = &key.limits.models
    {
        let reloadable = call.app.reloadable.current();
        // The key may list an alias.
        let first_name = |model: &String| reloadable.catalogue.names(model).first.to_owned();
        let allowed: Vec<String> = allowed.iter().map(first_name).collect();
        models.retain(|(name, _)| allowed.contains(name));
    }
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: models,
    };
    list::reply(&call, listing).await
}

/// Every model of the catalogue that is not an alias.
fn models(call: &Call) -> Vec<(String, Value)> {
    let reloadable = call.app.reloadable.current();
    let catalogue = &reloadable.catalogue;
    let aliases_of = |first: &str| {
        let names = catalogue.models().map(|(name, _)| name);
        let own = names.filter(|name| *name != first && catalogue.names(name).first == first);
        let mut aliases: Vec<&str> = own.collect();
        aliases.sort_unstable();
        json!(aliases)
    };
    let mut models = Vec::new();
    for model in catalogue.task_models() {
        let (name, family) = (model.name.as_str(), model.family);
        if name == model.first_name {
            let value = json!({
                "id": name,
                "kind": family.kind().name(),
                "family": family.name(),
                "endpoint": family.endpoint().path(),
                "aliases": aliases_of(name),
                "schema": family.schema(RequestLayout::Standard),
            });
            models.push((name.to_owned(), value));
        }
    }
    for name in catalogue.chat_models() {
        if catalogue.names(name).first != name {
            continue;
        }
        if let Some(endpoint) = catalogue.endpoint(name) {
            let value = json!({
                "id": name,
                "kind": "chat",
                "family": null,
                "endpoint": endpoint.path(),
                "aliases": aliases_of(name),
                "schema": chat::schema_of_requests(endpoint),
            });
            models.push((name.to_owned(), value));
        }
    }
    models.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    models
}
