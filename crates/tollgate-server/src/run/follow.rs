//! Work that a provider has in its own queue: its ticket kept, asked for until it ends, found again after a restart.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tollgate_core::{Adjustment, Millis, crash};
use tollgate_media::Job;
use tollgate_store::{Accepted, OpenAttempt, Task};
use tollgate_upstream::provider::{FindCall, Found, Polled, Queue, QueueCall, Rhythm, Style};
use tollgate_upstream::{Delivery, ProviderError, ProviderErrorKind};

use super::end::{self, Made};
use super::{Attempt, NONE_PAUSE, Run, Stop, begin};
use crate::app::App;
use crate::delivery::{Nowhere, Shelf};
use crate::routing::Seat;

/// Longest pause between two polls of which the first got no answer.
const PAUSE_MOST: Duration = Duration::from_secs(60);
/// How often the results of work that is done may be refused or fail to come, before it counts as failed.
const DELIVERIES: u32 = 6;
/// How long a ticket is tried to be written down while the database is away.
const KEEP_TRIES: u32 = 40;
const KEEP_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two looks for work whose answer was lost.
const FIND_PAUSE: Duration = Duration::from_secs(2);
/// Providers show new work a moment after they took it: "nothing" is believed only then.
const FIND_AGAIN: u32 = 2;

/// What became of an attempt that an earlier turn left open.
pub(super) enum Again {
    /// It goes on, under this ticket.
    With(Attempt, String),
    /// The provider never got it: it may be begun anew.
    Anew,
    Stop(Stop),
}

/// What an error of the beginning means.
pub(super) enum Unknown {
    /// The provider has it all the same.
    Accepted(String),
    /// It is what it says.
    Known(ProviderError),
    Stop(Stop),
}

/// Writes the ticket down, before anything else is done with it. Where the task has ended meanwhile, the provider is told.
pub(super) async fn keep(run: &Run, attempt: &Attempt, ticket: &str) -> Result<(), Stop> {
    let accepted = Accepted {
        task_id: run.leased.task.id.clone(),
        fence: run.leased.fence,
        number: attempt.number,
        ticket: ticket.to_owned(),
        adjustments: to_text(&attempt.adjustments),
        now: run.app.clock.now(),
    };
    for _ in 0..KEEP_TRIES {
        match run.app.store.accepted(accepted.clone()).await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let task = run.app.store.task(&run.leased.task.id).await;
                if task.is_ok_and(|task| task.is_some_and(|task| task.state.is_final())) {
                    tell_off(&run.leased.task, &attempt.seat, ticket).await;
                }
                return Err(Stop::Leave);
            }
            Err(e) => {
                tracing::error!(task = run.leased.task.id, error = %e, "cannot keep a ticket");
                tokio::time::sleep(KEEP_PAUSE).await;
            }
        }
    }
    // The attempt stays open without a ticket: another turn looks for it.
    Err(Stop::Leave)
}

/// Asks the provider until the work has ended there; then everything is here.
pub(super) async fn follow(
    run: &Run,
    mut attempt: Attempt,
    ticket: String,
    asked: u32,
    place: OwnedSemaphorePermit,
) -> Stop {
    let Some(queue) = attempt.seat.open.provider.queue.clone() else {
        tracing::error!(task = run.leased.task.id, "a ticket without a queue");
        return Stop::Wait(NONE_PAUSE);
    };
    let rhythm = rhythm(run, &attempt.seat, queue.as_ref());
    // The place is for work; waiting has many more of its own. Where even those are taken, our own queue waits instead.
    let Ok(_waiting) = Arc::clone(&run.app.workers.open).try_acquire_owned() else {
        return Stop::Wait(Millis::try_from(rhythm.every.as_millis()).unwrap_or(NONE_PAUSE));
    };
    drop(place);
    run.app.workers.wake();
    let (mut pause, mut undelivered) = (first_pause(run, &attempt, rhythm), 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // The ticket is on disk: whoever comes next goes on with it.
            () = run.app.workers.leaving.cancelled() => return Stop::Wait(0),
        }
        crash::point("run.before_poll");
        let queue = attempt
            .seat
            .open
            .provider
            .queue
            .clone()
            .unwrap_or_else(|| Arc::clone(&queue));
        let shelf = super::shelf(run, asked);
        let adjustments = attempt.adjustments.iter().cloned();
        adjustments.for_each(|adjustment| shelf.adjusted(adjustment));
        let polled = Box::pin(poll(
            run,
            &attempt.seat,
            queue.as_ref(),
            &ticket,
            asked,
            &shelf,
        ));
        let (made, again) = match polled.await {
            Ok(Polled::Waiting(percent)) => {
                percent.into_iter().for_each(|p| run.progress.report(p));
                (None, rhythm.every)
            }
            Ok(Polled::Done(done)) => (Some(Ok(done)), rhythm.every),
            Ok(Polled::Failed(e)) => (Some(Err(e)), rhythm.every),
            Err(e) if e.kind.may_be_tried_again() && undelivered < DELIVERIES => {
                undelivered += u32::from(shelf.was_used());
                tracing::warn!(task = run.leased.task.id, error = %e, "cannot ask for a task");
                renew(run, &mut attempt.seat);
                let doubled = pause.saturating_mul(2).min(PAUSE_MOST);
                (None, e.retry_after.unwrap_or(doubled).min(PAUSE_MOST))
            }
            Err(e) => (Some(Err(as_failed(e))), rhythm.every),
        };
        if let Some(made) = made {
            crash::point("run.before_finish");
            return end::judge(run, &attempt, &shelf, Made::from(made));
        }
        shelf.discard().await;
        pause = again;
    }
}

