//! Prepares a client's request for one upstream: it is forwarded if both use the same format, else translated through the hub.

use std::collections::HashSet;

use bytes::Bytes;
use http::HeaderMap;
use tollgate_chat::hub::{PartKind, ReasoningControl, RequestField, ToolChoice};
use tollgate_chat::provider_options::{ProviderOption, add_store_false, remove_options};
use tollgate_chat::{Format, InvalidRequest, RequestSummary, Target, custom_tool, hub, thoughts};
use tollgate_upstream::Channel;

use crate::chat::allowed_options::{NotForwarded, RequestOptions};
use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::fetch_urls;
use crate::http::large_work;
use crate::routing::ModelBinding;

/// A request as the client sent it and, once it is needed, in the hub's form.
pub struct Conversation {
    /// The client's bytes.
    pub raw: Bytes,
    /// What was found in the body without parsing it completely.
    pub summary: RequestSummary,
    /// The client's name of the model.
    pub model: String,
    /// Whether a stream is requested, in the body or in the path.
    pub stream: bool,
    /// Whether fields that would be dropped are rejected with an error (`x-tollgate-strict`).
    pub strict: bool,
    /// Parsed when the first upstream of another format is tried.
    pub hub: Option<hub::Request>,
    options: RequestOptions,
    /// `raw` before options were removed.
    original: Bytes,
    /// The fields of `original` that were removed from `raw`.
    removed: Vec<String>,
}

/// A request for one upstream.
pub struct PreparedRequest {
    /// The upstream's format.
    pub format: &'static dyn Format,
    /// The body in that format.
    pub body: Bytes,
    /// Whether the response needs no translation.
    pub forward: bool,
    /// Whether thoughts are omitted from the response, because the client did not request them. Forwarded responses are as the vendor sends them.
    pub hides_thoughts: bool,
    /// The client's names of fields that were left out.
    pub dropped: Vec<String>,
    /// The headers to send, if they are not the client's.
    pub headers: Option<Box<HeaderMap>>,
    /// Tools that were renamed for the upstream: (name that was sent, client's name).
    pub renamed_tools: Vec<(String, String)>,
    /// The tool that replaces JSON output; the response is converted back.
    pub json_tool: Option<String>,
    /// The client's names of its free-text tools; if functions replaced them, the response is converted back.
    pub custom_tools: HashSet<String>,
}

impl Conversation {
    /// A request that was summarised and not parsed yet.
    pub fn new(
        raw: &Bytes,
        summary: RequestSummary,
        model: String,
        stream: bool,
        strict: bool,
        options: RequestOptions,
    ) -> Self {
        Self {
            raw: raw.clone(),
            summary,
            model,
            stream,
            strict,
            hub: None,
            options,
            original: raw.clone(),
            removed: Vec::new(),
        }
    }

    /// Whether the provider of `channel` stores the reply, so that a later request can continue after it.
    pub fn is_stored_at(&self, channel: &Channel) -> bool {
        let is_stored_reply = self.summary.stores_reply && channel.allows(ProviderOption::Store);
        self.summary.thread.is_some() || is_stored_reply
    }

    /// Prepares the request for a provider's model on `channel`, with the client's headers.
    ///
    /// # Errors
    /// 400 if the upstream's format cannot express the request (that of another channel may), if the request is invalid, or if a file that it names
    /// by URL cannot be fetched; 502 or 503 if the channel has no format for the model.
    pub async fn prepare(
        &mut self,
        context: &ChatContext,
        endpoint: Endpoint,
        user_id: &str,
        channel: (&Channel, &HeaderMap),
        binding: &ModelBinding,
    ) -> Result<PreparedRequest, ChatErrorResponse> {
        let not_forwarded = self.remove_not_allowed(channel)?;
        let ModelBinding { model, formats, .. } = binding;
        let same = formats
            .iter()
            .copied()
            .find(|f| f.name() == endpoint.format.name());
        let target = Target {
            model: &model.upstream_id,
            stream: self.stream,
            capabilities: &model.capabilities,
            default_max_tokens: context.settings.default_max_tokens,
        };
        if self.summary.thread.is_some() && !(same.is_some() && binding.stores_threads) {
            return Err(ChatErrorResponse::thread_unsupported());
        }
        if !model.capabilities.supports_forced_tools && may_force_tool_call(&self.raw) {
            self.check_forced_tool_call(context, endpoint, user_id)
                .await?;
        }
        let adds_reasoning = model.reasoning.is_some() && !self.summary.has_reasoning_settings;
        let is_unrequested = self.sends_unrequested_thoughts(endpoint, binding);
        let other_api = self.needs_other_api(same, binding);
        let fetches_all = self.summary.attachments > 0 && channel.0.fetches_urls();
        let has_urls = fetches_all && may_contain_url(&self.raw);
        let must_rewrite = adds_reasoning || is_unrequested || other_api || has_urls;
        if let (Some(format), true, false) = (same, self.summary.is_native, must_rewrite) {
            return self.forward(format, &target, channel.0, binding, not_forwarded);
        }
        let mut request = self.parse(context, endpoint, user_id).await?.clone();
        // The client's format, else the preferred one; but if web search is requested, a format that supports it.
        let is_search = |tool: &hub::Tool| matches!(tool.kind, hub::ToolKind::WebSearch { .. });
        let searches = request.tools.iter().any(is_search);
        let mut by_preference = same.into_iter().chain(formats.iter().copied());
        let preferred = by_preference.clone().next();
        let able = by_preference.find(|f| !searches || f.runs_web_search(&model.capabilities));
        let Some(format) = able.or(preferred) else {
            return Err(ChatErrorResponse::no_channel(&self.model));
        };
        self.check_counted(format, channel.0)?;
        let is_same_format = format.name() == endpoint.format.name();
        check_forced_tool_offered(&request)?;
        let hides_thoughts = !thoughts::are_requested(&request);
        if adds_reasoning {
            request.reasoning.clone_from(&model.reasoning);
        }
        // Boxed: this is rare, and would make every request's future larger.
        let accepts = |part: &PartKind| {
            !has_urls
                && (format.accepts_url(part, &model.capabilities) || !fetch_urls::is_web(part))
        };
        Box::pin(fetch_urls::inline_urls(
            &context.egress,
            &mut request,
            accepts,
        ))
        .await?;
        let write = || format.write_request(&request, &target);
        let written = large_work::run_in_place(self.raw.len(), write)?;
        self.check_dropped(&written.dropped)?;
        let mut dropped = not_forwarded.names;
        dropped.extend(written.dropped);
        Ok(PreparedRequest {
            format,
            headers: not_forwarded.headers,
            body: written.body.into(),
            // The response can be forwarded even if the request was rewritten in the client's own format.
            forward: is_same_format
                && !(must_rewrite && hides_thoughts)
                && written.renamed_tools.is_empty()
                && written.json_tool.is_none(),
            hides_thoughts,
            dropped,
            renamed_tools: written.renamed_tools,
            json_tool: written.json_tool,
            custom_tools: custom_tool::custom_tool_names(&request),
        })
    }

