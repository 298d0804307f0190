//! An upstream's words without what is none of the client's business: keys, and where the upstream is.

use url::Url;

use crate::channel::Channel;

/// Longest text that goes on to a client, in bytes.
const LONGEST: usize = 4_096;
/// What stands in for a secret.
const MASK: &str = "***";
/// What stands in for the upstream's host.
const PLACE: &str = "upstream";
/// How keys begin, and how long the whole must be to be one.
const KEYS: &[(&str, usize)] = &[("sk-", 8), ("AIza", 24), ("xai-", 12), ("ya29.", 24)];

/// `text` without the channel's keys, its host and whatever looks like a key.
pub(super) fn message(text: &str, channel: &Channel) -> String {
    let mut text = text.trim().to_owned();
    for key in &channel.api_keys {
        // A key of a few letters is a test's, and stands in every text.
        if key.expose().len() >= 6 {
            text = text.replace(key.expose(), MASK);
        }
    }
    for (start, least) in KEYS {
        text = without_keys(&text, start, *least);
    }
    if let Some(base) = channel.base_url.as_deref() {
        text = without_host(text, base);
    }
    shortened(text)
}

/// Masks words that begin with `start` and are at least `least` bytes long.
fn without_keys(text: &str, start: &str, least: usize) -> String {
    let in_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let (before, word) = rest.split_at(at);
        let end = word[start.len()..].find(|c| !in_key(c));
        let end = end.map_or(word.len(), |end| start.len() + end);
        let begins = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        out.push_str(if begins && end >= least {
            MASK
        } else {
            &word[..end]
        });
        rest = &word[end..];
    }
    out.push_str(rest);
    out
}

fn without_host(mut text: String, base: &str) -> String {
    let Ok(url) = Url::parse(base) else {
        return text;
    };
    let Some(host) = url.host_str() else {
        return text;
    };
    if let Some(port) = url.port() {
        text = replaced(&text, &format!("{host}:{port}"), PLACE);
    }
    // A name of one word ("ollama") may be a word of the sentence as well.
    if host.contains(['.', ':']) || host == "localhost" {
        return replaced(&text, host, PLACE);
    }
    replaced(&text, &format!("//{host}"), &format!("//{PLACE}"))
}

/// Like `str::replace`, but without regard to case.
fn replaced(text: &str, what: &str, by: &str) -> String {
    // In ASCII the places stay the same.
    let lower = text.to_ascii_lowercase();
    let what = what.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in lower.match_indices(&what) {
        out.push_str(&text[done..at]);
        out.push_str(by);
        done = at + what.len();
    }
    out.push_str(&text[done..]);
    out
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Secret;

    #[test]
    fn keys_and_hosts_are_taken_out_and_the_rest_stays() {
        let channel = |base: &str| Channel {
            base_url: Some(base.to_owned()),
            api_keys: vec![Secret::new("my/odd+key=1"), Secret::new("k")],
            ..Channel::default()
        };
        for (base, text, expected) in [
            (
                "https://a.example/v1",
                "no my/odd+key=1 here, ok",
                "no *** here, ok",
            ),
            (
                "https://a.example/v1",
                "Incorrect key: sk-ab12****cd90.",
                "Incorrect key: ***.",
            ),
            (
                "https://a.example/v1",
                "sk-proj-AbC_1-9 and sk-1 and risk-assessment",
                "*** and sk-1 and risk-assessment",
            ),
            (
                "https://a.example/v1",
                "AIzaSyA1234567890123456789012345678901 bad",
                "*** bad",
            ),
            (
                "https://a.example/v1",
                "token ya29.c0AbCd_1234567890-abcdefgh bad",
                "token *** bad",
            ),
            (
                "https://a.example/v1",
                "see https://A.example/v1/chat (a.example)",
                "see https://upstream/v1/chat (upstream)",
            ),
            (
                "http://10.1.2.3:8080/v1",
                "dial 10.1.2.3:8080 refused by 10.1.2.3",
                "dial upstream refused by upstream",
            ),
            (
                "http://llm:8000",
                "the llm at http://llm:8000/x, //llm/",
                "the llm at http://upstream/x, //upstream/",
            ),
            ("https://a.example", "猫 sk-", "猫 sk-"),
        ] {
            assert_eq!(message(text, &channel(base)), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = message(&"猫".repeat(5_000), &Channel::default());
        assert!(long.len() <= LONGEST + '…'.len_utf8() && long.ends_with("猫…"));
    }
}
