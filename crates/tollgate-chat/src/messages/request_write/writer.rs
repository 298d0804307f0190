//! The request under construction, with the list of fields that were dropped from it.

use serde_json::Value;

use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, ModelCapabilities, Request, RequestField, ToolNames};
use crate::messages::block_write::write_cache_control;
use crate::messages::constants::{MAX_CACHE_MARKERS, NAME, is_name_character};

/// The state of writing one request.
pub(crate) struct RequestWriter<'a> {
    pub(crate) request: &'a Request,
    pub(crate) capabilities: &'a ModelCapabilities,
    /// Whether the client uses this format: if so, its request is kept unchanged wherever the model supports it.
    pub(crate) is_native: bool,
    pub(crate) names: ToolNames,
    pub(crate) dropped: Vec<String>,
    /// Number of `cache_control` markers above the maximum. The first markers are dropped, because the last ones cover the most.
    excess_markers: usize,
}

impl<'a> RequestWriter<'a> {
    pub(crate) fn new(request: &'a Request, capabilities: &'a ModelCapabilities) -> Self {
        let is_native = request.client_format.name == NAME;
        let markers = if is_native { 0 } else { count_markers(request) };
        Self {
            request,
            capabilities,
            is_native,
            names: ToolNames::new(request, capabilities.max_tool_name_length, |_, c| {
                is_name_character(c)
            }),
            dropped: Vec::new(),
            excess_markers: markers.saturating_sub(MAX_CACHE_MARKERS),
        }
    }

    /// Records a field of the client as dropped or weakened.
    pub(crate) fn drop_name(&mut self, field: impl Into<String>) {
        let field = field.into();
        if !self.dropped.contains(&field) {
            self.dropped.push(field);
        }
    }

    /// Records a field as dropped, by its name in the client's format.
    pub(crate) fn drop_field(&mut self, field: RequestField) {
        self.drop_name(self.request.client_field_name(field));
    }

    /// Records the extra fields of other formats as dropped.
    pub(crate) fn drop_extra(&mut self, extra: &ExtraFields) {
        // `write_filters` writes a search's filters, and records what it drops.
        for name in extra.names_unknown_to(NAME).filter(|n| *n != "filters") {
            self.drop_name(name);
        }
    }

    /// An error about a part.
    pub(crate) fn invalid_part(
        &self,
        (turn, part): (usize, usize),
        why: impl AsRef<str>,
    ) -> InvalidRequest {
        InvalidRequest::new(self.request.client_part_path(turn, part), why)
    }

    /// The `cache_control` of a block. `None` if the client set none or too many.
    pub(crate) fn cache_control(&mut self, cache_ttl: Option<&str>) -> Option<Value> {
        let ttl = cache_ttl?;
        if self.excess_markers > 0 {
            self.excess_markers -= 1;
            self.drop_field(RequestField::Cache);
            return None;
        }
        Some(write_cache_control(ttl))
    }
}

/// The number of `cache_control` markers that the client set.
fn count_markers(request: &Request) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let on_parts = parts.filter(|part| part.cache_ttl.is_some()).count();
    on_parts
        + request
            .tools
            .iter()
            .filter(|tool| tool.cache_ttl.is_some())
            .count()
}
