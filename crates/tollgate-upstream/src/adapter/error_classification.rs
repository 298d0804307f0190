//! Classifies an upstream's error by HTTP status, machine-readable code and message. OpenAI's, Anthropic's and Google's chats and most providers of
//! tasks share these rules.

use crate::error::UpstreamErrorKind;

/// Error codes for used-up credit or quota, whatever the status.
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient_balance",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
];
/// Phrases for used-up credit or quota. "exceeded your current quota" is not one of them: Google uses it for a rate per minute too.
const QUOTA_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient_quota",
    "reached your specified api usage limits",
    "enable billing",
    "billing hard limit",
    "prepayment credits are depleted",
];
/// Codes and phrases for a key or an operator's account that the provider does not accept.
const KEY_CODES: &[&str] = &[
    "API_KEY_INVALID",
    "invalid_api_key",
    "invalid_authentication",
];
const KEY_PHRASES: &[&str] = &[
    "api key not valid",
    "api key expired",
    "api key not found",
    "location is not supported",
];
const MODEL_CODES: &[&str] = &[
    "model_not_found",
    "model_not_available",
    "invalid_model",
    "unknown_model",
    "unsupported_model",
];
/// Codes about a conversation that the vendor stores: the client must send its history again.
const THREAD_CODES: &[&str] = &[
    "thread_unsupported_request",
    "thread_not_found",
    "thread_already_continued",
    "thread_continue_in_flight",
];
/// Kinds of objects that a client stores at a provider and refers to by id. If one is missing or belongs to another account, no other channel has it
/// either, and the failure does not count against the channel.
const CLIENT_RESOURCES: &[&str] = &[
    "batch",
    "cached content",
    "cachedcontent",
    "cachedcontents/",
    "container",
    "conversation",
    "file",
    "response",
    "thread",
    "upload",
    "vector store",
];
/// The number of characters at the beginning of a message in which phrases count: the text after them may quote the client.
const HEAD: usize = 160;
/// Phrases that follow the word "model" in a message about a missing model.
const MODEL_PHRASES: &[&str] = &[
    "not found",
    "not exist",
    "no such",
    "unknown",
    "not a valid",
];

/// The kind of an error response.
pub(crate) fn classify_error(status: u16, code: &str, message: &str) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, QuotaExhausted, RateLimited, Rejected, Unavailable,
    };
    let message = unquoted_head(message);
    let has_phrase = |list: &[&str]| list.iter().any(|phrase| message.contains(phrase));
    let is_client_status = (400..500).contains(&status);
    let has_code = |list: &[&str]| list.iter().any(|known| code.eq_ignore_ascii_case(known));
    if is_client_status && has_code(THREAD_CODES) {
        return Rejected;
    }
    if matches!(status, 400 | 402 | 403 | 429)
        && (has_code(QUOTA_CODES) || has_phrase(QUOTA_PHRASES))
    {
        return QuotaExhausted;
    }
    if status == 400 && (has_code(KEY_CODES) || has_phrase(KEY_PHRASES)) {
        return KeyRejected;
    }
    if is_client_status && has_code(MODEL_CODES) {
        return ModelNotFound;
    }
    match status {
        402 => QuotaExhausted,
        403 | 404 if is_about_client_resource(&message) => Rejected,
        401 | 403 => KeyRejected,
        404 => ModelNotFound,
        400 if is_about_missing_model(&message) => ModelNotFound,
        429 => RateLimited,
        408 | 409 => Unavailable,
        400..=499 => Rejected,
        _ => Unavailable,
    }
}

/// The beginning of a message in lower case, without quoted text: providers quote what the client sent.
fn unquoted_head(message: &str) -> String {
    const QUOTES: &[(char, char)] = &[('"', '"'), ('`', '`'), ('\'', '\''), ('“', '”'), ('‘', '’')];
    let mut text = String::new();
    let mut closing = None;
    let mut before = ' ';
    for c in message.chars().take(HEAD) {
        let opens = QUOTES.iter().find(|(opening, _)| *opening == c);
        match (closing, opens) {
            (Some(end), _) if c == end => closing = None,
            (Some(_), _) => {}
            // An apostrophe within a word does not begin a quotation.
            (None, Some((_, end))) if !before.is_alphanumeric() => closing = Some(*end),
            _ => text.extend(c.to_lowercase()),
        }
        before = c;
    }
    text
}

/// Whether the provider's message is about an object that the client stores there.
fn is_about_client_resource(message: &str) -> bool {
    let is_named = CLIENT_RESOURCES.iter().any(|name| message.contains(name));
    message.contains(" with id ")
        || (is_named && !message.contains("model") && !message.contains("key"))
}

/// Whether the provider's message states that the model is missing.
fn is_about_missing_model(head: &str) -> bool {
    let Some(at) = head.find("model") else {
        return head.starts_with("unknown model");
    };
    at < 24
        && MODEL_PHRASES
            .iter()
            .any(|phrase| head[at..].contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn codes_and_unquoted_text_determine_the_error_kind() {
        for (status, code, message, expected) in
            rows::<(u16, String, String, String)>("error_kinds")
        {
            let kind = classify_error(status, &code, &message);
            assert_eq!(format!("{kind:?}"), expected, "{status} {code} {message}");
        }
        let long = format!("Bad request. {} enable billing", "x".repeat(HEAD));
        let kind = classify_error(400, "", &long);
        assert_eq!(kind, UpstreamErrorKind::Rejected);
    }
}
