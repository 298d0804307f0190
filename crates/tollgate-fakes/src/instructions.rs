//! Which scenario applies to an exchange: that of the request, else what a test has set or queued.

use std::time::Instant;

use crate::directive::{self, Directive, Stage};
use crate::fake::Shared;
use crate::media_context::MediaRequest;
use crate::provider::Accepted;
use crate::rejection::{OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::rng::hash;
use crate::scenario::Scenario;
use crate::work_plan::WorkPlan;

/// What is decided for an exchange before anything is done.
pub(crate) struct Instructions {
    /// How the exchange goes.
    pub(crate) scenario: Scenario,
    /// How work that is asked for goes.
    pub(crate) plan: WorkPlan,
}

impl Instructions {
    pub(crate) fn of(
        shared: &Shared,
        request: &ReceivedRequest,
        wanted: &Accepted,
    ) -> OrRejected<Self> {
        let (stage, text) = match wanted {
            Accepted::Fixed(_) => (Stage::Submit, ""),
            Accepted::Chat(work) => (Stage::Submit, work.prompt().text.as_str()),
            Accepted::Media(media) => (media.stage, media.text.as_str()),
        };
        let mut own = found(request, text)?;
        let turn = match wanted {
            Accepted::Media(media) if stage != Stage::Submit => {
                let (earlier, turn) = noted(shared, request, media);
                own.extend(earlier);
                turn
            }
            _ => turn_of(shared, text, &own),
        };
        let mut instructions = Self {
            scenario: Scenario::Normal,
            plan: shared.plan(),
        };
        let mut here: Vec<Scenario> = Vec::new();
        let (now, later): (Vec<_>, Vec<_>) = own.into_iter().partition(|own| own.stage == stage);
        if now.is_empty() {
            let mut state = shared.state();
            let next = state
                .queue
                .get_mut(&stage)
                .and_then(|queue| queue.pop_front());
            here.extend(next.or_else(|| state.set.get(&stage).cloned()));
        } else {
            let now = now.into_iter().filter(|own| own.is_for(stage, turn));
            here.extend(now.map(|own| own.scenario));
        }
        let is_media = matches!(wanted, Accepted::Media(_));
        let is_of_work = |one: &Scenario| is_media && one.is_of_work();
        here.iter().for_each(|one| instructions.plan.apply(one));
        let exchange = here.into_iter().find(|one| !is_of_work(one));
        instructions.scenario = exchange.unwrap_or(Scenario::Normal);
        instructions.plan.later = later;
        Ok(instructions)
    }
}

/// What the request itself says: in a header, and in its text.
fn found(request: &ReceivedRequest, text: &str) -> OrRejected<Vec<Directive>> {
    let header = request.header("x-fake").map(str::parse::<Directive>);
    let found = match header {
        Some(header) => header.map(|header| vec![header]),
        None => directive::all(text),
    };
    found.map_err(|message| Box::new(Rejection::new(400, "fake", "scenario", message)))
}

/// The number request with this text it is; counted only where that matters.
fn turn_of(shared: &Shared, text: &str, own: &[Directive]) -> u32 {
    if own.iter().all(|own| own.first.is_none()) {
        return 1;
    }
    let mut state = shared.state();
    let turn = state.turns.entry(hash(text)).or_default();
    *turn += 1;
    *turn
}

/// Counts a request about an existing task or file: the directives of the request that started it,
/// and the number of requests of this kind so far.
fn noted(
    shared: &Shared,
    request: &ReceivedRequest,
    media: &MediaRequest,
) -> (Vec<Directive>, u32) {
    let now = Instant::now();
    if media.tasks.is_empty() {
        let noted = shared.files().count_fetch(&request.path);
        return noted.unwrap_or_default();
    }
    let mut tasks = shared.tasks();
    let mut found = (Vec::new(), 0);
    for name in &media.tasks {
        let named = tasks.named(name).map(str::to_owned);
        // Some providers take either id in the same place.
        let id = named.or_else(|| (!media.external).then(|| name.clone()));
        let Some(task) = id.and_then(|id| tasks.get(&id)) else {
            continue;
        };
        let turn = task.noted(media.stage, now);
        found.1 = found.1.max(turn);
        found.0.extend(task.plan.later.iter().cloned());
    }
    found
}
