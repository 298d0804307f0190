//! Removes options that are not allowed from a request.

use bytes::Bytes;
use serde_json::Value;

use super::find::{is_cache_member_name, is_long};
use super::{FoundOption, ProviderOption};
use crate::error::InvalidRequest;

/// The body without those options. `store` becomes `false` where the provider would store without it (the responses format).
///
/// # Errors
/// If the body is not JSON.
pub fn remove_options(body: &[u8], options: &[&FoundOption]) -> Result<Bytes, InvalidRequest> {
    let mut request: Value = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let is_responses = request.get("input").is_some();
    for found in options {
        if found.option == ProviderOption::CacheWrite1h {
            shorten_cache_writes(&mut request, false);
            continue;
        }
        let Some(members) = request.as_object_mut() else {
            continue;
        };
        match found.option {
            ProviderOption::Store if is_responses => {
                members.insert(found.field.clone(), false.into())
            }
            _ => members.shift_remove(&found.field),
        };
    }
    Ok(Bytes::from(request.to_string()))
}

/// Removes the lifetimes of cache writes that are longer than the provider's default.
fn shorten_cache_writes(value: &mut Value, is_cache_member: bool) {
    match value {
        Value::Array(list) => list
            .iter_mut()
            .for_each(|item| shorten_cache_writes(item, false)),
        Value::Object(members) => {
            if is_cache_member {
                members.retain(|name, ttl| {
                    !(name.eq_ignore_ascii_case("ttl") && ttl.as_str().is_some_and(is_long))
                });
            }
            for (name, member) in members.iter_mut() {
                shorten_cache_writes(member, is_cache_member_name(name));
            }
        }
        _ => {}
    }
}