/// The configuration may have changed since: a key that was replaced, another address. The work stays where it is.
fn renew(run: &Run, seat: &mut Seat) {
    let live = run.app.routing();
    let (name, print) = (&seat.open.channel.name, seat.key_print());
    if let Some(now) = live.channels.seat_on(name, print.as_deref()) {
        *seat = now;
    }
}

/// Work whose results do not come has failed, whatever the reason: nobody makes it anew.
fn as_failed(error: ProviderError) -> ProviderError {
    if error.kind.may_be_tried_again() {
        return ProviderError {
            kind: ProviderErrorKind::Failed,
            ..error
        };
    }
    error
}

async fn poll(
    run: &Run,
    seat: &Seat,
    queue: &dyn Queue,
    ticket: &str,
    asked: u32,
    shelf: &Shelf,
) -> Result<Polled, ProviderError> {
    let unfit = || {
        let message = "the channel does not have the task's model any more";
        ProviderError::new(ProviderErrorKind::ChannelUnfit, message)
    };
    let task = &run.leased.task;
    let model = seat.open.channel.model(&task.model).ok_or_else(unfit)?;
    queue
        .poll(QueueCall {
            task_id: &task.id,
            kind: task.kind,
            ticket,
            asked,
            model: &model,
            key: seat.key(),
            delivery: shelf,
        })
        .await
}

fn rhythm(run: &Run, seat: &Seat, queue: &dyn Queue) -> Rhythm {
    match seat.open.channel.poll {
        Some(every) => Rhythm {
            first: every,
            every,
        },
        None => queue.rhythm(run.leased.task.kind),
    }
}

/// Of work that was accepted a while ago the first poll is soon, spread over one interval: after a restart all of them
/// come at once.
fn first_pause(run: &Run, attempt: &Attempt, rhythm: Rhythm) -> Duration {
    let is_old = run
        .leased
        .open
        .as_ref()
        .is_some_and(|open| open.number == attempt.number);
    if is_old {
        return rhythm.every.mul_f64(rand::random());
    }
    rhythm.first
}

/// Looks at an attempt that an earlier turn, here or elsewhere, left open in a provider's queue.
pub(super) async fn found_again(run: &Run, open: &OpenAttempt, job: &Job) -> Again {
    let live = run.app.routing();
    let seat = live
        .channels
        .seat_on(&open.channel, open.key_print.as_deref());
    let Some(seat) = seat else {
        let channel = &open.channel;
        tracing::warn!(
            task = run.leased.task.id,
            channel,
            "a task's channel is gone"
        );
        return Again::Stop(Stop::Wait(30_000));
    };
    let mut attempt = Attempt {
        number: open.number,
        seat,
        adjustments: from_text(open),
    };
    if let Some(ticket) = &open.ticket {
        return Again::With(attempt, ticket.clone());
    }
    let external_id = open.external_id.clone().unwrap_or_default();
    let shelf = super::shelf(run, 0);
    match search(run, &attempt.seat, &external_id, job, &shelf).await {
        Found::Accepted(ticket) => {
            attempt.adjustments = shelf.adjustments();
            match keep(run, &attempt, &ticket).await {
                Ok(()) => Again::With(attempt, ticket),
                Err(stop) => Again::Stop(stop),
            }
        }
        Found::Nothing => Again::Anew,
        Found::CannotTell => Again::Stop(until_deadline(run)),
    }
}

