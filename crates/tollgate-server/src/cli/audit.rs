//! `tollgate audit`.

use serde_json::Value;

use super::{Common, Failed};

pub(super) async fn run(common: &Common) -> Result<(), Failed> {
    let violations = common.store().await?.audit().await?;
    let records: Value = violations
        .iter()
        .map(tollgate_store::AuditViolation::to_json)
        .collect();
    common.print(&records, || match violations.as_slice() {
        [] => "every invariant holds".to_owned(),
        found => found
            .iter()
            .map(|v| format!("{}: {}: {}", v.check, v.subject, v.detail))
            .collect::<Vec<_>>()
            .join("\n"),
    })?;
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Failed::silently())
    }
}
