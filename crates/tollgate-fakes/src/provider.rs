//! What a provider's fake has to know, and the list of them.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::anthropic::Anthropic;
use crate::chat_output::{ChatOutput, ChatPrompt};
use crate::event_stream::Answer;
use crate::gemini::Gemini;
use crate::kling::Kling;
use crate::media_context::MediaRequest;
use crate::openai::OpenAi;
use crate::rejection::{Checked, OrRejected, ProviderError, Rejection};
use crate::request::ReceivedRequest;
use crate::tables::spec::Spec;

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Chat-completions and responses; images, videos, speech.
    OpenAi,
    /// Messages.
    Anthropic,
    /// Generate-content; images and videos, on both of Google's platforms.
    Gemini,
    /// Volcengine Ark: images and videos.
    Ark,
    /// DashScope: images.
    DashScope,
    /// Kling: speech and videos.
    Kling,
    /// xAI: images, videos, speech.
    Xai,
    /// Replicate: whatever the models that it hosts make.
    Replicate,
    /// fal: the same.
    Fal,
}

/// Every provider: its kind, its name, its fake.
static PROVIDERS: &[(Provider, &str, &dyn Api)] = &[
    (Provider::OpenAi, "openai", &OpenAi),
    (Provider::Anthropic, "anthropic", &Anthropic),
    (Provider::Gemini, "gemini", &Gemini),
    (Provider::Ark, "ark", &ARK),
    (Provider::DashScope, "dashscope", &DASHSCOPE),
    (Provider::Kling, "kling", &Kling),
    (Provider::Xai, "xai", &XAI),
    (Provider::Replicate, "replicate", &REPLICATE),
    (Provider::Fal, "fal", &FAL),
];

/// A provider that its tables describe completely.
struct Tables(LazyLock<Spec>);

impl Api for Tables {
    fn spec(&self) -> &Spec {
        &self.0
    }
}

macro_rules! tables {
    ($($name:ident $file:literal)*) => {
        $(static $name: Tables = Tables(LazyLock::new(|| {
            Spec::read(include_str!(concat!("../providers/", $file)))
        }));)*
    };
}

tables! {
    ARK "ark.toml"
    DASHSCOPE "dashscope.toml"
    FAL "fal.toml"
    REPLICATE "replicate.toml"
    XAI "xai.toml"
}

impl Provider {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        PROVIDERS.iter().map(|(provider, _, _)| *provider)
    }

    /// The name that [`Provider::from_str`] reads.
    pub fn name(self) -> &'static str {
        self.line().1
    }

    pub(crate) fn api(self) -> &'static dyn Api {
        self.line().2
    }

    fn line(self) -> &'static (Self, &'static str, &'static dyn Api) {
        let found = PROVIDERS.iter().find(|(provider, _, _)| *provider == self);
        found.expect("every provider has a line in PROVIDERS")
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = PROVIDERS.iter().find(|(_, name, _)| *name == text);
        let found = found.map(|(provider, _, _)| *provider);
        found.ok_or_else(|| format!("no fake provider is called `{text}`"))
    }
}

/// What a request asks for, once it is found in order.
pub(crate) enum Accepted {
    /// An answer that no model has to think of.
    Fixed(Value),
    Chat(Box<dyn ChatRequest>),
    Media(MediaRequest),
}

/// What the code of a provider makes of a request.
pub(crate) enum Handled {
    Accepted(Accepted),
    /// Variables for the rules and templates of the endpoint.
    Vars(Map<String, Value>),
}

/// A request to a model.
pub(crate) trait ChatRequest: Send {
    fn prompt(&self) -> &ChatPrompt;

    /// What the model says, in the format that the request came in.
    fn answer(&self, plan: &ChatOutput) -> OrRejected<Answer>;
}

/// One provider's fake.
pub(crate) trait Api: Send + Sync {
    /// What its file says of it.
    fn spec(&self) -> &Spec {
        unreachable!()
    }

    /// Handles a request whose endpoint names a function of the code.
    fn handle(
        &self,
        _: &str,
        _: &Arc<ReceivedRequest>,
        _: &Map<String, Value>,
    ) -> OrRejected<Handled> {
        unreachable!("the provider's tables name no handler")
    }

    /// What a channel's base URL has after the host.
    fn base_path(&self) -> &str {
        &self.spec().base_path
    }

    /// The key, or why the request has none that counts.
    fn key(&self, request: &ReceivedRequest) -> OrRejected<String> {
        let spec = self.spec();
        let value = request.header("authorization").unwrap_or_default();
        let (scheme, key) = value.split_once(' ').unwrap_or_default();
        let key = key.trim();
        if scheme.eq_ignore_ascii_case(&spec.authorization) && !key.is_empty() {
            return Ok(key.to_owned());
        }
        Err(spec.reject_request("no-key", request))
    }

    /// Whether the key is one of `keys`; any is if there are none.
    fn check_key(&self, key: &str, keys: &[String], request: &ReceivedRequest) -> Checked {
        if keys.is_empty() || keys.iter().any(|known| known == key) {
            return Ok(());
        }
        Err(Box::new(
            self.provider_error(ProviderError::KeyRefused, request),
        ))
    }

    /// Judges a request, whose key is good.
    fn read_request(&'static self, request: &Arc<ReceivedRequest>) -> OrRejected<Accepted> {
        let spec = self.spec();
        let path = percent_encoding::percent_decode_str(&request.path).decode_utf8_lossy();
        let Some((endpoint, mut vars)) = spec.route(&request.method, &path) else {
            let known = spec.has_path(&path) && spec.errors.contains_key("wrong-method");
            let error = if known { "wrong-method" } else { "no-route" };
            return Err(spec.reject_request(error, request));
        };
        if let Some(handler) = &endpoint.handler {
            match self.handle(handler, request, &vars)? {
                Handled::Accepted(wanted) => return Ok(wanted),
                Handled::Vars(more) => vars.extend(more),
            }
        }
        endpoint.read(spec, request, vars)
    }

    /// An error in the provider's words.
    fn provider_error(
        &self,
        provider_error: ProviderError,
        request: &ReceivedRequest,
    ) -> Rejection {
        self.spec().provider_error(provider_error, request)
    }

    /// The body of an error.
    fn error(&self, rejection: &Rejection, id: &str) -> Value {
        self.spec().error_body(rejection, id)
    }

    /// Headers that every answer carries; `id` is unique.
    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        self.spec().response_headers(id)
    }
}
