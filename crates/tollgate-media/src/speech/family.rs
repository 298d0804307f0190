//! [`Family`]: the declaration of speech models with the same parameters.

use std::fmt;

use crate::endpoint::RequestLayout;
use crate::fields::field::Field;
use crate::fields::spec::{NoSizes, RequestSpec, Rule};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

/// Speech models with the same parameters. The parser, the OpenAPI schema and the docs page derive from it.
pub struct Family {
    /// The family's identifier: `like = …` in the configuration, the name of its docs page, `SpeechJob::family`.
    pub name: &'static str,
    /// The family's display name.
    pub title: &'static str,
    /// A few sentences at the beginning of the docs page.
    pub about: &'static str,
    /// The family's model ids, the primary one first.
    pub models: &'static [&'static str],
    /// Whether the ids are names of one model, for which prices, channels and keys use the first. Otherwise each id is a model.
    pub one_model: bool,
    /// The request fields in each layout, without the model field.
    pub fields: FieldsByLayout,
    /// Fields that are accepted without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// Rules that involve more than one field.
    pub rules: &'static [Rule],
    /// How long links to results stay valid.
    pub link_ttl: LinkTtl,
    /// Whether texts pass the safety review by default.
    pub safety_review: bool,
}

/// The fields of each request layout. Fields with the same meaning have different names in each layout.
pub struct FieldsByLayout {
    /// The fields of `POST /v1/audio/speech`.
    pub standard: &'static [Field],
    /// The fields of `POST /native/v1/audio/tts`.
    pub native: &'static [Field],
    /// The fields of `POST /v1/multimodal/audio/generations`.
    pub multimodal: &'static [Field],
}

impl fmt::Debug for Family {
    /// Writes only the name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// The family's request fields in that layout.
    pub fn fields(&self, layout: RequestLayout) -> &'static [Field] {
        match layout {
            RequestLayout::Standard => self.fields.standard,
            RequestLayout::NativeSpeech => self.fields.native,
            RequestLayout::MultimodalSpeech => self.fields.multimodal,
        }
    }

    /// The declaration of the family's requests in that layout.
    pub(crate) fn request_spec(&'static self, layout: RequestLayout) -> RequestSpec {
        RequestSpec {
            title: self.title,
            about: self.about,
            models: self.models,
            model_field: layout.model_field(),
            fields: self.fields(layout),
            ignored: self.ignored,
            input_limits: InputLimits::NONE,
            rules: self.rules,
            sizes: &NoSizes,
        }
    }
}
