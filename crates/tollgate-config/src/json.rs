//! Prices, channels and models in requests to the admin API: their JSON is parsed by the same code as the file.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json};
use tollgate_upstream::Channel;

use super::channels::ChannelSettings;
use super::deserializer::{Error, deserialize};
use super::document::{Node, Origin, Table, Value};
use super::prices::{self, ModelPrice};
use super::values::Currency;

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// Its path, such as `when[0].per_image`; empty for the object itself.
    pub path: String,
    /// What is allowed.
    pub message: String,
}

impl From<Error> for SettingError {
    fn from(error: Error) -> Self {
        let (path, message) = error.into_path_and_message();
        Self { path, message }
    }
}

/// Parses a price whose amounts are strings.
///
/// # Errors
/// The first setting that is invalid.
pub fn price_from_json(
    price: &Map<String, Json>,
    currency: Currency,
) -> Result<ModelPrice, SettingError> {
    for key in price.keys() {
        if let Some(why) = prices::describe_key_error(key, currency) {
            return Err(SettingError {
                path: key.clone(),
                message: why,
            });
        }
    }
    // Amounts are parsed from text, like those in environment variables.
    from_json(price, Value::Untyped)
}

/// Parses a channel without its keys.
///
/// # Errors
/// The first setting that is invalid.
pub fn channel_from_json(name: &str, channel: &Map<String, Json>) -> Result<Channel, SettingError> {
    let mut members = channel.clone();
    members.insert("name".to_owned(), name.into());
    let settings: ChannelSettings = from_json(&members, Value::Text)?;
    Ok(settings.into_unchecked_channel())
}

fn from_json<T: DeserializeOwned>(
    object: &Map<String, Json>,
    text: fn(String) -> Value,
) -> Result<T, SettingError> {
    Ok(deserialize(&table(object, text))?)
}

/// Converts a JSON object to a table; members that are null are left out.
fn table(object: &Map<String, Json>, text: fn(String) -> Value) -> Table {
    let members = object.iter().filter(|(_, value)| !value.is_null());
    let members = members.map(|(name, value)| (name.clone(), node(value, text)));
    members.collect()
}

fn node(value: &Json, text: fn(String) -> Value) -> Node {
    let value = match value {
        Json::Null => Value::Text(String::new()),
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(digits(number)),
        Json::String(value) => text(value.clone()),
        Json::Array(items) => Value::List(items.iter().map(|item| node(item, text)).collect()),
        Json::Object(members) => Value::Table(table(members, text)),
    };
    Node {
        origin: Origin::Request,
        value,
    }
}

/// The digits of a number; a whole number such as 7.0 is written without decimals.
fn digits(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}
