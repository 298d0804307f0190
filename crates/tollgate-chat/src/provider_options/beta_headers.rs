//! Headers with which clients enable beta features of a provider.

/// The headers with lists of beta features, in lower case.
pub const BETA_HEADERS: [&str; 2] = ["anthropic-beta", "openai-beta"];

/// The beginnings of the names of beta features that change neither the price nor what the provider stores: they are always forwarded.
/// <https://docs.anthropic.com/en/api/beta-headers>
const FREE_BETAS: &[&str] = &[
    "claude-code-",
    "interleaved-thinking-",
    "fine-grained-tool-streaming-",
    "token-efficient-tools-",
    "structured-outputs-",
    "context-management-",
    "prompt-caching-",
    "extended-cache-ttl-",
    "output-128k-",
    "max-tokens-3-5-sonnet-",
    "pdfs-",
    "token-counting-",
    "computer-use-",
    "effort-",
    "advanced-tool-use-",
    "tool-examples-",
    "message-threads-",
    "model-context-window-exceeded-",
];

/// Whether a beta feature is forwarded by a channel whose `betas` are `allowed`: names, or the beginnings of names followed by `*`.
pub fn is_allowed_beta(name: &str, allowed: &[String]) -> bool {
    let fits = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    FREE_BETAS.iter().any(|start| name.starts_with(start)) || allowed.iter().any(fits)
}
