//! Checks of the document that involve more than one setting. They run before the document is deserialized into settings, on a copy in which the
//! tables and lists of variables are parsed ([`super::document::parse_variables`]).

use super::deserializer::Error;
use super::document::{Node, Table, Value, join};
use super::prices;
use super::values::Currency;

/// Checks that prices of tokens have the form that the currency requires.
pub(super) fn check_price_keys(table: &Table) -> Result<(), Error> {
    let entry = |name: &str| table.iter().find(|(key, _)| key == name);
    let currency = match entry("currency").map(|(_, node)| &node.value) {
        Some(Value::Text(name) | Value::Untyped(name)) => Currency::by_name(name),
        _ => None,
    };
    let Some((_, prices)) = entry("price") else {
        return Ok(());
    };
    for (model, price) in members(prices) {
        for (key, node) in members(price) {
            if let Some(why) = prices::describe_key_error(key, currency.unwrap_or_default()) {
                let path = join(&join("price", model), key);
                return Err(Error::at(path, node.origin.clone(), why));
            }
        }
    }
    Ok(())
}

/// The members of a table. Empty for any other value.
fn members(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let table = match &node.value {
        Value::Table(table) => table.as_slice(),
        _ => &[],
    };
    table.iter().map(|(name, node)| (name.as_str(), node))
}

/// Checks that no two channels have the same name.
pub(super) fn check_channel_names(table: &Table) -> Result<(), Error> {
    let channels = table.iter().find(|(name, _)| name == "channel");
    let Some(Value::List(channels)) = channels.map(|(_, node)| &node.value) else {
        return Ok(());
    };
    let mut names: Vec<&str> = Vec::new();
    for (at, channel) in channels.iter().enumerate() {
        let Value::Table(channel) = &channel.value else {
            continue;
        };
        let Some((_, node)) = channel.iter().find(|(name, _)| name == "name") else {
            continue;
        };
        if let Value::Text(name) | Value::Untyped(name) = &node.value {
            if names.contains(&name.as_str()) {
                let message = format!("is {name:?}, the name of another channel");
                let path = format!("channel[{at}].name");
                return Err(Error::at(path, node.origin.clone(), message));
            }
            names.push(name);
        }
    }
    Ok(())
}
