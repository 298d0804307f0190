//! A speech family: everything that SPEC.md says about its models, as one declaration.

use std::fmt;

use crate::form::field::Field;
use crate::form::{Form, NoSizes, Rule};
use crate::input::InputRules;
use crate::{LinkLife, RequestShape};

/// Speech models that share their parameters. Validation, the OpenAPI schema and the docs page are all read off this.
pub struct Family {
    /// Its short name: `like = …` in the configuration, the name of its docs page, `SpeechJob::family`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// A few sentences that open its docs page.
    pub about: &'static str,
    /// Its model ids. The first is the usual one.
    pub models: &'static [&'static str],
    /// Its request fields in each shape, the one that names the model aside.
    pub fields: Shapes,
    /// Fields that it takes without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// What no table says.
    pub rules: &'static [Rule],
    /// How long its results are kept.
    pub links: LinkLife,
    /// Whether texts pass the safety review unless the configuration says otherwise.
    pub safety_review: bool,
}

/// The fields of each request shape. Fields that mean the same stand under any of the names that
/// [`SpeechJob`](super::SpeechJob) is read from.
pub struct Shapes {
    /// Of `POST /v1/audio/speech`.
    pub usual: &'static [Field],
    /// Of `POST /native/v1/audio/tts`.
    pub native: &'static [Field],
    /// Of `POST /v1/multimodal/audio/generations`.
    pub multimodal: &'static [Field],
}

impl fmt::Debug for Family {
    /// Its name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// Its request fields in that shape.
    pub fn fields(&self, shape: RequestShape) -> &'static [Field] {
        match shape {
            RequestShape::Usual => self.fields.usual,
            RequestShape::NativeSpeech => self.fields.native,
            RequestShape::MultimodalSpeech => self.fields.multimodal,
        }
    }

    /// What its requests in that shape hold.
    pub(crate) fn form(&'static self, shape: RequestShape) -> Form {
        Form {
            title: self.title,
            about: self.about,
            models: self.models,
            model_field: shape.model_field(),
            fields: self.fields(shape),
            ignored: self.ignored,
            inputs: InputRules::NONE,
            rules: self.rules,
            sizes: &NoSizes,
        }
    }
}
