//! `/models/custom`: model ids that the operator adds, in the file or by this API.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use tollgate_config::Source;
use tollgate_media::{Catalogue, ExtraModel};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::reloadable::{Reloadable, stored_model};
use tollgate_store::{
    ConfigurationChange, ConfigurationKind, ConfigurationRow, ShowRow, StoredConfiguration,
};

use super::call::Call;
use super::configured::{self, FIXED_VERSION, SOURCE, Target};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/models/custom",
        access: Access::Scope(Scope::PricesRead),
        summary: "Lists the models that were added to the catalogue, by name.",
        query: &[SOURCE],
        body: None,
        returns: Returns::List("custom_model"),
        handler: handler!(list_models),
    },
    Endpoint {
        method: Method::POST,
        path: "/models/custom",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Adds a model with the fields and rules of another model.",
        query: &[],
        body: Some("new_custom_model"),
        returns: Returns::Object("custom_model", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/models/custom/{name}",
        access: Access::Scope(Scope::PricesRead),
        summary: "A model that was added.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Object("custom_model", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/models/custom/{name}",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Changes the model whose fields and rules an added model has.",
        query: &[SOURCE],
        body: Some("custom_model_patch"),
        returns: Returns::Object("custom_model", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/models/custom/{name}",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Removes an added model from the catalogue. Its unfinished tasks continue until they end.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
];

const COLUMNS: &[&str] = &["name", "like", "source", "shadowed", "version"];
const READ_ONLY: &[&str] = &["source", "shadowed", "version"];
const WHAT: &str = "model";

async fn list_models(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let sources = configured::listed_sources(&call)?;
    let stored = call.app.store.stored_configuration().await?;
    let models = all(&call.app.reloadable.current(), &stored);
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: configured::list_items("name", models, &sources),
    };
    list::reply(&call, listing).await
}

/// Every added model as JSON.
pub(super) fn all(reloadable: &Reloadable, stored: &StoredConfiguration) -> Vec<Value> {
    let fixed = reloadable.file.models.iter().map(show_fixed);
    let rows = stored.models.iter();
    fixed
        .chain(rows.map(|row| show_row(reloadable, row)))
        .collect()
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let target = find(&call).await?;
    configured::check_query(&call)?;
    Ok(match target {
        Target::Fixed(model) => Reply::versioned(model, FIXED_VERSION),
        Target::Stored(row) => {
            let reloadable = call.app.reloadable.current();
            Reply::versioned(show_row(&reloadable, &row), row.version)
        }
    })
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let name = fields.required("name", fields::parse_object_name)?;
    let like = fields.required("like", fields::parse_object_name)?;
    let request = call.write(fields, READ_ONLY)?;
    check(&name, &like)?;
    let reloadable = call.app.reloadable.current();
    if reloadable.is_file_model(&name) {
        return Err(configured::file_owned(WHAT).at("name"));
    }
    if is_built_in(&name) {
        let message = format!("the catalogue has a model {name:?} already");
        return Err(AdminError::conflict("name_taken", message).at("name"));
    }
    let change = ConfigurationChange::Create(json!({ "like": like }));
    let id = (ConfigurationKind::Model, name.as_str());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    let target = find(&call).await?;
    configured::check_query(&call)?;
    let mut fields = call.fields()?;
    let like = fields.patched("like", fields::parse_object_name)?;
    let request = call.write(fields, &[READ_ONLY, &["name"]].concat())?;
    if let Some(like) = &like {
        check(call.id(), like)?;
    }
    let (row, version) = target.writable(&call, WHAT)?;
    let body = like.map_or(row.body, |like| json!({ "like": like }));
    let change = ConfigurationChange::Replace(body, version);
    let id = (ConfigurationKind::Model, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    let target = find(&call).await?;
    configured::check_query(&call)?;
    let request = call.action()?;
    let (_, version) = target.writable(&call, WHAT)?;
    let change = ConfigurationChange::Delete(version);
    let id = (ConfigurationKind::Model, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn find(call: &Call) -> Result<Target, AdminError> {
    let stored = call.app.store.stored_configuration().await?;
    let row = stored.models.into_iter().find(|row| row.name == call.id());
    let reloadable = call.app.reloadable.current();
    let mut fixed = reloadable.file.models.iter();
    let fixed = fixed.find(|model| model.name == call.id());
    let fixed = fixed.map(|model| (show_fixed(model), Source::File));
    Target::find(call, row, fixed).ok_or_else(|| AdminError::not_found(WHAT))
}

/// Checks a model with the same code as models of the file.
fn check(name: &str, like: &str) -> Result<(), AdminError> {
    let catalogue_with = |like: &str| {
        // Whether the name is a built-in model's is checked elsewhere.
        let name = if is_built_in(name) { "new" } else { name };
        let model = ExtraModel {
            name: name.to_owned(),
            like: like.to_owned(),
        };
        Catalogue::new(&[model]).map(drop)
    };
    let built_in = Catalogue::new(&[]).map_err(|e| AdminError::with_status(500, e))?;
    catalogue_with(like).map_err(|message| {
        // If the name is valid with another model as `like`, the error is about `like`.
        let mut chat_models = built_in.chat_models();
        let is_name_possible = chat_models
            .next()
            .is_some_and(|like| catalogue_with(like).is_ok());
        let field = if is_name_possible { "like" } else { "name" };
        AdminError::invalid(field, message)
    })
}

/// Whether the built-in catalogue has the model.
fn is_built_in(name: &str) -> bool {
    let built_in = Catalogue::new(&[]);
    built_in.is_ok_and(|catalogue| catalogue.models().any(|(known, _)| known == name))
}

fn show(call: &Call) -> ShowRow {
    let reloadable = call.app.reloadable.current();
    Arc::new(move |row| show_row(&reloadable, row))
}

fn show_row(reloadable: &Reloadable, row: &ConfigurationRow) -> Value {
    json!({
        "name": row.name,
        "like": stored_model(row).like,
        "source": Source::Database.name(),
        "shadowed": reloadable.is_file_model(&row.name),
        "version": row.version,
    })
}

fn show_fixed(model: &ExtraModel) -> Value {
    json!({
        "name": model.name,
        "like": model.like,
        "source": Source::File.name(),
        "shadowed": false,
        "version": FIXED_VERSION,
    })
}
