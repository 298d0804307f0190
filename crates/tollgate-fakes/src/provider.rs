//! What a provider's fake has to know, and the list of them.

use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use crate::anthropic::Anthropic;
use crate::ark::Ark;
use crate::dashscope::DashScope;
use crate::desk::Media;
use crate::fal::Fal;
use crate::gemini::Gemini;
use crate::incoming::Seen;
use crate::kling::Kling;
use crate::openai::OpenAi;
use crate::plan::{Ask, Plan};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::replicate::Replicate;
use crate::script::Answer;
use crate::xai::Xai;

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Chat-completions and responses; pictures, films, speech.
    OpenAi,
    /// Messages.
    Anthropic,
    /// Generate-content; pictures and films, on both of Google's platforms.
    Gemini,
    /// Volcengine Ark: pictures and films.
    Ark,
    /// DashScope: pictures.
    DashScope,
    /// Kling: speech and films.
    Kling,
    /// xAI: pictures, films, speech.
    Xai,
    /// Replicate: whatever the models that it hosts make.
    Replicate,
    /// fal: the same.
    Fal,
}

/// Every provider: its kind, its name, its fake.
const PROVIDERS: &[(Provider, &str, &dyn Api)] = &[
    (Provider::OpenAi, "openai", &OpenAi),
    (Provider::Anthropic, "anthropic", &Anthropic),
    (Provider::Gemini, "gemini", &Gemini),
    (Provider::Ark, "ark", &Ark),
    (Provider::DashScope, "dashscope", &DashScope),
    (Provider::Kling, "kling", &Kling),
    (Provider::Xai, "xai", &Xai),
    (Provider::Replicate, "replicate", &Replicate),
    (Provider::Fal, "fal", &Fal),
];

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
pub(crate) enum Wanted {
    /// An answer that no model has to think of.
    Fixed(Value),
    Chat(Box<dyn Work>),
    Media(Media),
}

/// A request to a model.
pub(crate) trait Work: Send {
    fn ask(&self) -> &Ask;

    /// What the model says, in the format that the request came in.
    fn answer(&self, plan: &Plan) -> Judged<Answer>;
}

/// One provider's fake.
pub(crate) trait Api: Send + Sync {
    /// What a channel's base URL has after the host.
    fn base_path(&self) -> &'static str;

    /// The key, or why the request has none that counts.
    fn key(&self, request: &Seen) -> Judged<String>;

    /// Whether the key is one of `keys`; any is if there are none.
    fn admit(&self, key: &str, keys: &[String], request: &Seen) -> Checked {
        if keys.is_empty() || keys.iter().any(|known| known == key) {
            return Ok(());
        }
        Err(Box::new(self.fault(Fault::KeyRefused, request)))
    }

    /// Judges a request, whose key is good.
    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted>;

    /// An error in the provider's words.
    fn fault(&self, fault: Fault, request: &Seen) -> Refusal;

    /// The body of an error.
    fn error(&self, refusal: &Refusal, id: &str) -> Value;

    /// Headers that every answer carries; `id` is unique.
    fn headers(&self, id: &str) -> Vec<(&'static str, String)>;
}
