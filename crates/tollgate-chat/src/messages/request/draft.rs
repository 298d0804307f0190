//! A request on its way to the wire, and what is lost on it.

use serde_json::Value;

use crate::error::Bad;
use crate::hub::{Field, ModelTraits, Own, Request, ToolNames};
use crate::messages::blocks::marker;
use crate::messages::wire::{MOST_MARKERS, NAME, is_name_char};

/// A request on its way to the wire, and what is lost on it.
pub(super) struct Draft<'a> {
    pub(super) request: &'a Request,
    pub(super) traits: &'a ModelTraits,
    /// Whether the client speaks this format itself: then its request stays as it is wherever the model takes it.
    pub(super) is_native: bool,
    pub(super) names: ToolNames,
    pub(super) dropped: Vec<String>,
    /// Prompt-cache markers to leave out before the rest are as many as the vendor takes. The last ones reach furthest.
    markers_too_many: usize,
}

impl<'a> Draft<'a> {
    /// Nothing is lost yet.
    pub(super) fn of(request: &'a Request, traits: &'a ModelTraits) -> Self {
        let is_native = request.client == NAME;
        let markers = if is_native { 0 } else { markers(request) };
        Self {
            request,
            traits,
            is_native,
            names: ToolNames::of(request, traits.tool_name_max, |_, c| is_name_char(c)),
            dropped: Vec::new(),
            markers_too_many: markers.saturating_sub(MOST_MARKERS),
        }
    }

    /// Notes that a field of the client's was left out or weakened.
    pub(super) fn lose(&mut self, field: impl Into<String>) {
        let field = field.into();
        if !self.dropped.contains(&field) {
            self.dropped.push(field);
        }
    }

    /// Notes it by the client's own name for it.
    pub(super) fn lose_field(&mut self, field: Field) {
        self.lose(self.request.name_of(field));
    }

    /// Notes what only another format knows.
    pub(super) fn lose_own(&mut self, own: &Own) {
        for name in own.lost_to(NAME) {
            self.lose(name);
        }
    }

    /// An error about a part.
    pub(super) fn bad(&self, (turn, part): (usize, usize), why: impl AsRef<str>) -> Bad {
        Bad::new(self.request.path_of(turn, part), why)
    }

    /// The marker for a block, if there is room for one more.
    pub(super) fn marker(&mut self, cache: Option<&str>) -> Option<Value> {
        let ttl = cache?;
        if self.markers_too_many > 0 {
            self.markers_too_many -= 1;
            self.lose_field(Field::Cache);
            return None;
        }
        Some(marker(ttl))
    }
}

/// How many prompt-cache markers the client set.
fn markers(request: &Request) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let on_parts = parts.filter(|part| part.cache.is_some()).count();
    on_parts
        + request
            .tools
            .iter()
            .filter(|tool| tool.cache.is_some())
            .count()
}
