//! Measures submissions: each is on disk before its receipt is sent; concurrent ones share commits.

use std::path::Path;
use std::sync::Arc;

use super::bare::BareServer;
use super::bench_gateway::BenchGateway;
use super::load::{self, Measurement, Requests};
use super::polls::add_comparison;
use super::table::Table;

pub(super) const CONNECTIONS: usize = 64;
const SHARED_TARGET: f64 = 8.0;
const RATE_TARGET: f64 = 0.2;
/// The allowed commits per submission for the gateway's own work (leases, clean-up).
const OWN_COMMITS: f64 = 0.05;

/// Measures one connection, then many.
pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("submissions");
    let subject = BenchGateway::start(binary)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let submission = subject.submission_request();
        let (id, receipt) = subject.submit(&submission).await?;
        let bare = BareServer::start(&subject.send(&subject.poll_request(&id)).await?, &receipt)?;
        let requests: Requests = Arc::new(move |_| submission.clone());

        let (one, each) = measure_with_commits(&subject, 1, seconds, &requests).await?;
        let what = "submissions, 1 connection: ";
        table.note(format!("{what}per second"), format!("{:.0}", one.rate()));
        table.note(format!("{what}CPU us each"), format!("{:.1}", one.cpu_us()));
        table.at_least(&format!("{what}commits each"), 1.0, each);
        table.at_most(&format!("{what}commits each"), 1.0 + OWN_COMMITS, each);

        let (_, each) = measure_with_commits(&subject, CONNECTIONS, seconds, &requests).await?;
        let what = format!("submissions, {CONNECTIONS} connections: ");
        table.at_least(&format!("{what}for each commit"), SHARED_TARGET, 1.0 / each);
        let targets = [&subject.target(&requests)?, &bare.target(&requests)];
        let measured = load::run_alternating_pair(targets, CONNECTIONS, seconds).await?;
        add_comparison(table, &what, RATE_TARGET, measured);
        Ok(())
    })
}

/// Measures a load of submissions, and the commits of the store per submission.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
async fn measure_with_commits(
    subject: &BenchGateway,
    connections: usize,
    seconds: u64,
    requests: &Requests,
) -> Result<(Measurement, f64), String> {
    let before = subject.commit_count().await?;
    let measured = load::run(&subject.target(requests)?, connections, seconds).await?;
    let commits = subject.commit_count().await? - before;
    Ok((
        measured,
        commits as f64 / measured.total_requests.max(1) as f64,
    ))
}
