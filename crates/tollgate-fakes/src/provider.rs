//! The providers, and the first steps of handling a request: find its key, check it, read the request.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde_json::Map;

use crate::clock;
use crate::rejection::{Checked, OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::signed_token::Token;
use crate::tables::request_read::Accepted;
use crate::tables::scope::Scope;
use crate::tables::spec::Spec;

/// Defines the kinds of providers, each with the file of its tables.
macro_rules! providers {
    ($($(#[$doc:meta])* $name:ident $file:literal)*) => {
        /// A kind of provider.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Provider {
            $($(#[$doc])* $name,)*
        }

        const COUNT: usize = [$($file),*].len();

        static PROVIDERS: [(Provider, &str, LazyLock<Spec>); COUNT] = [$((
            Provider::$name,
            $file,
            LazyLock::new(|| Spec::read(include_str!(concat!("../providers/", $file, ".toml")))),
        )),*];
    };
}

providers! {
    /// Chat completions and responses; images, videos, speech.
    OpenAi "openai"
    /// Messages.
    Anthropic "anthropic"
    /// `generateContent`; images and videos, on both of Google's platforms.
    Gemini "gemini"
    /// Volcengine Ark: images and videos.
    Ark "ark"
    /// DashScope: images.
    DashScope "dashscope"
    /// Kling: speech and videos.
    Kling "kling"
    /// xAI: images, videos, speech.
    Xai "xai"
    /// Replicate: whatever media its hosted models generate.
    Replicate "replicate"
    /// fal: whatever media its hosted models generate.
    Fal "fal"
}

impl Provider {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        PROVIDERS.iter().map(|(provider, _, _)| *provider)
    }

    /// The name that [`Provider::from_str`] reads.
    pub fn name(self) -> &'static str {
        PROVIDERS[self as usize].1
    }

    pub(crate) fn spec(self) -> &'static Spec {
        &PROVIDERS[self as usize].2
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::all().find(|provider| provider.name() == text);
        found.ok_or_else(|| format!("no fake provider is called `{text}`"))
    }
}

impl Spec {
    /// The key of a request. A request without a key is rejected.
    pub(crate) fn key(&self, request: &ReceivedRequest) -> OrRejected<String> {
        let vars = Map::new();
        let mut scope = Scope::new(&vars, &request.body, &self.tables);
        scope.request = Some(request);
        let key = match &self.key {
            Some(key) => key.value(&scope).as_str().map(str::to_owned),
            None => request.authorization("Bearer").map(str::to_owned),
        };
        key.filter(|key| !key.is_empty())
            .ok_or_else(|| self.reject_request("no-key", request))
    }

    /// Rejects a key that is neither one of `keys` nor a token signed with one of them. If there are no keys, every key is accepted, and every token
    /// that has not expired, whatever its signature.
    pub(crate) fn check_key(
        &self,
        key: &str,
        keys: &[String],
        request: &ReceivedRequest,
    ) -> Checked {
        if let Some(token) = Token::read(key).filter(|_| self.signed_tokens) {
            // The newer APIs accept only plain keys.
            let checked = if request.path.starts_with("/v1/") {
                token.check(keys, clock::milliseconds(SystemTime::now()) / 1000)
            } else {
                let message = "Authorization is invalid: this API takes an API key only";
                Err(("1002", "jwt-path", message))
            };
            return checked.map_err(|(code, rule, message)| {
                Box::new(Rejection {
                    code: Some(code),
                    ..Rejection::new(401, "", rule, message)
                })
            });
        }
        if keys.is_empty() || keys.iter().any(|known| known == key) {
            return Ok(());
        }
        Err(self.reject_request("key-refused", request))
    }

    /// Checks a request whose key was accepted.
    pub(crate) fn read_request(
        &'static self,
        request: &Arc<ReceivedRequest>,
    ) -> OrRejected<Accepted> {
        let path = percent_encoding::percent_decode_str(&request.path).decode_utf8_lossy();
        if let Some((endpoint, vars)) = self.route(&request.method, &path) {
            return endpoint.read(self, request, vars);
        }
        let known = self.has_path(&path) && self.errors.contains_key("method-not-allowed");
        let error = if known {
            "method-not-allowed"
        } else {
            "no-route"
        };
        Err(self.reject_request(error, request))
    }
}
