//! `GET /prices`, `GET /prices/{model}`: the price list, read-only.

use http::Method;
use serde_json::{Map, Value, json};
use tollgate_core::Amount;

use super::call::Call;
use super::endpoints::{Access, Endpoint, Returns, handler};
use super::error::AdminError;
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;
use crate::config::{Currency, ModelPrice, UnitPrice};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/prices",
        access: Access::Scope(Scope::PricesRead),
        summary: "Lists prices, by model.",
        query: &[],
        body: None,
        returns: Returns::List("price"),
        handler: handler!(list_prices),
    },
    Endpoint {
        method: Method::GET,
        path: "/prices/{model}",
        access: Access::Scope(Scope::PricesRead),
        summary: "The price of a model.",
        query: &[],
        body: None,
        returns: Returns::Object("price", 200),
        handler: handler!(get),
    },
];

/// Prices that come from a file or are built in do not change here.
const VERSION: i64 = 1;

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

async fn list_prices(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let prices = prices(&call);
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: prices,
    };
    list::reply(&call, listing).await
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let mut prices = prices(&call).into_iter();
    let found = prices.find(|(model, _)| model == call.id());
    let (_, price) = found.ok_or_else(|| AdminError::not_found("price"))?;
    call.check_query()?;
    Ok(Reply::versioned(price, VERSION))
}

fn prices(call: &Call) -> Vec<(String, Value)> {
    let reloadable = call.app.reloadable.current();
    let currency = call.app.config.currency;
    let prices = reloadable.prices.sorted().into_iter();
    prices
        .map(|(model, price, is_built_in)| {
            let mut object = Map::new();
            object.insert("model".to_owned(), json!(model));
            let source = if is_built_in { "builtin" } else { "file" };
            object.insert("source".to_owned(), json!(source));
            object.insert("shadowed".to_owned(), json!(false));
            object.extend(price_members(price, currency));
            object.insert("version".to_owned(), json!(VERSION));
            (model.to_owned(), Value::Object(object))
        })
        .collect()
}

/// The members of a price as the configuration writes them, without those that say what holds anyway.
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
            // A multiplier is the price of one token.
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
