//! Measures what the gateway adds between a client and a provider of chat, compared with a bare hyper reverse proxy and nginx in front of the same
//! upstream, in alternation.

mod nginx;
mod plain;
mod proxy;
mod setup;
mod streams;
mod upstream;

use std::path::Path;

pub(super) use proxy::serve as serve_proxy;
pub(super) use upstream::serve as serve_upstream;

use super::table::Table;
pub(super) use setup::Setup;

/// Measures all parts of chat.
pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("chat");
    let setup = Setup::start(binary, None)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        plain::measure(&setup, seconds, table).await?;
        streams::measure(&setup, seconds, table).await
    })
}
