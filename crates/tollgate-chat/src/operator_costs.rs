//! The costs that servers such as OpenRouter and xAI report to the operator in `usage`. They are not sent to the client.

use memchr::memmem;
use serde_json::{Map, Value};

/// Members of `usage` with costs.
const COST_MEMBERS: [&str; 4] = ["cost", "cost_details", "cost_in_usd_ticks", "is_byok"];

/// Whether the JSON text may have such a member. False for most responses, whose `usage` is not parsed further.
pub(crate) fn may_have_costs(json: &[u8]) -> bool {
    let has = |beginning: &str| memmem::find(json, beginning.as_bytes()).is_some();
    has("\"cost") || has("\"is_byok\"")
}

/// Removes the costs from `usage`. Returns whether there were any.
pub(crate) fn remove_costs(usage: &mut Map<String, Value>) -> bool {
    let before = usage.len();
    usage.retain(|name, _| !COST_MEMBERS.contains(&name.as_str()));
    usage.len() < before
}

/// The JSON text of `usage` without costs. `None` if there are none.
pub(crate) fn without_costs(usage: &str) -> Option<String> {
    if !may_have_costs(usage.as_bytes()) {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_str(usage).ok()?;
    remove_costs(&mut members).then(|| Value::Object(members).to_string())
}
