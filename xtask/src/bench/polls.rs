//! Measures polls: the rate of the gateway, compared with a bare server that responds with the same bytes.

use std::path::Path;
use std::sync::Arc;

use super::bare::BareServer;
use super::bench_gateway::BenchGateway;
use super::load::{self, Measurement, Requests};
use super::table::Table;

pub(super) const CONNECTIONS: usize = 32;
const TARGET: f64 = 0.6;

/// Polls a finished and an unfinished task.
pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("polls");
    let subject = BenchGateway::start(binary)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let finished = subject.create_finished_task().await?;
        let (unfinished, receipt) = subject.submit(&subject.submission_request()).await?;
        for (name, id) in [("finished", finished), ("unfinished", unfinished)] {
            let poll = subject.poll_request(&id);
            let bare = BareServer::start(&subject.send(&poll).await?, &receipt)?;
            let requests: Requests = Arc::new(move |_| poll.clone());
            let targets = [&subject.target(&requests)?, &bare.target(&requests)];
            let measured = load::run_alternating_pair(targets, CONNECTIONS, seconds).await?;
            add_comparison(
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
pub(super) fn add_comparison(
    table: &mut Table,
    what: &str,
    target: f64,
    [ours, bare]: [Measurement; 2],
) {
    for (who, measured) in [("gateway", ours), ("bare axum", bare)] {
        measured.add_to_table(&format!("{what}{who}, "), table);
    }
    table.at_least(
        &format!("{what}ratio of rates"),
        target,
        ours.rate() / bare.rate(),
    );
}
