//! A client's request, prepared for one upstream: forwarded if both speak the same format, else translated through the hub.

use std::collections::HashSet;

use bytes::Bytes;
use http::HeaderMap;
use tollgate_chat::{Format, InvalidRequest, RequestSummary, Target, custom_tool, hub};

use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::fetch_urls::fetch_urls;
use crate::routing::ModelBinding;

/// A request as the client sent it, and in the hub's form once that is needed.
pub struct Conversation {
    /// The client's bytes.
    pub raw: Bytes,
    /// What was found without parsing the body completely.
    pub summary: RequestSummary,
    /// The client's name of the model.
    pub model: String,
    /// Whether a stream is requested, in the body or in the path.
    pub stream: bool,
    /// Whether fields that would be dropped are an error (`x-tollgate-strict`).
    pub strict: bool,
    /// Parsed when the first upstream of another format is tried.
    pub hub: Option<hub::Request>,
}

/// A request for one upstream.
pub struct PreparedRequest {
    /// The upstream's format.
    pub format: &'static dyn Format,
    /// The body in that format.
    pub body: Bytes,
    /// Whether the response needs no translation.
    pub forward: bool,
    /// The client's names of fields that were left out.
    pub dropped: Vec<String>,
    /// Tools that were renamed for the upstream: (name that was sent, client's name).
    pub renamed_tools: Vec<(String, String)>,
    /// The tool that stands for JSON output; the response is converted back.
    pub json_tool: Option<String>,
    /// The client's names of its free-text tools; where functions stood for them, the response is converted back.
    pub custom_tools: HashSet<String>,
}

impl Conversation {
    /// A request that was summarized and not parsed yet.
    pub fn new(
        raw: &Bytes,
        summary: RequestSummary,
        model: String,
        stream: bool,
        strict: bool,
    ) -> Self {
        Self {
            raw: raw.clone(),
            summary,
            model,
            stream,
            strict,
            hub: None,
        }
    }

    /// Prepares the request for a provider's model.
    ///
    /// # Errors
    /// 400 if the upstream's format cannot express the request; another channel's may.
    pub async fn prepare(
        &mut self,
        context: &ChatContext,
        endpoint: Endpoint,
        user_id: &str,
        binding: &ModelBinding,
    ) -> Result<PreparedRequest, ChatErrorResponse> {
        let ModelBinding { model, formats, .. } = binding;
        let same = formats
            .iter()
            .copied()
            .find(|f| f.name() == endpoint.format.name());
        let target = Target {
            model: &model.upstream_id,
            stream: self.stream,
            capabilities: &model.traits,
            default_max_tokens: context.settings.default_max_tokens,
        };
        let adds_reasoning = model.reasoning.is_some() && !self.summary.has_reasoning_settings;
        if let (Some(format), true, false) = (same, self.summary.is_native, adds_reasoning) {
            let body = format.forward_request(&self.raw, &self.summary, &target)?;
            return Ok(PreparedRequest {
                format,
                body,
                forward: true,
                dropped: Vec::new(),
                renamed_tools: Vec::new(),
                json_tool: None,
                custom_tools: HashSet::new(),
            });
        }
        let Some(format) = same.or(formats.first().copied()) else {
            return Err(ChatErrorResponse::no_channel(&self.model));
        };
        let is_same_format = same.is_some();
        let mut request = self.parse(context, endpoint, user_id)?.clone();
        if adds_reasoning {
            request.reasoning.clone_from(&model.reasoning);
        }
        // Boxed: it is rare, and would make every request's future larger.
        let fetching = fetch_urls(&context.egress, &mut request, format, &model.traits);
        Box::pin(fetching).await?;
        let written = format.write_request(&request, &target)?;
        if self.strict
            && let Some(first) = written.dropped.first()
        {
            let why = "cannot be carried to the model's provider, and `x-tollgate-strict` is set";
            return Err(InvalidRequest::new(first, why).into());
        }
        Ok(PreparedRequest {
            format,
            body: written.body.into(),
            // A request that was rewritten in the client's own format still has a response that can be forwarded.
            forward: is_same_format
                && written.renamed_tools.is_empty()
                && written.json_tool.is_none(),
            dropped: written.dropped,
            renamed_tools: written.renamed_tools,
            json_tool: written.json_tool,
            custom_tools: custom_tool::custom_tool_names(&request),
        })
    }

    /// The request in the hub's form, parsed at the first call.
    fn parse(
        &mut self,
        context: &ChatContext,
        endpoint: Endpoint,
        user_id: &str,
    ) -> Result<&hub::Request, ChatErrorResponse> {
        if self.hub.is_none() {
            let mut request = endpoint.format.read_request(&self.raw)?;
            request.model.clone_from(&self.model);
            request.stream = self.stream;
            context.signatures.restore(user_id, &mut request);
            self.hub = Some(request);
        }
        self.hub
            .as_ref()
            .ok_or_else(|| tollgate_core::ApiError::internal().into())
    }
}

/// Changes a tool's name back that was renamed for the upstream.
pub fn restore_tool_name(renamed_tools: &[(String, String)], name: &mut String) {
    if let Some((_, original)) = renamed_tools.iter().find(|(sent, _)| sent == name) {
        name.clone_from(original);
    }
}

/// Whether fields that would be dropped are an error (`x-tollgate-strict: true`).
pub fn is_strict(headers: &HeaderMap) -> bool {
    let strict = headers.get("x-tollgate-strict");
    strict.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"))
}