    /// Prepares a request for an upstream of the client's own format: the bytes are forwarded unchanged except for the model and the limits.
    fn forward(
        &self,
        format: &'static dyn Format,
        target: &Target<'_>,
        channel: &Channel,
        binding: &ModelBinding,
        not_forwarded: NotForwarded,
    ) -> Result<PreparedRequest, ChatErrorResponse> {
        self.check_counted(format, channel)?;
        let forward = || format.forward_request(&self.raw, &self.summary, target);
        let forwarded = large_work::run_in_place(self.raw.len(), forward)?;
        self.check_dropped(&forwarded.dropped)?;
        let mut dropped = not_forwarded.names;
        dropped.extend(forwarded.dropped);
        let mut body = forwarded.body;
        if format.stores_replies() && must_not_store(&body, channel, binding) {
            body = add_store_false(&body).unwrap_or(body);
        }
        Ok(PreparedRequest {
            format,
            body,
            forward: true,
            hides_thoughts: false,
            dropped,
            headers: not_forwarded.headers,
            renamed_tools: Vec::new(),
            json_tool: None,
            custom_tools: HashSet::new(),
        })
    }

    /// Rejects a request if a field is dropped that must not be dropped: any field in strict mode, else a field that the client would pay for.
    fn check_dropped(&self, dropped: &[String]) -> Result<(), ChatErrorResponse> {
        if let (true, Some(first)) = (self.strict, dropped.first()) {
            let why = "is not supported by the model's provider, and `x-tollgate-strict` is set";
            return Err(InvalidRequest::new(first, why).into());
        }
        if let Some(priced) = self.options.priced_and_dropped(dropped) {
            let why = "has a price, and is not supported by the model's provider";
            return Err(InvalidRequest::new(&priced.field, why).into());
        }
        Ok(())
    }

    /// Rejects a tool with a price for each call, if responses of that format do not report the number of calls.
    fn check_counted(
        &self,
        format: &dyn Format,
        channel: &Channel,
    ) -> Result<(), ChatErrorResponse> {
        match self.options.uncounted(format.name(), channel) {
            Some(found) => {
                let why = "has a price for each call, but this model's provider does not report how many calls it made";
                Err(InvalidRequest::new(&found.field, why).into())
            }
            None => Ok(()),
        }
    }

    /// Removes from the request what `channel` does not forward.
    fn remove_not_allowed(
        &mut self,
        (channel, headers): (&Channel, &HeaderMap),
    ) -> Result<NotForwarded, ChatErrorResponse> {
        let mut not_forwarded = NotForwarded::default();
        let denied = self.options.not_allowed(channel)?;
        let names = denied.iter().map(|found| found.field.clone());
        not_forwarded.names.extend(names);
        if not_forwarded.names != self.removed {
            self.raw = match denied.is_empty() {
                true => self.original.clone(),
                false => {
                    let remove = || remove_options(&self.original, &denied);
                    large_work::run_in_place(self.original.len(), remove)?
                }
            };
            self.hub = None;
            self.removed.clone_from(&not_forwarded.names);
        }
        self.options
            .filter_betas(headers, channel, &mut not_forwarded);
        match not_forwarded.names.first() {
            Some(first) if self.strict => {
                let why = "is not forwarded by the model's channel, and `x-tollgate-strict` is set";
                Err(InvalidRequest::new(first, why).into())
            }
            _ => Ok(not_forwarded),
        }
    }

