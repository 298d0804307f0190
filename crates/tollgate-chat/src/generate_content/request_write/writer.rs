//! The request under construction: the dropped fields, the renamed tools, and the members outside contents, tools and settings.

use serde_json::{Map, Value};

use crate::format::Target;
use crate::generate_content::constants::NAME;
use crate::generate_content::fields::insert_at_path;
use crate::hub::{ExtraFields, ModelCapabilities, Request, RequestField, Role, ToolNames};

/// The state of writing one request.
pub(crate) struct RequestWriter<'a> {
    pub(crate) request: &'a Request,
    pub(crate) capabilities: &'a ModelCapabilities,
    pub(crate) names: ToolNames,
    pub(crate) dropped: Vec<String>,
    /// Whether the client uses this format too: if so, its spelling is kept wherever the model accepts it.
    pub(crate) is_native_client: bool,
    /// A sentence to add to the system instruction.
    pub(crate) instruction: Option<String>,
}

impl<'a> RequestWriter<'a> {
    pub(crate) fn new(request: &'a Request, target: &Target<'a>) -> Self {
        let is_native_client = request.client_format.name == NAME;
        let names = match is_native_client {
            true => ToolNames::default(),
            false => ToolNames::new(request, target.capabilities.max_tool_name_length, is_legal),
        };
        Self {
            request,
            capabilities: target.capabilities,
            names,
            dropped: Vec::new(),
            is_native_client,
            instruction: None,
        }
    }

    /// Reports a client field as dropped, once.
    pub(crate) fn drop_name(&mut self, name: &str) {
        if !self.dropped.iter().any(|known| known == name) {
            self.dropped.push(name.to_owned());
        }
    }

    pub(crate) fn drop_field(&mut self, field: RequestField) {
        self.drop_name(self.request.client_field_name(field));
    }

    pub(crate) fn drop_extra(&mut self, extra: &ExtraFields) {
        for name in extra.names_unknown_to(NAME) {
            self.drop_name(name);
        }
    }

    /// Writes the members that only this format has, and reports fields that it does not support.
    pub(crate) fn write_extra(&mut self, body: &mut Map<String, Value>) {
        let request = self.request;
        for (path, value) in request.extra.for_format(NAME).into_iter().flatten() {
            if !path.starts_with('.') {
                insert_at_path(body, path, value.clone());
            }
        }
        self.drop_extra(&request.extra);
        self.write_service_tier(body);
        for (field, is_there) in [
            (
                RequestField::ParallelTools,
                request.parallel_tools == Some(false),
            ),
            (RequestField::Verbosity, request.verbosity.is_some()),
            (RequestField::User, request.user.is_some()),
            (RequestField::CacheKey, request.cache_key.is_some()),
            (RequestField::Metadata, request.metadata.is_some()),
        ] {
            if is_there {
                self.drop_field(field);
            }
        }
    }

    pub(crate) fn write_service_tier(&mut self, body: &mut Map<String, Value>) {
        match self.request.service_tier.as_deref() {
            None => {}
            Some(tier) if self.is_native_client || matches!(tier, "flex" | "priority") => {
                body.insert("serviceTier".to_owned(), Value::String(tier.to_owned()));
            }
            // These values are the API's default.
            Some("auto" | "default") => {}
            Some(_) => self.drop_field(RequestField::ServiceTier),
        }
    }

    /// The number of system turns at the beginning of the conversation.
    pub(crate) fn count_system_turns(&self) -> usize {
        let is_system = |turn: &&crate::hub::Turn| turn.role == Role::System;
        self.request.turns.iter().take_while(is_system).count()
    }
}

/// Whether `c` is allowed in a function name: letters, digits, `_`, `.`, `:`, `-`; the first must
/// be a letter or `_`.
fn is_legal(first: bool, c: char) -> bool {
    c.is_ascii_alphabetic()
        || c == '_'
        || (!first && (c.is_ascii_digit() || matches!(c, '.' | ':' | '-')))
}
