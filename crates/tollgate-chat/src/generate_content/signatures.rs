//! `thoughtSignature`: base64 of bytes that only the vendor who generated them can interpret.
//!
//! SDKs decode it and encode it again, often in the URL-safe alphabet, so another vendor's
//! signature is sent as the base64 of its wrapped text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::constants::VENDOR;
use crate::hub::{Opaque, PartKind};
use crate::media::normalize_base64;

/// Upstreams accept this value in place of a signature that the conversation never had.
pub(crate) const SKIP_VALIDATOR: &str = "skip_thought_signature_validator";

/// Prefix of wrapped signatures.
const WRAPPED: &[u8] = b"tg1.";
/// Prefix of the vendor's name for redacted thinking.
const REDACTED_PREFIX: &str = "redacted-";

/// Reads a signature; a wrapped one is unwrapped to the other vendor's signature.
pub(crate) fn read_signature(text: String) -> Opaque {
    match unwrap_signature(&text) {
        Some(opaque) => opaque,
        None => Opaque::new(VENDOR, text),
    }
}

fn unwrap_signature(text: &str) -> Option<Opaque> {
    let bytes = STANDARD
        .decode(normalize_base64(text).ok()?.as_bytes())
        .ok()?;
    let wrapped = bytes.starts_with(WRAPPED).then_some(bytes)?;
    let opaque = Opaque::from_portable(&String::from_utf8(wrapped).ok()?, VENDOR);
    (opaque.vendor != VENDOR).then_some(opaque)
}

/// A thinking part, or redacted thinking if the signature says so.
pub(crate) fn reasoning_kind(text: String, signature: Option<Opaque>) -> PartKind {
    match signature {
        Some(Opaque { vendor, data }) if text.is_empty() && vendor.starts_with(REDACTED_PREFIX) => {
            PartKind::RedactedReasoning(Opaque::new(&vendor[REDACTED_PREFIX.len()..], data))
        }
        signature => PartKind::Reasoning {
            text,
            signature,
            id: None,
            summary: true,
        },
    }
}

/// The signature for an upstream. `None` if it is another vendor's.
pub(crate) fn for_upstream(signature: Option<&Opaque>) -> Option<&str> {
    signature
        .filter(|opaque| opaque.vendor == VENDOR)
        .map(|opaque| opaque.data.as_str())
}

/// The signature for a client, which sends it back in the next request.
pub(crate) fn for_client(opaque: &Opaque) -> String {
    if opaque.vendor == VENDOR {
        return opaque.data.clone();
    }
    STANDARD.encode(opaque.to_portable())
}

/// Redacted thinking for a client.
pub(crate) fn redacted_for_client(opaque: &Opaque) -> String {
    for_client(&Opaque::new(
        format!("{REDACTED_PREFIX}{}", opaque.vendor),
        opaque.data.clone(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_unchanged_after_a_round_trip_through_the_client() {
        for vendor in ["gemini", "anthropic", "openai"] {
            let opaque = Opaque::new(vendor, "EqQBCkYIAR/+");
            let sent = for_client(&opaque);
            assert!(normalize_base64(&sent).is_ok(), "SDKs decode it: {sent}");
            assert_eq!(read_signature(sent.clone()), opaque);
            // An SDK decoded the signature and encoded it again.
            let safe = sent.replace('+', "-").replace('/', "_");
            if vendor != "gemini" {
                assert_eq!(
                    read_signature(safe.trim_end_matches('=').to_owned()),
                    opaque
                );
            }
            let hidden = redacted_for_client(&opaque);
            if vendor != "gemini" {
                assert_eq!(
                    reasoning_kind(String::new(), Some(read_signature(hidden))),
                    PartKind::RedactedReasoning(opaque)
                );
            }
        }
        assert_eq!(
            read_signature(SKIP_VALIDATOR.to_owned()),
            Opaque::new("gemini", SKIP_VALIDATOR)
        );
    }

    #[test]
    fn signatures_go_only_to_the_vendor_that_created_them() {
        assert_eq!(for_upstream(Some(&Opaque::new("gemini", "x"))), Some("x"));
        assert_eq!(for_upstream(Some(&Opaque::new("anthropic", "x"))), None);
        assert_eq!(for_upstream(None), None);
    }
}
