//! Decides whether a host that the operator configured is on the operator's own network.

use std::net::IpAddr;

use super::ssrf_guard::is_public;

/// Suffixes of names that public DNS does not contain.
const PRIVATE_SUFFIXES: [&str; 12] = [
    ".localhost",
    ".local",
    ".internal",
    ".intranet",
    ".private",
    ".corp",
    ".lan",
    ".home",
    ".home.arpa",
    ".svc",
    ".consul",
    ".test",
];

/// Whether the host of `url` is a private address, or a name that only a private network resolves. False for a public DNS name that resolves to a
/// private address.
pub(crate) fn is_private_url(url: &str) -> bool {
    let host = url.parse::<http::Uri>().ok();
    let host = host.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return !is_public(address);
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    !host.contains('.') || PRIVATE_SUFFIXES.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_private_networks_are_recognised() {
        for (url, expected) in [
            ("http://127.0.0.1:8000/v1", true),
            ("http://10.1.2.3/v1", true),
            ("http://[::1]:8000", true),
            ("http://[fd00::1]/v1", true),
            ("http://localhost:11434/v1", true),
            ("http://vllm:8000", true),
            ("http://vllm.models.svc.cluster.local:8000", true),
            ("http://GPU.Corp./v1", true),
            ("http://llm.example.internal/v1", true),
            ("https://api.openai.com/v1", false),
            ("https://8.8.8.8/v1", false),
            ("https://[2606:4700::1111]/v1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(is_private_url(url), expected, "{url}");
        }
    }
}
