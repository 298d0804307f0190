//! `encrypted_content` of reasoning items: opaque text that only the vendor who generated it can interpret.
//!
//! OpenAI's own text is passed on unchanged. Signatures of other vendors are wrapped ([`Opaque::to_portable`]); a suffix on the vendor's name
//! distinguishes the kinds that a reasoning item has no field for: redacted thinking, the signature of a tool call (with the call's id) and the
//! signature of a text.
//!
//! OpenAI accepts its own text only under the id of the item in which it was sent. Clients of formats without item ids return the text too, so the
//! gateway puts the id in front of it in responses to them.

use crate::hub::Opaque;

/// The vendor whose opaque text this format sends without wrapping.
pub(super) const VENDOR: &str = "openai";

/// Prefix of the ids of reasoning items.
const REASONING_ID_PREFIX: &str = "rs_";

const REDACTED_SUFFIX: &str = "+redacted";
const CALL_SUFFIX: &str = "+call";
const TEXT_SUFFIX: &str = "+text";

/// The decoded meaning of `encrypted_content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EncryptedContent {
    /// The signature of the reasoning in the same item.
    Signature(Opaque),
    /// Redacted thinking: only its vendor can read it.
    Redacted(Opaque),
    /// The signature of the tool call with this id.
    CallSignature(String, Opaque),
    /// The signature of the text before it.
    TextSignature(Opaque),
}

impl EncryptedContent {
    /// The text for `encrypted_content`.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Signature(opaque) | Self::Redacted(opaque) if opaque.vendor == VENDOR => {
                split_item_id(opaque).1.to_owned()
            }
            Self::Signature(opaque) => opaque.to_portable(),
            Self::Redacted(opaque) => {
                wrap_with_suffix(opaque, REDACTED_SUFFIX, opaque.data.clone())
            }
            Self::CallSignature(id, opaque) => {
                wrap_with_suffix(opaque, CALL_SUFFIX, format!("{id}\n{}", opaque.data))
            }
            Self::TextSignature(opaque) => {
                wrap_with_suffix(opaque, TEXT_SUFFIX, opaque.data.clone())
            }
        }
    }

    /// Decodes the result of [`EncryptedContent::encode`]; any other text is OpenAI's own
    /// signature.
    pub(super) fn decode(text: &str) -> Self {
        let opaque = Opaque::from_portable(text, VENDOR);
        let without_suffix = |suffix: &str| {
            let vendor = opaque.vendor.strip_suffix(suffix)?;
            Some(Opaque::new(vendor, opaque.data.clone()))
        };
        if let Some(opaque) = without_suffix(REDACTED_SUFFIX) {
            return Self::Redacted(opaque);
        }
        if let Some(opaque) = without_suffix(TEXT_SUFFIX) {
            return Self::TextSignature(opaque);
        }
        if let Some(both) = without_suffix(CALL_SUFFIX)
            && let Some((id, data)) = both.data.split_once('\n')
        {
            return Self::CallSignature(id.to_owned(), Opaque::new(&both.vendor, data));
        }
        Self::Signature(opaque)
    }
}

/// Puts the id of its reasoning item in front of OpenAI's own opaque text.
pub(super) fn prepend_item_id(opaque: Opaque, id: Option<&str>) -> Opaque {
    match id.filter(|id| opaque.vendor == VENDOR && id.starts_with(REASONING_ID_PREFIX)) {
        Some(id) => Opaque::new(VENDOR, format!("{id}\n{}", opaque.data)),
        None => opaque,
    }
}

/// Splits what [`prepend_item_id`] joined into the item id, if there is one, and the opaque text.
pub(super) fn split_item_id(opaque: &Opaque) -> (Option<&str>, &str) {
    let joined = opaque.data.split_once('\n');
    match joined.filter(|(id, _)| opaque.vendor == VENDOR && id.starts_with(REASONING_ID_PREFIX)) {
        Some((id, data)) => (Some(id), data),
        None => (None, &opaque.data),
    }
}

fn wrap_with_suffix(opaque: &Opaque, suffix: &str, data: String) -> String {
    Opaque::new(format!("{}{suffix}", opaque.vendor), data).to_portable()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_content_decodes_to_the_same() {
        let of = |vendor: &str| Opaque::new(vendor, "sig\n=+/ü");
        for content in [
            EncryptedContent::Signature(of("openai")),
            EncryptedContent::Signature(of("anthropic")),
            EncryptedContent::Redacted(of("anthropic")),
            EncryptedContent::CallSignature("call_1".to_owned(), of("gemini")),
            EncryptedContent::TextSignature(of("gemini")),
        ] {
            assert_eq!(EncryptedContent::decode(&content.encode()), content);
        }
        assert_eq!(
            EncryptedContent::Signature(of("openai")).encode(),
            "sig\n=+/ü"
        );
    }

    #[test]
    fn item_ids_are_prepended_only_to_content_of_openai() {
        let extra = prepend_item_id(Opaque::new(VENDOR, "sig"), Some("rs_1"));
        assert_eq!(split_item_id(&extra), (Some("rs_1"), "sig"));
        assert_eq!(EncryptedContent::Signature(extra).encode(), "sig");
        for (vendor, id) in [(VENDOR, None), ("gemini", Some("rs_1"))] {
            let opaque = Opaque::new(vendor, "sig");
            assert_eq!(prepend_item_id(opaque.clone(), id), opaque);
            assert_eq!(split_item_id(&opaque), (None, "sig"));
        }
    }
}
