//! `encrypted_content`: where this format's clients carry what only a vendor understands.
//!
//! OpenAI's own goes in and out as it is. What other vendors sign is wrapped ([`Opaque::wrapped`]), and what a reasoning item does
//! not have a place for is told apart by a word behind the vendor: thinking that is redacted, a signature on a tool call (behind the
//! call's id), a signature on a text.

use crate::hub::Opaque;

/// The vendor whose opaque text this format carries without wrapping.
pub(super) const VENDOR: &str = "openai";

const REDACTED: &str = "+redacted";
const CALL: &str = "+call";
const TEXT: &str = "+text";

/// What `encrypted_content` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sealed {
    /// What proves the reasoning beside it.
    Signature(Opaque),
    /// Thinking that only its vendor can read.
    Redacted(Opaque),
    /// A signature on the call of that id.
    OnCall(String, Opaque),
    /// A signature on the text before it.
    OnText(Opaque),
}

impl Sealed {
    /// As text for `encrypted_content`.
    pub(super) fn seal(&self) -> String {
        match self {
            Self::Signature(opaque) | Self::Redacted(opaque) if opaque.vendor == VENDOR => {
                opaque.data.clone()
            }
            Self::Signature(opaque) => opaque.wrapped(),
            Self::Redacted(opaque) => marked(opaque, REDACTED, opaque.data.clone()),
            Self::OnCall(id, opaque) => marked(opaque, CALL, format!("{id}\n{}", opaque.data)),
            Self::OnText(opaque) => marked(opaque, TEXT, opaque.data.clone()),
        }
    }

    /// What [`Sealed::seal`] made, or OpenAI's own.
    pub(super) fn open(text: &str) -> Self {
        let opaque = Opaque::unwrapped(text, VENDOR);
        let plain = |mark: &str| {
            let vendor = opaque.vendor.strip_suffix(mark)?;
            Some(Opaque::new(vendor, opaque.data.clone()))
        };
        if let Some(opaque) = plain(REDACTED) {
            return Self::Redacted(opaque);
        }
        if let Some(opaque) = plain(TEXT) {
            return Self::OnText(opaque);
        }
        if let Some(both) = plain(CALL)
            && let Some((id, data)) = both.data.split_once('\n')
        {
            return Self::OnCall(id.to_owned(), Opaque::new(&both.vendor, data));
        }
        Self::Signature(opaque)
    }
}

fn marked(opaque: &Opaque, mark: &str, data: String) -> String {
    Opaque::new(format!("{}{mark}", opaque.vendor), data).wrapped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_again() {
        let of = |vendor: &str| Opaque::new(vendor, "sig\n=+/ü");
        for sealed in [
            Sealed::Signature(of("openai")),
            Sealed::Signature(of("anthropic")),
            Sealed::Redacted(of("anthropic")),
            Sealed::OnCall("call_1".to_owned(), of("gemini")),
            Sealed::OnText(of("gemini")),
        ] {
            assert_eq!(Sealed::open(&sealed.seal()), sealed);
        }
        assert_eq!(Sealed::Signature(of("openai")).seal(), "sig\n=+/ü");
    }
}