    /// Whether web search is requested and the client's format does not support it with the model, but another API of the channel may.
    fn needs_other_api(&self, same: Option<&dyn Format>, binding: &ModelBinding) -> bool {
        const FIELD: &str = "web_search_options";
        let capabilities = &binding.model.capabilities;
        same.is_some_and(|format| !format.runs_web_search(capabilities))
            && binding.formats.len() > 1
            && self.options.contains(FIELD)
            && !self.removed.iter().any(|field| field == FIELD)
    }

    /// Whether the model's server sends thoughts to clients of its own format that did not request them, as DeepSeek's does. On the vendors' own
    /// paths they are forwarded.
    fn sends_unrequested_thoughts(&self, endpoint: Endpoint, binding: &ModelBinding) -> bool {
        !endpoint.bare
            && endpoint.format.name() == "chat-completions"
            && binding.model.capabilities.requires_past_reasoning
            && !self.summary.has_reasoning_settings
    }

    /// Rejects a request that forces a tool call, for a model that does not support it: without the force, the reply would differ.
    async fn check_forced_tool_call(
        &mut self,
        context: &ChatContext,
        endpoint: Endpoint,
        user_id: &str,
    ) -> Result<(), ChatErrorResponse> {
        let request = self.parse(context, endpoint, user_id).await?;
        if !forces_tool_call(request) {
            return Ok(());
        }
        let field = request.client_field_name(RequestField::ToolChoice);
        let why = "forces a tool call, which this model does not support: let the model choose, or choose none";
        Err(InvalidRequest::new(field, why).into())
    }

    /// The request in the hub's form, parsed at the first call.
    async fn parse(
        &mut self,
        context: &ChatContext,
        endpoint: Endpoint,
        user_id: &str,
    ) -> Result<&hub::Request, ChatErrorResponse> {
        if self.hub.is_none() {
            let read = || endpoint.format.read_request(&self.raw);
            let mut request = large_work::run_in_place(self.raw.len(), read)?;
            request.model.clone_from(&self.model);
            request.stream = self.stream;
            let signatures = &context.signatures;
            Box::pin(signatures.fetch(user_id, &request)).await;
            signatures.restore(user_id, &mut request);
            self.hub = Some(request);
        }
        self.hub
            .as_ref()
            .ok_or_else(|| tollgate_core::ApiError::internal().into())
    }
}

/// Rejects a request that forces a tool which is not among its tools.
fn check_forced_tool_offered(request: &hub::Request) -> Result<(), InvalidRequest> {
    let Some(name) = request.forced_tool_not_offered() else {
        return Ok(());
    };
    let why = format!("forces {name:?}, which is not among the request's tools");
    let field = request.client_field_name(RequestField::ToolChoice);
    Err(InvalidRequest::new(field, why))
}

/// Whether the model must call one of the request's tools.
fn forces_tool_call(request: &hub::Request) -> bool {
    let is_forced = match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => true,
        Some(ToolChoice::AllowedTools { required, .. }) => *required,
        Some(ToolChoice::Auto | ToolChoice::None) | None => false,
    };
    is_forced && !request.tools.is_empty()
}

/// Whether the body contains a member that may force a tool call.
fn may_force_tool_call(body: &[u8]) -> bool {
    const NAMES: [&str; 4] = ["tool_choice", "function_call", "toolConfig", "tool_config"];
    NAMES
        .iter()
        .any(|name| memchr::memmem::find(body, name.as_bytes()).is_some())
}

/// Whether the body may contain a URL. Its colon and slashes may be escaped: `\/`, `\u002f`, `\u003a`.
fn may_contain_url(body: &[u8]) -> bool {
    let texts: [&[u8]; 3] = [b"://", b"\\/", b"\\u00"];
    texts
        .iter()
        .any(|text| memchr::memmem::find(body, text).is_some())
}

/// Replaces the name of a tool that was renamed for the upstream by the client's; other names stay.
pub fn restore_tool_name(renamed_tools: &[(String, String)], name: &mut String) {
    if let Some((_, original)) = renamed_tools.iter().find(|(sent, _)| sent == name) {
        name.clone_from(original);
    }
}

/// Whether fields that would be dropped are rejected with an error (`x-tollgate-strict: true`).
pub fn is_strict(headers: &HeaderMap) -> bool {
    let strict = headers.get("x-tollgate-strict");
    strict.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// Whether the provider must not store the response: the channel does not allow storing, and the model responds the same without it. If the model
/// reasons, a client that has no encrypted reasoning refers to the stored reasoning in its next request.
fn must_not_store(body: &[u8], channel: &Channel, binding: &ModelBinding) -> bool {
    let is_stateless = || {
        binding.model.capabilities.thinking == ReasoningControl::Unsupported
            || memchr::memmem::find(body, b"\"reasoning.encrypted_content\"").is_some()
    };
    !channel.allows(ProviderOption::Store) && is_stateless()
}
