//! A check: a query whose rows are violations.

use serde_json::Value as Json;

use crate::db::{Row, Sql, Value};

/// One invariant as a query. Each row of the result is a violation: the first column identifies the row, and `details` describes the others.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) details: &'static str,
    pub(super) sql: Sql,
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditViolation {
    /// The invariant.
    pub check: &'static str,
    /// The id of the row.
    pub subject: String,
    /// The values in the row, and the expected ones.
    pub detail: String,
}

impl AuditViolation {
    /// The JSON object that `tollgate audit --json` prints.
    pub fn to_json(&self) -> Json {
        serde_json::json!({ "check": self.check, "subject": self.subject, "detail": self.detail })
    }
}

/// The cells of a row from column `first` on, as text.
pub(super) fn cells_to_text(row: &Row, first: usize) -> String {
    let cells = row.0[first..].iter().map(|cell| match cell {
        Value::Null => "none".to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Text(t) => t.to_string(),
    });
    cells.collect::<Vec<_>>().join(", ")
}
