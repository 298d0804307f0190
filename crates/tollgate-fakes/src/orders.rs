//! How the fake behaves in one exchange: what the request says of it, else what a test has said.

use std::time::Instant;

use crate::behaviour::Behaviour;
use crate::course::Course;
use crate::desk::Media;
use crate::directive::{self, Directive, Stage};
use crate::fake::Shared;
use crate::incoming::Seen;
use crate::provider::Wanted;
use crate::refusal::{Judged, Refusal};
use crate::rng::hash;

/// What is decided for an exchange before anything is done.
pub(crate) struct Orders {
    /// How the exchange goes.
    pub(crate) behaviour: Behaviour,
    /// How work that is asked for goes.
    pub(crate) course: Course,
}

impl Orders {
    pub(crate) fn of(shared: &Shared, seen: &Seen, wanted: &Wanted) -> Judged<Self> {
        let (stage, text) = match wanted {
            Wanted::Fixed(_) => (Stage::Submit, ""),
            Wanted::Chat(work) => (Stage::Submit, work.ask().text.as_str()),
            Wanted::Media(media) => (media.stage, media.text.as_str()),
        };
        let mut own = said(seen, text)?;
        let turn = match wanted {
            Wanted::Media(media) if stage != Stage::Submit => {
                let (earlier, turn) = noted(shared, seen, media);
                own.extend(earlier);
                turn
            }
            _ => turn_of(shared, text, &own),
        };
        let mut orders = Self {
            behaviour: Behaviour::Normal,
            course: shared.course(),
        };
        let mut here: Vec<Behaviour> = Vec::new();
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
            here.extend(now.map(|own| own.behaviour));
        }
        let is_media = matches!(wanted, Wanted::Media(_));
        let is_of_work = |one: &Behaviour| is_media && one.is_of_work();
        here.iter().for_each(|one| orders.course.obey(one));
        let exchange = here.into_iter().find(|one| !is_of_work(one));
        orders.behaviour = exchange.unwrap_or(Behaviour::Normal);
        orders.course.later = later;
        Ok(orders)
    }
}

/// What the request itself says: in a header, and in its text.
fn said(seen: &Seen, text: &str) -> Judged<Vec<Directive>> {
    let header = seen.header("x-fake").map(str::parse::<Directive>);
    let said = match header {
        Some(header) => header.map(|header| vec![header]),
        None => directive::all(text),
    };
    said.map_err(|message| Box::new(Refusal::new(400, "fake", "behaviour", message)))
}

/// The how manieth request with this text it is; counted only where that matters.
fn turn_of(shared: &Shared, text: &str, own: &[Directive]) -> u32 {
    if own.iter().all(|own| own.first.is_none()) {
        return 1;
    }
    let mut state = shared.state();
    let turn = state.turns.entry(hash(text)).or_default();
    *turn += 1;
    *turn
}

/// Notes a request about what there is already: what the request for that has said of it, and the
/// how manieth of its kind this one is.
fn noted(shared: &Shared, seen: &Seen, media: &Media) -> (Vec<Directive>, u32) {
    let now = Instant::now();
    if media.tasks.is_empty() {
        let noted = shared.files().noted_fetch(&seen.path);
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
        found.0.extend(task.course.later.iter().cloned());
    }
    found
}
