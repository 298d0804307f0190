//! Measures polls: the rate of the gateway, compared with a bare server that responds with the same bytes.

use std::path::Path;
use std::sync::Arc;

use super::bare::Bare;
use super::bench_gateway::BenchGateway;
use super::load::{self, Measured, Requests};
use super::table::Table;

pub(super) const CONNECTIONS: usize = 32;
const TARGET: f64 = 0.6;

/// Polls a finished and an unfinished task.
pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("polls");
    let subject = BenchGateway::start(binary)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let finished = subject.finished().await?;
        let (unfinished, receipt) = subject.submit(&subject.submission()).await?;
        for (name, id) in [("finished", finished), ("unfinished", unfinished)] {
            let poll = subject.poll(&id);
            let bare = Bare::start(&subject.send(&poll).await?, &receipt)?;
            let requests: Requests = Arc::new(move |_| poll.clone());
            let targets = [&subject.target(&requests)?, &bare.target(&requests)];
            let measured = load::beside(targets, CONNECTIONS, seconds).await?;
            compare(
                table,
                &format!("polls of a task, {name}: "),
                TARGET,
                measured,
            );
        }
        Ok(())
    })
}

/// Adds rates, processor time, and the ratio of the rates, which has a target, to the table.
pub(super) fn compare(table: &mut Table, what: &str, target: f64, [ours, bare]: [Measured; 2]) {
    for (who, measured) in [("gateway", ours), ("bare axum", bare)] {
        measured.note(&format!("{what}{who}, "), table);
    }
    table.at_least(
        &format!("{what}ratio of rates"),
        target,
        ours.rate() / bare.rate(),
    );
}
