//! Measures the own code that docs/performance.md keeps instead of a crate, beside that crate in the same run: the pool of HTTP
//! connections, and decoding files in base64 from a response.

mod base64_response;
mod medians;
mod pool;

use std::path::PathBuf;

use super::table::Table;
use crate::gateway;
pub(super) use base64_response::decode_with_crates;

/// Measures both. Only the second needs the gateway.
pub(super) fn measure(binary: Option<PathBuf>, table: &mut Table) -> Result<(), String> {
    pool::measure(table)?;
    let binary = gateway::build_unless_given(binary)?;
    base64_response::measure(&binary, table)
}
