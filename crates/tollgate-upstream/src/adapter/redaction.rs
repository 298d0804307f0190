//! Redacts upstream error messages before clients receive them: keys, ids of the operator's account, the upstream's host and private addresses are
//! replaced.

use std::net::{IpAddr, SocketAddr};

use url::Url;

use crate::channel::Channel;
use crate::egress::is_public;

/// Maximum length of a message in bytes; longer ones are cut.
const MAX_BYTES: usize = 4_096;
/// The replacement for a secret.
const MASK: &str = "***";
/// The replacement for the upstream's host.
const HOST_PLACEHOLDER: &str = "upstream";
/// Prefixes of keys, and the minimum length in bytes from which a word with that prefix counts as a key.
const KEY_PREFIXES: &[(&str, usize)] = &[("sk-", 8), ("AIza", 24), ("xai-", 12), ("ya29.", 24)];
/// Prefixes of ids of the operator's organisation, project or account at the provider, and their minimum length in bytes.
const ACCOUNT_PREFIXES: &[(&str, usize)] = &[
    ("org-", 12),
    ("org_", 12),
    ("proj_", 12),
    ("wrkspc_", 12),
    ("projects/", 10),
    ("project #", 10),
    ("project number ", 16),
    ("project ", 14),
];

/// `text` without the channel's keys, the upstream's host and anything that looks like a key.
pub(super) fn redact(text: &str, channel: &Channel) -> String {
    let mut text = text.trim().to_owned();
    for key in &channel.api_keys {
        // A very short key (in tests) would match ordinary words.
        if key.expose().len() >= 6 {
            text = text.replace(key.expose(), MASK);
        }
    }
    for (prefix, min_bytes) in KEY_PREFIXES {
        text = mask_keys(&text, prefix, *min_bytes);
    }
    for (prefix, min_bytes) in ACCOUNT_PREFIXES {
        text = mask_accounts(&text, prefix, *min_bytes);
    }
    text = mask_private_addresses(&text);
    if let Some(base) = channel.base_url.as_deref() {
        text = replace_host(text, base);
    }
    truncate(text)
}

/// Masks words that begin with `prefix` and are at least `min_bytes` long.
fn mask_keys(text: &str, prefix: &str, min_bytes: usize) -> String {
    let in_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, word) = rest.split_at(at);
        let end = word[prefix.len()..].find(|c| !in_key(c));
        let end = end.map_or(word.len(), |end| prefix.len() + end);
        let is_word_start = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        out.push_str(if is_word_start && end >= min_bytes {
            MASK
        } else {
            &word[..end]
        });
        rest = &word[end..];
    }
    out.push_str(rest);
    out
}

/// Masks ids that follow `prefix`, in any case, and are at least `min_bytes` long with it. After a word, only numbers are ids.
fn mask_accounts(text: &str, prefix: &str, min_bytes: usize) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, _) in lower.match_indices(prefix) {
        let start = at + prefix.len();
        let is_id = |c: char| match prefix.ends_with(' ') {
            true => c.is_ascii_digit(),
            false => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
        };
        let end = text[start..].find(|c| !is_id(c));
        let end = end.map_or(text.len(), |end| start + end);
        if at >= copied && end - at >= min_bytes {
            out.push_str(&text[copied..start]);
            out.push_str(MASK);
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Masks IP addresses that are not public: they reveal the structure of the operator's or the provider's network.
fn mask_private_addresses(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let end = piece.trim_end_matches(|c| !is_part(c)).len();
        let (word, rest) = piece.split_at(end);
        let address = word.trim_end_matches(['.', ':']);
        let socket = address.parse::<SocketAddr>().map(|socket| socket.ip());
        let ip = address.parse::<IpAddr>().or(socket);
        let is_private = ip.is_ok_and(|ip| match ip {
            IpAddr::V4(_) => !is_public(ip),
            // Many texts that are not addresses parse as IPv6.
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
        });
        match is_private {
            true => out.push_str(HOST_PLACEHOLDER),
            false => out.push_str(address),
        }
        out.push_str(&word[address.len()..]);
        out.push_str(rest);
    }
    out
}

/// Replaces the host of the URL `base`.
fn replace_host(mut text: String, base: &str) -> String {
    let Ok(url) = Url::parse(base) else {
        return text;
    };
    let Some(host) = url.host_str() else {
        return text;
    };
    if let Some(port) = url.port() {
        text = replace_ignoring_case(&text, &format!("{host}:{port}"), HOST_PLACEHOLDER);
    }
    // A one-word host ("ollama") may also be an ordinary word: it is replaced only in URLs.
    if host.contains(['.', ':']) || host == "localhost" {
        return replace_ignoring_case(&text, host, HOST_PLACEHOLDER);
    }
    replace_ignoring_case(
        &text,
        &format!("//{host}"),
        &format!("//{HOST_PLACEHOLDER}"),
    )
}

/// Like `str::replace`, but without regard to case.
fn replace_ignoring_case(text: &str, what: &str, by: &str) -> String {
    // ASCII lower case keeps byte offsets.
    let lower = text.to_ascii_lowercase();
    let what = what.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, _) in lower.match_indices(&what) {
        out.push_str(&text[copied..at]);
        out.push_str(by);
        copied = at + what.len();
    }
    out.push_str(&text[copied..]);
    out
}

/// Cuts `text` between characters to at most [`MAX_BYTES`].
fn truncate(mut text: String) -> String {
    if text.len() > MAX_BYTES {
        let end = (0..=MAX_BYTES).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;
    use tollgate_core::Secret;

    #[test]
    fn keys_and_hosts_are_replaced_and_the_rest_is_kept() {
        let channel = |base: &str| Channel {
            base_url: Some(base.to_owned()),
            api_keys: vec![Secret::new("my/odd+key=1"), Secret::new("k")],
            ..Channel::default()
        };
        for [base, text, expected] in rows::<[String; 3]>("redaction") {
            assert_eq!(redact(&text, &channel(&base)), expected);
        }
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = redact(&"猫".repeat(5_000), &Channel::default());
        assert!(long.len() <= MAX_BYTES + '…'.len_utf8() && long.ends_with("猫…"));
    }
}
