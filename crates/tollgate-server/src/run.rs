//! A task's whole life in a worker, from the lease to the settled charge, as one numbered story.

mod begin;
mod end;
mod follow;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Millis, TaskKind, crash};
use tollgate_media::{AnyFamily, Job};
use tollgate_store::{AttemptEnd, End, Leased};
use tollgate_upstream::provider::Started;

use crate::app::App;
use crate::delivery::{Progress, Shelf};
use crate::inputs;
use crate::routing::Seat;

pub use follow::call_off;

use begin::Begun;
use end::{Made, failure};

/// How long a task waits when every channel of its model is full, and when there is none.
const FULL_PAUSE: Millis = 250;
const NONE_PAUSE: Millis = 2_000;

/// Why the work on a task stopped.
enum Stop {
    /// The task ends so.
    End(End, Option<AttemptEnd>),
    /// It is tried again after the failed attempt.
    Again(AttemptEnd),
    /// It goes back to the queue for that long; an attempt that is open at a provider stays open.
    Wait(Millis),
    /// It is not ours any more, or we are leaving: nothing is to be written.
    Leave,
}

/// What the turns of one task share.
struct Run {
    app: Arc<App>,
    leased: Leased,
    family: AnyFamily,
    stop: CancellationToken,
    progress: Arc<Progress>,
}

/// An attempt that a provider has in hand: where, as which number, and what it was asked for instead of what the job says.
struct Attempt {
    number: i64,
    seat: Seat,
    adjustments: Vec<Adjustment>,
}

/// Runs one leased task. `place` is its place among the tasks that are worked on here; `stop` fires when the task ended
/// elsewhere, its lease is lost, or the process drains.
pub async fn run(
    app: Arc<App>,
    leased: Leased,
    place: OwnedSemaphorePermit,
    stop: CancellationToken,
) {
    let (task_id, job) = (leased.task.id.clone(), leased.job.clone());
    let left = leased.task.deadline_at - app.clock.now();
    let limit = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    let Some(family) = AnyFamily::by_name(&leased.task.family) else {
        let unreadable = end::unreadable(&leased);
        return end::write_down(&app, &leased, &job, unreadable).await;
    };
    let run = Run {
        progress: Progress::new(&app, &leased),
        stop: stop.clone(),
        app,
        leased,
        family,
    };
    // On the heap: thousands of these wait at the same time, most of them in one small place of the story.
    let work = tokio::time::timeout(limit, Box::pin(work(&run, place)));
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Stop::Leave,
        // Work that only says "wait" is done before its time limit is looked at.
        () = std::future::ready(()), if left <= 0 => end::timed_out(&run).await,
        outcome = work => match outcome {
            Ok(stop) => stop,
            Err(_) => end::timed_out(&run).await,
        },
    };
    tracing::debug!(task = task_id, "a turn of a task ends");
    end::write_down(&run.app, &run.leased, &job, outcome).await;
}

async fn work(run: &Run, place: OwnedSemaphorePermit) -> Stop {
    let Run { app, leased, .. } = run;
    let task = &leased.task;

    // 1. The job, as validated at submission. One that cannot be read any more fails; it cost nothing.
    let Ok(mut job) = Job::from_text(task.kind, &leased.job) else {
        return end::unreadable(leased);
    };

    // 2. What an earlier turn left at a provider is gone on with; it is never begun again blindly.
    let mut lost = None;
    if let Some(open) = leased.open.clone() {
        match follow::found_again(run, &open, &job).await {
            follow::Again::With(attempt, ticket) => {
                return follow::follow(run, attempt, ticket, asked(&job), place).await;
            }
            follow::Again::Stop(stop) => return stop,
            follow::Again::Anew => lost = Some(open),
        }
    }

    // 3. A seat on a channel; the ones whose attempts failed come last.
    let seat = match begin::seat(run).await {
        Ok(seat) => seat,
        Err(stop) => return stop,
    };

    // 4. The references, fetched through the egress guard and checked; sizes that follow them.
    let prepared = Box::pin(inputs::prepare(app, run.family, &mut job, task.deadline_at));
    let inputs = match prepared.await {
        Ok(inputs) => inputs,
        Err(e) => return Stop::End(failure("invalid_request", e.message), None),
    };

    // 5. The attempt is on disk before the provider hears of it.
    let external_id = tollgate_core::id::short_id("tollgate-");
    let mut attempt = match begin::attempt(run, seat, &external_id, lost.as_ref()).await {
        Begun::Attempt(attempt) => attempt,
        Begun::Stop(stop) => return stop,
    };
    crash::point("run.after_attempt");

    // 6. The provider begins; of work that it does within the call each result is on our disk before the next is taken.
    let shelf = shelf(run, asked(&job));
    let call = begin::Call {
        run,
        attempt: &attempt,
        external_id: &external_id,
        job: &job,
        inputs: &inputs,
        shelf: &shelf,
    };
    let started = Box::pin(call.start()).await;
    crash::point("run.after_start");
    begin::report(&attempt.seat, &task.model, &started);
    attempt.adjustments = shelf.adjustments();

    // 7. What it has taken into its queue is followed until it ends there.
    let made = match started {
        Ok(Started::Accepted(ticket)) => {
            drop((shelf, inputs));
            let kept = follow::keep(run, &attempt, &ticket).await;
            if let Err(stop) = kept {
                return stop;
            }
            crash::point("run.after_ticket");
            return follow::follow(run, attempt, ticket, asked(&job), place).await;
        }
        Ok(Started::Done(done)) => Ok(done),
        Err(e) => match follow::unknown(run, &attempt, &external_id, &job, e).await {
            follow::Unknown::Accepted(ticket) => {
                return follow::follow(run, attempt, ticket, asked(&job), place).await;
            }
            follow::Unknown::Stop(stop) => return stop,
            follow::Unknown::Known(e) => Err(e),
        },
    };

    // 8. What came of it.
    crash::point("run.before_finish");
    end::judge(run, &attempt, &shelf, Made::from(made))
}

/// How many files the job makes.
fn asked(job: &Job) -> u32 {
    match job {
        Job::Image(job) => job.n,
        // The last frame is a file too.
        Job::Video(job) if job.return_last_frame == Some(true) => 2,
        Job::Video(_) | Job::Speech(_) => 1,
    }
}

fn shelf(run: &Run, asked: u32) -> Shelf {
    let kind: TaskKind = run.leased.task.kind;
    Shelf::new(&run.progress, kind, asked, run.family.links())
}
