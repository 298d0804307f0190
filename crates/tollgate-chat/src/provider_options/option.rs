//! [`ProviderOption`], and an option that was found in a request.

use crate::error::InvalidRequest;

/// An option, identified by its name in a channel's `allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderOption {
    /// A tier of speed and price other than the default one; `speed` of the messages format too.
    ServiceTier,
    /// The region in which the model runs, if the region affects the price.
    InferenceGeo,
    /// Another model or provider that the server selects (OpenRouter).
    Routing,
    /// A run that continues after the response.
    Background,
    /// A response that the provider stores.
    Store,
    /// State that the provider has stored from earlier requests: responses, conversations, prompts.
    StoredContext,
    /// A cached prompt that the provider stores for a price per hour.
    CachedContent,
    /// Writes to the prompt cache that last longer than the provider's default.
    CacheWrite1h,
    /// Audio in the response.
    AudioOutput,
    /// A web search.
    WebSearch,
    /// Pages that the provider fetches.
    WebFetch,
    /// A search in files that are stored at the provider.
    FileSearch,
    /// Code that runs at the provider, and its container.
    CodeExecution,
    /// A tool that generates images.
    ImageGeneration,
    /// Remote tool servers that the provider calls.
    Mcp,
    /// A search in maps.
    Maps,
    /// Any other tool that the provider may run.
    OtherTools,
}

/// What the gateway does with an option that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfNotAllowed {
    /// The gateway removes the option and names it to the client: the response is the same without it.
    Remove,
    /// The gateway rejects the request: the response would differ without the option.
    Reject,
}

/// Every option with its name in `allow`.
const NAMES: [(ProviderOption, &str); 17] = [
    (ProviderOption::ServiceTier, "service_tier"),
    (ProviderOption::InferenceGeo, "inference_geo"),
    (ProviderOption::Routing, "routing"),
    (ProviderOption::Background, "background"),
    (ProviderOption::Store, "store"),
    (ProviderOption::StoredContext, "stored_context"),
    (ProviderOption::CachedContent, "cached_content"),
    (ProviderOption::CacheWrite1h, "cache_write_1h"),
    (ProviderOption::AudioOutput, "audio_output"),
    (ProviderOption::WebSearch, "web_search"),
    (ProviderOption::WebFetch, "web_fetch"),
    (ProviderOption::FileSearch, "file_search"),
    (ProviderOption::CodeExecution, "code_execution"),
    (ProviderOption::ImageGeneration, "image_generation"),
    (ProviderOption::Mcp, "mcp"),
    (ProviderOption::Maps, "maps"),
    (ProviderOption::OtherTools, "other_tools"),
];

impl ProviderOption {
    /// The names of all options, for error messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, name)| *name)
    }

    /// Every option.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(option, _)| *option)
    }

    /// The option's name in `allow`.
    pub fn name(self) -> &'static str {
        let row = NAMES.iter().find(|(option, _)| *option == self);
        row.map_or("", |(_, name)| name)
    }

    /// The option with that name. `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        let row = NAMES.iter().find(|(_, known)| *known == name);
        row.map(|(option, _)| *option)
    }
}

/// An option that a request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundOption {
    /// The option.
    pub option: ProviderOption,
    /// The client's field, such as `service_tier` or `tools[2]`.
    pub field: String,
    /// The tier that is requested, in lower case; empty for every other option.
    pub tier: String,
}

impl FoundOption {
    /// What the gateway does with the option if it is not allowed.
    pub fn if_not_allowed(&self) -> IfNotAllowed {
        match self.option {
            ProviderOption::ServiceTier
            | ProviderOption::InferenceGeo
            | ProviderOption::Routing
            | ProviderOption::Store
            | ProviderOption::CacheWrite1h => IfNotAllowed::Remove,
            // Coding agents offer the provider's tools beside their own: without one of them the model still has other tools.
            _ if self.is_tool() => IfNotAllowed::Remove,
            _ => IfNotAllowed::Reject,
        }
    }

    /// Whether a request of `format` may have this service tier: a server of the format reads its field.
    pub fn is_tier_of(&self, format: &str) -> bool {
        let fields: &[&str] = match format {
            "messages" => &["service_tier", "speed"],
            "generate-content" => &["serviceTier", "service_tier"],
            _ => &["service_tier"],
        };
        fields.contains(&self.field.as_str())
    }

    /// Whether the option is an entry in a list of tools.
    pub fn is_tool(&self) -> bool {
        self.field.ends_with(']')
    }

    /// The error if the option is not allowed and the response would differ without it.
    pub fn not_available(&self) -> InvalidRequest {
        let name = self.option.name();
        let why = format!(
            "is not available: it has a price or keeps state at the provider, and no channel of this model allows `{name}`"
        );
        InvalidRequest::new(&self.field, why)
    }
}
