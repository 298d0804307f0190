//! Shared code of the endpoints of channels, prices and models: objects of the file are read-only here; objects of the database are written only if
//! the request has their version.

use serde_json::{Map, Value};
use tollgate_config::Source;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{
    AdminRejection, AdminRequest, ConfigurationChange, ConfigurationKind, ConfigurationRow,
    ConfigurationWrite, ShowRow,
};

use super::call::{Call, written};
use super::reply::Reply;

/// The version of objects that are in the file or built in: the admin API cannot change them.
pub(super) const FIXED_VERSION: i64 = 1;
/// The query parameter that selects where an object is configured.
pub(super) const SOURCE: &str = "source";
const SOURCES: [Source; 3] = [Source::File, Source::Database, Source::BuiltIn];

/// The object of a request's path.
pub(super) enum Target {
    /// An object of the file, or a built-in one, as JSON.
    Fixed(Value),
    /// An object of the database.
    Stored(ConfigurationRow),
}

impl Target {
    /// Selects one of two objects of the same name: `stored` from the database and `fixed` from elsewhere. An object of the file wins unless the
    /// request selects the database's; a built-in one is selected only if there is no other. `None` if no object matches.
    pub(super) fn find(
        call: &Call,
        stored: Option<ConfigurationRow>,
        fixed: Option<(Value, Source)>,
    ) -> Option<Self> {
        let is_requested = |source: Source| {
            let requested = call.query.get(SOURCE);
            requested.is_none_or(|name| name == source.name())
        };
        let fixed = fixed.filter(|(_, source)| is_requested(*source));
        let stored = stored.filter(|_| is_requested(Source::Database));
        match (fixed, stored) {
            (Some((fixed, Source::File)), _) | (Some((fixed, _)), None) => Some(Self::Fixed(fixed)),
            (_, Some(row)) => Some(Self::Stored(row)),
            (None, None) => None,
        }
    }

    /// Returns the row of the database and the version in the request's `If-Match`.
    ///
    /// # Errors
    /// 428 without a version; for an object that is not in the database 412 if the version differs, else 409.
    pub(super) fn writable(
        self,
        call: &Call,
        what: &str,
    ) -> Result<(ConfigurationRow, i64), AdminError> {
        let version = call.if_match()?;
        match self {
            Self::Stored(row) => Ok((row, version)),
            Self::Fixed(current) if version != FIXED_VERSION => {
                let version = FIXED_VERSION;
                let stale = AdminRejection::Stale { current, version };
                Err(AdminError::from_rejection(stale, what))
            }
            Self::Fixed(_) => Err(file_owned(what)),
        }
    }
}

/// The error 409 for an object that is not in the database.
pub(super) fn file_owned(what: &str) -> AdminError {
    let message = format!(
        "this {what} is set in the configuration file or built in: change the file to change it"
    );
    AdminError::conflict("file_owned", message)
}

/// The sources whose objects a list includes.
///
/// # Errors
/// 400 for a source that does not exist.
pub(super) fn listed_sources(call: &Call) -> Result<Vec<Source>, AdminError> {
    let Some(names) = call.query.list(SOURCE) else {
        return Ok(SOURCES.to_vec());
    };
    let source_of = |name: &String| {
        let found = SOURCES.into_iter().find(|source| source.name() == name);
        found.ok_or_else(|| AdminError::invalid(SOURCE, "must be file, database or builtin"))
    };
    names.iter().map(source_of).collect()
}

/// Checks the query of a request for one object.
///
/// # Errors
/// 400 for an unknown parameter or source.
pub(super) fn check_query(call: &Call) -> Result<(), AdminError> {
    call.check_query()?;
    listed_sources(call).map(drop)
}

/// Objects of these sources as a list needs them, sorted by the member `name`; an object of the file precedes one of the database with the same name.
pub(super) fn list_items(
    name: &str,
    objects: Vec<Value>,
    sources: &[Source],
) -> Vec<(String, Value)> {
    let is_listed = |object: &Value| {
        sources
            .iter()
            .any(|source| object["source"] == source.name())
    };
    let objects = objects.into_iter().filter(is_listed);
    let named = objects.map(|object| {
        let mut key = object[name].as_str().unwrap_or_default().to_owned();
        if object["shadowed"] == true {
            // No name contains a space: the key is unique, and sorts directly after the file's.
            key.push_str(" database");
        }
        (key, object)
    });
    let mut named: Vec<_> = named.collect();
    named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    named
}

/// Writes a row and applies it on this node before the reply; other nodes apply it within a second.
///
/// # Errors
/// The error for the rejection.
pub(super) async fn write_configuration(
    call: &Call,
    request: &AdminRequest,
    (kind, name): (ConfigurationKind, &str),
    change: ConfigurationChange,
    show: ShowRow,
) -> Result<Reply, AdminError> {
    let write = ConfigurationWrite {
        kind,
        name: name.to_owned(),
        change,
        show,
    };
    let result = call.app.store.write_configuration(request, write).await;
    let reply = written(result, kind.name())?;
    apply_here(call).await;
    Ok(reply)
}

/// Applies the written configuration on this node.
pub(super) async fn apply_here(call: &Call) {
    if let Err(e) = call.app.config_sync.refresh().await {
        // The write is committed, and the next poll applies it.
        tracing::warn!(error = %e, "cannot read the stored configuration");
    }
}

/// Applies a JSON merge patch (RFC 7396): null removes a member, objects are merged, everything else is replaced.
pub(super) fn merge_patch(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(&name);
            }
            Value::Object(patch) => {
                let member = target.entry(name).or_insert(Value::Null);
                if !member.is_object() {
                    *member = Value::Object(Map::new());
                }
                if let Value::Object(member) = member {
                    merge_patch(member, patch);
                }
            }
            value => {
                target.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_removes_merges_and_replaces() {
        let mut target = json!({ "a": 1, "b": { "c": 1, "d": 2 }, "e": [1] });
        let patch = json!({ "a": null, "b": { "c": null, "x": { "y": null, "z": 1 } }, "e": [2] });
        let (Value::Object(members), Value::Object(patch)) = (&mut target, patch) else {
            unreachable!("both are objects");
        };
        merge_patch(members, patch);
        assert_eq!(
            target,
            json!({ "b": { "d": 2, "x": { "z": 1 } }, "e": [2] })
        );
    }
}
