//! The origins of settings: the file, the environment or a flag.

use std::collections::BTreeMap;

use super::document::{Node, Origin, Table, Value};

/// Settings that have their own endpoints in the admin API.
const OBJECTS: [&str; 3] = ["channel", "price", "model"];
/// Tables that count as one setting each, because the operator chooses the names in them.
pub(super) const MAPS: [&str; 2] = ["fairness.weights", "oidc.roles"];

/// The origins of settings, by path.
pub(super) type SettingOrigins = BTreeMap<String, SettingOrigin>;

/// The origin of a setting.
#[derive(Debug, Clone)]
pub(super) struct SettingOrigin {
    /// `file`, `env` or `flag`.
    pub(super) source: &'static str,
    /// The text `env:NAME` that was written as the value; `None` if the value itself was written.
    pub(super) reference: Option<String>,
}

/// The origins of the settings of a document.
pub(super) fn setting_origins(table: &Table) -> SettingOrigins {
    fn walk(path: &str, node: &Node, origins: &mut SettingOrigins) {
        match &node.value {
            Value::Table(table) if !MAPS.contains(&path) => {
                for (name, node) in table {
                    walk(&format!("{path}.{name}"), node, origins);
                }
            }
            _ => {
                let source = match node.origin {
                    Origin::Line(_) | Origin::Request => "file",
                    Origin::Variable(_) => "env",
                    Origin::Flag(_) => "flag",
                };
                let reference = match &node.value {
                    Value::Text(text) if text.starts_with("env:") => Some(text.clone()),
                    _ => None,
                };
                origins.insert(path.to_owned(), SettingOrigin { source, reference });
            }
        }
    }
    let mut origins = SettingOrigins::new();
    for (name, node) in table {
        if !OBJECTS.contains(&name.as_str()) {
            walk(name, node, &mut origins);
        }
    }
    origins
}
