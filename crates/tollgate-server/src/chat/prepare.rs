//! A client's request, made ready for one upstream: passed on, or written anew.

use std::collections::HashSet;

use bytes::Bytes;
use http::HeaderMap;
use tollgate_chat::{Bad, Format, Glance, Target, custom_tool, hub};

use super::mount::Mount;
use super::pictures;
use super::refused::Refused;
use crate::app::App;
use crate::routing::Spoken;

/// A request as the client sent it, and as the hub sees it once that is needed.
pub struct Conversation {
    /// The client's bytes.
    pub raw: Bytes,
    /// What a quick look told.
    pub glance: Glance,
    /// The model's name as the client knows it.
    pub model: String,
    /// Whether a stream is asked for, wherever the format says so.
    pub stream: bool,
    /// Whether what cannot be carried is refused (`x-tollgate-strict`).
    pub strict: bool,
    /// Read once, when the first upstream of another format is tried.
    pub hub: Option<hub::Request>,
}

/// A request for one upstream.
pub struct Prepared {
    /// What the upstream speaks.
    pub format: &'static dyn Format,
    /// In that format.
    pub body: Bytes,
    /// Whether both sides speak the same format and bytes pass through.
    pub forward: bool,
    /// What was left out, in the client's words.
    pub dropped: Vec<String>,
    /// Tool names to change back in the reply: (sent, the client's).
    pub renamed: Vec<(String, String)>,
    /// The tool that stands in for JSON output, to be undone in the reply.
    pub json_tool: Option<String>,
    /// Free-text tools, by the client's names: where functions stood in for them, that is undone in the reply.
    pub custom_tools: HashSet<String>,
}

impl Conversation {
    /// A request that was looked at and not read yet.
    pub fn new(raw: &Bytes, glance: Glance, model: String, stream: bool, strict: bool) -> Self {
        Self {
            raw: raw.clone(),
            glance,
            model,
            stream,
            strict,
            hub: None,
        }
    }

    /// Makes the request ready for a provider's model.
    ///
    /// # Errors
    /// 400 where the upstream's format cannot carry what was asked; another channel may.
    pub async fn prepare(
        &mut self,
        app: &App,
        mount: Mount,
        user_id: &str,
        spoken: &Spoken,
    ) -> Result<Prepared, Refused> {
        let Spoken { model, formats, .. } = spoken;
        let same = formats
            .iter()
            .copied()
            .find(|f| f.name() == mount.format.name());
        let target = Target {
            model: &model.wire,
            stream: self.stream,
            traits: &model.traits,
            default_max_tokens: app.config.chat.default_max_tokens,
        };
        let adds_reasoning = model.reasoning.is_some() && !self.glance.says_reasoning;
        if let (Some(format), true, false) = (same, self.glance.is_native, adds_reasoning) {
            let body = format.forward_request(&self.raw, &self.glance, &target)?;
            return Ok(Prepared {
                format,
                body,
                forward: true,
                dropped: Vec::new(),
                renamed: Vec::new(),
                json_tool: None,
                custom_tools: HashSet::new(),
            });
        }
        let Some(format) = same.or(formats.first().copied()) else {
            return Err(Refused::no_channel(&self.model));
        };
        let forward = same.is_some();
        let mut request = self.read(app, mount, user_id)?.clone();
        if adds_reasoning {
            request.reasoning.clone_from(&model.reasoning);
        }
        // Boxed: it is rare, and would make every request's future larger.
        Box::pin(pictures::fetch(app, &mut request, format, &model.traits)).await?;
        let written = format.write_request(&request, &target)?;
        if self.strict
            && let Some(first) = written.dropped.first()
        {
            let why = "cannot be carried to the model's provider, and `x-tollgate-strict` is set";
            return Err(Bad::new(first, why).into());
        }
        Ok(Prepared {
            format,
            body: written.body.into(),
            // Written anew in the client's own format, the reply still passes through.
            forward: forward && written.renamed_tools.is_empty() && written.json_tool.is_none(),
            dropped: written.dropped,
            renamed: written.renamed_tools,
            json_tool: written.json_tool,
            custom_tools: custom_tool::names(&request),
        })
    }

    fn read(&mut self, app: &App, mount: Mount, user_id: &str) -> Result<&hub::Request, Refused> {
        if self.hub.is_none() {
            let mut request = mount.format.read_request(&self.raw)?;
            request.model.clone_from(&self.model);
            request.stream = self.stream;
            app.memory.recall(user_id, &mut request);
            self.hub = Some(request);
        }
        self.hub
            .as_ref()
            .ok_or_else(|| tollgate_core::ApiError::internal().into())
    }
}

/// Whether the client wants silent losses refused (DECISIONS.md › Values).
pub fn is_strict(headers: &HeaderMap) -> bool {
    let strict = headers.get("x-tollgate-strict");
    strict.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"))
}
