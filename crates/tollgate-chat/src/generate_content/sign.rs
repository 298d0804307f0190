//! Signatures: `thoughtSignature` is bytes in base64 that only its vendor understands.
//!
//! SDKs decode it and encode it anew, often in the URL-safe alphabet, so a signature of another vendor travels as the base64 of its
//! wrapped text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::VENDOR;
use crate::hub::{Kind, Opaque};
use crate::media::clean_base64;

/// What upstreams take in place of a signature that the history never had.
pub(super) const SKIP: &str = "skip_thought_signature_validator";

/// What wrapped texts begin with.
const WRAPPED: &[u8] = b"tg1.";
/// Marks, before the vendor's name, thinking that is all opaque.
const REDACTED: &str = "redacted-";

/// The signature that `text` is: another vendor's where one was wrapped in it.
pub(super) fn read(text: String) -> Opaque {
    match unwrap(&text) {
        Some(opaque) => opaque,
        None => Opaque::new(VENDOR, text),
    }
}

fn unwrap(text: &str) -> Option<Opaque> {
    let bytes = STANDARD.decode(clean_base64(text).ok()?.as_bytes()).ok()?;
    let wrapped = bytes.starts_with(WRAPPED).then_some(bytes)?;
    let opaque = Opaque::unwrapped(&String::from_utf8(wrapped).ok()?, VENDOR);
    (opaque.vendor != VENDOR).then_some(opaque)
}

/// A thinking part, or what was redacted where that is what its signature says.
pub(super) fn thinking(text: String, signature: Option<Opaque>) -> Kind {
    match signature {
        Some(Opaque { vendor, data }) if text.is_empty() && vendor.starts_with(REDACTED) => {
            Kind::Redacted(Opaque::new(&vendor[REDACTED.len()..], data))
        }
        signature => Kind::Reasoning {
            text,
            signature,
            id: None,
            summary: true,
        },
    }
}

/// A signature for an upstream: only its own.
pub(super) fn for_upstream(signature: Option<&Opaque>) -> Option<&str> {
    signature
        .filter(|opaque| opaque.vendor == VENDOR)
        .map(|opaque| opaque.data.as_str())
}

/// A signature for a client, who brings it back.
pub(super) fn for_client(opaque: &Opaque) -> String {
    if opaque.vendor == VENDOR {
        return opaque.data.clone();
    }
    STANDARD.encode(opaque.wrapped())
}

/// Redacted thinking for a client.
pub(super) fn redacted_for_client(opaque: &Opaque) -> String {
    for_client(&Opaque::new(
        format!("{REDACTED}{}", opaque.vendor),
        opaque.data.clone(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_every_vendor_come_back_as_they_were() {
        for vendor in ["gemini", "anthropic", "openai"] {
            let opaque = Opaque::new(vendor, "EqQBCkYIAR/+");
            let sent = for_client(&opaque);
            assert!(clean_base64(&sent).is_ok(), "SDKs decode it: {sent}");
            assert_eq!(read(sent.clone()), opaque);
            // An SDK encoded it anew.
            let safe = sent.replace('+', "-").replace('/', "_");
            if vendor != "gemini" {
                assert_eq!(read(safe.trim_end_matches('=').to_owned()), opaque);
            }
            let hidden = redacted_for_client(&opaque);
            if vendor != "gemini" {
                assert_eq!(
                    thinking(String::new(), Some(read(hidden))),
                    Kind::Redacted(opaque)
                );
            }
        }
        assert_eq!(read(SKIP.to_owned()), Opaque::new("gemini", SKIP));
    }

    #[test]
    fn only_its_own_vendor_gets_a_signature() {
        assert_eq!(for_upstream(Some(&Opaque::new("gemini", "x"))), Some("x"));
        assert_eq!(for_upstream(Some(&Opaque::new("anthropic", "x"))), None);
        assert_eq!(for_upstream(None), None);
    }
}
