//! `/prices` and `/prices/{model}`: the price list. Prices in the database are written by these endpoints.

use std::sync::Arc;

use http::{Method, header};
use serde_json::{Map, Value, json};
use tollgate_config::{Currency, ModelPrice, Source, UnitPrice, price_from_json};
use tollgate_core::Amount;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::reloadable::Reloadable;
use tollgate_store::{
    AdminRejection, ConfigurationChange, ConfigurationKind, ConfigurationRow, ShowRow,
    StoredConfiguration,
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
        path: "/prices",
        access: Access::Scope(Scope::PricesRead),
        summary: "Lists prices, by model.",
        query: &[SOURCE],
        body: None,
        returns: Returns::List("price"),
        handler: handler!(list_prices),
    },
    Endpoint {
        method: Method::GET,
        path: "/prices/{model}",
        access: Access::Scope(Scope::PricesRead),
        summary: "The price of a model.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Object("price", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PUT,
        path: "/prices/{model}",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Sets the price of a model: creates it (201), or replaces the version named by `If-Match`.",
        query: &[SOURCE],
        body: Some("price_settings"),
        returns: Returns::Object("price", 200),
        handler: handler!(put),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/prices/{model}",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Changes the price of a model.",
        query: &[SOURCE],
        body: Some("price_settings"),
        returns: Returns::Object("price", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/prices/{model}",
        access: Access::Scope(Scope::PricesWrite),
        summary: "Deletes the price of a model. From then on the model has its built-in price, or is free if it has none.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
];

const COLUMNS: &[&str] = &[
    "model",
    "source",
    "shadowed",
    "per_image",
    "per_second",
    "per_video",
    "per_thousand_characters",
    "when",
    "input_per_million",
    "output_per_million",
    "version",
];

/// Members of a price that a request cannot write.
const READ_ONLY: &[&str] = &["model", "source", "shadowed", "version"];
/// Members of an entry of `when` that are not amounts.
const CONDITIONS: &[&str] = &["size", "resolution", "quality"];

async fn list_prices(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let sources = configured::listed_sources(&call)?;
    let stored = call.app.store.stored_configuration().await?;
    let prices = all(&call.app.reloadable.current(), &stored);
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: configured::list_items("model", prices, &sources),
    };
    list::reply(&call, listing).await
}

/// Every price as JSON. A built-in price is left out if the database has a price of the same model.
pub(super) fn all(reloadable: &Reloadable, stored: &StoredConfiguration) -> Vec<Value> {
    let is_stored = |model: &str| stored.prices.iter().any(|row| row.name == model);
    let prices = reloadable.prices.sorted().into_iter();
    let fixed = prices.filter(|(model, _, source)| match source {
        Source::File => true,
        Source::Database => false,
        Source::BuiltIn => !is_stored(model),
    });
    let currency = reloadable.file.currency;
    let fixed = fixed.map(|(model, price, source)| show_fixed(model, price, source, currency));
    let rows = stored.prices.iter().map(|row| show_row(reloadable, row));
    fixed.chain(rows).collect()
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let target = existing(&call).await?;
    configured::check_query(&call)?;
    let (price, version) = shown(&call, &target);
    Ok(Reply::versioned(price, version))
}

