//! Measures with many stored tasks: polls and submissions must cost the same as with few stored tasks, and the time of a start must not depend on the
//! stored tasks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::bench_gateway::BenchGateway;
use super::fill::{add_task_copies, copy_id};
use super::load::{self, Requests};
use super::table::Table;
use super::{polls, submit};

const FEW: u64 = 1_000;
const TARGET: f64 = 0.9;
const START_TARGET: f64 = 1.0;

/// A gateway with that number of stored tasks.
struct GatewayWithTasks {
    subject: BenchGateway,
    started: Duration,
    original: String,
    count: u64,
}

/// Measures a gateway with `many` stored tasks compared with one with few.
pub(super) fn measure(
    binary: &Path,
    seconds: u64,
    many: u64,
    table: &mut Table,
) -> Result<(), String> {
    eprintln!("{many} stored tasks");
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let both = [many, FEW].map(|count| runtime.block_on(GatewayWithTasks::new(binary, count)));
    let [many, few] = both;
    let (many, few) = (many?, few?);
    let what = |what: &str| format!("{} stored tasks: {what}", many.count);
    table.at_most(&what("start, s"), START_TARGET, many.started.as_secs_f64());
    runtime.block_on(async {
        let requests = [many.poll_requests(FEW), few.poll_requests(FEW)];
        let polls = what(&format!("polls of {FEW} of them"));
        measure_ratio(
            table,
            &polls,
            [&many, &few],
            &requests,
            polls::CONNECTIONS,
            seconds,
        )
        .await?;
        let all = many.subject.target(&many.poll_requests(many.count))?;
        let all = load::run(&all, polls::CONNECTIONS, seconds).await?;
        table.note(
            what("polls of any of them, per second"),
            format!("{:.0}", all.rate()),
        );
        let requests = [many.submission_requests(), few.submission_requests()];
        let submissions = what("submissions");
        measure_ratio(
            table,
            &submissions,
            [&many, &few],
            &requests,
            submit::CONNECTIONS,
            seconds,
        )
        .await
    })
}

/// Measures the rate with many stored tasks, and its ratio to the rate with few.
async fn measure_ratio(
    table: &mut Table,
    what: &str,
    [many, few]: [&GatewayWithTasks; 2],
    requests: &[Requests; 2],
    connections: usize,
    seconds: u64,
) -> Result<(), String> {
    let targets = [
        many.subject.target(&requests[0])?,
        few.subject.target(&requests[1])?,
    ];
    let [many, few] = load::run_alternating_pair(targets.each_ref(), connections, seconds).await?;
    table.note(format!("{what}, per second"), format!("{:.0}", many.rate()));
    table.note(
        format!("{what}, CPU us each"),
        format!("{:.1}", many.cpu_us()),
    );
    table.note(
        format!("{what}, CPU us each with {FEW}"),
        format!("{:.1}", few.cpu_us()),
    );
    table.at_least(
        &format!("{what}, ratio to {FEW}"),
        TARGET,
        many.rate() / few.rate(),
    );
    Ok(())
}

impl GatewayWithTasks {
    async fn new(binary: &Path, count: u64) -> Result<Self, String> {
        let mut subject = BenchGateway::start(binary)?;
        let original = subject.create_finished_task().await?;
        subject.gateway.stop()?;
        add_task_copies(&subject.gateway.data(), &original, count)?;
        let started = subject.gateway.start()?;
        Ok(Self {
            subject,
            started,
            original,
            count,
        })
    }

    /// Polls of `some` of the stored tasks, evenly distributed over all of them.
    fn poll_requests(&self, some: u64) -> Requests {
        let (original, apart) = (self.original.clone(), self.count / some);
        let poll = String::from_utf8_lossy(&self.subject.poll_request(&original)).into_owned();
        Arc::new(move |number| {
            let any = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let id = copy_id(&original, any % some * apart);
            poll.replace(&original, &id).into_bytes()
        })
    }

    fn submission_requests(&self) -> Requests {
        let submission = self.subject.submission_request();
        Arc::new(move |_| submission.clone())
    }
}