/// What an error of the beginning means: an answer that was lost is looked for, and never just asked for again.
pub(super) async fn unknown(
    run: &Run,
    attempt: &Attempt,
    external_id: &str,
    job: &Job,
    error: ProviderError,
) -> Unknown {
    if error.kind != ProviderErrorKind::Unknown {
        return Unknown::Known(error);
    }
    if begin::style(run, &attempt.seat) == Style::Direct {
        // What a provider does within the call cannot come any more once the call is over.
        return Unknown::Known(error);
    }
    // The start has told its adjustments: what the search tells of them is the same.
    match search(run, &attempt.seat, external_id, job, &Nowhere).await {
        Found::Accepted(ticket) => match keep(run, attempt, &ticket).await {
            Ok(()) => Unknown::Accepted(ticket),
            Err(stop) => Unknown::Stop(stop),
        },
        Found::Nothing => Unknown::Known(ProviderError {
            kind: ProviderErrorKind::Retryable,
            ..error
        }),
        Found::CannotTell => Unknown::Stop(until_deadline(run)),
    }
}

/// The task keeps its open attempt until its deadline, and fails then.
fn until_deadline(run: &Run) -> Stop {
    let task = &run.leased.task;
    tracing::warn!(
        task = task.id,
        "whether the upstream has a task is unknown and cannot be found out: it waits for its deadline"
    );
    Stop::Wait((task.deadline_at - run.app.clock.now()).max(0))
}

async fn search(
    run: &Run,
    seat: &Seat,
    external_id: &str,
    job: &Job,
    delivery: &dyn Delivery,
) -> Found {
    let task = &run.leased.task;
    let (Some(queue), Some(model)) = (
        seat.open.provider.queue.as_ref(),
        seat.open.channel.model(&task.model),
    ) else {
        return Found::CannotTell;
    };
    let mut nothing = 0;
    loop {
        let call = FindCall {
            job,
            external_id,
            model: &model,
            key: seat.key(),
            delivery,
        };
        match queue.find(call).await {
            Ok(Found::Nothing) if nothing < FIND_AGAIN => nothing += 1,
            Ok(found) => return found,
            Err(e) => {
                tracing::warn!(task = task.id, error = %e, "cannot look for a task");
            }
        }
        tokio::time::sleep(FIND_PAUSE).await;
    }
}

/// As they are stored; none where there are none.
fn to_text(adjustments: &[Adjustment]) -> Option<String> {
    (!adjustments.is_empty()).then(|| serde_json::json!(adjustments).to_string())
}

fn from_text(open: &OpenAttempt) -> Vec<Adjustment> {
    let stored = open.adjustments.as_deref();
    let read = |text| serde_json::from_str(text);
    stored.map_or(Ok(Vec::new()), read).unwrap_or_else(|e| {
        tracing::error!(attempt = open.number, error = %e, "stored adjustments cannot be read");
        Vec::new()
    })
}

/// A task has ended by its user or its deadline: what its provider still has of it is called off, in the background.
pub fn call_off(app: &Arc<App>, task: &Task) {
    let (app, task) = (Arc::clone(app), task.clone());
    let closing = app.closing.clone();
    closing.spawn(async move {
        let Ok(Some(open)) = app.store.last_attempt(&task.id).await else {
            return;
        };
        let (Some(ticket), live) = (&open.ticket, app.routing()) else {
            return;
        };
        let seat = live
            .channels
            .seat_on(&open.channel, open.key_print.as_deref());
        if let Some(seat) = seat {
            tell_off(&task, &seat, ticket).await;
        }
    });
}

/// Tells the provider, as far as it can be told, that the work is not wanted any more.
async fn tell_off(task: &Task, seat: &Seat, ticket: &str) {
    let (Some(queue), Some(model)) = (
        seat.open.provider.queue.as_ref(),
        seat.open.channel.model(&task.model),
    ) else {
        return;
    };
    let call = QueueCall {
        task_id: &task.id,
        kind: task.kind,
        ticket,
        asked: 1,
        model: &model,
        key: seat.key(),
        delivery: &Nowhere,
    };
    if let Err(e) = queue.cancel(call).await {
        tracing::info!(task = task.id, error = %e, "the upstream did not take a cancellation");
    }
}
