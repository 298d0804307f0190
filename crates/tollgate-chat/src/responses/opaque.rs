//! `encrypted_content`: where this format's clients carry what only a vendor understands.
//!
//! OpenAI's own goes in and out as it is. What other vendors sign is wrapped ([`Opaque::wrapped`]), and what a reasoning item does
//! not have a place for is told apart by a word behind the vendor: thinking that is redacted, a signature on a tool call (behind the
//! call's id), a signature on a text.
//!
//! OpenAI takes its own back only under the id of the item that it came with. Clients of formats without such ids bring it back too, so
//! the id goes before it on its way to them.

use crate::hub::Opaque;

/// The vendor whose opaque text this format carries without wrapping.
pub(super) const VENDOR: &str = "openai";

/// How ids of reasoning items begin.
const ID: &str = "rs_";

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
                without_id(opaque).1.to_owned()
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

/// OpenAI's own behind the id of its item.
pub(super) fn with_id(opaque: Opaque, id: Option<&str>) -> Opaque {
    match id.filter(|id| opaque.vendor == VENDOR && id.starts_with(ID)) {
        Some(id) => Opaque::new(VENDOR, format!("{id}\n{}", opaque.data)),
        None => opaque,
    }
}

/// What [`with_id`] joined.
pub(super) fn without_id(opaque: &Opaque) -> (Option<&str>, &str) {
    let joined = opaque.data.split_once('\n');
    match joined.filter(|(id, _)| opaque.vendor == VENDOR && id.starts_with(ID)) {
        Some((id, data)) => (Some(id), data),
        None => (None, &opaque.data),
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

    #[test]
    fn ids_go_with_what_openai_sealed_and_with_nothing_else() {
        let own = with_id(Opaque::new(VENDOR, "sig"), Some("rs_1"));
        assert_eq!(without_id(&own), (Some("rs_1"), "sig"));
        assert_eq!(Sealed::Signature(own).seal(), "sig");
        for (vendor, id) in [(VENDOR, None), ("gemini", Some("rs_1"))] {
            let opaque = Opaque::new(vendor, "sig");
            assert_eq!(with_id(opaque.clone(), id), opaque);
            assert_eq!(without_id(&opaque), (None, "sig"));
        }
    }
}
