//! A request on its way to the wire, and what is lost on it.

use serde_json::Value;

use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, ModelCapabilities, Request, RequestField, ToolNames};
use crate::messages::blocks::marker;
use crate::messages::wire::{MOST_MARKERS, NAME, is_name_char};

/// A request on its way to the wire, and what is lost on it.
pub(super) struct Draft<'a> {
    pub(super) request: &'a Request,
    pub(super) capabilities: &'a ModelCapabilities,
    /// Whether the client speaks this format itself: then its request stays as it is wherever the model takes it.
    pub(super) is_native: bool,
    pub(super) names: ToolNames,
    pub(super) dropped: Vec<String>,
    /// Prompt-cache markers to leave out before the rest are as many as the vendor takes. The last ones reach furthest.
    markers_too_many: usize,
}

impl<'a> Draft<'a> {
    /// Nothing is lost yet.
    pub(super) fn of(request: &'a Request, capabilities: &'a ModelCapabilities) -> Self {
        let is_native = request.client_format == NAME;
        let markers = if is_native { 0 } else { markers(request) };
        Self {
            request,
            capabilities,
            is_native,
            names: ToolNames::new(request, capabilities.max_tool_name_length, |_, c| {
                is_name_char(c)
            }),
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
    pub(super) fn lose_field(&mut self, field: RequestField) {
        self.lose(self.request.client_field_name(field));
    }

    /// Notes what only another format knows.
    pub(super) fn lose_own(&mut self, extra: &ExtraFields) {
        for name in extra.names_unknown_to(NAME) {
            self.lose(name);
        }
    }

    /// An error about a part.
    pub(super) fn bad(&self, (turn, part): (usize, usize), why: impl AsRef<str>) -> InvalidRequest {
        InvalidRequest::new(self.request.client_part_path(turn, part), why)
    }

    /// The marker for a block, if there is room for one more.
    pub(super) fn marker(&mut self, cache_ttl: Option<&str>) -> Option<Value> {
        let ttl = cache_ttl?;
        if self.markers_too_many > 0 {
            self.markers_too_many -= 1;
            self.lose_field(RequestField::Cache);
            return None;
        }
        Some(marker(ttl))
    }
}

/// How many prompt-cache markers the client set.
fn markers(request: &Request) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let on_parts = parts.filter(|part| part.cache_ttl.is_some()).count();
    on_parts
        + request
            .tools
            .iter()
            .filter(|tool| tool.cache_ttl.is_some())
            .count()
}
