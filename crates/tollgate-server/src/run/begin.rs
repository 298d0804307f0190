//! The beginning of an attempt: a seat, a row, the call.

use tollgate_core::Millis;
use tollgate_media::Job;
use tollgate_store::{AttemptBegun, AttemptStart, OpenAttempt};
use tollgate_upstream::provider::{
    Attempt as Try, ImageCall, SpeechCall, Started, Style, VideoCall,
};
use tollgate_upstream::{ProviderError, ProviderErrorKind};

use super::{Attempt, FULL_PAUSE, NONE_PAUSE, Run, Stop};
use crate::delivery::Shelf;
use crate::inputs::Inputs;
use crate::routing::{Choice, Seat, Trouble};

/// Longest wait for a channel whose upstream asked for quiet, before the others are looked at again.
const REST_MOST: Millis = 30_000;

/// A seat for the task; the channels whose attempts failed come last.
pub(super) async fn seat(run: &Run) -> Result<Seat, Stop> {
    let task = &run.leased.task;
    let tried = match run.leased.failed_attempts {
        0 => Vec::new(),
        _ => {
            let failed = run.app.store.failed_channels(&task.id).await;
            failed.unwrap_or_default()
        }
    };
    let live = run.app.routing();
    match live.channels.choose_task(task.kind, &task.model, &tried) {
        Choice::Seat(seat) => Ok(seat),
        Choice::Full => {
            run.app.workers.crowded();
            Err(Stop::Wait(FULL_PAUSE))
        }
        Choice::Resting(rest) => {
            let rest = Millis::try_from(rest.as_millis()).unwrap_or(REST_MOST);
            Err(Stop::Wait(rest.clamp(FULL_PAUSE, REST_MOST)))
        }
        Choice::None => Err(Stop::Wait(NONE_PAUSE)),
    }
}

/// What became of beginning an attempt.
pub(super) enum Begun {
    Attempt(Attempt),
    Stop(Stop),
}

/// Writes the attempt down. `lost` is an open one that the provider says it never got.
pub(super) async fn attempt(
    run: &Run,
    seat: Seat,
    external_id: &str,
    lost: Option<&OpenAttempt>,
) -> Begun {
    let task = &run.leased.task;
    let start = AttemptStart {
        task_id: task.id.clone(),
        fence: run.leased.fence,
        channel: seat.open.channel.name.clone(),
        external_id: Some(external_id.to_owned()),
        queued: style(run, &seat) == Style::Queued,
        key_print: seat.key_print(),
        abandon: lost.map(|_| "lost"),
        now: run.app.clock.now(),
    };
    match run.app.store.begin_attempt(start).await {
        Ok(AttemptBegun::Begun(number)) => Begun::Attempt(Attempt {
            number,
            seat,
            adjustments: Vec::new(),
        }),
        Ok(AttemptBegun::LostLease) => Begun::Stop(Stop::Leave),
        // One is open that was not there when the task was claimed: the next turn sees it.
        Ok(AttemptBegun::StillOpen) => Begun::Stop(Stop::Wait(FULL_PAUSE)),
        Err(e) => {
            tracing::warn!(task = task.id, error = %e, "cannot begin an attempt");
            Begun::Stop(Stop::Wait(NONE_PAUSE))
        }
    }
}

/// How the seat's provider works on the task's model.
pub(super) fn style(run: &Run, seat: &Seat) -> Style {
    use tollgate_core::TaskKind::{Image, Speech, Video};
    let provider = &seat.open.provider;
    let Some(model) = seat.open.channel.model(&run.leased.task.model) else {
        return Style::Direct;
    };
    let style = match run.leased.task.kind {
        Image => provider.image.as_ref().map(|p| p.style(&model)),
        Video => provider.video.as_ref().map(|p| p.style(&model)),
        Speech => provider.speech.as_ref().map(|p| p.style(&model)),
    };
    style.unwrap_or(Style::Direct)
}

/// One call that begins work.
pub(super) struct Call<'a> {
    pub(super) run: &'a Run,
    pub(super) attempt: &'a Attempt,
    pub(super) external_id: &'a str,
    pub(super) job: &'a Job,
    pub(super) inputs: &'a Inputs,
    pub(super) shelf: &'a Shelf,
}

impl Call<'_> {
    /// The only place that asks what kind of thing is made.
    pub(super) async fn start(&self) -> Result<Started, ProviderError> {
        let unfit = || {
            let message = "the channel makes nothing of this kind any more";
            ProviderError::new(ProviderErrorKind::ChannelUnfit, message)
        };
        let leased = &self.run.leased;
        let open = &self.attempt.seat.open;
        let model = open.channel.model(&leased.task.model).ok_or_else(unfit)?;
        let attempt = Try {
            task_id: &leased.task.id,
            external_id: self.external_id,
            model: &model,
            key: self.attempt.seat.key(),
            failed_attempts: u32::try_from(leased.failed_attempts).unwrap_or(0),
            delivery: self.shelf,
            cancel: self.run.stop.child_token(),
        };
        let (provider, inputs) = (&open.provider, self.inputs);
        match self.job {
            Job::Image(job) => {
                let call = ImageCall {
                    attempt,
                    job,
                    references: &inputs.references,
                    mask: inputs.mask.as_ref(),
                };
                let images = provider.image.as_ref().ok_or_else(unfit)?;
                images.start(call).await
            }
            Job::Video(job) => {
                let call = VideoCall {
                    attempt,
                    job,
                    images: &inputs.references,
                };
                let films = provider.video.as_ref().ok_or_else(unfit)?;
                films.start(call).await
            }
            Job::Speech(job) => {
                let speech = provider.speech.as_ref().ok_or_else(unfit)?;
                speech.start(SpeechCall { attempt, job }).await
            }
        }
    }
}

/// Tells the channel's health what happened.
pub(super) fn report(seat: &Seat, model: &str, started: &Result<Started, ProviderError>) {
    use ProviderErrorKind::{
        ChannelUnfit, Failed, Interrupted, KeyRefused, ModelMissing, Moderated, QuotaExhausted,
        RateLimited, Rejected, Retryable, Unknown,
    };
    let Err(error) = started else {
        return seat.succeeded();
    };
    match error.kind {
        Retryable | Unknown => seat.failed(model, Trouble::Down),
        RateLimited => seat.failed(model, Trouble::RateLimited(error.retry_after)),
        KeyRefused => seat.failed(model, Trouble::KeyRefused),
        QuotaExhausted => seat.failed(model, Trouble::QuotaExhausted),
        ModelMissing => seat.failed(model, Trouble::ModelMissing),
        // Of this job alone: the channel is as well as before.
        ChannelUnfit | Interrupted => {}
        Rejected | Failed | Moderated => seat.succeeded(),
    }
}