async fn put(call: Call) -> Result<Reply, AdminError> {
    let found = find(&call).await?;
    if found.is_none()
        && call
            .app
            .reloadable
            .current()
            .catalogue
            .endpoint(call.id())
            .is_none()
    {
        return Err(AdminError::not_found("model"));
    }
    configured::check_query(&call)?;
    let mut fields = call.fields()?;
    let price = fields.take_all_but(&[READ_ONLY, &["reason"]].concat());
    let request = call.write(fields, READ_ONLY)?;
    let price = checked(&call, price)?;
    // A price in the database replaces a built-in one.
    let is_built_in =
        matches!(&found, Some(Target::Fixed(price)) if price["source"] == Source::BuiltIn.name());
    let change = match found.filter(|_| !is_built_in) {
        None => ConfigurationChange::Create(price),
        Some(found) => {
            let if_none_match = call.headers.get(header::IF_NONE_MATCH);
            if if_none_match.is_some_and(|value| value == "*") {
                let (current, version) = shown(&call, &found);
                let stale = AdminRejection::Stale { current, version };
                return Err(AdminError::from_rejection(stale, "price").at("If-None-Match"));
            }
            let (_, version) = found.writable(&call, "price")?;
            ConfigurationChange::Replace(price, version)
        }
    };
    let id = (ConfigurationKind::Price, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    let target = existing(&call).await?;
    configured::check_query(&call)?;
    let mut fields = call.fields()?;
    let patch = fields.take_all_but(&[READ_ONLY, &["reason"]].concat());
    let request = call.write(fields, READ_ONLY)?;
    let (price, version) = match target {
        Target::Stored(row) => {
            let mut price = row.body.as_object().cloned().unwrap_or_default();
            configured::merge_patch(&mut price, patch);
            (checked(&call, price)?, call.if_match()?)
        }
        target => {
            let (row, version) = target.writable(&call, "price")?;
            (row.body, version)
        }
    };
    let change = ConfigurationChange::Replace(price, version);
    let id = (ConfigurationKind::Price, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    let target = existing(&call).await?;
    configured::check_query(&call)?;
    let request = call.action()?;
    let (_, version) = target.writable(&call, "price")?;
    let change = ConfigurationChange::Delete(version);
    let id = (ConfigurationKind::Price, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call)).await
}

async fn existing(call: &Call) -> Result<Target, AdminError> {
    let found = find(call).await?;
    found.ok_or_else(|| AdminError::not_found("price"))
}

async fn find(call: &Call) -> Result<Option<Target>, AdminError> {
    let stored = call.app.store.stored_configuration().await?;
    let row = stored.prices.into_iter().find(|row| row.name == call.id());
    let reloadable = call.app.reloadable.current();
    let built_in_or_file = reloadable.prices.sorted().into_iter();
    let mut fixed = built_in_or_file.filter(|(_, _, source)| *source != Source::Database);
    let fixed = fixed.find(|(model, ..)| *model == call.id());
    let fixed = fixed.map(|(model, price, source)| {
        let shown = show_fixed(model, price, source, reloadable.file.currency);
        (shown, source)
    });
    Ok(Target::find(call, row, fixed))
}

/// Checks that a price can be stored; returns it with its amounts in their shortest form.
fn checked(call: &Call, mut price: Map<String, Value>) -> Result<Value, AdminError> {
    price.retain(|_, value| !value.is_null());
    if price.is_empty() {
        let message = "the body has no price: set one such as per_image or input_per_million";
        let status = http::StatusCode::BAD_REQUEST;
        return Err(AdminError::new(status, "invalid", message));
    }
    for (name, value) in &mut price {
        normalize_amounts(name, value)?;
    }
    price_from_json(&price, call.app.config.currency)?;
    Ok(Value::Object(price))
}

/// Replaces every amount in a member of a price by its shortest form.
fn normalize_amounts(path: &str, value: &mut Value) -> Result<(), AdminError> {
    match value {
        Value::Array(entries) if path == "when" => {
            for (at, entry) in entries.iter_mut().enumerate() {
                let Value::Object(members) = entry else {
                    let message = "must be an object with conditions and a price";
                    return Err(AdminError::invalid(format!("when[{at}]"), message));
                };
                members.retain(|_, value| !value.is_null());
                let members = members.iter_mut();
                for (name, value) in
                    members.filter(|(name, _)| !CONDITIONS.contains(&name.as_str()))
                {
                    normalize_amounts(&format!("when[{at}].{name}"), value)?;
                }
            }
        }
        Value::Object(tiers) if path == "service_tiers" => {
            for (tier, factor) in tiers {
                normalize_amounts(&format!("service_tiers.{tier}"), factor)?;
            }
        }
        _ if path == "when" => return Err(AdminError::invalid(path, "must be a list")),
        _ if path == "service_tiers" => return Err(AdminError::invalid(path, "must be an object")),
        value => {
            let amount = fields::parse_non_negative_amount(path, value)?;
            *value = amount.to_string().into();
        }
    }
    Ok(())
}

/// A price as JSON, and its version.
fn shown(call: &Call, target: &Target) -> (Value, i64) {
    match target {
        Target::Fixed(price) => (price.clone(), FIXED_VERSION),
        Target::Stored(row) => (show_row(&call.app.reloadable.current(), row), row.version),
    }
}

fn show(call: &Call) -> ShowRow {
    let reloadable = call.app.reloadable.current();
    Arc::new(move |row| show_row(&reloadable, row))
}

fn show_row(reloadable: &Reloadable, row: &ConfigurationRow) -> Value {
    let is_shadowed = reloadable.file.prices.contains_key(&row.name);
    let members = row.body.as_object().cloned().unwrap_or_default();
    show_price(
        &row.name,
        Source::Database,
        is_shadowed,
        members,
        row.version,
    )
}

fn show_fixed(model: &str, price: &ModelPrice, source: Source, currency: Currency) -> Value {
    let members = price_members(price, currency);
    show_price(model, source, false, members, FIXED_VERSION)
}

fn show_price(
    model: &str,
    source: Source,
    is_shadowed: bool,
    members: Map<String, Value>,
    version: i64,
) -> Value {
    let mut object = Map::new();
    object.insert("model".to_owned(), json!(model));
    object.insert("source".to_owned(), json!(source.name()));
    object.insert("shadowed".to_owned(), json!(is_shadowed));
    object.extend(members);
    object.insert("version".to_owned(), json!(version));
    Value::Object(object)
}

/// The members of a price as the configuration writes them, without those that are equal to their default.
fn price_members(price: &ModelPrice, currency: Currency) -> Map<String, Value> {
    let mut members = Map::new();
    let mut add = |name: String, amount: Option<Amount>| {
        if let Some(amount) = amount {
            members.insert(name, amount.to_string().into());
        }
    };
    if let Some(unit) = price.unit {
        let (name, amount) = unit_member(unit);
        add(name.to_owned(), Some(amount));
    }
    add(
        "per_thousand_characters".to_owned(),
        price.per_thousand_characters,
    );
    let (tokens, parts) = (&price.tokens, &price.parts);
    let unless = |value: Amount, default: Amount| (value != default).then_some(value);
    for (name, per_million) in [
        ("input", unless(tokens.input, Amount::ZERO)),
        ("cached_input", unless(tokens.cached_input, tokens.input)),
        ("cache_write", unless(tokens.cache_write, tokens.input)),
        ("output", unless(tokens.output, Amount::ZERO)),
        ("reasoning", unless(tokens.reasoning, tokens.output)),
        ("cache_write_1h", parts.cache_write_1h),
        ("audio_input", parts.audio_input),
        ("image_input", parts.image_input),
        ("audio_output", parts.audio_output),
        ("image_output", parts.image_output),
    ] {
        match currency {
            // In this currency the value is a multiplier: the price of one token.
            Currency::Tokens => {
                let one = per_million.and_then(|amount| amount.times(1, 1_000_000));
                add(name.to_owned(), one);
            }
            Currency::Usd | Currency::Cny => add(format!("{name}_per_million"), per_million),
        }
    }
    add("per_web_search".to_owned(), parts.web_search);
    add("per_web_fetch".to_owned(), parts.web_fetch);
    if !price.service_tiers.is_empty() {
        let tiers = price.service_tiers.iter();
        let tiers: Map<String, Value> = tiers
            .map(|(tier, factor)| (tier.clone(), factor.factor().to_string().into()))
            .collect();
        members.insert("service_tiers".to_owned(), tiers.into());
    }
    if !price.when.is_empty() {
        let entries = price.when.iter().map(|entry| {
            let mut members = Map::new();
            for (name, condition) in [
                ("size", &entry.size),
                ("resolution", &entry.resolution),
                ("quality", &entry.quality),
            ] {
                if let Some(condition) = condition {
                    members.insert(name.to_owned(), condition.as_str().into());
                }
            }
            let (name, amount) = unit_member(entry.unit);
            members.insert(name.to_owned(), amount.to_string().into());
            Value::Object(members)
        });
        members.insert("when".to_owned(), entries.collect());
    }
    members
}

fn unit_member(unit: UnitPrice) -> (&'static str, Amount) {
    match unit {
        UnitPrice::PerImage(amount) => ("per_image", amount),
        UnitPrice::PerSecond(amount) => ("per_second", amount),
        UnitPrice::PerVideo(amount) => ("per_video", amount),
    }
}
