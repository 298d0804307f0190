//! Prices, channels and models that come as JSON from the admin API: read by the same code as those of the file.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::deserializer::{Error, deserialize};
use super::document::{Node, Origin, Table, Value};
use super::prices::{self, ModelPrice};
use super::values::Currency;

/// A setting that is not possible.
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

/// Reads a price whose amounts are texts.
///
/// # Errors
/// The first setting that is not possible.
pub fn price_from_json(
    price: &Map<String, Json>,
    currency: Currency,
) -> Result<ModelPrice, SettingError> {
    for key in price.keys() {
        if let Some(why) = prices::misfit(key, currency) {
            return Err(SettingError {
                path: key.clone(),
                message: why,
            });
        }
    }
    // Amounts are read from their digits, as those of an environment variable are.
    from_json(price, Value::Untyped)
}

fn from_json<T: DeserializeOwned>(
    object: &Map<String, Json>,
    text: fn(String) -> Value,
) -> Result<T, SettingError> {
    Ok(deserialize(&table(object, text))?)
}

/// A JSON object as a table; members that are null are left out.
fn table(object: &Map<String, Json>, text: fn(String) -> Value) -> Table {
    let members = object.iter().filter(|(_, value)| !value.is_null());
    let members = members.map(|(name, value)| (name.clone(), node(value, text)));
    members.collect()
}

fn node(value: &Json, text: fn(String) -> Value) -> Node {
    let value = match value {
        Json::Null => Value::Text(String::new()),
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.to_string()),
        Json::String(value) => text(value.clone()),
        Json::Array(items) => Value::List(items.iter().map(|item| node(item, text)).collect()),
        Json::Object(members) => Value::Table(table(members, text)),
    };
    Node {
        origin: Origin::Request,
        value,
    }
}
