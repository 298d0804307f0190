//! Chooses the scenario of an exchange: that of the request, otherwise the one that a test has set or queued.

use std::time::Instant;

use crate::directive::{Directive, Stage};
use crate::media_context::MediaRequest;
use crate::rejection::{OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::rng::hash;
use crate::scenario::Scenario;
use crate::shared::Shared;
use crate::tables::request_read::Accepted;
use crate::work_plan::WorkPlan;

/// The decisions for an exchange, made before any work is done.
pub(crate) struct Instructions {
    /// The scenario of the exchange.
    pub(crate) scenario: Scenario,
    /// The plan for the requested work.
    pub(crate) plan: WorkPlan,
}

impl Instructions {
    pub(crate) fn new(
        shared: &Shared,
        request: &ReceivedRequest,
        accepted: &Accepted,
    ) -> OrRejected<Self> {
        let (stage, text) = match accepted {
            Accepted::Fixed(_) => (Stage::Submit, ""),
            Accepted::Chat(chat) => (Stage::Submit, chat.prompt.text.as_str()),
            Accepted::Media(media) => (media.stage, media.text.as_str()),
        };
        let mut own = directives(request, text)?;
        let nth = match accepted {
            Accepted::Media(media) if stage != Stage::Submit => {
                let (earlier, nth) = count_request(shared, request, media);
                own.extend(earlier);
                nth
            }
            _ => count_text(shared, text, &own),
        };
        let (now, later): (Vec<_>, Vec<_>) = own.into_iter().partition(|own| own.stage == stage);
        let mut scenarios: Vec<Scenario> = Vec::new();
        if now.is_empty() {
            let mut state = shared.state();
            let queue = state.queue.get_mut(&stage);
            let next = queue.and_then(|queue| queue.pop_front());
            scenarios.extend(next.or_else(|| state.set.get(&stage).cloned()));
        } else {
            let now = now.into_iter();
            let now = now.filter(|own| own.first.is_none_or(|first| nth <= first));
            scenarios.extend(now.map(|own| own.scenario));
        }
        let mut plan = shared.plan();
        plan.later = later;
        if matches!(accepted, Accepted::Media(_)) {
            scenarios.retain(|scenario| !plan.apply(scenario));
        }
        let scenario = scenarios.into_iter().next().unwrap_or(Scenario::Normal);
        Ok(Self { scenario, plan })
    }
}

/// The directives of the request itself: its header, or every `[[fake:…]]` in its text.
fn directives(request: &ReceivedRequest, text: &str) -> OrRejected<Vec<Directive>> {
    let found = match request.header("x-fake") {
        Some(header) => header.parse().map(|header| vec![header]),
        None => {
            let starts = text.split("[[fake:").skip(1);
            let names = starts.filter_map(|rest| rest.split_once("]]"));
            names.map(|(name, _)| name.parse()).collect()
        }
    };
    found.map_err(|message: String| Box::new(Rejection::new(400, "fake", "scenario", message)))
}

/// The number of requests with this text, including this one; 1 if no directive depends on it, because they are not counted then.
fn count_text(shared: &Shared, text: &str, own: &[Directive]) -> u32 {
    if own.iter().all(|own| own.first.is_none()) {
        return 1;
    }
    let mut state = shared.state();
    let count = state.counts.entry(hash(text)).or_default();
    *count += 1;
    *count
}

/// Counts a request about an existing task or file. Returns the directives of the request that started the work, and the number of this request
/// within its step.
fn count_request(
    shared: &Shared,
    request: &ReceivedRequest,
    media: &MediaRequest,
) -> (Vec<Directive>, u32) {
    if media.tasks.is_empty() {
        let counted = shared.files().count_fetch(&request.path);
        return counted.unwrap_or_default();
    }
    let mut tasks = shared.tasks();
    let mut found = (Vec::new(), 0);
    for name in &media.tasks {
        let own_id = tasks.id_of(name).map(str::to_owned);
        // Some providers accept either id in the same field.
        let id = own_id.or_else(|| (!media.external).then(|| name.clone()));
        let Some(task) = id.and_then(|id| tasks.get(&id)) else {
            continue;
        };
        let nth = task.count_request(media.stage, Instant::now());
        found.1 = found.1.max(nth);
        found.0.extend(task.plan.later.iter().cloned());
    }
    found
}
